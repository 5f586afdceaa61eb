"""TinyTroupe agent files (`{"type": "TinyPerson", "persona": {…}}`), with or without fragments merged in."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from agentlab.persona.loaders.flat import profile, slug
from agentlab.persona.loaders.reading import parsed
from agentlab.persona.values import Invalid

STATEMENTS = ("beliefs", "other_facts")  # sentences about oneself: brought along as memories


def agents(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """One agent file, or every `*.agent.json` of a folder in the order of names."""
    for file in sorted(path.glob("*.agent.json")) if path.is_dir() else [path]:
        yield file.name, _entry(_persona(file, "TinyPerson"), file)


def merged(entry_file: Path, fragments: Sequence[Path]) -> dict[str, Any]:
    """The entry of one agent with fragments laid over it."""
    persona = _persona(entry_file, "TinyPerson")
    for fragment in fragments:
        persona = _laid_over(persona, _persona(fragment, "Fragment"))
    return _entry(persona, entry_file)


def _persona(file: Path, type: str) -> dict[str, Any]:
    whole = parsed(file)
    if not isinstance(whole, dict) or whole.get("type") != type or not isinstance(whole.get("persona"), dict):
        raise Invalid(f"{file}: not a TinyTroupe {type} file")
    return dict(whole["persona"])


def _entry(persona: dict[str, Any], file: Path) -> dict[str, Any]:
    name = persona.pop("name", None)
    if not isinstance(name, str) or not name:
        raise Invalid(f"{file}: the persona has no name")
    said = [str(line) for key in STATEMENTS for line in _lines(file, key, persona.pop(key, None))]
    return {"id": slug(name), "name": name, "profile": profile(persona), "memories": said}


def _lines(file: Path, key: str, given: Any) -> list[Any]:
    if given is not None and not isinstance(given, list):
        raise Invalid(f"{file}: {key} must be a list")
    return given or []


def _laid_over(base: dict[str, Any], fragment: dict[str, Any]) -> dict[str, Any]:
    """Lists are joined, mappings merged, anything else replaced."""
    made = dict(base)
    for key, value in fragment.items():
        old = made.get(key)
        if isinstance(old, list) and isinstance(value, list):
            made[key] = old + [item for item in value if item not in old]
        elif isinstance(old, dict) and isinstance(value, dict):
            made[key] = _laid_over(old, value)
        else:
            made[key] = value
    return made
