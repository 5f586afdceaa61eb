"""What a command says of the database: where it is, and in one line why it cannot be used. Never the password."""

import contextlib
import logging
from collections.abc import Iterator

from django.conf import settings
from django.db import DatabaseError, Error, InterfaceError, OperationalError, ProgrammingError

from agentlab.common.schema import is_behind

POOL = logging.getLogger("psycopg.pool")
BEHIND = "the database's schema is not up to date: `manage.py migrate` first"


def place() -> str:
    """`sqlite file /path` or `postgresql host:port/name`."""
    named = settings.DATABASES["default"]
    if named["ENGINE"].endswith("sqlite3"):
        return f"sqlite file {named['NAME']}"
    port = f":{named['PORT']}" if named.get("PORT") else ""
    return f"postgresql {named.get('HOST') or 'localhost'}{port}/{named['NAME']}"


def unusable(error: BaseException, why: list[str]) -> str:
    """The server's own words in one line. `why`: what the pool said, where the error itself tells only of a timeout."""
    words = " ".join((why[-1] if why else str(error)).split())
    return f"the database cannot be used: {words} ({place()})"


def why_it_ended(error: BaseException, why: list[str]) -> str:
    """In one line, what a command has met that is no fault of the code; empty where it is one."""
    if isinstance(error, DatabaseError | InterfaceError):
        if _lacks_a_table(error) and _is_behind():
            return BEHIND
        return unusable(error, why) if isinstance(error, OperationalError | InterfaceError) else ""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return ""


def _lacks_a_table(error: BaseException) -> bool:
    """Of a table or a column that is not there PostgreSQL says that the program is wrong, SQLite that it has none."""
    return isinstance(error, ProgrammingError) or str(error).startswith("no such ")


def _is_behind() -> bool:
    try:
        return is_behind()
    except Error:
        return False


@contextlib.contextmanager
def pool_warnings() -> Iterator[list[str]]:
    """What PostgreSQL's pool would log at each try: the reason that the error itself, a timeout, does not tell."""
    why: list[str] = []

    def keep(record: logging.LogRecord) -> bool:
        why.append(" ".join(record.getMessage().split()))
        return False

    POOL.addFilter(keep)
    try:
        yield why
    finally:
        POOL.removeFilter(keep)
