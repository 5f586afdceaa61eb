"""One large JSON object, read as a stream: as Python writes it (`NaN`, `Infinity`) and however deep it goes.

ijson carries the path of every value along, so a file of a few hundred kilobytes that nests at each byte would take it
hours: the depth is looked at first. JSON goes to ijson as it is, and only what that cannot read is read through
`_Plain`, which says `null` for the three names that Python writes and JSON does not have.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, BinaryIO

import ijson

DEEPEST = 200
"""Levels of nesting that are read: an inspect log has about twenty."""
BROKEN = (ijson.JSONError, ValueError, OverflowError)  # ijson passes on what Python's own conversions raise
_CHUNK = 64 * 1024
_OPENS, _CLOSES = {"start_map", "start_array"}, {"end_map", "end_array"}


class TooDeepError(Exception):
    """The JSON nests deeper than DEEPEST."""


class _Plain:
    """A file's JSON with null for `NaN`, `Infinity` and `-Infinity` outside its strings."""

    _TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+(?P<end>")?|(?P<name>NaN|-?Infinity)', re.DOTALL)
    _LONGEST = len(b"-Infinity")

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._rest = file, b""

    def read(self, size: int = -1) -> bytes:
        """Some bytes, none at the end; how many `size` asks for is not minded, but for 0."""
        while size:
            # As much again as is held back: a long string is then not looked at over and over.
            chunk = self._file.read(max(_CHUNK, len(self._rest)))
            data, self._rest = self._rest + chunk, b""
            if chunk:
                whole = self._whole(data)
                data, self._rest = data[:whole], data[whole:]
            if data or not chunk:
                return self._TOKEN.sub(lambda token: b"null" if token["name"] else token[0], data)
        return b""

    def _whole(self, data: bytes) -> int:
        """Where a string or a name that goes on in the next chunk begins, else the data's end."""
        for token in self._TOKEN.finditer(data):
            if not token["name"] and not token["end"]:
                return token.start()
        return max(len(data.rstrip(b"-INafinty")), len(data) - self._LONGEST + 1)


def top_level_keys(file: BinaryIO) -> Iterator[str]:
    """The keys of the object that the file holds, as far as it can be read."""
    file.seek(0)
    try:
        yield from (value for depth, event, value in _walk(_Plain(file)) if depth == 1 and event == "map_key")
    except (*BROKEN, TooDeepError):
        return


def texts(file: BinaryIO, wanted: set[tuple[str, ...]], *, until: str) -> dict[tuple[str, ...], str]:
    """The texts under the wanted paths of keys that stand before the top-level key `until`.

    Raises one of BROKEN, and TooDeepError.
    """
    file.seek(0)
    found: dict[tuple[str, ...], str] = {}
    path: tuple[str, ...] = ()
    for depth, event, value in _walk(_Plain(file)):
        if event == "map_key" and depth <= 2:
            path = (*path[: depth - 1], value)
            if path == (until,):
                break
        elif event == "string" and depth == len(path) and path in wanted:
            found[path] = value
    return found


def items_of(file: BinaryIO, key: str) -> Iterator[Any]:
    """The members of the array under a top-level key, one in memory at a time.

    Raises one of BROKEN where the file is damaged, after what stands before the damage; and TooDeepError.
    """
    _check_depth(file)
    given = 0
    try:
        file.seek(0)
        for value in ijson.items(file, f"{key}.item", use_float=True):
            yield value
            given += 1
    except BROKEN:
        file.seek(0)
        yield from islice(ijson.items(_Plain(file), f"{key}.item", use_float=True), given, None)


def _check_depth(file: BinaryIO) -> None:
    for source in (file, _Plain(file)):
        file.seek(0)
        try:
            for _ in _walk(source):
                pass
        except BROKEN:
            continue
        return


def _walk(file: Any) -> Iterator[tuple[int, str, Any]]:
    """Each event of the parser with the number of objects and arrays around it."""
    depth = 0
    for event, value in ijson.basic_parse(file):
        depth -= event in _CLOSES
        yield depth, event, value
        depth += event in _OPENS
        if depth > DEEPEST:
            raise TooDeepError(f"the JSON nests deeper than {DEEPEST} levels")
