"""A Smallville memory stream: the folder of one persona, with `nodes.json` and `scratch.json`.

Nodes become memories that the persona brings along: time in minutes before the newest one, importance from the rated
poignancy of 1 to 10. A study that loads a stream therefore counts its `tau` and `step` in minutes.
"""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from agentlab.persona.loaders.flat import slug
from agentlab.persona.loaders.reading import parsed
from agentlab.persona.values import Invalid

FIELDS = ("age", "innate", "learned", "currently", "lifestyle", "living_area", "daily_plan_req")


def stream(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    scratch, nodes = parsed(path / "scratch.json"), parsed(path / "nodes.json")
    if not isinstance(scratch, dict) or not isinstance(nodes, dict) or not isinstance(scratch.get("name"), str):
        raise Invalid(f"{path}: not a persona of Smallville")
    read = sorted((_node(path, name, node) for name, node in nodes.items()), key=lambda one: one[:2])
    last = read[-1][0] if read else None
    yield (
        path.name,
        {
            "id": slug(scratch["name"]),
            "name": scratch["name"],
            "profile": {field: scratch[field] for field in FIELDS if scratch.get(field) not in (None, "")},
            "memories": [
                {"text": text, "importance": weight, "time": (created - last).total_seconds() / 60 if last else 0.0}
                for created, _, text, weight in read
            ],
        },
    )


def _node(path: Path, name: str, node: Any) -> tuple[datetime, int, str, float]:
    """(created, place in the stream, text, importance)"""
    try:
        created = datetime.fromisoformat(node["created"]).replace(tzinfo=None)  # the town has one clock
        return created, int(node["node_count"]), str(node["description"]), min(1.0, max(0.0, node["poignancy"] / 10))
    except (KeyError, TypeError, ValueError, OverflowError):
        raise Invalid(f"{path / 'nodes.json'}: {name} is not a memory") from None
