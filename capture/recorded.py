"""A recorded value for eyes, whatever its shape: nothing is left out, and a value's type shows where it matters.

Text stands as it is, numbers with all their digits, `null`, `true` and `NaN` in their own look so that they are never
taken for text; a list of like objects is a table; a key that is not text says its type.
"""

import json
from collections.abc import Sequence
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from agentlab.common.numbers import whole
from agentlab.common.text import visible
from capture.frozen import Marker

# Deeper than this a page's tables in tables cannot be read by anyone; the text of it can.
DEEPEST = 8
_TABLE_COLUMNS = 9


def spelt(value: Any) -> str:
    """A scalar as it was recorded: every digit, JSON's words for JSON's values."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, float):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value))
    if isinstance(value, Marker):
        return f"{value.type}: could not be recorded ({value.kind.replace('_', ' ')})"
    if isinstance(value, bytes):
        return f"{len(value)} bytes: {value[:64].hex(' ')}{' …' if len(value) > 64 else ''}"
    return whole(value) if isinstance(value, int) else str(value)


def recorded_html(value: Any, find: str = "", depth: int = 0) -> SafeString:
    """The value as nested lists and tables of HTML."""
    if isinstance(value, dict):
        return _object(value, find, depth)
    if isinstance(value, list | tuple):
        return _list(value, find, depth)
    return scalar_html(value, find)


def scalar_html(value: Any, find: str = "") -> SafeString:
    if isinstance(value, str):
        return visible(value, find) if value else SafeString('<span class="absent">empty text</span>')
    if isinstance(value, Marker):
        return format_html('<span class="absent">{}</span>', visible(spelt(value)))
    kind = _kind(value)
    return format_html('<span class="value"{}>{}</span>', _titled(kind), visible(spelt(value), find))


def _kind(value: Any) -> str:
    """The type, where its text does not show it: a Decimal looks like any other number."""
    return "" if value is None or isinstance(value, bool | int | float | Marker) else type(value).__name__


def _titled(kind: str) -> SafeString:
    return format_html(' title="{}"', kind) if kind else SafeString("")


def _key(key: Any, find: str) -> SafeString:
    if isinstance(key, str):
        return visible(key, find)
    return format_html('{} <span class="soft">({})</span>', visible(spelt(key), find), type(key).__name__)


def _object(value: dict[Any, Any], find: str, depth: int) -> SafeString:
    if not value:
        return SafeString('<span class="absent">empty object</span>')
    if depth >= DEEPEST:
        return _as_text(value, find)
    rows = ((_key(key, find), recorded_html(item, find, depth + 1)) for key, item in value.items())
    return format_html('<dl class="record">{}</dl>', format_html_join("", "<div><dt>{}</dt><dd>{}</dd></div>", rows))


def _list(value: Sequence[Any], find: str, depth: int) -> SafeString:
    if not value:
        return SafeString('<span class="absent">empty list</span>')
    if depth >= DEEPEST:
        return _as_text(value, find)
    if columns := _columns(value):
        return _table(value, columns, find)
    if not any(isinstance(item, dict | list | tuple) for item in value):
        return format_html_join(", ", "{}", ((scalar_html(item, find),) for item in value))
    return format_html(
        '<ol class="record">{}</ol>',
        format_html_join("", "<li>{}</li>", ((recorded_html(item, find, depth + 1),) for item in value)),
    )


def _columns(value: Sequence[Any]) -> list[str]:
    """The keys of a list of flat objects that all have the same ones, few enough for a table; else none."""
    first = value[0]
    if len(value) < 2 or not isinstance(first, dict) or not 1 < len(first) <= _TABLE_COLUMNS:
        return []
    keys = list(first)
    alike = all(isinstance(item, dict) and list(item) == keys and _flat(item) for item in value)
    return keys if alike and all(isinstance(key, str) for key in keys) else []


def _flat(item: dict[Any, Any]) -> bool:
    return not any(isinstance(part, dict | list | tuple) for part in item.values())


def _table(value: Sequence[Any], columns: list[str], find: str) -> SafeString:
    head = format_html_join("", '<th scope="col">{}</th>', ((visible(name, find),) for name in columns))
    rows = (
        (format_html_join("", "<td>{}</td>", ((scalar_html(item[name], find),) for name in columns)),) for item in value
    )
    return format_html(
        '<div class="scroll" tabindex="0"><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>',
        head,
        format_html_join("", "<tr>{}</tr>", rows),
    )


def _as_text(value: Any, find: str) -> SafeString:
    return format_html("<code>{}</code>", visible(_safe_repr(value), find))


def _safe_repr(value: Any) -> str:
    try:
        return repr(value)
    except (RecursionError, ValueError):  # the latter from an integer of thousands of digits
        return "too deep or too long to show here; the raw text has it"
