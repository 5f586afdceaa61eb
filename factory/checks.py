"""The command that must succeed before a phase counts as done."""

import os
import signal
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from factory.childenv import child_environment

TIMEOUT_SECONDS = 600.0
OUTPUT_LIMIT = 8 * 1024
"""Bytes of a failed check's output, its end, that go back to the agent: enough for a test's last failures."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    passed: bool
    summary: str
    output: str


def run_check(command: str, workspace: Path, *, timeout: float = TIMEOUT_SECONDS) -> CheckResult:
    """Run a shell command in the workspace with the child environment; it and all it starts end with it."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            cwd=workspace,
            env=child_environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            return CheckResult(False, f"check did not end within {timeout:g} s", _tail(output))
        finally:
            end_group(process)
        return CheckResult(code == 0, f"check failed (exit {code})" if code else "check passed", _tail(output))


def end_group(process: "subprocess.Popen[bytes]") -> None:
    """Kill what is left of a child's process group, and collect the child."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _tail(output: IO[bytes]) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - OUTPUT_LIMIT))
    text = output.read().decode("utf-8", "replace").strip("\n")
    return text if size <= OUTPUT_LIMIT else f"… (the last {OUTPUT_LIMIT // 1024} KB of {size // 1024} KB)\n{text}"
