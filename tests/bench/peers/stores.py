"""Where the recorders' turns arrive: a Redis, a sink for what is sent over HTTP, or a folder with a SQLite file."""

import contextlib
import http.client
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from agentlab.processes import end_with_parent
from tests.bench.peers.sink import NAME
from tests.faults.redis_node import RedisNode, free_port

ROOT = Path(__file__).resolve().parents[3]


class Store(Protocol):
    """`place` is what a recorder is given. To make it hang: stop the process `pid`, or lock `database`."""

    place: str
    pid: int
    database: str
    unit: str

    def arrived(self) -> int:
        """Distinct turns in it."""

    def size(self, held: int) -> int:
        """Bytes that they take; `held` is what its folder held before the first."""


@contextlib.contextmanager
def process(
    command: Sequence[str], *, cwd: Path, log: Path, env: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a group of its own, which is gone after the block."""
    with log.open("wb") as output:
        started = subprocess.Popen(
            command,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=end_with_parent,
        )
    try:
        yield started
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.wait()


class RedisStore:
    database, unit = "", "in Redis"

    def __init__(self, node: RedisNode) -> None:
        self.client = node.client(socket_timeout=30)
        self.place = f"redis://127.0.0.1:{node.port}"
        self.pid = int(self.client.info("server")["process_id"])
        self.before = self._used()

    def _used(self) -> int:
        return int(self.client.info("memory")["used_memory"])

    def arrived(self) -> int:
        return sum(1 for _ in self.client.scan_iter("turn*", count=1_000))

    def size(self, held: int) -> int:
        return self._used() - self.before


class SinkStore:
    database, unit = "", "sent"

    def __init__(self, pid: int, port: int) -> None:
        self.pid, self.port, self.place = pid, port, f"http://127.0.0.1:{port}"

    def _ask(self) -> Any:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request("GET", "/arrived")
            return json.load(connection.getresponse())

    def arrived(self) -> int:
        return int(self._ask()["turns"])

    def size(self, held: int) -> int:
        return int(self._ask()["bytes"])


class FileStore:
    """MLflow's: the content of a turn is in the spans table or, after a race with itself, in a file."""

    pid, unit = 0, "in SQLite and files"

    def __init__(self, folder: Path) -> None:
        self.place, self.database = str(folder), str(folder / "mlflow.db")

    def arrived(self) -> int:
        names: set[bytes] = set()
        with contextlib.closing(sqlite3.connect(self.database, timeout=30)) as database:
            for (content,) in database.execute("SELECT content FROM spans"):
                names.update(NAME.findall(str(content).encode()))
        for path in Path(self.place).rglob("traces.json"):
            names.update(NAME.findall(path.read_bytes()))
        return len(names)

    def size(self, held: int) -> int:
        return sum(path.stat().st_size for path in Path(self.place).rglob("*") if path.is_file()) - held


@contextlib.contextmanager
def store(kind: str, folder: Path) -> Iterator[Store]:
    """An empty one, up and answering; `folder` is where the recorder works."""
    if kind == "redis":
        with RedisNode() as node:
            yield RedisStore(node)
    elif kind == "files":
        yield FileStore(folder)
    else:
        port = free_port()
        command = [sys.executable, "-m", "tests.bench.peers.sink", str(port)]
        with process(command, cwd=ROOT, log=folder.with_name("sink.log"), env=os.environ) as sink:
            made = SinkStore(sink.pid, port)
            _wait_for(made)
            yield made


def _wait_for(sink: SinkStore) -> None:
    give_up = time.monotonic() + 30
    while time.monotonic() < give_up:
        with contextlib.suppress(OSError):
            sink.arrived()
            return
        time.sleep(0.05)
    raise RuntimeError("the sink did not come up")
