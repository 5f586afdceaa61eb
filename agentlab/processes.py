"""The child processes of a local site: started in groups of their own, watched, and ended with their parent."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

PR_SET_PDEATHSIG = 1
PATIENCE = 8.0  # seconds for a child to end by itself; gunicorn is told to take no more than three

DOUBLE = 1.0  # seconds within which two signals are one wish

# Loaded here, not in the child: between fork and exec nothing may be imported.
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def end_with_parent() -> None:
    """For `preexec_fn`: asks Linux to send SIGTERM when the thread that started the process is gone, however it went.

    Elsewhere nothing does that, and a parent that is killed leaves its children behind.
    """
    if _LIBC is not None:
        _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class ProcessError(Exception):
    """Says in one line what could not be started, or what ended."""


class Stop(BaseException):
    """Somebody asked this process to end. Not an Exception, so that nothing takes it for a fault of its own."""


@dataclass
class Child:
    """A running process and where it writes."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def code(self) -> int | None:
        return self.process.poll()

    def ended(self) -> ProcessError:
        """What to say about a child that ended by itself."""
        code = self.process.returncode
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        last = _last_line(self.log)
        return ProcessError(f"{self.name} {how}{f': {last}' if last else ''} (all of it: {self.log})")


class Stopping:
    """Turns the first SIGINT, SIGTERM or SIGHUP in its block into `Stop`; one that comes after a second sets `hurry`.

    Not earlier: `timeout make run` and the like send each signal twice, once themselves and once through make.
    """

    def __init__(self) -> None:
        self.hurry = False
        self._since: float | None = None

    def begin(self) -> None:
        """From now on a signal can only hurry."""
        if self._since is None:
            self._since = time.monotonic()

    def __enter__(self) -> "Stopping":
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # `nohup` means it
                signal.signal(number, self._signalled)
        return self

    def __exit__(self, *_: object) -> None:
        self.begin()

    def _signalled(self, _number: int, _frame: FrameType | None) -> None:
        if self._since is None:
            self.begin()
            raise Stop
        self.hurry = self.hurry or time.monotonic() - self._since > DOUBLE


@dataclass
class Children:
    """The children of this process. At the block's end they are ended, last started first: asked, then killed."""

    stopping: Stopping
    running: list[Child] = field(default_factory=list)

    def __enter__(self) -> "Children":
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.begin()
        for child in reversed(self.running):
            self._end(child)

    def start(
        self, name: str, arguments: Sequence[str], *, log: Path, env: Mapping[str, str], pass_fds: Sequence[int] = ()
    ) -> Child:
        """Starts a process that writes to `log`, which begins anew. Call from the main thread. Raises ProcessError."""
        try:
            with log.open("wb") as output:
                process = subprocess.Popen(
                    arguments,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env=dict(env),
                    pass_fds=pass_fds,
                    start_new_session=True,  # the terminal's Ctrl-C reaches the parent alone, which then ends all
                    preexec_fn=end_with_parent,  # noqa: PLW1509 - one prepared call, and no thread has started yet
                )
        except OSError as error:
            raise ProcessError(f"{name} cannot be started: {error.strerror}: {error.filename}") from None
        child = Child(name, process, log)
        self.running.append(child)
        return child

    def forget(self, child: Child) -> None:
        """The child ended as it should."""
        self.running.remove(child)

    def dead(self) -> Child | None:
        """A child that has ended by itself."""
        return next((child for child in self.running if child.code is not None), None)

    def _end(self, child: Child) -> None:
        """Asks first. Whoever is left in its group after that is killed."""
        child.process.terminate()
        deadline = time.monotonic() + PATIENCE
        while child.code is None and not self.stopping.hurry and time.monotonic() < deadline:
            time.sleep(0.02)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.process.pid, signal.SIGKILL)
        child.process.wait()


def _last_line(log: Path) -> str:
    try:
        lines = log.read_text(errors="replace").split("\n")
    except OSError:
        return ""
    return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "")
