"""Trace databases of the factory's older kind: a SQLite file with a table `agent_attempts`.

Every column is looked for and none is expected: what an older schema lacks reads as not recorded. The file comes from
somewhere else, so it is copied and the copy is opened read-only, its schema untrusted, with limits on row size and
on the work a statement may do. The source itself is never opened by SQLite, which would write beside it.
"""

import hashlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from factory.importers.found import Counts, FoundAttempt, FoundSession, NotSupportedError, TooLargeError
from factory.items import PacketItem
from factory.values import NO_OFFSET, count, lacks_offset, moment, money

FORMAT = "factory trace database"
MAGIC = b"SQLite format 3\x00"
LARGEST = 2 * 1024**3
_LONGEST_VALUE = 64 * 1024**2
_MOST_STEPS = 50_000  # calls of the progress handler, each after 10,000 virtual machine steps

_UNREADABLE = (sqlite3.Error, UnicodeError)

_SOURCES = {"prompt_file", "previous_envelope", "context_handoff", "explicit_attachment"}
_DELIVERIES = {"inline", "session_history", "path_reference", "provider_attachment"}
_PREVIEWS = {"text", "image", "none"}
_CAPTURES = {
    "captured", "missing", "unreadable", "limit_exceeded", "changed_during_capture", "enumeration_incomplete",
    "not_applicable",
}  # fmt: skip
_SEND_KINDS = {"initial", "parse_retry", "gate_retry"}
_COVERAGES = {"complete", "partial", "not_recorded"}
_STATES = {"succeeded": "succeeded", "success": "succeeded", "ok": "succeeded", "failed": "failed", "error": "failed",
           "cancelled": "cancelled"}  # fmt: skip


@dataclass(slots=True)
class TracedAttempt(FoundAttempt):
    """An attempt with the packet facts that only a trace database holds."""

    task_prompt: str | None = None
    send_kind: str | None = None
    input_packet_version: int | None = None
    input_coverage: str = "not_recorded"
    declared_input_count: int | None = None
    captured_input_count: int | None = None
    omitted_input_count: int | None = None
    damage: list[str] = field(default_factory=list)


def read(file: BinaryIO, path: Path) -> Iterator[FoundSession]:
    """A session for each run in the database. Raises NotSupportedError and TooLargeError."""
    with (
        tempfile.TemporaryDirectory(prefix="agentlab-import-") as folder,
        closing(_open_copy(file, path, Path(folder))) as db,
    ):
        try:
            columns = _columns(db, "agent_attempts")
            if not columns:
                raise NotSupportedError("not supported: a SQLite file without a table agent_attempts")
            lost = _inputs_of_no_attempt(db, columns)
            for run in _runs(db, columns, path):
                session = _session(db, run, columns)
                if lost:
                    session.counts.damaged += lost
                    session.notes.append(f"Rows of inputs that name no attempt: {lost}.")
                    lost = 0
                yield session
        except _UNREADABLE as error:
            raise _refusal(error) from None


def _refusal(error: Exception) -> NotSupportedError:
    return NotSupportedError(f"not supported: the database cannot be read ({error})")


def _open_copy(file: BinaryIO, path: Path, folder: Path) -> sqlite3.Connection:
    copy = folder / "trace.sqlite3"
    if file.seek(0, os.SEEK_END) > LARGEST:
        raise TooLargeError(f"a trace database may have {LARGEST // 1024**3} GiB at most")
    file.seek(0)
    with copy.open("wb") as target:
        shutil.copyfileobj(file, target)
    log = path.with_name(path.name + "-wal")
    if log.is_file() and log.stat().st_size <= LARGEST:  # what the producer had not yet moved into the file
        shutil.copyfile(log, folder / "trace.sqlite3-wal")
    db = sqlite3.connect(f"file:{copy}?mode=rw", uri=True)
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
    db.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    db.execute("PRAGMA trusted_schema = OFF")
    db.execute("PRAGMA query_only = ON")
    db.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    db.row_factory = sqlite3.Row
    steps = iter(range(_MOST_STEPS))
    db.set_progress_handler(lambda: next(steps, None) is None, 10_000)
    return db


def _columns(db: sqlite3.Connection, table: str) -> list[str]:
    """The columns of a real table (no view, no virtual table); empty where there is none."""
    kind = db.execute("SELECT type, sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    if kind is None or kind["type"] != "table" or "VIRTUAL" in str(kind["sql"]).upper().split("(")[0]:
        return []
    return [row["name"] for row in db.execute(f'PRAGMA table_info("{table}")')]


class _Run(NamedTuple):
    """A run by its first row: its id is never given back to SQLite, which would not find bytes that are no UTF-8."""

    first_row: int
    session_id: str


def _runs(db: sqlite3.Connection, columns: list[str], path: Path) -> list[_Run]:
    """The runs in the order of their first rows. What names a run is what its first attempt began with: run ids of
    two databases may be alike, and one database may be found under two names."""
    which = " GROUP BY run_id" if "run_id" in columns else ""
    rows = db.execute(f"SELECT min(rowid) AS first FROM agent_attempts{which} ORDER BY 1").fetchall()  # noqa: S608
    lasting = ", ".join(name for name in ("run_id", "attempt_id", "started_at", "user_prompt") if name in columns)
    runs = []
    for first in (row["first"] for row in rows if row["first"] is not None):
        if not lasting:
            runs.append(_Run(first, path.name))
            continue
        facts = db.execute(f"SELECT {lasting} FROM agent_attempts WHERE rowid = ?", (first,)).fetchone()  # noqa: S608
        runs.append(_Run(first, hashlib.sha256(repr(tuple(facts)).encode("utf-8", "surrogatepass")).hexdigest()))
    return runs


def _session(db: sqlite3.Connection, run: _Run, columns: list[str]) -> FoundSession:
    counts = Counts()
    session = FoundSession(FORMAT, run.session_id, iter(()), counts)
    absent = sorted({"task_prompt", "send_kind", "input_coverage"} - set(columns))
    if absent:
        session.notes.append("Imported from an older trace: columns absent in it read as not recorded.")
    session.attempts = _guarded(_attempts(db, run, columns, session))
    return session


def _guarded(attempts: Iterator[FoundAttempt]) -> Iterator[FoundAttempt]:
    """The attempts are read while they are written down: damage further on is found only then."""
    try:
        yield from attempts
    except _UNREADABLE as error:
        raise _refusal(error) from None


def _attempts(db: sqlite3.Connection, run: _Run, columns: list[str], session: FoundSession) -> Iterator[TracedAttempt]:
    same = " WHERE run_id IS (SELECT run_id FROM agent_attempts WHERE rowid = ?)" if "run_id" in columns else ""
    order = " ORDER BY " + ", ".join(
        name for name in ("started_at", "attempt_id", "rowid") if name in (*columns, "rowid")
    )
    inputs = _columns(db, "agent_attempt_inputs")
    times = {"started_at", "ended_at"} & set(columns)
    query = f"SELECT rowid AS agentlab_row, * FROM agent_attempts{same}{order}"  # noqa: S608 - names of ours
    for number, row in enumerate(db.execute(query, (run.first_row,) if same else ()), start=1):
        found = _attempt(dict(row), number)
        if NO_OFFSET not in session.notes and any(map(lacks_offset, (row[name] for name in times))):
            session.notes.append(NO_OFFSET)
        if "attempt_id" in inputs and "attempt_id" in columns:
            _add_inputs(db, found, row["agentlab_row"], session.counts)
            _miss_inputs(found)
        else:
            found.input_coverage = "not_recorded"  # whatever the row says, the table that would show it is not there
        session.counts.damaged += bool(found.damage)
        session.counts.shown += not found.damage
        found.notes += [f"Damaged row: {what}." for what in found.damage]
        yield found


def _miss_inputs(found: TracedAttempt) -> None:
    """Fewer rows than the attempt says it had inputs: then what is listed is not complete."""
    lost = (found.declared_input_count or 0) - len(found.inputs)
    if lost > 0:
        found.damage.append(f"{lost} of the {found.declared_input_count} inputs that it declares are not in the file")
        found.input_coverage = "partial" if found.inputs else "not_recorded"


def _inputs_of_no_attempt(db: sqlite3.Connection, columns: list[str]) -> int:
    if "attempt_id" not in columns or "attempt_id" not in _columns(db, "agent_attempt_inputs"):
        return 0
    with_one = "SELECT 1 FROM agent_attempts AS a WHERE a.attempt_id = i.attempt_id"
    query = f"SELECT count(*) FROM agent_attempt_inputs AS i WHERE NOT EXISTS ({with_one})"  # noqa: S608
    return int(db.execute(query).fetchone()[0])


class _Row:
    """One row's values, wrong kinds told apart from absent ones."""

    def __init__(self, row: dict[str, Any]) -> None:
        self.row = row
        self.damage: list[str] = []

    def text(self, *names: str) -> str | None:
        for name in names:
            value = self.row.get(name)
            if isinstance(value, str):
                return value
            if value is not None:
                self.damage.append(f"{name} is not text")
        return None

    def number(self, name: str) -> int | None:
        value = self.row.get(name)
        if value is not None and count(value) is None:
            self.damage.append(f"{name} is not a whole number")
        return count(value)

    def time(self, name: str) -> datetime | None:
        value = self.row.get(name)
        found = moment(value * 1000 if isinstance(value, int | float) and value < 10**11 else value)
        if value is not None and found is None:
            self.damage.append(f"{name} is not a time")
        return found

    def one_of(self, name: str, known: set[str]) -> str | None:
        value = self.text(name)
        if value is not None and value not in known:
            self.damage.append(f"{name} has an unknown value")
            return None
        return value


def _attempt(values: dict[str, Any], number: int) -> TracedAttempt:
    row = _Row(values)
    state = _STATES.get((row.text("state", "status") or "").lower())
    found = TracedAttempt(
        record_id=row.text("attempt_id") or f"row {number}",
        phase=row.text("phase") or "unknown phase",
        session_id=row.text("session_id"),
        user_prompt=row.text("user_prompt"),
        system_prompt=row.text("system_prompt"),
        reply=row.text("reply", "response"),
        model=row.text("model") or "",
        provider=row.text("provider") or "",
        state="failed" if state is None else state,  # type: ignore[arg-type]
        failure="interrupted" if state is None else "",
        error=row.text("error") or ("no end state is recorded" if state is None else ""),
        input_tokens=row.number("input_tokens"),
        output_tokens=row.number("output_tokens"),
        cost=money(values.get("cost")),
        started_at=row.time("started_at"),
        ended_at=row.time("ended_at"),
        turn_index=row.number("turn_index"),
        previous=row.text("previous_turn_attempt_id"),
        retry_of=row.text("retry_of_attempt_id"),
        task_prompt=row.text("task_prompt"),
        send_kind=row.one_of("send_kind", _SEND_KINDS),
        input_packet_version=row.number("input_packet_version"),
        input_coverage=row.one_of("input_coverage", _COVERAGES) or "not_recorded",
        declared_input_count=row.number("declared_input_count"),
        captured_input_count=row.number("captured_input_count"),
        omitted_input_count=row.number("omitted_input_count"),
    )
    found.damage = row.damage
    return found


def _add_inputs(db: sqlite3.Connection, found: TracedAttempt, row_id: int, counts: Counts) -> None:
    query = (
        "SELECT * FROM agent_attempt_inputs WHERE attempt_id = (SELECT attempt_id FROM agent_attempts WHERE rowid = ?)"
    )
    for row in db.execute(f"{query} ORDER BY rowid", (row_id,)):
        item, damaged = _item(dict(row), len(found.inputs) + 1)
        counts.damaged += damaged
        counts.shown += not damaged
        found.inputs.append(item)


def _item(values: dict[str, Any], seq: int) -> tuple[PacketItem, bool]:
    """A row of inputs. A damaged one stays visible as unavailable, with a reason that quotes nothing of it."""
    row = _Row(values)
    source = row.one_of("source_kind", _SOURCES)
    delivery = row.one_of("delivery_mode", _DELIVERIES)
    status = row.one_of("capture_status", _CAPTURES)
    preview = row.one_of("preview_kind", _PREVIEWS)
    detail = row.text("detail")
    digest = row.text("sha256")
    if digest is not None and (len(digest) != 64 or digest.strip("0123456789abcdef")):
        row.damage.append("sha256 is not a hash")
        digest = None
    for name, value in (("source_kind", source), ("delivery_mode", delivery), ("capture_status", status)):
        if value is None and not any(what.startswith(name) for what in row.damage):
            row.damage.append(f"{name} is missing")
    label, path, media, size = (
        row.text("label"),
        row.text("source_path"),
        row.text("media_type"),
        row.number("size_bytes"),
    )
    damaged = bool(row.damage)
    return (
        PacketItem(
            seq=seq,
            label=label or f"input {seq}",
            source_kind=source or "explicit_attachment",  # type: ignore[arg-type]
            delivery_mode=delivery or "path_reference",  # type: ignore[arg-type]
            source_path=path,
            media_type=(media or "")[:80] or None,
            preview_kind=preview or "none",  # type: ignore[arg-type]
            size_bytes=size,
            sha256=digest,
            capture_status="unreadable" if damaged else status or "not_applicable",  # type: ignore[arg-type]
            detail=f"this row is damaged: {'; '.join(row.damage)}" if damaged else detail,
            captured_at=row.time("captured_at"),
        ),
        damaged,
    )
