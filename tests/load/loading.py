"""Many rows into a table at once: COPY on PostgreSQL, executemany on SQLite."""

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

from django.db import connection
from django.db.models import Model

CHUNK = 5_000
Say = Callable[[str], None]


def load(model: type[Model], names: Sequence[str], rows: Iterable[Sequence[Any]], say: Say = lambda _: None) -> int:
    """Writes the rows, whose values stand in the order of the field names; how many they were."""
    fields = [model._meta.get_field(name) for name in names]
    columns = ", ".join(connection.ops.quote_name(field.column) for field in fields)
    adapters = [_adapter(field.get_internal_type()) for field in fields]
    busy = [(place, adapt) for place, adapt in enumerate(adapters) if adapt]
    put = _copy if connection.vendor == "postgresql" else _insert
    count, left = 0, iter(rows)
    with connection.cursor() as cursor:
        while chunk := [_adapted(row, busy) for row in islice(left, CHUNK)]:
            put(cursor, model._meta.db_table, columns, len(fields), chunk)
            count += len(chunk)
            if count % (20 * CHUNK) == 0:
                say(f"{model._meta.db_table}: {count:,} rows")
    return count


def settle() -> None:
    """What the server's own housekeeping would have done by the next day. Not within a transaction."""
    if connection.vendor == "postgresql" and not connection.in_atomic_block:
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")


def _adapted(row: Sequence[Any], busy: list[tuple[int, Callable[[Any], Any]]]) -> Sequence[Any]:
    if not busy:
        return row
    values = list(row)
    for place, adapt in busy:
        if values[place] is not None:
            values[place] = adapt(values[place])
    return values


def _adapter(kind: str) -> Callable[[Any], Any] | None:
    if kind == "JSONField":
        return json.dumps
    if connection.vendor == "sqlite":
        return {"DateTimeField": connection.ops.adapt_datetimefield_value, "DecimalField": str}.get(kind)
    return None


def _copy(cursor: Any, table: str, columns: str, _: int, rows: list[Sequence[Any]]) -> None:
    with cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


def _insert(cursor: Any, table: str, columns: str, width: int, rows: list[Sequence[Any]]) -> None:
    cursor.executemany(f"INSERT INTO {table} ({columns}) VALUES ({', '.join(['%s'] * width)})", rows)
