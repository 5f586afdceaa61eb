"""A recorded value for eyes, whatever its shape: what is left out is counted, and types show where they matter.

Text stands as it is, numbers with all their digits, `null`, `true` and `NaN` in their own look so that they are never
taken for text; a list of like objects is a table; a key that is not text says its type.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from agentlab.common.numbers import amount, counted, whole
from agentlab.common.text import visible
from capture.frozen import Marker

# Deeper than this a page's tables in tables cannot be read by anyone; the text of it can.
DEEPEST = 8
_TABLE_COLUMNS = 9
CELL = 10  # characters that a number, or what is empty, counts for: its cell takes room too


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


def recorded_html(value: Any, find: str = "", limit: int | None = None) -> SafeString:
    """The value as nested lists and tables of HTML; of more than `limit` characters only the first, which it says."""
    return _Drawing(find, limit).value(value)


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


def _odd_key(key: Any, find: str) -> SafeString:
    if isinstance(key, str):
        return visible(key, find)
    return format_html('{} <span class="soft">({})</span>', visible(spelt(key), find), type(key).__name__)


class _Drawing:
    """One value on its way to HTML. What it has no room for is counted where it would stand."""

    def __init__(self, find: str, limit: int | None) -> None:
        self._find = find
        self._left = limit

    def value(self, value: Any, depth: int = 0) -> SafeString:
        if isinstance(value, dict):
            return self._object(value, depth)
        if isinstance(value, list | tuple):
            return self._list(value, depth)
        return self._scalar(value)

    def _scalar(self, value: Any) -> SafeString:
        if isinstance(value, str) and value:
            return self._text(value)
        self._spend(CELL)
        return scalar_html(value, self._find)

    def _key(self, key: Any) -> SafeString:
        if isinstance(key, str) and key:
            return self._text(key)
        self._spend(CELL)
        return _odd_key(key, self._find)

    def _text(self, text: str) -> SafeString:
        left = self._left
        self._spend(len(text))
        if left is None or len(text) <= left:
            return visible(text, self._find)
        told = counted(len(text), "character")
        if left:
            told = f"the first {counted(left, 'character')} of {amount(len(text))}"
        return format_html('{} <span class="absent">… {}</span>', visible(text[:left], self._find), told)

    def _empty(self, kind: str) -> SafeString:
        self._spend(CELL)
        return format_html('<span class="absent">empty {}</span>', kind)

    def _spend(self, length: int) -> None:
        if self._left is not None:
            self._left = max(0, self._left - length)

    def _fitting(self, items: Iterable[Any]) -> Iterator[Any]:
        """Items for as long as there is room for one more."""
        for item in items:
            if self._left == 0:
                return
            yield item

    @staticmethod
    def _rest(shown: int, of: Sequence[Any] | Mapping[Any, Any], markup: str) -> SafeString:
        """That there are more, in the markup of an item."""
        if shown == len(of):
            return SafeString("")
        return format_html(markup, format_html('<span class="absent">… and {} more</span>', amount(len(of) - shown)))

    def _object(self, value: dict[Any, Any], depth: int) -> SafeString:
        if not value:
            return self._empty("object")
        if depth >= DEEPEST:
            return self._as_text(value)
        rows = [(self._key(key), self.value(item, depth + 1)) for key, item in self._fitting(value.items())]
        rest = self._rest(len(rows), value, "<div><dt></dt><dd>{}</dd></div>")
        return format_html(
            '<dl class="record">{}{}</dl>', format_html_join("", "<div><dt>{}</dt><dd>{}</dd></div>", rows), rest
        )

    def _list(self, value: Sequence[Any], depth: int) -> SafeString:
        if not value:
            return self._empty("list")
        if depth >= DEEPEST:
            return self._as_text(value)
        if columns := _columns(value):
            return self._table(value, columns)
        if not any(isinstance(item, dict | list | tuple) for item in value):
            drawn = [(self._scalar(item),) for item in self._fitting(value)]
            rest = self._rest(len(drawn), value, ", {}" if drawn else "{}")
            return format_html("{}{}", format_html_join(", ", "{}", drawn), rest)
        drawn = [(self.value(item, depth + 1),) for item in self._fitting(value)]
        rest = self._rest(len(drawn), value, "<li>{}</li>")
        return format_html('<ol class="record">{}{}</ol>', format_html_join("", "<li>{}</li>", drawn), rest)

    def _table(self, value: Sequence[Any], columns: list[str]) -> SafeString:
        head = format_html_join("", '<th scope="col">{}</th>', [(self._key(name),) for name in columns])
        rows = [
            (format_html_join("", "<td>{}</td>", [(self._scalar(item[name]),) for name in columns]),)
            for item in self._fitting(value)
        ]
        return format_html(
            '<div class="scroll" tabindex="0"><table><thead><tr>{}</tr></thead><tbody>{}{}</tbody></table></div>',
            head,
            format_html_join("", "<tr>{}</tr>", rows),
            self._rest(len(rows), value, f'<tr><td colspan="{len(columns)}">{{}}</td></tr>'),
        )

    def _as_text(self, value: Any) -> SafeString:
        return format_html("<code>{}</code>", self._scalar(_safe_repr(value)))


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


def _safe_repr(value: Any) -> str:
    try:
        return repr(value)
    except (RecursionError, ValueError):  # the latter from an integer of thousands of digits
        return "too deep or too long to show here; the raw text has it"
