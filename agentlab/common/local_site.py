"""What a command does first so that it works in a fresh clone: the database is there and up to date."""

import contextlib
import logging
from collections.abc import Iterator

from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import DatabaseError

from agentlab.common.schema import is_behind

POOL = logging.getLogger("psycopg.pool")


def prepare() -> None:
    """Migrates the local site's database. Elsewhere migrating is the operator's step, and this looks whether it was
    taken.

    Raises CommandError with one line where the database cannot be used.
    """
    with _pool_warnings() as why:
        try:
            if settings.LOCAL:
                call_command("migrate", interactive=False, verbosity=0)
            behind = not settings.LOCAL and is_behind()
        except DatabaseError as error:
            said = [str(error).splitlines()[0], *why]
            raise CommandError(f"the database cannot be used: {said[-1]}") from None
    if behind:
        raise CommandError("the database's schema is not up to date: `manage.py migrate` first")


@contextlib.contextmanager
def _pool_warnings() -> Iterator[list[str]]:
    """What PostgreSQL's pool would log at each try: the reason that the error itself, a timeout, does not tell."""
    why: list[str] = []

    def keep(record: logging.LogRecord) -> bool:
        why.append(record.getMessage().splitlines()[0])
        return False

    POOL.addFilter(keep)
    try:
        yield why
    finally:
        POOL.removeFilter(keep)
