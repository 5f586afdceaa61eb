"""Bringing found sessions in as runs, attempts and inputs. Doing it twice changes nothing.

Identity is (owner, format, session id, record id): an attempt's id is a hash of it, so a second import finds the
rows of the first. A session that has grown since gives its new turns; one whose last turn was still being written is
completed. Each session is one transaction: an import that is interrupted leaves nothing of it.
"""

import hashlib
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from django.db import transaction

from agentlab.common.numbers import counted
from factory.importers import claude_code, inspect_log
from factory.importers.detect import reader_of
from factory.importers.found import Counts, FoundSession, NotSupportedError, TooLargeError
from factory.importers.trace_database import MAGIC as TRACE_DATABASE
from factory.importers.turns import told_apart
from factory.models import AgentAttempt, FactoryRun
from factory.resolve import RequestError, open_regular
from factory.tracing import FoundRun

UPLOAD_LIMIT = 20 * 1024**2  # what a browser may send; the command reads files of any size
UNPACKED_LIMIT = (
    10 * UPLOAD_LIMIT
)  # what an archive from a browser may hold: it is read by a process that serves others


class ImportRefused(Exception):
    """One sentence for a person: why nothing was imported."""


@dataclass(slots=True)
class FileReport:
    """What one file held and what became of it; `records` is the sum of the four counts. With `error`, nothing of it
    was imported."""

    file: str
    format: str
    counts: Counts
    error: str = ""
    runs: list[int] = field(default_factory=list)
    new: int = 0
    changed: int = 0
    unchanged: int = 0

    @property
    def brought_nothing(self) -> bool:
        """Were all its attempts here already? Of a file without any that is not said."""
        return bool(self.unchanged) and not self.new and not self.changed

    @property
    def records_in_words(self) -> str:
        """The counts for a person, for whom *hidden* needs a word more."""
        counts = self.counts
        why = " (not part of the conversation, such as file snapshots or progress)" if counts.hidden else ""
        return (
            f"{counts.records} records: {counts.shown} shown, {counts.hidden} hidden{why}, "
            f"{counts.damaged} damaged, {counts.unknown} unknown"
        )

    def as_json(self) -> dict[str, object]:
        counts = self.counts
        if self.error:
            return {"file": self.file, "format": None, "error": self.error}
        return {
            "file": self.file,
            "format": self.format,
            "records": counts.records,
            "shown": counts.shown,
            "hidden": counts.hidden,
            "damaged": counts.damaged,
            "unknown": counts.unknown,
            "runs": self.runs,
            "attempts": {"new": self.new, "changed": self.changed, "unchanged": self.unchanged},
        }


Progress = Callable[[int], None]


def import_path(path: Path, *, owner_id: int | None, progress: Progress = lambda count: None) -> Iterator[FileReport]:
    """A report for the file, and one for each sub-agent's file that belongs to it; `progress` is told how many
    attempts have been read. Raises ImportRefused where the file itself is not imported."""
    report = _import_file(path, owner_id, progress)
    yield report
    if report.format == claude_code.FORMAT:
        for other in claude_code.subagent_files(path):
            try:
                yield from import_path(other, owner_id=owner_id, progress=progress)
            except ImportRefused as refusal:
                yield FileReport(other.name, "", Counts(), error=str(refusal))


def _import_file(path: Path, owner_id: int | None, progress: Progress) -> FileReport:
    try:
        if stat.S_ISDIR(path.stat().st_mode):
            raise ImportRefused("not supported: a folder; name the files in it")
        with open_regular(str(path)) as file:
            return _import(file, path, owner_id, progress)
    except RequestError as error:
        raise ImportRefused(str(error)) from None
    except OSError as error:
        raise ImportRefused(f"cannot be read: {error.strerror or error}") from None
    except ValueError:  # a NUL in the name
        raise ImportRefused("cannot be read: no file has such a name") from None


def import_upload(file: BinaryIO, name: str, *, owner_id: int) -> FileReport:
    """What a browser sent. Trace databases are for the command alone. Raises ImportRefused."""
    if file.read(len(TRACE_DATABASE)) == TRACE_DATABASE:
        raise ImportRefused("not supported here: a trace database is imported with manage.py factory import")
    file.seek(0)
    try:
        # A value takes some thirty times its JSON in memory: no member may hold more than a plain file might.
        inspect_log.check_unpacked(file, member=UPLOAD_LIMIT, total=UNPACKED_LIMIT)
    except TooLargeError as error:
        raise ImportRefused(f"{error}; manage.py factory import takes larger ones") from None
    return _import(file, Path(name), owner_id)


def _import(file: BinaryIO, path: Path, owner_id: int | None, progress: Progress = lambda count: None) -> FileReport:
    try:
        reader = reader_of(file)
        report = FileReport(path.name, "", Counts())
        for session in reader(file, path):
            _import_session(session, owner_id, report, progress)
            _add(report.counts, session.counts)
    except (NotSupportedError, TooLargeError) as error:
        raise ImportRefused(str(error)) from None
    return report


def _import_session(session: FoundSession, owner_id: int | None, report: FileReport, progress: Progress) -> None:
    report.format = session.format
    with transaction.atomic():
        run = FoundRun.open(
            session, identity=_identity(owner_id, session.format, session.session_id), owner_id=owner_id
        )
        known = dict(AgentAttempt.objects.filter(run=run.run).values_list("pk", "number"))
        names: dict[str, int] = {}
        for found in session.attempts:
            # The same id twice in one file is two records: neither may be written over the other.
            attempt_id = _attempt_id(run.run, found.session_id, told_apart(found.record_id, names))
            links = [
                _attempt_id(run.run, found.session_id, name) if name else None
                for name in (found.previous, found.retry_of)
            ]
            previous, retried = (link if link in known else None for link in links)
            outcome = run.write(attempt_id, found, previous=previous, retried=retried, is_known=attempt_id in known)
            number = known.setdefault(attempt_id, run.number)
            setattr(report, outcome, getattr(report, outcome) + 1)
            progress(report.new + report.changed + report.unchanged)
            for text in found.notes:
                run.note(f"Attempt {number}: {text}")
        for text in (*session.notes, *_losses(session.counts)):
            run.note(text)
        run.close(session.part)
    if run.run.pk not in report.runs:
        report.runs.append(run.run.pk)


def _losses(counts: Counts) -> Iterator[str]:
    """What the pages do not show of a file, said where its run is read and not only where it was imported."""
    if counts.damaged:
        yield f"{counted(counts.damaged, 'damaged record')} in the file."
    if counts.unknown:
        yield f"{counted(counts.unknown, 'record')} in the file of a kind that is not known here."


def _identity(*parts: object) -> str:
    # repr keeps parts apart whatever they contain, None from "None" included.
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _attempt_id(run: FactoryRun, session_id: str | None, record_id: str) -> str:
    return _identity(run.import_identity, session_id, record_id)[:32]


def _add(total: Counts, more: Counts) -> None:
    for name in ("shown", "hidden", "damaged", "unknown"):
        setattr(total, name, getattr(total, name) + getattr(more, name))
