"""Small personas, memories and studies for tests, and a turn of them."""

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

from agentlab.persona.adapters import ports
from agentlab.persona.events import Event
from agentlab.persona.ports import Ports
from agentlab.persona.rules import KNOWN_ACTIONS, Rules
from agentlab.persona.state import MemoryEvent, Persona, PersonaState, Presentation, beliefs_from
from agentlab.persona.turn import arrive, turn
from agentlab.persona.vectors import quantise

DATA = Path(__file__).parent.parent / "data" / "personas"
STUDY = "5" * 64
PLAIN = ports("hashing", "")
RULED = ports("hashing", "rules")


def persona(id: str = "ada", **given: Any) -> Persona:
    given.setdefault("profile", {"age": 34, "work": "nurse"})
    given.setdefault("beliefs", beliefs_from({"levy": (0.4, 0.5)}))
    return Persona(id=id, name=given.pop("name", id.title()), **given)


def shown(number: int = 1, text: str = "The levy passes committee", **given: Any) -> Presentation:
    given.setdefault("stances", {"levy": 0.8})
    given.setdefault("source", "Post")
    given.setdefault("time", float(number))
    return Presentation(turn=number, stimulus=given.pop("stimulus", f"s{number}"), text=text, **given)


def memory(sequence: int = 0, vector: Any = (1, 0), **given: Any) -> MemoryEvent:
    plain = {
        "turn": 1,
        "time": 0.0,
        "kind": "encounter",
        "text": f"memory {sequence}",
        "importance": 0.5,
        "valence": 0.0,
    }
    packed = vector if isinstance(vector, bytes) else quantise(vector)
    return MemoryEvent(sequence=sequence, vector=packed, **{**plain, **given})


def rules(**given: Any) -> Rules:
    actions = tuple(KNOWN_ACTIONS[name] for name in ("ignore", "like", "share", "reply", "dislike"))
    return Rules(**{"actions": actions, "topics": ("levy",), **given})


def arrived(who: Persona | None = None, using: Ports = PLAIN, by: Rules | None = None) -> PersonaState:
    return arrive(who or persona(), STUDY, using, by or rules()).state


def lived(
    turns: int,
    who: Persona | None = None,
    using: Ports = PLAIN,
    by: Rules | None = None,
    text: str = "The levy, day {}",
) -> tuple[list[Event], PersonaState]:
    """The events and the last state of so many turns."""
    who, by = who or persona(), by or rules()
    outcome = arrive(who, STUDY, using, by)
    events, state = list(outcome.events), outcome.state
    for number in range(1, turns + 1):
        stance = 0.8 if number % 2 else -0.3
        outcome = turn(
            who, shown(number, text.format(number), stances={"levy": stance}, social_proof=90), state, using, by
        )
        events += outcome.events
        state = outcome.state
    return events, state


def study(**changes: Any) -> dict[str, Any]:
    """A valid study file's content: two personas, three stimuli."""
    whole = {
        "name": "Levy",
        "seed": 7,
        "topics": ["levy"],
        "personas": [
            {"id": "ada", "name": "Ada", "profile": {"age": 34}, "beliefs": {"levy": 0.4}},
            {"id": "bo", "name": "Bo", "profile": {"age": 58}, "beliefs": {"levy": -0.4}},
        ],
        "stimuli": [
            {"text": "The levy passes committee", "source": "Post", "social_proof": 80, "stances": {"levy": 0.8}},
            {"text": "The levy would cost 90 a year", "social_proof": 40, "stances": {"levy": -0.5}},
            {"text": "The old pool leaks", "stances": {"levy": 0.3}},
        ],
    }
    return {key: value for key, value in {**whole, **changes}.items() if value is not None}


def crowd(count: int, turns: int, **changes: Any) -> dict[str, Any]:
    """A study of so many personas and turns."""
    people = [
        {"id": f"p{n}", "profile": {"age": 20 + n % 60}, "beliefs": {"levy": round(-1 + 2 * n / max(1, count - 1), 3)}}
        for n in range(count)
    ]
    return study(personas=people, schedule={"turns": turns}, **changes)


def written(folder: Path, content: dict[str, Any], name: str = "study.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(content))
    return path


def smallville(folder: Path) -> Path:
    """Isabella's whole day, unpacked into the folder as the original keeps it."""
    for file in ("nodes.json", "scratch.json"):
        with gzip.open(DATA / "smallville" / "isabella" / f"{file}.gz") as packed, (folder / file).open("wb") as out:
            shutil.copyfileobj(packed, out)
    return folder
