"""How many statements a visit costs, whichever thread sends them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db.backends.utils import CursorWrapper


class Counted(list[str]):
    """The statements that were sent."""


@contextmanager
def counted() -> Iterator[Counted]:
    """Counts where every statement passes: `/healthz` asks in a thread, over a connection of its own."""
    seen = Counted()
    real = CursorWrapper._execute_with_wrappers

    def execute(self: Any, sql: Any, params: Any, many: bool, executor: Any) -> Any:
        seen.append(str(sql))
        return real(self, sql, params, many, executor)

    CursorWrapper._execute_with_wrappers = execute  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        CursorWrapper._execute_with_wrappers = real  # type: ignore[method-assign]
