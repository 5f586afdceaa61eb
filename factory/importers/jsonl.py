"""JSON Lines as they really lie on disk: damaged here and there, still being written, and large.

A file is read twice and never held: `scan` walks it once and says where each record lies; `read_at` reads one
record again. Lines end at LF alone (U+2028 is legal inside JSON text, so `splitlines` would break records).
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

LONGEST_LINE = 64 * 1024**2  # a record with a few screenshots in it is some megabytes; beyond this it is damage
_BROKEN = (ValueError, RecursionError)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_DECODER = json.JSONDecoder()
# How often a search for a whole record at the end of a damaged line may begin anew: each object around the place where
# the line was torn is one that fails, and records do not nest deeper. (A failure costs as much as what precedes it.)
_MOST_FAILURES = 100


@dataclass(frozen=True, slots=True)
class Line:
    """One line: where it begins, and its value, or `damaged` where it is not JSON.

    `unfinished`: it is the file's last line, has no LF and is not JSON: the writer is in the middle of it.
    """

    offset: int
    length: int
    value: object = None
    damaged: bool = False
    unfinished: bool = False


def scan(file: BinaryIO) -> Iterator[Line]:
    """Every line that is not blank, in order. A damaged line that ends in a whole object gives both."""
    file.seek(0)
    offset = 0
    while raw := file.readline(LONGEST_LINE + 1):
        start, ended = offset, raw.endswith(b"\n")
        offset += len(raw)
        if start == 0 and raw.startswith(_BYTE_ORDER_MARK):
            raw, start = raw.removeprefix(_BYTE_ORDER_MARK), len(_BYTE_ORDER_MARK)
        if len(raw) > LONGEST_LINE and not ended:
            offset += _skip_line(file)
            yield Line(start, 0, damaged=True)
            continue
        if not raw.strip(b" \t\r\n"):
            continue
        yield from _records(raw, start, ended)


def read_at(file: BinaryIO, offset: int, length: int) -> object:
    """The value of a record that `scan` found there."""
    file.seek(offset)
    return _load(file.read(length))


def fingerprint(file: BinaryIO) -> str:
    """What names a file that has no session id in it: its first line, which no writer changes later."""
    file.seek(0)
    first = next((raw for raw in iter(lambda: file.readline(LONGEST_LINE), b"") if raw.strip()), b"")
    return f"unknown: {hashlib.sha256(first.strip()).hexdigest()}"


def _records(raw: bytes, start: int, ended: bool) -> Iterator[Line]:
    try:
        yield Line(start, len(raw), _load(raw))
        return
    except _BROKEN:
        pass
    if not ended:
        yield Line(start, len(raw), damaged=True, unfinished=True)
        return
    yield Line(start, len(raw), damaged=True)
    if (at := _last_record(raw)) is not None:
        value = _load(raw[at:])
        if isinstance(value, dict) and "type" in value:
            yield Line(start + at, len(raw) - at, value)


def _last_record(raw: bytes) -> int | None:
    """Where the whole object begins that a damaged line ends in: a write that was torn and repeated leaves one, and
    so does a hole of NULs. None where there is none, or none that a bounded search finds."""
    text = raw.decode("utf-8", "surrogateescape").rstrip(" \t\r\n")
    at, failures = text.find('{"', 1), 0
    while at != -1 and failures < _MOST_FAILURES:
        try:
            _, end = _DECODER.raw_decode(text, at)
        except _BROKEN:
            failures, end = failures + 1, at + 1
        if end == len(text):
            return _if_utf8(text[:at], text[at:])
        at = text.find('{"', end)
    return None


def _if_utf8(before: str, record: str) -> int | None:
    """The byte at which the record begins; None where it holds bytes that are not UTF-8."""
    if any("\udc80" <= character <= "\udcff" for character in record):
        return None
    return len(before.encode("utf-8", "surrogateescape"))


def _load(raw: bytes) -> object:
    return json.loads(raw.decode("utf-8"))


def _skip_line(file: BinaryIO) -> int:
    skipped = 0
    while raw := file.readline(LONGEST_LINE):
        skipped += len(raw)
        if raw.endswith(b"\n"):
            break
    return skipped
