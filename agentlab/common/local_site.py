"""What a command does first so that it works in a fresh clone: the database is there and up to date."""

from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import DatabaseError


def prepare() -> None:
    """Migrates the local site's database. Elsewhere migrating is the operator's step, and this does nothing.

    Raises CommandError with one line where the database cannot be used.
    """
    if not settings.LOCAL:
        return
    try:
        call_command("migrate", interactive=False, verbosity=0)
    except DatabaseError as error:
        raise CommandError(f"the database cannot be used: {str(error).splitlines()[0]}") from None
