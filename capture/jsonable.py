"""Recorded values as JSON, with typed markers for what JSON cannot say, and back again without loss.

A marker is an object with the key `$type`:

    {"$type": "float", "value": "nan"}            nan, inf, -inf
    {"$type": "decimal", "value": "1.10"}         every digit kept
    {"$type": "int", "hex": "-0x1f…"}             beyond 64 bits, where most readers of JSON would round
    {"$type": "bytes", "base64": "…"}
    {"$type": "datetime", "value": "2026-…"}      ISO 8601
    {"$type": "text", "base64": "…"}              UTF-8 with surrogates let through: a text with a surrogate *pair* in
                                                  it, which JSON's escapes cannot tell from the one character they make
    {"$type": "map", "items": [[key, value], …]}  keys that are not text, or a recorded `$type` key of its own
    {"$type": "object", "of": "socket.socket"}    could not be recorded; only its type's name was

So a recorded value that merely looks like a marker comes out as a `map`, and stays what it was.
"""

import base64
import math
import re
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

TYPE = "$type"
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def to_json(value: Any) -> Any:
    """A recorded value as what `json.dumps` writes without loss. Raises RecursionError for one nested too deep."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, dict):
        return _object(value)
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    for kind, write in _WRITERS.items():
        if isinstance(value, kind):
            return write(value)
    raise TypeError(f"not a recorded value: {type(value).__name__}")


def from_json(value: Any) -> Any:
    """The value that `to_json` was given (a tuple as a list). Raises ValueError for a marker that is none of ours."""
    if isinstance(value, list):
        return [from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    if TYPE not in value:
        return {key: from_json(item) for key, item in value.items()}
    try:
        return _READERS[value[TYPE]](value)
    except (KeyError, TypeError, ArithmeticError) as error:
        raise ValueError("not a marker of a recorded value") from error


def _marker(kind: str, **parts: Any) -> dict[str, Any]:
    return {TYPE: kind, **parts}


def _object(value: dict[Any, Any]) -> dict[str, Any]:
    plain = TYPE not in value and all(isinstance(key, str) and not _PAIR.search(key) for key in value)
    if plain:
        return {key: to_json(item) for key, item in value.items()}
    return _marker("map", items=[[to_json(key), to_json(item)] for key, item in value.items()])


def _text(value: str) -> Any:
    if not _PAIR.search(value):
        return value
    return _marker("text", base64=_base64(value.encode("utf-8", "surrogatepass")))


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _unbase64(marker: dict[str, Any]) -> bytes:
    return base64.b64decode(marker["base64"], validate=True)


_WRITERS: dict[type, Callable[[Any], Any]] = {
    str: _text,
    int: lambda number: number if -(2**63) <= number < 2**64 else _marker("int", hex=hex(number)),
    float: lambda number: number if math.isfinite(number) else _marker("float", value=repr(number)),
    Decimal: lambda number: _marker("decimal", value=str(number)),
    bytes: lambda data: _marker("bytes", base64=_base64(data)),
    datetime: lambda moment: _marker("datetime", value=moment.isoformat()),
}
_READERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "text": lambda marker: _unbase64(marker).decode("utf-8", "surrogatepass"),
    "int": lambda marker: int(marker["hex"], 16),
    "float": lambda marker: float(marker["value"]),
    "decimal": lambda marker: Decimal(marker["value"]),
    "bytes": _unbase64,
    "datetime": lambda marker: datetime.fromisoformat(marker["value"]),
    "map": lambda marker: {_key(from_json(key)): from_json(item) for key, item in marker["items"]},
}


def _key(key: Any) -> Any:
    return tuple(key) if isinstance(key, list) else key
