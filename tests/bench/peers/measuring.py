"""One measurement from outside: an empty store, a fresh process that records into it, and what has arrived."""

import json
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench.peers.child import Task
from tests.bench.peers.recorders import RECORDERS
from tests.bench.peers.stores import ROOT, Store, process, store
from tests.bench.turn_workload import TURNS

MINUTES = 600.0  # a child that takes longer is ended
AT_EXIT = 60.0  # how long a process may take to end once its store hangs
FLOOR = "redis"

# Settings and credentials of whoever runs this are none of the recorders' defaults, and must send nothing anywhere.
_THEIRS = re.compile(r"(OTEL|LANGFUSE|LOGFIRE|MLFLOW|PHOENIX|PYTHON)_?|\w+_proxy$", re.IGNORECASE)
_NO_TELEMETRY = {
    "DO_NOT_TRACK": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "PHOENIX_TELEMETRY_ENABLED": "false",
}
_LOSS = re.compile(r"drop|discard|full|not recorded|fail", re.IGNORECASE)


class Sizes(NamedTuple):
    """How many turns a burst has, at how many tables the overrun has as many, and how many turns are recorded before
    the store hangs, and then once more."""

    burst: int = TURNS
    overrun: int = 10
    hang: int = 300


def measures(name: str, part: str) -> bool:
    """A SET as such waits for a store that hangs: redis-py's defaults hold it for the better part of a minute."""
    return not (name == FLOOR and part == "hang")


def measure(name: str, part: str, python: str, sizes: Sizes) -> dict[str, Any]:
    """What the child said, in seconds, and the lines that it `said` about losses; `lost` and `bytes`, or `exit`, the
    seconds until it ended (None: it had to be ended). Or `failed` with its last line."""
    with tempfile.TemporaryDirectory(prefix="agentlab-peers-") as made:
        folder = Path(made, "work")
        folder.mkdir()
        with store(RECORDERS[name].store, folder) as used:
            return {"recorder": name, "part": part, **_run(name, part, python, sizes, folder, used)}


def _run(name: str, part: str, python: str, sizes: Sizes, folder: Path, used: Store) -> dict[str, Any]:
    task: Task = {
        "recorder": name,
        "part": part,
        "turns": sizes.hang if part == "hang" else sizes.burst,
        "tables": {"burst": 1, "overrun": sizes.overrun, "hang": 2}[part],
        "place": used.place,
        "pid": used.pid,
        "database": used.database,
        "result": str(folder.with_name("result.json")),
    }
    log = folder.with_name("child.log")
    command = [python, "-m", "tests.bench.peers.child", json.dumps(task)]
    with process(command, cwd=folder, log=log, env=_environment()) as child:
        ended = _wait(child, Path(task["result"]), AT_EXIT if part == "hang" else MINUTES)
    lines = log.read_text(errors="replace").split("\n")
    if not Path(task["result"]).exists():
        return {"failed": next((line for line in reversed(lines) if line.strip()), "said nothing")}
    result = json.loads(Path(task["result"]).read_text())
    result["said"] = [line.strip() for line in lines if _LOSS.search(line)]
    if part == "hang":
        return {**result, "exit": ended and ended - result["last"]}
    count = task["turns"] * task["tables"]
    return {**result, "turns": count, "lost": count - used.arrived(), "bytes": used.size(result["held"])}


def _environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not _THEIRS.match(key)}
    return {**kept, **_NO_TELEMETRY, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}


def _wait(child: "subprocess.Popen[bytes]", result: Path, at_exit: float) -> float | None:
    """When it ended; None where it had not, `at_exit` seconds after its result was there."""
    give_up = time.monotonic() + MINUTES
    recorded = False
    while time.monotonic() < give_up:
        if child.poll() is not None:
            return time.time()
        if not recorded and result.exists():
            recorded, give_up = True, time.monotonic() + at_exit
        time.sleep(0.02)
    return None
