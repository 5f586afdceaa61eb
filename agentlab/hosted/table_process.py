"""A table in a process of its own, and the handle by which another process holds it."""

import asyncio
import contextlib
import json
import os
import sys
from asyncio.subprocess import Process
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import msgspec

from agentlab.hosted.children import ask_to_end_soon, begin, let_go, start_child
from agentlab.hosted.deals import Deals, DealsError
from agentlab.hosted.table import Table
from agentlab.hosted.table_config import Journal, Report, TableConfig

START_SECONDS = 30.0
STOP_SECONDS = 5.0
LONGEST_SOURCE = 1000
"""Characters of a hand's name: a file's name, and perhaps a key in it that can be of any length."""


class TableFailed(Exception):
    """Says in one line why a table's process did not start, or how it ended."""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What the child shall do."""

    table: TableConfig
    hands: int | None = None
    """None: until it is stopped, or until every deal was played."""
    deal: str | None = None
    """A PHH file, or a folder of them, to deal in place of our own deck."""
    journal: str | None = None
    """A file that every frame received is appended to: one JSON object {agentId, frame} a line."""


class TableProcess:
    """`async with TableProcess(order) as table:` starts it; `table.url` is where agents connect."""

    def __init__(
        self,
        order: Order,
        *,
        on_hand: Callable[[int], None] | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        """`on_hand` is told how many hands have ended, after each."""
        self.url = ""
        self.order = order
        self._on_hand = on_hand
        self._environment = environment
        self._process: Process | None = None
        self._done: asyncio.Task[Report] | None = None
        self._ready: asyncio.Future[str]

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    async def __aenter__(self) -> "TableProcess":
        """Raises TableFailed."""
        self._ready = asyncio.get_running_loop().create_future()
        self._process = await start_child("agentlab.hosted.table_process", self.order, self._environment)
        self._done = asyncio.create_task(self._listen())
        started: set[asyncio.Future[Any]] = {self._ready, self._done}
        await asyncio.wait(started, timeout=START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if not self._ready.done():
            await self._stop()
            raise self._failure() or TableFailed(f"the table did not start within {START_SECONDS:g} s")
        self.url = self._ready.result()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stop()

    def end_soon(self) -> None:
        """No hand after the one that is being played; `finished` then has the report."""
        if self._process:
            ask_to_end_soon(self._process)

    async def finished(self) -> Report:
        """The report, once all hands are played or the table was stopped. Raises TableFailed where it died."""
        assert self._done is not None
        return await asyncio.shield(self._done)

    async def _listen(self) -> Report:
        """Reads what the child tells, to its end."""
        process = self._process
        assert process is not None and process.stdout is not None
        report, failure = None, ""
        skipped: dict[str, str] = {}
        async for line in process.stdout:
            said = json.loads(line)
            if "ready" in said and not self._ready.done():
                self._ready.set_result(said["ready"])
            elif "hand" in said and self._on_hand:
                self._on_hand(said["hand"])
            skipped |= said.get("skipped", {})
            report, failure = said.get("report", report), said.get("failed", failure)
        code = await process.wait()
        if report is None:
            raise TableFailed(failure or f"the table ended without a report (exit {code})")
        return msgspec.convert(report | {"skipped": skipped}, Report)

    def _failure(self) -> BaseException | None:
        return self._done.exception() if self._done and self._done.done() and not self._done.cancelled() else None

    async def _stop(self) -> None:
        """Lets go of the child, which ends by itself; kills it where it does not."""
        assert self._process is not None and self._process.stdin is not None and self._done is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        done, _ = await asyncio.wait({self._done}, timeout=STOP_SECONDS)
        if not done:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await asyncio.wait({self._done})


# The child ------------------------------------------------------------------------------------------------------
def _tell(**event: Any) -> None:
    """To a holder who is gone nothing can be told; that is no fault of the table's."""
    with contextlib.suppress(BrokenPipeError):  # unbuffered, or what is left over would be tried again at exit
        os.write(sys.stdout.fileno(), json.dumps(event).encode() + b"\n")


def _journal_to(file: IO[str]) -> Journal:
    def note(agent_id: str, frame: dict[str, Any]) -> None:
        file.write(json.dumps({"agentId": agent_id, "frame": frame}) + "\n")
        file.flush()

    return note


async def _run(order: Order, journal: Journal | None) -> Report:
    from agentlab.hosted.deployments import seat_newest
    from agentlab.hosted.hand_numbers import DatabaseThread, DurableHandNumbers

    deals = Deals(Path(order.deal), order.table.seed) if order.deal else None
    database = DatabaseThread()
    table = Table(
        order.table,
        numbers=DurableHandNumbers(order.table.table_id, database),
        deployments=lambda _, agents: database.call(seat_newest, order.table.table_id, agents),
        journal=journal,
        on_hand=lambda hands: _tell(hand=hands),
    )
    async with table:
        _tell(ready=table.url)
        playing, released = (
            asyncio.ensure_future(table.play(order.hands, deals)),
            asyncio.ensure_future(let_go(table.end_soon)),
        )
        await asyncio.wait({playing, released}, return_when=asyncio.FIRST_COMPLETED)
        if playing.done():
            playing.result()
        playing.cancel()
    database.close()
    return table.report


def main() -> None:
    order = begin(Order)
    try:
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(Path(order.journal).open("a")) if order.journal else None
            report = asyncio.run(_run(order, _journal_to(file) if file else None))
    except (OSError, DealsError) as error:
        _tell(failed=str(error) if isinstance(error, DealsError) else f"the table cannot serve: {error.strerror}")
        sys.exit(1)
    for source, reason in report.skipped.items():  # a line each: of a large folder they are too much for one
        _tell(skipped={source[:LONGEST_SOURCE]: reason})
    report.skipped = {}
    _tell(report=msgspec.to_builtins(report))  # asdict() would count a Counter's pairs


if __name__ == "__main__":
    main()
