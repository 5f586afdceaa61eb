"""`manage.py play` as a user runs it: a process of its own, with a state folder, database and Redis of its own."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import redis

from agentlab.local import PROJECT, socket_path
from agentlab.private_redis import PrivateRedis

CONFIGURED = ("SECRET_KEY", "DATABASE_URL", "AGENT_CAPTURE_REDIS_URL", "DJANGO_SETTINGS_MODULE", "AGENTLAB_LOCAL")


def environment(state: Path, **more: str) -> dict[str, str]:
    """As on a machine where nothing is configured but the state folder."""
    kept = {name: value for name, value in os.environ.items() if name not in CONFIGURED}
    return {**kept, "AGENTLAB_STATE_DIR": str(state), **more}


def run_manage(state: Path, *arguments: str) -> None:
    subprocess.run([sys.executable, "manage.py", *arguments], cwd=PROJECT, env=environment(state), check=True)


def start(state: Path, *arguments: str, **more: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "manage.py", "play", *arguments],
        cwd=PROJECT,
        env=environment(state, **more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def play(state: Path, *arguments: str, **more: str) -> "tuple[int, str, str]":
    """Exit code, standard output, standard error."""
    process = start(state, *arguments, **more)
    try:
        out, error = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        raise
    return process.returncode, out, error


def counts(state: Path, *arguments: str, **more: str) -> dict[str, Any]:
    """What `play --json` counted, having ended well."""
    code, out, error = play(state, *arguments, "--json", **more)
    assert (code, error) == (0, "")
    counted: dict[str, Any] = json.loads(out.splitlines()[-1])
    return counted


def rows(state: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(state / "agentlab.sqlite3")) as database:
        return database.execute(query).fetchall()


@contextmanager
def private_redis(state: Path) -> "Iterator[redis.Redis]":
    """The private Redis that runs already when `play` starts."""
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    with PrivateRedis(socket_path(state)) as server:
        client = redis.Redis.from_url(server.url)
        yield client
        client.close()


def children(pid: int) -> list[int]:
    """The processes that a process has started and that still run."""
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout
    return [int(line) for line in listed.split()]
