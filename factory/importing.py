"""Bringing found sessions in as runs, attempts and inputs. Doing it twice changes nothing.

Identity is (owner, format, session id, record id): an attempt's id is a hash of it, so a second import finds the
rows of the first. A session that has grown since gives its new turns; one whose last turn was still being written is
completed. Each session is one transaction: an import that is interrupted leaves nothing of it.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from django.db import transaction

from factory.importers import claude_code
from factory.importers.detect import reader_of
from factory.importers.found import Counts, FoundSession, NotSupportedError, TooLargeError
from factory.importers.trace_database import FORMAT as TRACE_DATABASE
from factory.models import AgentAttempt, FactoryRun
from factory.tracing import FoundRun

UPLOAD_LIMIT = 20 * 1024**2  # what a browser may send; the command reads files of any size


class ImportRefused(Exception):
    """One sentence for a person: why nothing was imported."""


@dataclass(slots=True)
class FileReport:
    """What one file held and what became of it; `records` is the sum of the four counts."""

    file: str
    format: str
    counts: Counts
    runs: list[int] = field(default_factory=list)
    new: int = 0
    changed: int = 0
    unchanged: int = 0

    def as_json(self) -> dict[str, object]:
        counts = self.counts
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


def import_path(path: Path, *, owner_id: int | None) -> Iterator[FileReport]:
    """A report for the file, and one for each sub-agent's file that belongs to it. Raises ImportRefused."""
    try:
        with path.open("rb") as file:
            report = _import(file, path, owner_id, allow_database=True)
    except IsADirectoryError:
        raise ImportRefused("not supported: a folder; name the files in it") from None
    except OSError as error:
        raise ImportRefused(f"cannot be read: {error.strerror}") from None
    yield report
    if report.format == claude_code.FORMAT:
        for other in claude_code.subagent_files(path):
            yield from import_path(other, owner_id=owner_id)


def import_upload(file: BinaryIO, name: str, *, owner_id: int) -> FileReport:
    """What a browser sent. Trace databases are for the command alone. Raises ImportRefused."""
    return _import(file, Path(name), owner_id, allow_database=False)


def _import(file: BinaryIO, path: Path, owner_id: int | None, *, allow_database: bool) -> FileReport:
    try:
        reader = reader_of(file)
        report = FileReport(path.name, "", Counts())
        for session in reader(file, path):
            if session.format == TRACE_DATABASE and not allow_database:
                raise NotSupportedError(
                    "not supported here: a trace database is imported with manage.py factory import"
                )
            _import_session(session, owner_id, report)
            _add(report.counts, session.counts)
    except (NotSupportedError, TooLargeError) as error:
        raise ImportRefused(str(error)) from None
    return report


def _import_session(session: FoundSession, owner_id: int | None, report: FileReport) -> None:
    report.format = session.format
    with transaction.atomic():
        run = FoundRun.open(
            session, identity=_identity(owner_id, session.format, session.session_id), owner_id=owner_id
        )
        known = set(AgentAttempt.objects.filter(run=run.run).values_list("pk", flat=True))
        for found in session.attempts:
            attempt_id = _attempt_id(run.run, found.session_id, found.record_id)
            links = [
                _attempt_id(run.run, found.session_id, name) if name else None
                for name in (found.previous, found.retry_of)
            ]
            previous, retried = (link if link in known else None for link in links)
            outcome = run.write(attempt_id, found, previous=previous, retried=retried, is_known=attempt_id in known)
            known.add(attempt_id)
            setattr(report, outcome, getattr(report, outcome) + 1)
            for text in found.notes:
                run.note(f"{found.phase} {found.turn_index or ''}".strip() + f": {text}")
        for text in session.notes:
            run.note(text)
        run.close()
    if run.run.pk not in report.runs:
        report.runs.append(run.run.pk)


def _identity(*parts: object) -> str:
    # repr keeps parts apart whatever they contain, None from "None" included.
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _attempt_id(run: FactoryRun, session_id: str | None, record_id: str) -> str:
    return _identity(run.import_identity, session_id, record_id)[:32]


def _add(total: Counts, more: Counts) -> None:
    for name in ("shown", "hidden", "damaged", "unknown"):
        setattr(total, name, getattr(total, name) + getattr(more, name))
