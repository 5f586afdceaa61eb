"""The ledger's writer: one row for every inference turn and for every hand's result, whatever the database is doing.

A turn puts one reference on a queue and goes on. One thread takes the queue to the spool file, another takes the spool
to the database; so a database that hangs holds up neither a turn nor the way to safety on disk.
"""

import atexit
import logging
import os
import sqlite3
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue

from agentlab.agents.charge import Charge, NoRow, Outcome, Result, fit, fit_outcome, fit_result
from agentlab.agents.spool import MAX_BYTES, Batch, Item, Spool, SpoolError

__all__ = ["Charge", "LedgerStats", "LedgerWriter", "Result", "SpoolError"]

log = logging.getLogger(__name__)

BATCH = 100
GATHER_SECONDS = 0.05  # a turn's outcome mostly follows within this: one statement instead of two
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 1.0  # between two tries while the database is away


@dataclass
class LedgerStats:
    """Counts since the process began. `lost` rows, `lost_outcomes` and `lost_results` never reached the ledger;
    `refused_fields` were left out of rows that did, and of `reduced` rows the database took nothing but the key, the
    time and the outcome."""

    written: int = 0
    lost: int = 0
    lost_outcomes: int = 0
    lost_results: int = 0
    refused_fields: int = 0
    reduced: int = 0


class LedgerWriter:
    """Writes charges, capture outcomes and results of hands, in any order and from any thread, and never holds the
    caller up.

    `spool_path` names the file in which they wait; what a killed process left there is written by the next one that
    names it. Raises SpoolError where the file cannot be made. What does not fit the table is reduced or refused, and
    counted in `stats`.
    """

    def __init__(self, spool_path: Path | str, *, max_spool_bytes: int = MAX_BYTES, max_queued: int = 10_000) -> None:
        self.stats = LedgerStats()
        self._max_queued = max_queued
        self._said: set[str] = set()
        self._count = threading.Lock()
        self._pid = os.getpid()
        self._closed = self._all_written = False
        self._ended = threading.Event()
        self._queue: SimpleQueue[Item | threading.Event] = SimpleQueue()
        self._spool = Spool(Path(spool_path), max_bytes=max_spool_bytes)
        if self._spool.set_aside:
            self._say("damaged", f"the spool was damaged and is now {self._spool.set_aside}")
        self._progress = threading.Condition()
        self._wake = threading.Event()
        self._wake.set()  # what an earlier process left is written first
        self._threads = [
            threading.Thread(target=run, name=name, daemon=True)
            for run, name in ((self._to_spool, "ledger-spool"), (self._to_database, "ledger-writer"))
        ]
        for thread in self._threads:
            thread.start()
        atexit.register(self.close, 2)

    def charge(self, charge: Charge) -> None:
        """Returns at once; the row is written when the database takes it."""
        self._put(charge)

    def outcome(
        self, *, agent_id: str, table_id: str, hand_number: int, action_index: int, outcome: str, reason: str = ""
    ) -> None:
        """What became of a turn's capture: "recorded", "dropped" or "failed". Returns at once."""
        self._put(Outcome((agent_id, table_id, hand_number, action_index), outcome, reason))

    def result(self, result: Result) -> None:
        """What a hand came to for an agent. Returns at once."""
        self._put(result)

    def flush(self, timeout: float) -> bool:
        """Waits until all that was said before is in the database; whether it is, within `timeout` seconds."""
        return self._all_written if self._closed or self._is_forked() else self._drain(timeout)

    def close(self, timeout: float = 2) -> bool:
        """Takes no more, flushes, and ends both threads; whether all is in the database. The rest waits in the spool
        for the next writer. Again is harmless."""
        if self._closed or self._is_forked():
            return self._all_written
        deadline = time.monotonic() + timeout
        self._closed = True
        self._all_written = self._drain(timeout)
        atexit.unregister(self.close)
        self._threads[0].join(max(0, deadline - time.monotonic()))
        self._ended.set()
        self._wake.set()
        for thread in self._threads:
            thread.join(max(0.2, deadline - time.monotonic()))
        return self._all_written

    def _drain(self, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        spooled = threading.Event()
        self._queue.put(spooled)
        if not spooled.wait(max(0, timeout)):
            return False
        target = self._spool.last()
        with self._progress:
            return self._progress.wait_for(lambda: self._spool.is_clear(target), max(0, deadline - time.monotonic()))

    def _is_forked(self) -> bool:
        return self._pid != os.getpid()

    # the queue -----------------------------------------------------------------------------------------------

    def _put(self, item: Item) -> None:
        if self._is_forked():  # neither threads nor SQLite's locks come along
            self._say("fork", "a forked process needs a LedgerWriter of its own, with a spool of its own")
        elif self._closed or self._queue.qsize() >= self._max_queued:
            self._lose(item, "the ledger is closed" if self._closed else "the queue is full")
        else:
            self._queue.put(item)

    def _lose(self, item: Item, why: str) -> None:
        if isinstance(item, Outcome):
            self._add(lost_outcomes=1)
            self._say(f"outcome {why}", f"capture outcomes are lost: {why}")
        elif isinstance(item, Result):
            self._add(lost_results=1)
            self._say(f"result {why}", f"results of hands are lost: {why}")
        else:
            self._add(lost=1)
            self._say(why, f"rows are lost: {why}")

    def _add(self, **counts: int) -> None:
        with self._count:
            for name, count in counts.items():
                setattr(self.stats, name, getattr(self.stats, name) + count)

    def _say(self, kind: str, message: str) -> None:
        """Once a kind, so that an outage is one line and not one a turn. Never content."""
        if kind not in self._said:
            self._said.add(kind)
            log.warning("ledger: %s", message)

    # queue to spool ------------------------------------------------------------------------------------------

    def _to_spool(self) -> None:
        while not (self._closed and self._queue.empty()):
            items, events = self._gather()
            if fitted := [kept for item in items if (kept := self._fitted(item))]:
                self._append(fitted)
                self._wake.set()
            for event in events:
                event.set()

    def _gather(self) -> tuple[list[Item], list[threading.Event]]:
        """What is on the queue, once there is anything. A flush puts an event there."""
        items: list[Item] = []
        events: list[threading.Event] = []
        item = self._queue.get()
        while True:
            if isinstance(item, threading.Event):
                events.append(item)
            else:
                items.append(item)
            try:
                if len(items) == BATCH:
                    break
                item = self._queue.get_nowait()
            except Empty:
                break
        return items, events

    def _fitted(self, item: Item) -> Item | None:
        try:
            if isinstance(item, Outcome):
                return fit_outcome(item)
            if isinstance(item, Result):
                return fit_result(item)
            fitted, refused = fit(item)
        except Exception as error:  # whatever a caller handed in, its neighbours stay
            self._lose(item, str(error) if isinstance(error, NoRow) else type(error).__name__)
            return None
        for name in refused:
            self._add(refused_fields=1)
            self._say(f"field {name}", f"a value of {name} does not fit the table and was left out")
        return fitted

    def _append(self, items: list[Item]) -> None:
        """Into the spool; while that has no room, the queue fills up behind it, and is bounded too."""
        while True:
            try:
                self._spool.append(items)
                return
            except sqlite3.Error as error:
                self._say("spool", f"the spool takes nothing: {error}")
            if self._ended.wait(0.1):
                for item in items:
                    self._lose(item, "no room in the spool")
                return

    # spool to database ---------------------------------------------------------------------------------------

    def _to_database(self) -> None:
        pause = FIRST_PAUSE
        while not self._ended.is_set():
            self._wake.wait()
            self._wake.clear()
            self._ended.wait(GATHER_SECONDS)
            if self._ship():
                pause = FIRST_PAUSE
            else:
                self._ended.wait(pause)
                pause = min(LONGEST_PAUSE, pause * 2)
                self._wake.set()
        self._spool.close()

    def _ship(self) -> bool:
        """Everything in the spool; whether the database took it."""
        try:
            batch: Batch | None = Batch()
            while batch is not None:
                with self._spool.alone():
                    batch = self._spool.next(BATCH) or None
                    if batch and not self._write(batch):
                        return False
                with self._progress:  # also where another process has written what was ours
                    self._progress.notify_all()
            self._add(lost_outcomes=self._spool.forget_orphans())
            return True
        except Exception as error:  # this thread outlives whatever it meets; the rows are on disk
            self._say("writer", f"rows wait in {self._spool.path}: {type(error).__name__}")
            return False

    def _write(self, batch: Batch) -> bool:
        from agentlab.agents.ledger_rows import Away, write

        try:
            written = write(batch)
        except Away as error:
            self._say("away", f"the database is away, rows wait in {self._spool.path} ({error})")
            return False
        self._said.discard("away")
        self._spool.done(batch, waiting=written.waiting)  # first: where that fails the batch comes again, uncounted
        for item, why in written.refused:
            self._lose(item, f"the database refused the row ({why})")
        if batch.unreadable:
            self._add(lost=batch.unreadable)
            self._say("unreadable", "rows are lost: entries of the spool cannot be read")
        refused = sum(isinstance(item, Charge) for item, _ in written.refused)
        self._add(written=len(batch.charges) - refused, reduced=written.reduced)
        return True
