"""Child processes that never outlive what they were started for, nor the factory itself, however it ends."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
GRACE_SECONDS = 2.0
"""How long a child has to end by itself what it put out of our reach: an agent's tools run in sessions of their own."""
# Waits for a line, which dismisses it; the end of its input without one is the factory's death.
_GUARD = 'read -r _ || { kill -s TERM -- "-$0" && sleep 2; kill -s KILL -- "-$0"; }'


@contextmanager
def started(command: Sequence[str], **options: Any) -> Iterator["subprocess.Popen[bytes]"]:
    """A child in a process group of its own; it and all it started end with the block.

    An interrupt that comes while the child is being made waits until it can be ended too: raised from within
    `Popen` it would leave a process that nobody knows.
    """
    with _held_back() as release:
        process = subprocess.Popen(command, start_new_session=True, **options)
        try:
            guard = _guard(process.pid)
            try:
                release()
                yield process
            finally:
                end_group(process)
                _dismiss(guard)
        finally:
            end_group(process)


def _guard(group: int) -> "subprocess.Popen[bytes]":
    """A shell that ends the group when this process is gone: killed with -9, it cannot do so itself."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": {}, "cwd": "/"}
    command = ["/bin/sh", "-c", _GUARD, str(group)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, **quiet)  # type: ignore[call-overload,no-any-return]


def _dismiss(guard: "subprocess.Popen[bytes]") -> None:
    with suppress(OSError):
        guard.communicate(b"\n")


def end_group(process: "subprocess.Popen[bytes]") -> None:
    """End what is left of a child's process group, and collect the child."""
    if process.poll() is None:
        _to_group(process, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
    _to_group(process, signal.SIGKILL)
    process.wait()


def _to_group(process: "subprocess.Popen[bytes]", signum: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signum)


@contextmanager
def _held_back() -> Iterator[Callable[[], None]]:
    """Signals wait until the given function is called, or the block ends. Only the main thread gets any."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    came: list[int] = []
    before = {number: signal.signal(number, lambda number, frame: came.append(number)) for number in _SIGNALS}

    def release() -> None:
        while before:
            number, handler = before.popitem()
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        while came:
            signal.raise_signal(came.pop())

    try:
        yield release
    finally:
        release()
