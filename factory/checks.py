"""The command that must succeed before a phase counts as done."""

import os
import subprocess
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from factory.childenv import child_environment
from factory.children import started

TIMEOUT_SECONDS = 600.0
OUTPUT_LIMIT = 8 * 1024
"""Bytes of a failed check's output, its end, that go back to the agent: enough for a test's last failures."""
LAST_WORDS_SECONDS = 2.0
_CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True)
class CheckResult:
    passed: bool
    summary: str
    output: str


def run_check(command: str, workspace: Path, *, timeout: float = TIMEOUT_SECONDS) -> CheckResult:
    """Run a shell command in the workspace with the child environment; it and all it starts end with it."""
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    code: int | None = None
    with started(["/bin/sh", "-c", command], cwd=workspace, env=child_environment(), **streams) as process:
        assert process.stdout
        printed = _Printed(process.stdout)
        with suppress(subprocess.TimeoutExpired):
            code = process.wait(timeout)
    if code is None:
        return CheckResult(False, f"check did not end within {timeout:g} s", printed.end())
    return CheckResult(code == 0, f"check failed (exit {code})" if code else "check passed", printed.end())


class _Printed:
    """The end of what a command prints, read as it comes: one that prints for ever would fill a file's disk."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe, self._size, self._kept = pipe, 0, b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with self._pipe:
            while data := os.read(self._pipe.fileno(), _CHUNK):
                self._size, self._kept = self._size + len(data), (self._kept + data)[-OUTPUT_LIMIT:]

    def end(self) -> str:
        """Of a command that has ended. Whatever of it went out of our reach, and still holds the pipe, is not waited
        for."""
        self._reader.join(LAST_WORDS_SECONDS)
        size, kept = self._size, self._kept
        text = kept.decode("utf-8", "replace").strip("\n")
        return text if size <= OUTPUT_LIMIT else f"… (the last {OUTPUT_LIMIT // 1024} KB of {size // 1024} KB)\n{text}"
