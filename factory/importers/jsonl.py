"""JSON Lines as they really lie on disk: damaged here and there, still being written, and large.

A file is read twice and never held: `scan` walks it once and says where each record lies; `read_at` reads one
record again. Lines end at LF alone (U+2028 is legal inside JSON text, so `splitlines` would break records).
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

LONGEST_LINE = 64 * 1024**2  # a record with a few screenshots in it is some megabytes; beyond this it is damage
_MOST_DEPTH_ERRORS = (ValueError, RecursionError)


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


def _records(raw: bytes, start: int, ended: bool) -> Iterator[Line]:
    try:
        yield Line(start, len(raw), _load(raw))
        return
    except _MOST_DEPTH_ERRORS:
        pass
    if not ended:
        yield Line(start, len(raw), damaged=True, unfinished=True)
        return
    yield Line(start, len(raw), damaged=True)
    # A write that was torn and repeated, or a hole of NULs, leaves a whole record at the line's end.
    at = raw.find(b'{"', 1)
    while at != -1:
        try:
            value = _load(raw[at:])
        except _MOST_DEPTH_ERRORS:
            at = raw.find(b'{"', at + 1)
            continue
        if isinstance(value, dict) and "type" in value:
            yield Line(start + at, len(raw) - at, value)
        return


def _load(raw: bytes) -> object:
    return json.loads(raw.decode("utf-8"))


def _skip_line(file: BinaryIO) -> int:
    skipped = 0
    while raw := file.readline(LONGEST_LINE):
        skipped += len(raw)
        if raw.endswith(b"\n"):
            break
    return skipped
