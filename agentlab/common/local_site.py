"""What a command does first so that it works in a fresh clone: the database is there and up to date."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import DatabaseError

from agentlab.common.databases import BEHIND, pool_warnings, unusable
from agentlab.common.schema import is_behind


def prepare() -> None:
    """Migrates the local site's database. Elsewhere migrating is the operator's step, and this looks whether it was
    taken.

    Raises CommandError with one line where the database cannot be used.
    """
    with pool_warnings() as why:
        try:
            if settings.LOCAL:
                with _one_at_a_time():
                    call_command("migrate", interactive=False, verbosity=0)
            behind = not settings.LOCAL and is_behind()
        except DatabaseError as error:
            raise CommandError(unusable(error, why)) from None
    if behind:
        raise CommandError(BEHIND)


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Two commands that begin at one moment in a fresh clone would both make the same tables, and one would fail."""
    with (Path(settings.STATE_DIR) / "migrate.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
