"""Is the database's schema that of this code?"""

from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor

_is_current = False  # of this process: a schema is never taken back under a site that runs


def is_behind() -> bool:
    """Is a migration missing? It asks the database. Raises django.db.Error where that does not answer."""
    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def is_current() -> bool:
    """The same turned round, for who asks often: once it is so, it is not asked again. Raises as `is_behind`."""
    global _is_current  # noqa: PLW0603 - one answer for the whole process
    _is_current = _is_current or not is_behind()
    return _is_current


def why_unready(failure: BaseException | None) -> str:
    """In a sentence, why the database refused something: a migration is missing, or it does not answer at all. Empty
    where it is neither. It never raises."""
    try:
        behind = isinstance(failure, Error) and is_behind()
    except Error:
        return "The database does not answer. Try again in a moment."
    return "The database's schema is older than this site: manage.py migrate brings it up to date." if behind else ""
