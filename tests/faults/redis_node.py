"""A Redis server of a test's own, on loopback, to be stopped, killed, frozen and filled."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from agentlab.private_redis import find_binary


def free_port() -> int:
    """A port nobody listens on, low enough that a cluster's bus port (10,000 higher) exists."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        if port < 55_000:
            return port


class RedisNode:
    """Started and stopped at will, always on the same port; nothing is kept on disk. Ends with the `with` block."""

    def __init__(self, *options: str) -> None:
        self.port = free_port()
        self.options = options
        self._folder = Path(tempfile.mkdtemp(prefix="redis-node-"))
        self._process: subprocess.Popen[bytes] | None = None

    def client(self, **options: Any) -> redis.Redis:
        """A client as an agent should make it: its own timeouts, no retries."""
        made: dict[str, Any] = {"socket_timeout": 1, "socket_connect_timeout": 1, "retry": Retry(NoBackoff(), 0)}
        return redis.Redis(port=self.port, **(made | options))

    def start(self) -> None:
        command = [find_binary(), "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self._folder)]
        command += ["--save", "", "--appendonly", "no", *self.options]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        give_up = time.monotonic() + 20
        with self.client() as client:
            while time.monotonic() < give_up:
                with contextlib.suppress(redis.RedisError):
                    client.ping()
                    return
                time.sleep(0.02)
        raise AssertionError(f"no Redis came up: {(self._folder / 'log').read_text()[-500:]}")

    def send(self, number: signal.Signals) -> None:
        assert self._process is not None
        os.kill(self._process.pid, number)

    def freeze(self) -> None:
        """It accepts connections from now on, and answers nothing."""
        self.send(signal.SIGSTOP)

    def thaw(self) -> None:
        self.send(signal.SIGCONT)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        if self._process is not None:
            self.send(signal.SIGCONT)
            self.send(number)
            self._process.wait(20)
            self._process = None

    def kill(self) -> None:
        self.stop(signal.SIGKILL)

    def __enter__(self) -> "RedisNode":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop(signal.SIGKILL)
        shutil.rmtree(self._folder, ignore_errors=True)


@contextlib.contextmanager
def redis_cluster(nodes: int = 3) -> Iterator[tuple[redis.RedisCluster, list[RedisNode]]]:
    """A client of a cluster of that many real nodes, each with its share of the slots, and the nodes."""
    with contextlib.ExitStack() as stack:
        started = [
            stack.enter_context(RedisNode("--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"))
            for _ in range(nodes)
        ]
        clients = [stack.enter_context(node.client(socket_timeout=10)) for node in started]
        slots = range(16_384)
        for number, client in enumerate(clients):
            client.execute_command("CLUSTER", "ADDSLOTS", *slots[number::nodes])
            client.execute_command("CLUSTER", "MEET", "127.0.0.1", started[0].port)
        _agree(clients, nodes)
        cluster = redis.RedisCluster("127.0.0.1", started[0].port)
        yield stack.enter_context(contextlib.closing(cluster)), started


def _agree(clients: list[redis.Redis], nodes: int) -> None:
    give_up = time.monotonic() + 30
    wanted = (b"cluster_state:ok", b"cluster_known_nodes:%d" % nodes, b"cluster_slots_ok:16384")
    while time.monotonic() < give_up:
        said = [client.execute_command("CLUSTER", "INFO") for client in clients]
        if all(want in text for want in wanted for text in said):
            return
        time.sleep(0.05)
    raise AssertionError("the cluster's nodes did not agree")
