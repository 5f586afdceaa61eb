"""A child never outlives what it was started for, whenever an interrupt comes."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from factory.children import started

SLEEP = ["/bin/sh", "-c", "sleep 600 & wait"]


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_child_ends_with_its_block() -> None:  # SF-5
    with started(SLEEP) as child:
        assert not gone(child.pid)
    assert gone(child.pid)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_while_the_child_is_made_ends_it_too(monkeypatch: pytest.MonkeyPatch, signum: int) -> None:  # SF-5
    born: list[int] = []

    class Interrupted(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            born.append(self.pid)
            os.kill(os.getpid(), signum)

    monkeypatch.setattr("factory.children.subprocess.Popen", Interrupted)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), started(SLEEP):
            pytest.fail("the block began although it was interrupted")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert gone(born[0])


def test_a_child_has_a_moment_to_end_what_is_out_of_our_reach(tmp_path: Path) -> None:  # SF-5
    """As a coding agent's tools are, each in a session of its own."""
    script = "setsid sleep 600 & echo $! > pid; trap 'kill $!; exit' TERM; echo ready > begun; wait"
    with started(["/bin/sh", "-c", script], cwd=tmp_path):
        until((tmp_path / "begun").exists)
    until(lambda: gone(int((tmp_path / "pid").read_text())))


def test_a_child_that_will_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # SF-5
    monkeypatch.setattr("factory.children.GRACE_SECONDS", 0.1)
    with started(["/bin/sh", "-c", "trap '' TERM; : > begun; sleep 600 & wait; wait"], cwd=tmp_path) as child:
        until((tmp_path / "begun").exists)
    assert gone(child.pid)


def test_what_a_killed_factory_started_ends_with_it(tmp_path: Path) -> None:  # SF-5
    """`kill -9`: nobody is left to end the check, or the agent that goes on asking a model that is paid for."""
    factory = os.fork()
    if factory == 0:
        with started(["/bin/sh", "-c", "sleep 600 & echo $! > child; mv child pid; wait"], cwd=tmp_path):
            signal.pause()
        os._exit(0)
    until((tmp_path / "pid").exists)
    child = int((tmp_path / "pid").read_text())
    assert not gone(child)
    os.kill(factory, signal.SIGKILL)
    os.waitpid(factory, 0)
    until(lambda: gone(child))


def test_the_guard_is_gone_with_the_child() -> None:  # SF-5
    before = {one.pid for one in psutil.Process().children(recursive=True)}
    with started(["true"]):
        pass
    assert {one.pid for one in psutil.Process().children(recursive=True)} <= before


def test_the_handlers_are_as_before() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with started(["true"]):
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_thread_may_start_children_too() -> None:
    ended: list[int] = []

    def start() -> None:
        with started(SLEEP) as child:
            ended.append(child.pid)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert gone(ended[0])


def test_a_command_that_is_not_there_is_the_callers_error() -> None:
    with pytest.raises(FileNotFoundError), started(["/no/such/command"]):
        pass
