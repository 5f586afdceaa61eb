"""A process that records turns and ends: `python -m tests.faults.capture_child MODE PORT [COUNT]`.

Its last line is a JSON object: how many turns had which outcome. It imports no Django, as no agent needs to.
"""

import atexit
import json
import multiprocessing
import os
import sys
from collections import Counter

told: Counter[str] = Counter()


def report() -> None:
    print(json.dumps({"outcomes": told, "django": "django" in sys.modules}), flush=True)


atexit.register(report)  # before the recorder's own, so that it runs after it

import redis  # noqa: E402

from capture.buffer import TurnBuffer  # noqa: E402
from capture.prompt import Prompt  # noqa: E402
from capture.recorder import TurnRecorder  # noqa: E402
from capture.turns import Turn, TurnKey  # noqa: E402


def turn(index: int) -> Turn:
    return Turn(TurnKey("rocky", "T-1", 7, index), Prompt("envelope", f"{index}"), f"said {index}")


def record(recorder: TurnRecorder, first: int, last: int) -> None:
    for index in range(first, last):
        recorder.record(turn(index))


def count(key: TurnKey, outcome: str, reason: str) -> None:
    told[f"{outcome}: {reason}" if reason else outcome] += 1


def main(mode: str, port: int, turns: int) -> None:
    recorder = TurnRecorder(TurnBuffer(redis.Redis(port=port)), on_outcome=count)
    if mode == "exit":
        record(recorder, 0, turns)
        sys.exit(0)
    if mode == "raise":
        record(recorder, 0, turns)
        raise RuntimeError("the host broke")
    record(recorder, 0, turns)
    recorder.flush(10)
    if mode == "pool":
        child = multiprocessing.get_context("fork").Process(target=record, args=(recorder, turns, 2 * turns))
        child.start()
        child.join()
    if mode == "fork":
        child_id = os.fork()
        if child_id == 0:
            told.clear()
            record(recorder, turns, 2 * turns)
            sys.exit(0)
        os.waitpid(child_id, 0)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
