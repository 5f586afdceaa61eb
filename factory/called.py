"""What a tool was called with, in one line: the argument that says most, so that a list of calls can be read.

Pure. The arguments are the agent's own words, of any kind and length; only their beginning is looked at.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from agentlab.common.text import first_line
from factory.masking import without_secrets

OPENING = 4_000
"""Characters of the arguments that are read: a written file's whole text may stand among them, after its path."""
LINE = 140
# The first of these that is there says what was done; a pattern says more than the folder it was looked for in.
_TELLING = (
    *("command", "cmd", "pattern", "query", "file_path", "path", "notebook_path", "filename", "url"),
    *("skill", "subject", "description", "prompt", "code"),
)
_PRIVATE = re.compile(r"secret|token|passw|key|auth", re.IGNORECASE)
_STRING = re.compile(r'"(\w{1,40})"\s*:\s*("(?:[^"\\]|\\.)*)("?)', re.DOTALL)


def called_with(arguments: str) -> str:
    """One line, at most LINE characters, what looks like a secret hidden; "" where no argument says anything."""
    opening = arguments[:OPENING]
    named = dict(reversed([(name, words) for name, words in _named(opening) if words.strip()]))
    telling = next((named[name] for name in _TELLING if name in named), None)
    if telling is None:
        telling = next((words for name, words in reversed(named.items()) if not _PRIVATE.search(name)), "")
    shown, _ = without_secrets(telling)
    line = first_line(shown, LINE)
    more = not line.endswith("…") and len(shown.strip()) > len(line)
    return f"{line} …" if more else line


def _named(opening: str) -> Iterator[tuple[str, str]]:
    """The arguments that are text, or a list of words; of JSON that was cut off, those that its beginning holds."""
    try:
        found: Any = json.loads(opening, strict=False)
    except (ValueError, RecursionError):
        if opening.lstrip().startswith("{"):
            yield from _cut_off(opening)
        else:
            yield "", opening
        return
    for name, value in found.items() if isinstance(found, dict) else [("", found)]:
        if isinstance(value, str):
            yield name, value
        elif isinstance(value, list) and value and all(isinstance(word, str) for word in value):
            yield name, " ".join(value)


def _cut_off(opening: str) -> Iterator[tuple[str, str]]:
    for name, written, _ in _STRING.findall(opening):
        try:
            yield name, json.loads(f'{written}"', strict=False)
        except ValueError:  # an escape that was cut in two
            continue
