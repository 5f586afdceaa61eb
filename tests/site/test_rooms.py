"""A room's README leads to its code: every module that it names is there, and every module of the room is named."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = [
    *("agentlab", "agentlab/agents", "agentlab/common", "agentlab/hosted", "agentlab/persona", "capture"),
    *("factory", "factory/importers"),
]
DJANGOS = {"__init__.py", "apps.py", "urls.py"}  # in every room, and what they hold is known by their name


def modules() -> list[Path]:
    tops = ("agentlab", "capture", "factory", "tests")
    return [ROOT / "manage.py", *(path for top in tops for path in (ROOT / top).rglob("*.py"))]


@pytest.mark.parametrize("room", ROOMS)
def test_a_rooms_readme_names_no_module_that_is_gone(room: str) -> None:
    named = set(re.findall(r"(?<![\w/.*])((?:\w+/)*\w+\.py)\b", (ROOT / room / "README.md").read_text()))
    there = modules()
    assert not [name for name in named if not any(str(path).endswith(f"/{name}") for path in there)]


@pytest.mark.parametrize("room", ROOMS)
def test_every_module_of_a_room_is_named_in_its_readme(room: str) -> None:
    said = (ROOT / room / "README.md").read_text()
    there = {path.name for path in (ROOT / room).glob("*.py")} - DJANGOS
    assert not sorted(name for name in there if not re.search(rf"\b{re.escape(name)}\b", said))
