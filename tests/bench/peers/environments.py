"""A virtual environment for each peer, with pinned versions, made where it is missing."""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

from tests.bench.peers.stores import process

_SDK = ("opentelemetry-sdk==1.45.2", "opentelemetry-exporter-otlp-proto-http==1.45.2")
PINS: dict[str, tuple[str, ...]] = {
    "opentelemetry": _SDK,
    "phoenix": ("arize-phoenix-otel==0.17.2", *_SDK),
    "langfuse": ("langfuse==5.0.4", *_SDK),
    "logfire": ("logfire==5.4.0", *_SDK),
    "mlflow": ("mlflow==3.17.2",),
}
_VERSIONS = """
import importlib.metadata, json, sys
found = {}
for name in sys.argv[1:]:
    try: found[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError: pass
print(json.dumps(found))
"""


class Unavailable(Exception):
    """Says in one line why a peer cannot be measured."""


def default_folder() -> Path:
    """Outside of the clone, under the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "agentlab" / "peers"


def python_for(name: str, folder: Path) -> str:
    """The Python that has what this recorder needs. Raises Unavailable."""
    if name not in PINS:
        return sys.executable
    home = folder / name
    python = home / "bin" / "python"
    if not _has(python, PINS[name]):
        print(f"Installing {', '.join(PINS[name])} into {home}", file=sys.stderr)
        _install(name, home, python)
    return str(python)


def _has(python: Path, pins: tuple[str, ...]) -> bool:
    wanted = dict(pin.split("==") for pin in pins)
    try:
        asked = subprocess.run([python, "-c", _VERSIONS, *wanted], capture_output=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return False
    return bool(json.loads(asked.stdout) == wanted)


def _install(name: str, home: Path, python: Path) -> None:
    log = home.with_name(f"{name}.log")
    try:
        venv.create(home, symlinks=True)  # without pip: ours installs
        pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
        install = [*pip, "install", "--quiet", "--retries", "1", *PINS[name]]
        with process(install, cwd=home, log=log, env=os.environ) as running:
            code = running.wait()
    except OSError as error:
        raise Unavailable(f"{home} cannot be written: {error.strerror}") from None
    if code or not _has(python, PINS[name]):
        lines = log.read_text(errors="replace").split("\n")
        said = next((line for line in reversed(lines) if line.startswith("ERROR")), "see the log")
        raise Unavailable(f"{PINS[name][0]} could not be installed; is there a network? ({said}; all of it: {log})")
