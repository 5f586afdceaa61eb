"""Recorded values as JSON in ASCII, and back without loss.

The markers are those of `capture.frozen.json_form` (`{"$decimal": "1.10"}` and the like), and one more that only
escaped JSON needs: `{"$text": base64 of UTF-8 with surrogates let through}` for a text with a surrogate *pair* in it,
whose escapes would read as the one character that they make.
"""

import base64
import json
import math
import re
import struct
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

from capture.frozen import Marker, json_form
from capture.prompt import bytes_text, text_bytes

_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def to_json(value: Any) -> Any:
    """A recorded value as what `json.dumps` writes in ASCII and anybody reads back without loss."""
    return _paired(json_form(value))


def _paired(value: Any) -> Any:
    if isinstance(value, str):
        return {"$text": base64.b64encode(text_bytes(value)).decode()} if _PAIR.search(value) else value
    if isinstance(value, list):
        return [_paired(item) for item in value]
    if not isinstance(value, dict):
        return value
    if any(_PAIR.search(key) for key in value):
        return {"$map": [[_paired(key), _paired(item)] for key, item in value.items()]}
    return {key: _paired(item) for key, item in value.items()}


def ascii_json(value: Any) -> msgspec.Raw:
    """`to_json`'s value, written. Almost every value is one that JSON can say, and is written and proved in C: what
    reads back equal and has no key like a marker's was said right. The rest takes the long way."""
    try:
        written = msgspec.json.encode(value)
        if b'"$' not in written and msgspec.json.decode(written) == value:
            return msgspec.Raw(written if written.isascii() else json.dumps(value).encode())
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError):
        pass
    return msgspec.Raw(json.dumps(to_json(value), allow_nan=False).encode())


def from_json(value: Any) -> Any:
    """The value that `to_json` was given. Raises ValueError for a marker that is none of ours."""
    if isinstance(value, list):
        return [from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    (key, content), *more = value.items() if value else [("", None)]
    if more or not key.startswith("$"):
        return {name: from_json(item) for name, item in value.items()}
    try:
        return _MARKERS.get(key[1:], _unknown)(content)
    except (TypeError, ValueError, ArithmeticError, AttributeError, struct.error) as error:
        raise ValueError("not a marker of a recorded value") from error


def _unknown(content: Any) -> Any:
    raise ValueError("not a marker of a recorded value")


def _map(pairs: Any) -> dict[Any, Any]:
    return {from_json(key): from_json(item) for key, item in pairs}


def _nan(bits: str) -> float:
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    if not math.isnan(value):
        raise ValueError("a number under the name of NaN")
    return float(value)


_MARKERS: dict[str, Callable[[Any], Any]] = {
    "text": lambda content: bytes_text(base64.b64decode(content, validate=True)),
    "bytes": lambda content: base64.b64decode(content, validate=True),
    "int": lambda content: int(content, 16),
    "float": lambda content: _nan(content[4:]) if content.startswith("NaN:") else float(content),
    "decimal": Decimal,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "seconds": lambda content: timedelta(microseconds=int(Decimal(content) * 1_000_000)),
    "uuid": UUID,
    "map": _map,
    "unencodable": lambda content: Marker("unencodable", content),
    "cycle": lambda content: Marker("cycle", content),
    "too_deep": lambda content: Marker("too_deep", content),
}
