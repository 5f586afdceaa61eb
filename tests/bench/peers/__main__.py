"""What recording a turn costs with agentlab and with what else there is, on this machine and the same turns.

    python -m tests.bench.peers                              # all, three times: some twenty minutes
    python -m tests.bench.peers --peers agentlab,langfuse --parts burst --repeat 5
    python -m tests.bench.peers --smoke                      # seconds, nothing installed: does this program still work?

Each recorder runs in a process of its own, by turns with a plain Redis SET, against a store on the loopback:

burst     1,353 turns of some 15 KB back to back: the time inside the call, CPU, what arrived, its bytes
overrun   ten times as many: what is lost, and whether the recorder itself counts it
hang      the store stops answering: the time inside the call against before, and how long the process takes to end

Peers are installed into virtual environments of their own, in a cache folder. OpenTelemetry, Phoenix, Langfuse and
Logfire send to a sink that answers at once, which is kinder than any server of theirs; MLflow writes a SQLite file.
"""

import argparse
import json
import shlex
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.bench.peers.environments import Unavailable, default_folder, python_for
from tests.bench.peers.measuring import FLOOR, Sizes, measure, measures
from tests.bench.peers.recorders import RECORDERS
from tests.bench.peers.report import machine, markdown, summary

PARTS = ("burst", "overrun", "hang")
SMOKE = Sizes(burst=100, overrun=2, hang=20)


def names(allowed: tuple[str, ...]) -> Any:
    def read(text: str) -> list[str]:
        given = text.split(",")
        if unknown := set(given) - set(allowed):
            raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: not among {', '.join(allowed)}")
        return [name for name in allowed if name in given]

    return read


def options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    every = tuple(RECORDERS)
    parser.add_argument("--peers", type=names(every), metavar="A,B", help=f"of {', '.join(every)}")
    parser.add_argument("--parts", type=names(PARTS), default=list(PARTS), metavar="A,B", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="repetitions, of which the medians are told")
    parser.add_argument("--venvs", type=Path, default=default_folder(), metavar="DIR", help="default: %(default)s")
    parser.add_argument("--json", action="store_true", help="print every run and the summary as JSON, not the table")
    parser.add_argument("--smoke", action="store_true", help="a few turns, once; agentlab and the SET alone")
    given = parser.parse_args(arguments)
    given.repeat = 1 if given.smoke else given.repeat
    given.peers = given.peers or (["agentlab"] if given.smoke else list(every))
    return given


def runs(pythons: dict[str, str], parts: list[str], repetitions: int, sizes: Sizes) -> Iterator[dict[str, Any]]:
    """Every measurement, by turns; who comes first changes."""
    for repetition in range(repetitions):
        first = repetition % len(pythons)
        order = [*pythons][first:] + [*pythons][:first]
        for part in parts:
            for name in (name for name in order if measures(name, part)):
                print(f"repetition {repetition + 1} of {repetitions}: {part}, {name}", file=sys.stderr)
                yield {"repetition": repetition, **measure(name, part, pythons[name], sizes)}


def environments(peers: list[str], folder: Path) -> dict[str, str]:
    """The Python of each recorder that can be measured; the SET is always among them."""
    pythons = {}
    for name in [FLOOR, *(peer for peer in peers if peer != FLOOR)]:
        try:
            pythons[name] = python_for(name, folder)
        except Unavailable as error:
            print(f"peers: without {name}: {error}", file=sys.stderr)
    return pythons


def main(arguments: list[str]) -> int:
    given = options(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    done: list[dict[str, Any]] = []
    code = 0
    try:
        pythons = environments(given.peers, given.venvs.expanduser().absolute())
        for run in runs(pythons, given.parts, given.repeat, SMOKE if given.smoke else Sizes()):
            done.append(run)
    except KeyboardInterrupt:  # what has been measured by then is worth telling
        code = 130
    rows = summary(done)
    about = {
        "command": shlex.join(["python", "-m", "tests.bench.peers", *arguments]),
        "machine": machine(),
        "repetitions": max((run["repetition"] + 1 for run in done), default=0),
    }
    if done:
        print(json.dumps({**about, "rows": rows, "runs": done}, indent=1) if given.json else markdown(rows, about))
    return code or int(any(row["failed"] for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
