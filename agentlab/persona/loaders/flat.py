"""Files with one JSON object a persona: General Social Survey profiles, OASIS users, the town of 25."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentlab.persona.loaders.reading import entries
from agentlab.persona.values import Invalid, sha256

Entry = tuple[str, dict[str, Any]]


def gss(path: Path) -> Iterator[Entry]:
    """Demographic profiles: `first_name`, `last_name`, and fields that all go into the profile."""
    for place, record in entries(path):
        id = _need(record, "id", path, place)
        names = [str(record.pop(part, None) or "") for part in ("first_name", "last_name")]
        yield place, {"id": id, "name": " ".join(names).strip() or id, "profile": profile(record)}


def oasis(path: Path) -> Iterator[Entry]:
    """Users of a social network: `realname`, `bio`, `persona`, …"""
    for place, record in entries(path):
        id, name = _need(record, "id", path, place), _need(record, "realname", path, place)
        yield place, {"id": id, "name": name, "profile": profile(record)}


def town(path: Path) -> Iterator[Entry]:
    """`name`, `profile`, and `seed_memories`: what each resident knows at the start."""
    for place, record in entries(path):
        name = _need(record, "name", path, place)
        known = record.get("profile")
        yield (
            place,
            {
                "id": slug(name),
                "name": name,
                "profile": profile(known if isinstance(known, dict) else {}),
                "memories": record.get("seed_memories", []),
            },
        )


def slug(name: str) -> str:
    """An id out of a name: ASCII letters and digits with hyphens; for a name without any, one that is its own."""
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower() or f"persona-{sha256(name.encode())[:8]}"


def profile(record: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested fields by dotted names; lists as lists of text; what is null or empty left out."""
    made: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, dict):
            made.update(profile(value, f"{prefix}{key}."))
        elif isinstance(value, list):
            made[f"{prefix}{key}"] = [_spelled(item) for item in value]
        elif value is not None and value != "":
            made[f"{prefix}{key}"] = value
    return {key: value for key, value in made.items() if value != []}


def _spelled(item: Any) -> str:
    return ": ".join(str(part) for part in item.values()) if isinstance(item, dict) else str(item)


def _need(record: dict[str, Any], key: str, path: Path, place: str) -> str:
    value = record.pop(key, None)
    if not isinstance(value, str) or not value:
        raise Invalid(f"{path.parent / place}: no {key!r} in it")
    return value
