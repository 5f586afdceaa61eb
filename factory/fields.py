"""A text column that keeps every Python string exactly, on every database."""

import re
from typing import Any

from django.db import models

_UNSTORABLE = re.compile("[\x00\x1a\ud800-\udfff]")
_ESCAPED = re.compile("\x1a(?:0|1|u([0-9a-f]{4}))")


def escape(text: str) -> str:
    """NUL, U+001A and lone surrogates as U+001A + `0`, `1` or `uXXXX`; any other text is itself.

    PostgreSQL refuses NUL in text, and no database takes half a surrogate pair, yet both occur in prompts,
    replies and file names (a name that is not UTF-8 is a string with lone surrogates in Python).
    """
    if not _UNSTORABLE.search(text):
        return text
    return _UNSTORABLE.sub(_mark, text)


def unescape(text: str) -> str:
    return _ESCAPED.sub(_unmark, text) if "\x1a" in text else text


def _mark(match: re.Match[str]) -> str:
    character = match[0]
    return {"\x00": "\x1a0", "\x1a": "\x1a1"}.get(character) or f"\x1au{ord(character):04x}"


def _unmark(match: re.Match[str]) -> str:
    if match[1]:
        return chr(int(match[1], 16))
    return "\x00" if match[0] == "\x1a0" else "\x1a"


def short(text: str, limit: int) -> str:
    """At most `limit` characters that a short column of any database holds: what it cannot hold as `\\x00` and
    `\\ud83d`. For names, which are shown and searched; a text is kept exactly."""
    return text[:limit].replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()[:limit]


class ExactTextField(models.TextField):  # type: ignore[type-arg]
    """A TextField whose value comes back as it went in: see `escape`."""

    def get_prep_value(self, value: Any) -> Any:
        value = super().get_prep_value(value)
        return escape(value) if isinstance(value, str) else value

    def from_db_value(self, value: Any, expression: object, connection: object) -> Any:
        return unescape(value) if isinstance(value, str) else value
