"""Reading whole files for the importer tests."""

import json
from dataclasses import dataclass
from pathlib import Path

from factory.importers.detect import reader_of
from factory.importers.found import FoundAttempt, FoundSession

SESSIONS = Path(__file__).parents[2] / "data" / "sessions"


@dataclass
class Read:
    session: FoundSession
    attempts: list[FoundAttempt]


def read(path: Path) -> list[Read]:
    with path.open("rb") as file:
        return [Read(session, list(session.attempts)) for session in reader_of(file)(file, path)]


def read_one(path: Path) -> Read:
    [only] = read(path)
    return only


def write_lines(path: Path, *records: object) -> Path:
    """A JSON Lines file; text is written as it stands, anything else as JSON."""
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
    return path


def pi_message(entry: str, parent: str | None, role: str, words: str = "hello", **more: object) -> dict[str, object]:
    message = {"role": role, "content": [{"type": "text", "text": words}], **more}
    return {"type": "message", "id": entry, "parentId": parent, "timestamp": "2026-11-29T12:00:00Z", "message": message}


PI_HEADER = {"type": "session", "version": 3, "id": "s-1", "timestamp": "2026-11-29T12:00:00Z", "cwd": "/w"}


def claude_row(kind: str, name: str, parent: str | None, content: object, **more: object) -> dict[str, object]:
    """A row of a Claude Code session `s`."""
    message = {"role": kind, "content": content, "id": name}
    return {"type": kind, "uuid": name, "parentUuid": parent, "sessionId": "s", "message": message, **more}
