"""The process of one world: fills it, then visits pages as it is told. Lines of JSON in, lines of JSON out."""

import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.load.settings"
django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402

from tests.load.counting import counted  # noqa: E402
from tests.load.pages import FINE, Page, all_pages  # noqa: E402
from tests.load.sizes import Size  # noqa: E402
from tests.load.world import fill  # noqa: E402
from tests.load.writes import all_writes  # noqa: E402


class Worker:
    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.pages: dict[str, Page] = {}

    def fill(self, size: dict[str, Any]) -> list[str]:
        call_command("migrate", verbosity=0)
        world = fill(Size(**size), self.folder, self.say)
        self.pages = {page.name: page for page in (*all_pages(world), *all_writes(world))}
        return list(self.pages)

    def count(self, name: str) -> dict[str, Any]:
        """The statements of a visit that is not the first: a first look leaves a line in the audit."""
        page = self.pages[name]
        page.visit()
        page.tidy()
        with counted() as statements:
            status = page.visit()
        page.tidy()
        return {"queries": len(statements), "status": status, "fine": status in FINE, "sql": statements}

    def clock(self, name: str) -> float:
        """Seconds by the wall."""
        return self._measured(name, time.perf_counter)

    def work(self, name: str) -> float:
        """Seconds of work: of the processor, for the page and for the database server's processes behind it."""
        servers = backends()
        return self._measured(name, lambda: time.process_time() + sum(map(worked, servers)))

    def _measured(self, name: str, now: Callable[[], float]) -> float:
        page = self.pages[name]
        gc.collect(0)
        start = now()
        page.visit()
        seconds = now() - start
        page.tidy()
        return seconds

    def say(self, words: str) -> None:
        print(f"{self.name}: {words}", file=sys.stderr, flush=True)


def backends() -> list[Path]:
    """Where Linux counts the nanoseconds of each of this database's server processes; SQLite works in our own."""
    if connection.vendor != "postgresql":
        return []
    with connection.cursor() as cursor:
        cursor.execute("SELECT pid FROM pg_stat_activity WHERE datname = current_database()")
        return [Path(f"/proc/{pid}/schedstat") for (pid,) in cursor.fetchall()]


def worked(process: Path) -> float:
    try:
        return int(process.read_text().split()[0]) / 1e9
    except (FileNotFoundError, ProcessLookupError):
        return 0.0


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="agentlab-load-") as folder:
        worker = Worker(sys.argv[1], Path(folder))
        gc.freeze()
        for line in sys.stdin:
            what, argument = json.loads(line)
            answer = getattr(worker, what)(argument)
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
