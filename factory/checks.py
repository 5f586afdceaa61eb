"""The command that must succeed before a phase counts as done."""

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from factory.childenv import child_environment
from factory.children import started

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
        streams = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": subprocess.STDOUT}
        with started(["/bin/sh", "-c", command], cwd=workspace, env=child_environment(), **streams) as process:
            try:
                code = process.wait(timeout)
            except subprocess.TimeoutExpired:
                return CheckResult(False, f"check did not end within {timeout:g} s", _tail(output))
        return CheckResult(code == 0, f"check failed (exit {code})" if code else "check passed", _tail(output))


def _tail(output: IO[bytes]) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - OUTPUT_LIMIT))
    text = output.read().decode("utf-8", "replace").strip("\n")
    return text if size <= OUTPUT_LIMIT else f"… (the last {OUTPUT_LIMIT // 1024} KB of {size // 1024} KB)\n{text}"
