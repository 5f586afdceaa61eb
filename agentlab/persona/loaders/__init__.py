"""Files that hold personas or stimuli, in our own format and in those that people already have.

A loader turns one file into entries of our own format, as if they stood in the study file; they are validated there.
Each gives (place, entry), the place for messages such as `people.jsonl:3`.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from agentlab.persona.loaders import flat, smallville, tinytroupe
from agentlab.persona.loaders.reading import entries
from agentlab.persona.values import Invalid

Entry = tuple[str, dict[str, Any]]
STIMULUS = ("id", "text")

PERSONAS: dict[str, Callable[[Path], Iterable[Entry]]] = {
    "own": entries,
    "gss": flat.gss,
    "oasis": flat.oasis,
    "town": flat.town,
    "smallville": smallville.stream,
    "tinytroupe": tinytroupe.agents,
}


def load_personas(format: str, path: Path, limit: int | None = None) -> list[Entry]:
    """The first `limit` personas of a file or folder. Raises `Invalid`, also where there are none."""
    found = list(PERSONAS[format](path))[:limit]
    if not found:
        raise Invalid(f"{path}: no personas in it")
    return found


def load_stimuli(path: Path, limit: int | None = None) -> list[Entry]:
    """`id` and `text` of each entry; other keys belong to whoever made the file."""
    found = [(place, {k: v for k, v in entry.items() if k in STIMULUS}) for place, entry in entries(path)][:limit]
    if not found:
        raise Invalid(f"{path}: no stimuli in it")
    return found
