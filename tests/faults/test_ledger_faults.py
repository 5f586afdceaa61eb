"""The ledger's writer in a process of its own that is killed, and whose database goes away and comes back."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection

from agentlab.agents.models import InferenceCharge
from tests.faults.proxy import Proxy

pytestmark = pytest.mark.django_db(transaction=True)


def database_url(proxy: Proxy | None = None) -> str:
    """The test database's address, past the proxy where there is one."""
    settings = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{settings['NAME']}"
    host, port = ("127.0.0.1", proxy.port) if proxy else (settings["HOST"] or "127.0.0.1", settings["PORT"] or 5432)
    user = quote(settings["USER"]) + (f":{quote(settings['PASSWORD'])}" if settings["PASSWORD"] else "")
    return f"postgresql://{user}@{host}:{port}/{settings['NAME']}"


class Agent:
    """The child process, spoken to line by line."""

    def __init__(self, spool: Path, url: str) -> None:
        env = {**os.environ, "DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "agentlab.settings"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.ledger_child", str(spool)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=env,
        )

    def do(self, *words: object) -> dict[str, Any]:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe
            pipe.close()


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    if connection.vendor != "postgresql":
        pytest.skip("a database over TCP: run with DATABASE_URL naming a PostgreSQL")
    settings = connection.settings_dict
    proxy = Proxy((settings["HOST"] or "127.0.0.1", int(settings["PORT"] or 5432)))
    yield proxy
    proxy.close()


def recorded() -> int:
    return InferenceCharge.objects.filter(capture_outcome="recorded").count()


def test_rows_of_a_killed_process_are_written_by_the_next(tmp_path: Path) -> None:  # HA-10, SF-5
    first = Agent(tmp_path / "spool", "sqlite:////nowhere/at/all.sqlite3")  # its database is away
    first.do("charge", 0, 300)
    first.do("outcome", 0, 300)
    assert first.do("flush", 0.5)["answer"] is False
    first.kill()
    second = Agent(tmp_path / "spool", database_url())
    assert second.do("flush", 30)["answer"] is True
    second.kill()
    assert recorded() == 300


def test_a_process_killed_in_the_middle_of_writing_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:  # SF-5
    for start in (0, 400):
        agent = Agent(tmp_path / "spool", database_url())
        agent.do("charge", start, 400)
        agent.do("outcome", start, 400)
        agent.do("flush", 0.1)  # on disk by now, on its way to the database
        agent.kill()
    last = Agent(tmp_path / "spool", database_url())
    assert last.do("close", 30)["answer"] is True
    last.kill()
    assert recorded() == InferenceCharge.objects.count() == 800


def test_a_database_that_goes_and_comes_back_in_the_middle_costs_no_row(proxy: Proxy, tmp_path: Path) -> None:  # SF-5
    agent = Agent(tmp_path / "spool", database_url(proxy))
    agent.do("charge", 0, 100)
    assert agent.do("flush", 30)["answer"] is True
    agent.do("charge", 100, 500)
    proxy.cut()
    agent.do("charge", 600, 100)
    agent.do("outcome", 0, 700)
    assert agent.do("flush", 0.5)["answer"] is False
    proxy.mend()
    answer = agent.do("flush", 30)
    agent.kill()
    assert (answer["answer"], answer["lost"]) == (True, 0)
    assert recorded() == InferenceCharge.objects.count() == 700


def test_a_database_that_hangs_keeps_no_row_from_the_disk(proxy: Proxy, tmp_path: Path) -> None:  # HA-10, SF-5
    agent = Agent(tmp_path / "spool", database_url(proxy))
    agent.do("charge", 0, 10)
    assert agent.do("flush", 30)["answer"] is True
    proxy.hang()
    agent.do("charge", 10, 90)
    agent.do("outcome", 0, 100)
    assert agent.do("flush", 0.5)["answer"] is False
    assert agent.do("close", 0.5)["answer"] is False
    agent.kill()
    proxy.mend()
    after = Agent(tmp_path / "spool", database_url())
    assert after.do("flush", 30)["answer"] is True
    after.kill()
    assert recorded() == InferenceCharge.objects.count() == 100
