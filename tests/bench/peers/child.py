"""One measurement, in a process of its own: `python -m tests.bench.peers.child JSON`, where the JSON is a `Task`.

Runs in each recorder's own environment, so it needs nothing but the standard library.
"""

import gc
import json
import os
import signal
import sqlite3
import statistics
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypedDict

from tests.bench.peers.recorders import RECORDERS, Recorder
from tests.bench.turn_workload import Workload, turns

RECORDING_LIMIT = 20.0  # seconds of recording into a store that hangs

Named = tuple[str, Workload]


class Task(TypedDict):
    """`turns` at each of `tables` tables, from the store at `place`; to hang, the process `pid` stops, or the database
    in `database` is locked. What was measured is written to the file `result`."""

    recorder: str
    part: str
    turns: int
    tables: int
    place: str
    pid: int
    database: str
    result: str


def workload(count: int, tables: int) -> list[Named]:
    once = list(turns(count))
    each = [turn._replace(table_id=f"table-{table}") for table in range(tables) for turn in once]
    return [(f"turn-{number:06}", turn) for number, turn in enumerate(each)]


def timed(recorder: Recorder, load: Iterable[Named], limit: float = float("inf")) -> list[float]:
    """Seconds that each call took, until `limit` seconds are over."""
    took = []
    clock = time.perf_counter
    over = clock() + limit
    for name, turn in load:
        start = clock()
        recorder.record(name, turn)
        end = clock()
        took.append(end - start)
        if end > over:
            break
    return took


def burst(recorder: Recorder, load: list[Named], task: Task) -> dict[str, Any]:
    """All turns back to back. With ten times as many, what it says about losing some."""
    held = sum(path.stat().st_size for path in Path.cwd().rglob("*") if path.is_file())
    before = time.process_time()
    took = timed(recorder, load)
    recorder.flush()
    cpu = time.process_time() - before
    return {
        "p50": statistics.median(took),
        "p99": statistics.quantiles(took, n=100)[98],
        "cpu": cpu / len(took),
        "held": held,
        "losses": recorder.losses(),
    }


def hang(recorder: Recorder, load: list[Named], task: Task) -> dict[str, Any]:
    """The same turns at two tables: at the first while the store is well, at the second when it answers no more."""
    half = len(load) // 2
    well = statistics.median(timed(recorder, load[:half]))
    recorder.flush()
    if task["pid"]:
        os.kill(task["pid"], signal.SIGSTOP)
    else:
        LOCKS.append(sqlite3.connect(task["database"], timeout=30, isolation_level=None))
        LOCKS[0].execute("BEGIN EXCLUSIVE")
    ill = timed(recorder, load[half:], RECORDING_LIMIT)
    return {"well": well, "ill": statistics.median(ill), "last": time.time()}


LOCKS: list[sqlite3.Connection] = []  # held until the process is gone
PARTS = {"burst": burst, "overrun": burst, "hang": hang}


def main() -> None:
    task: Task = json.loads(sys.argv[1])
    load = workload(task["turns"], task["tables"])
    recorder = RECORDERS[task["recorder"]](task["place"], watch=task["part"] == "overrun")
    gc.collect()
    gc.freeze()  # what is there already weighs on nobody's garbage collection
    result = PARTS[task["part"]](recorder, load, task)
    Path(task["result"]).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
