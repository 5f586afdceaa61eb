"""The second door's memory: what went out to the table during one turn, without its credentials.

The list lives from `start_turn` (on `your_turn`) to `take` (when the record is made). What is sent outside a turn
is no part of any decision and is not kept.
"""

import json
import re
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from capture.frozen import Marker, freeze, thaw, type_name

REDACTED: Final = "[redacted]"
CREDENTIALS: Final = frozenset(
    (
        *("agenttoken", "token", "accesstoken", "refreshtoken", "apikey", "xapikey", "xservicekey", "authorization"),
        *("cookie", "setcookie", "password", "secret", "clientsecret", "privatekey"),
    )
)


def redact(value: Any) -> Any:
    """A plain copy in which every field named like a credential keeps its name and loses its value.

    Names are compared whole, without case, `-` and `_`, at every depth and inside JSON text; all other text is
    left as it is. The marker says nothing about the value. The argument is never changed.
    """
    try:
        return _redacted(value)
    except RecursionError:
        pass
    try:
        return _redacted(thaw(freeze(value)))  # cycles are cut there
    except RecursionError:
        return Marker("too_deep", type_name(value))  # what cannot be looked through is not kept


class TurnOutbound:
    """What this connection sent during the turn it is in. One to a connection; not for several threads at once."""

    def __init__(self) -> None:
        self._sent: list[Any] | None = None

    def start_turn(self) -> None:
        """`your_turn` has come: whatever an earlier turn left behind is gone."""
        self._sent = []

    def add(self, message: Any) -> None:
        """A message that goes out now, redacted and cut loose from the caller's object. Kept only during a turn."""
        if self._sent is not None:
            self._sent.append(redact(message))

    def refused(self, reason: str) -> None:
        """The table turned the last message down: an entry of its own, `{"refused": reason}`, after it."""
        if self._sent is not None:
            self._sent.append({"refused": redact(reason)})

    def take(self) -> list[Any]:
        """The turn's messages in the order they went out; the turn is over. Empty outside a turn."""
        sent, self._sent = self._sent, None
        return sent or []


def _is_credential(name: object) -> bool:
    if isinstance(name, bytes):
        name = name.decode("latin-1")
    return isinstance(name, str) and name.casefold().replace("-", "").replace("_", "") in CREDENTIALS


_ATOMS: Final = frozenset({int, float, bool, type(None), Decimal, datetime, date, time, timedelta, UUID, Marker})
_NAMES: Final = frozenset({str, bytes, int, float, bool, type(None)})


def _redacted(value: Any) -> Any:
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is str:
        return _redacted_text(value)
    if kind is dict and _NAMES.issuperset(map(type, value)):
        return {key: REDACTED if _is_credential(key) else _redacted(item) for key, item in value.items()}
    if kind is list:
        return [_redacted(item) for item in value]
    if kind is bytes:
        return _redacted_bytes(value)
    return _redacted_object(value)


def _redacted_object(value: Any) -> Any:
    """Anything else as the plain value it freezes to: a struct or an enum hides no field."""
    plain = thaw(freeze(value))
    if isinstance(plain, dict):  # its keys may be of any kind now, and none of them is looked into
        return {key: REDACTED if _is_credential(key) else _redacted(item) for key, item in plain.items()}
    return _redacted(plain)


def _redacted_bytes(value: bytes) -> bytes:
    text = value.decode("utf-8", "surrogateescape")
    return _redacted_text(text).encode("utf-8", "surrogateescape")


# A JSON string, and the colon that makes it a name. Escaped quotes open nothing, which also keeps this linear.
_STRING = re.compile(r'(?<!\\)"((?:[^"\\]|\\.)*+)"(\s*+:\s*+)?', re.DOTALL)
_read_json = json.JSONDecoder(strict=False).raw_decode


def _redacted_text(text: str) -> str:
    """JSON in the text, whole, cut off or amid prose: values of credential names are cut out, the rest stays byte
    for byte. Strings that hold JSON themselves are looked into."""
    parts: list[str] = []
    done = position = 0
    while found := _STRING.search(text, position):
        position = found.end() if found[2] else found.start() + 1
        cut = _cut_value(text, found) if found[2] else _cut_string(found)
        if cut is not None:
            start, position, new = cut
            parts += [text[done:start], new]
            done = position
    clean = "".join(parts) + text[done:] if parts else text
    return _redacted_inside(clean) if '\\"' in clean else clean


def _redacted_inside(text: str) -> str:
    """The inside of a JSON string, found without its outer quotes."""
    inside = text.replace('\\"', '"')
    clean = _redacted_text(inside)
    return clean.replace('"', '\\"') if clean != inside else text


_Cut = tuple[int, int, str]  # from, to, and what stands there instead


_BARE = re.compile(r"""[^\s,}\]"\\]*+""")


def _cut_value(text: str, name: re.Match[str]) -> _Cut | None:
    """The JSON value of a credential's name; all that is left where it is cut off; nothing where none begins."""
    if not _is_credential(_unquoted(name[1])):
        return None
    start = name.end()
    try:
        end = _read_json(text, start)[1]
        if text[start] not in '"{[':  # not quite JSON: 12ab-34 is one value, not 12 and a rest that gives it away
            end = _BARE.match(text, end).end()  # type: ignore[union-attr]  # it matches the empty text too
    except (ValueError, RecursionError):
        if text[start : start + 1] not in ('"', "{", "["):
            return None
        end = len(text)
    return start, end, f'"{REDACTED}"'


def _cut_string(string: re.Match[str]) -> _Cut | None:
    """A JSON string rewritten without the credentials of the JSON that it holds; nothing where it holds none."""
    if "\\" not in string[1]:
        return None
    value = _unquoted(string[1])
    clean = _redacted_text(value)
    return (string.start(), string.end(1) + 1, json.dumps(clean)) if clean != value else None


def _unquoted(inside: str) -> str:
    try:
        return str(_read_json(f'"{inside}"')[0])
    except ValueError:  # an escape that JSON does not know
        return inside.replace('\\"', '"')
