"""Which format a file is, by what is in it and never by its name."""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from factory.importers import claude_code, inspect_log, jsonl, pi, streaming, trace_database
from factory.importers.found import FoundSession, NotSupportedError
from factory.values import mapping, text

Reader = Callable[[BinaryIO, Path], Iterator[FoundSession]]
_LINES_LOOKED_AT = 200  # a session may begin with dozens of snapshot rows
_CLAUDE_TYPES = {"user", "assistant", "system", "progress", "summary", "file-history-snapshot", "queue-operation"}


def reader_of(file: BinaryIO) -> Reader:
    """The reader for this file. Raises NotSupportedError."""
    start = file.read(16)
    file.seek(0)
    if start.startswith(trace_database.MAGIC):
        return trace_database.read
    if start.startswith(b"PK\x03\x04"):
        return inspect_log.read_zip
    if not start.strip():
        raise NotSupportedError("not supported: the file is empty")
    if reader := _by_records(file):
        return reader
    if reader := _by_keys(file):
        return reader
    raise NotSupportedError(
        "not supported: neither a pi or Claude Code session, nor an inspect log, nor a factory trace database"
    )


def _by_records(file: BinaryIO) -> Reader | None:
    """The format of the first JSON line that only one format writes."""
    for line in islice(jsonl.scan(file), _LINES_LOOKED_AT):
        record = mapping(line.value)
        kind = text(record.get("type"))
        if kind == "session" and text(record.get("id")):
            return pi.read
        if kind == "message" and "role" in mapping(record.get("message")):
            return pi.read
        if kind in _CLAUDE_TYPES and ("sessionId" in record or "isSnapshotUpdate" in record or "leafUuid" in record):
            return claude_code.read
    return None


def _by_keys(file: BinaryIO) -> Reader | None:
    """The format of one JSON object, by its top-level keys."""
    keys: set[str] = set()
    for key in streaming.top_level_keys(file):
        keys.add(key)
        if key == "loglines":
            return claude_code.read_web_export
        if {"version", "eval"} <= keys:
            return inspect_log.read_json
    return None
