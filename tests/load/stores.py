"""Databases and Redis numbers of a run's own, on the servers that are given, and gone after it."""

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import redis
from psycopg.sql import SQL, Identifier

from agentlab.private_redis import PrivateRedis

NUMBERS = range(15, 0, -1)  # of Redis databases; 0 is for whoever works there


class NoRoom(Exception):
    """Says in one line why there is no store to fill."""


@contextmanager
def databases(server: str, names: list[str]) -> Iterator[list[str]]:
    """One new database for each name, as URLs: on the PostgreSQL server, else SQLite files in a folder."""
    if not server:
        with tempfile.TemporaryDirectory(prefix="agentlab-load-") as folder:
            yield [f"sqlite:///{Path(folder) / name}.sqlite3" for name in names]
        return
    if not server.startswith("postgres"):
        raise NoRoom("DATABASE_URL must name a PostgreSQL server; without it, SQLite files are filled.")
    mark = secrets.token_hex(4)
    made = [f"agentlab_load_{name}_{mark}" for name in names]
    try:
        for name in made:
            _do(server, SQL("CREATE DATABASE {}").format(Identifier(name)))
        yield [urlunsplit(urlsplit(server)._replace(path=f"/{name}")) for name in made]
    finally:
        for name in made:
            _do(server, SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(Identifier(name)))


def _do(server: str, statement: object) -> None:
    try:
        with psycopg.connect(server, autocommit=True, connect_timeout=5) as admin:
            admin.execute(statement)  # type: ignore[arg-type]
    except psycopg.OperationalError:
        raise NoRoom("The PostgreSQL server of DATABASE_URL does not answer.") from None


@contextmanager
def redis_numbers(server: str, count: int) -> Iterator[list[str]]:
    """So many empty Redis databases, as URLs; of a private Redis where no server is given."""
    if not server:
        folder = tempfile.TemporaryDirectory(prefix="agentlab-load-")
        with folder as place, PrivateRedis(Path(place) / "private" / "redis.sock") as private:
            yield [_numbered(private.url, number) for number in range(1, count + 1)]
        return
    try:
        free = [url for url in (_numbered(server, number) for number in NUMBERS) if _is_empty(url)][:count]
    except redis.RedisError:
        raise NoRoom("The Redis of AGENT_CAPTURE_REDIS_URL does not answer.") from None
    if len(free) < count:
        raise NoRoom(f"The Redis of AGENT_CAPTURE_REDIS_URL has fewer than {count} empty databases.")
    try:
        yield free
    finally:
        for url in free:
            redis.Redis.from_url(url).flushdb()


def _numbered(server: str, number: int) -> str:
    return f"{server.split('?')[0].rstrip('/')}?db={number}"


def _is_empty(url: str) -> bool:
    with redis.Redis.from_url(url, socket_timeout=5) as client:
        return client.dbsize() == 0


def servers() -> tuple[str, str]:
    """The PostgreSQL and the Redis of the environment; "" is none."""
    return os.environ.get("DATABASE_URL", ""), os.environ.get("AGENT_CAPTURE_REDIS_URL", "")
