"""A child never outlives what it was started for, whenever an interrupt comes."""

import os
import signal
import subprocess
import threading
from typing import Any

import psutil
import pytest

from factory.children import started

SLEEP = ["/bin/sh", "-c", "sleep 600 & wait"]


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
