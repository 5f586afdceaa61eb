"""Other hosts for tests: a real one in a process of its own, and ones that misbehave."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from django.db import connection

ROOT = Path(__file__).parents[2]
KEY = "a key of the other host"


def database_url() -> str:
    """The test database's own URL, for another process."""
    given = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{given['NAME']}"
    user = given["USER"] + (f":{given['PASSWORD']}" if given["PASSWORD"] else "")
    return f"postgresql://{user}@{given['HOST'] or '127.0.0.1'}:{given['PORT'] or 5432}/{given['NAME']}"


@contextlib.contextmanager
def real_host(redis_url: str) -> Iterator[str]:
    """The site in a process of its own, on the test's stores."""
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "agentlab.settings",
        "PYTHONPATH": str(ROOT),
        "DATABASE_URL": database_url(),
        "AGENT_CAPTURE_REDIS_URL": redis_url,
        "AGENT_CAPTURE_SERVICE_KEY": KEY,
        "SECURE_SSL_REDIRECT": "false",
    }
    environment.pop("HOSTED_AGENT_URL", None)
    command = [sys.executable, "-m", "tests.capture.other_host"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment, cwd=ROOT) as process:
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


Talk = Callable[[socket.socket], None]


@contextlib.contextmanager
def host_that(talks: Talk) -> Iterator[str]:
    """A listener that reads a request's head and then does as it likes with the connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with client, contextlib.suppress(OSError):
                client.recv(65536)
                talks(client)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def answering(status: str, body: bytes = b"", *headers: str) -> Talk:
    """One whole answer, and the connection ends."""
    head = "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers])
    return lambda client: client.sendall(head.encode() + b"\r\n\r\n" + body)
