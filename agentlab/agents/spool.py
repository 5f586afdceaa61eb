"""Where ledger rows wait for the database: a small SQLite file beside the process. No Django.

SQLite gives what a spool needs and what is easy to get wrong by hand: a half-written entry is never seen, two processes
may share the file, and the file cannot outgrow its bound.
"""

import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import msgspec

from agentlab.agents.charge import Charge, HandKey, Key, Outcome, Result

PAGE = 4096
MAX_BYTES = 64 * 1024**2  # some 150,000 turns: a day of ten busy tables
PATIENCE = 1.0  # seconds; a batch takes some hundredths of one
ORPHAN_SECONDS = 86_400  # an outcome whose row never came; the turn's own record is gone by then

SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    key BLOB NOT NULL,
    kind TEXT NOT NULL,
    body BLOB NOT NULL,
    at REAL NOT NULL,
    waits INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS entries_by_key ON entries (key);
CREATE INDEX IF NOT EXISTS entries_to_do ON entries (seq) WHERE waits = 0;
"""


Item: TypeAlias = Charge | Outcome | Result


class SpoolError(Exception):
    """Says in one line why the spool cannot be used."""


@dataclass
class Batch:
    """What is to be written next, merged by key: of several charges or outcomes of one turn, or results of one hand,
    the last one counts."""

    charges: dict[Key, Charge] = field(default_factory=dict)
    outcomes: dict[Key, Outcome] = field(default_factory=dict)
    results: dict[HandKey, Result] = field(default_factory=dict)
    unreadable: int = 0
    seqs: list[tuple[int, Key | None]] = field(default_factory=list)
    """Every entry's number, with its key where it is an outcome."""

    def add(self, seq: int, kind: str, body: bytes) -> None:
        try:
            if kind == "Charge":
                charge = msgspec.msgpack.decode(body, type=Charge)
                self.charges[charge.key] = charge
                self.seqs.append((seq, None))
            elif kind == "Result":
                result = msgspec.msgpack.decode(body, type=Result)
                self.results[result.key] = result
                self.seqs.append((seq, None))
            else:
                outcome = msgspec.msgpack.decode(body, type=Outcome)
                self.outcomes[outcome.key] = outcome
                self.seqs.append((seq, outcome.key))
        except msgspec.MsgspecError:
            self.unreadable += 1
            self.seqs.append((seq, None))

    def __bool__(self) -> bool:
        return bool(self.seqs)


class Spool:
    """A queue of charges, outcomes and results that outlives the process. Any thread may call any method."""

    def __init__(self, path: Path, *, max_bytes: int = MAX_BYTES) -> None:
        """Opens the file or makes it; one that is no spool is put aside. Raises SpoolError."""
        self.path = path
        self.set_aside: Path | None = None
        self._lock = threading.Lock()
        self._look_again = 0.0
        self._max_pages = max(16, max_bytes // PAGE)
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.touch(0o600)
            self._taking = path.with_name(f"{path.name}.taking").open("ab")
            with _alone_in(path.parent):  # not `alone`: whoever is in there may wait for a database
                self._connection = self._open_or_replace()
        except (OSError, sqlite3.Error) as error:
            raise SpoolError(f"the ledger's spool {path} cannot be used: {error}") from None

    def append(self, items: Iterable[Item]) -> None:
        """All of them or none. Raises sqlite3.Error, where there is no room for instance."""
        now = time.time()
        rows = [(_key(item.key), type(item).__name__, msgspec.msgpack.encode(item), now) for item in items]
        with self._lock, self._connection:
            self._connection.executemany("INSERT INTO entries (key, kind, body, at) VALUES (?, ?, ?, ?)", rows)

    def next(self, limit: int) -> Batch:
        """The oldest entries that are to be written, and the outcomes that waited for a row among them."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT seq, kind, body, key FROM entries WHERE waits = 0 ORDER BY seq LIMIT ?", (limit,)
            ).fetchall()
            keys = [row[3] for row in rows if row[1] == "Charge"]
            marks = ",".join("?" * len(keys))
            rows += self._connection.execute(
                f"SELECT seq, kind, body, key FROM entries WHERE waits = 1 AND key IN ({marks})",  # noqa: S608
                keys,
            ).fetchall()
        batch = Batch()
        for seq, kind, body, _ in sorted(rows):
            batch.add(seq, kind, body)
        return batch

    def done(self, batch: Batch, *, waiting: Set[Key]) -> None:
        """The batch is written, but for outcomes whose row is not there yet: these stay until it comes."""
        wait = [(seq,) for seq, key in batch.seqs if key in waiting]
        written = [(seq,) for seq, key in batch.seqs if key not in waiting]
        with self._lock, self._connection:
            self._connection.executemany("DELETE FROM entries WHERE seq = ?", written)
            self._connection.executemany("UPDATE entries SET waits = 1 WHERE seq = ?", wait)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Meanwhile nobody else who shares the file is in here. For the time from taking a batch to its being done: of
        two that write the same rows, the one that took them before an outcome was there could have the last word."""
        with _locked(self._taking.fileno(), within=PATIENCE):
            yield

    def last(self) -> int:
        """The newest entry's number, 0 where there never was one."""
        with self._lock:
            return int(self._connection.execute("SELECT coalesce(max(seq), 0) FROM entries").fetchone()[0])

    def is_clear(self, up_to: int) -> bool:
        """Whether nothing numbered `up_to` or less is still to be written."""
        with self._lock:
            row = self._connection.execute("SELECT 1 FROM entries WHERE waits = 0 AND seq <= ? LIMIT 1", (up_to,))
            return row.fetchone() is None

    def forget_orphans(self) -> int:
        """Lets go of outcomes whose row did not come in a day; how many. Looks once an hour."""
        if time.monotonic() < self._look_again:
            return 0
        self._look_again = time.monotonic() + 3600
        with self._lock, self._connection:
            old = time.time() - ORPHAN_SECONDS
            return self._connection.execute("DELETE FROM entries WHERE waits = 1 AND at < ?", (old,)).rowcount

    def close(self) -> None:
        with self._lock:
            self._connection.close()
            self._taking.close()

    def _open_or_replace(self) -> sqlite3.Connection:
        try:
            return self._open()
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:  # damaged, or never a spool
            self.set_aside = self.path.with_name(f"{self.path.name}.damaged-{time.time_ns()}")
            self.path.rename(self.set_aside)
            for suffix in ("-wal", "-shm"):
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
            return self._open()

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=10, check_same_thread=False)
        try:
            # NORMAL: an entry survives the process; a power cut may take the last second, never the file.
            connection.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;" + SCHEMA)
            connection.execute(f"PRAGMA max_page_count = {self._max_pages}")
        except sqlite3.Error:
            connection.close()
            raise
        return connection


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Two that make one file at once would find it locked."""
    place = os.open(folder, os.O_RDONLY)
    try:
        with _locked(place):
            yield
    finally:
        os.close(place)


@contextmanager
def _locked(file: int, within: float = float("inf")) -> Iterator[None]:
    """Alone with this file. One that is held for longer is held by somebody who is stuck: then it goes on without."""
    deadline = time.monotonic() + within
    while not _taken(file) and time.monotonic() < deadline:
        time.sleep(0.01)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


def _taken(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _key(key: Key | HandKey) -> bytes:
    return msgspec.msgpack.encode(key)
