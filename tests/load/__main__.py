"""Ask every page of a small world and of a big one the same, and compare what it costs.

    make load
    DATABASE_URL=postgresql://root@127.0.0.1/postgres AGENT_CAPTURE_REDIS_URL=redis://127.0.0.1:6379 \\
        python -m tests.load --rounds 15

The big world has a million turns in its ledger, over 200 days, 20,000 kept turns, 500 studies and 500 factory runs; the
small one has a day of it. Three processes are asked in turn, two of them small ones, so that the noise of the machine
can be told from the weight of the data. Databases are made on the server that DATABASE_URL names (else SQLite files)
and dropped at the end; of AGENT_CAPTURE_REDIS_URL three empty databases are used (else a private Redis is started).

On a machine that does other things too, --work measures what a page costs rather than how long it waits its turn.
Exit code 1 where a page of the big world takes another number of queries, or more than twice the time.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tests.load.report import Row, summary, table
from tests.load.sizes import BIG, SMALL, Size
from tests.load.stores import NoRoom, databases, redis_numbers, servers

ROOT = Path(__file__).resolve().parents[2]
WORLDS = {"small": SMALL, "again": SMALL, "big": BIG}
BOUND = 2.0
SECOND_LOOK = 3  # times as many rounds for a page that seems to be above the bound


class Failed(Exception):
    """The measurement could not be made."""


class World:
    """One worker process, seen from here."""

    def __init__(self, name: str, database: str, redis_url: str) -> None:
        given = {"DATABASE_URL": database, "AGENTLAB_LOAD_REDIS_URL": redis_url, "AGENT_CAPTURE_REDIS_URL": redis_url}
        command = [sys.executable, "-m", "tests.load.worker", name]
        self.name = name
        self.process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **given}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, what: str, argument: Any) -> Any:
        assert self.process.stdin and self.process.stdout
        try:
            self.process.stdin.write(json.dumps([what, argument]) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise Failed(f"the process of the world {self.name} ended at: {what} {str(argument)[:200]}")
        return json.loads(answer)


@contextmanager
def worlds(sizes: dict[str, Size]) -> Iterator[dict[str, World]]:
    """The worlds, filled; their processes, databases and keys are gone afterwards."""
    database, capture = servers()
    with ExitStack() as stack:
        urls = stack.enter_context(databases(database, list(sizes)))
        numbers = stack.enter_context(redis_numbers(capture, len(sizes)))
        made = {name: World(name, *stores) for name, *stores in zip(sizes, urls, numbers, strict=True)}
        stack.callback(lambda: [world.process.kill() or world.process.wait() for world in made.values()])
        yield made


def pages_of(made: dict[str, World], sizes: dict[str, Size], only: str) -> list[str]:
    """The pages that all worlds have, by name."""
    found = []
    for name, world in made.items():
        began = time.monotonic()
        found.append(world.ask("fill", asdict(sizes[name])))
        say(f"{name}: {len(found[-1])} pages; filled in {time.monotonic() - began:.0f} s")
    shared = [page for page in found[-1] if all(page in pages for pages in found)]
    if missing := {page for pages in found for page in pages} - set(shared):
        say(f"not in every world, and left out: {', '.join(sorted(missing))}")
    return [page for page in shared if only in page]


def count(made: dict[str, World], page: str) -> Row:
    small, big = (made[name].ask("count", page) for name in ("small", "big"))
    for name, answer in (("small", small), ("big", big)):
        if not answer["fine"]:
            raise Failed(f"{page} answers {answer['status']} in the {name} world")
    return Row(page, (small["queries"], big["queries"]))


def clock(made: dict[str, World], rows: list[Row], rounds: int, how: str) -> None:
    """Visits each page in each world once a round, in an order that changes."""
    chance = random.Random(1)
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}, {len(rows)} pages")
        for row in rows:
            for world in chance.sample(list(made.values()), len(made)):
                row.times[world.name].append(world.ask(how, row.name))


def compare(options: argparse.Namespace) -> list[Row]:
    big = replace(BIG, turns=options.turns, days=BIG.days * options.turns / BIG.turns)
    sizes = WORLDS | {"big": big}
    with worlds(sizes) as made:
        pages = pages_of(made, sizes, options.only)
        say(f"counting the queries of {len(pages)} pages")
        rows = [count(made, page) for page in pages]
        how = "work" if options.work else "clock"
        clock(made, rows, options.rounds, how)
        if doubtful := [row for row in rows if row.ratio > options.bound]:
            say(f"{len(doubtful)} seem to be above the bound: a closer look")
            clock(made, doubtful, SECOND_LOOK * options.rounds, how)
        return rows


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.load", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15, help="visits of each page in each world (15)")
    parser.add_argument("--turns", type=int, default=BIG.turns, help="rows of the big ledger (1,000,000)")
    parser.add_argument("--bound", type=float, default=BOUND, help="the largest ratio of times (2)")
    parser.add_argument("--only", default="", metavar="WORDS", help="only pages with these words in their name")
    parser.add_argument(
        "--work", action="store_true", help="processor time of page and database (Linux, same machine), not the wall's"
    )
    parser.add_argument("--worst", type=int, metavar="N", help="only the N worst pages in the table")
    parser.add_argument("--json", action="store_true", help="print JSON, a list of pages, in place of the table")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was made is dropped
    try:
        rows = compare(options)
    except (Failed, NoRoom) as error:
        print(f"load: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps([row.as_json() for row in rows], indent=1))
    else:
        shown = sorted(rows, key=lambda row: -row.ratio)[: options.worst] if options.worst else rows
        print(f"{table(shown)}\n\n{summary(rows, options.bound)}")
    return 1 if any(row.trouble(options.bound) for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
