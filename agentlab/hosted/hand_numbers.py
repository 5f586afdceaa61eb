"""Table ids and hand numbers that are never used twice: the table's database side.

The ORM runs on one thread of its own, never on the event loop. While the database is away a table waits for it between
two hands: a number that is not durable is no number.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import close_old_connections, connections, transaction
from django.db.models import F
from django.db.utils import Error as DatabaseError

from agentlab.hosted.models import HostedTable
from agentlab.hosted.table_config import HandNumbers

logger = logging.getLogger(__name__)

FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 0.2, 5.0
P = ParamSpec("P")
T = TypeVar("T")


def open_table() -> str:
    """The id of a new table."""
    table_id = f"t-{secrets.token_hex(5)}"
    HostedTable.objects.create(id=table_id)
    return table_id


def reserve_hand(table_id: str) -> int:
    """The table's next hand number, from 1; committed when this returns."""
    with transaction.atomic():
        HostedTable.objects.get_or_create(id=table_id)
        HostedTable.objects.filter(id=table_id).update(last_hand_number=F("last_hand_number") + 1)
        return HostedTable.objects.values_list("last_hand_number", flat=True).get(id=table_id)


class DatabaseThread:
    """Runs ORM calls for an event loop, one at a time, on a thread that keeps its connection."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="table-database")

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        def run() -> T:
            close_old_connections()
            return function(*args, **kwargs)

        return await asyncio.get_running_loop().run_in_executor(self._thread, run)

    def close(self) -> None:
        self._thread.submit(connections.close_all)
        self._thread.shutdown()


class DurableHandNumbers(HandNumbers):
    """Reserves in the database; waits as long as it is away."""

    def __init__(self, table_id: str, database: DatabaseThread) -> None:
        self._table_id = table_id
        self._database = database

    async def reserve(self) -> int:
        wait = 0.0
        while True:
            try:
                return await self._database.call(reserve_hand, self._table_id)
            except DatabaseError as error:
                if not wait:
                    logger.warning("table %s waits for the database (%s)", self._table_id, type(error).__name__)
                wait = min(wait * 2 or FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS)
                await asyncio.sleep(wait)
