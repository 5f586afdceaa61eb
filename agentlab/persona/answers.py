"""Reading a model's free text: an action, a text, a rating, stances. What cannot be read is absent, never guessed."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from agentlab.persona.importance import read_rating
from agentlab.persona.rules import Action, Rules
from agentlab.persona.values import clean

OBJECTS_TRIED = 50  # a hostile answer may open thousands of braces

# A number has few digits: a model may repeat one for ever, and trying each length of each tail takes minutes.
_RATED = re.compile(
    r"(?:rating|importance)\W{1,20}?(-?\d.*)|(?<!\d)(\d{1,3}(?:\.\d{1,9})?\s*(?:/|out of)\s*10\b)", re.IGNORECASE
)


@dataclass(frozen=True)
class Answer:
    """`importance` is None where the rating was unreadable: then the rule answers for it."""

    action: Action
    text: str | None = None
    importance: float | None = None
    stances: dict[str, float] = field(default_factory=dict)


def read_answer(completion: str, rules: Rules) -> Answer | None:
    """The last JSON object with a permitted action. Where the answer holds no object at all: prose that names exactly
    one. None where neither is there."""
    read, found_any = None, False
    for found in _objects(completion):
        found_any = True
        action = rules.action(str(found.get("action", "")).strip().lower())
        if action:
            read = Answer(action, _text(found), read_rating(found.get("importance")), _stances(found, rules))
    return read if found_any else _prose(completion, rules)


def _objects(completion: str) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder()
    start, tried = completion.find("{"), 0
    while start >= 0 and tried < OBJECTS_TRIED:
        tried += 1
        try:
            found, end = decoder.raw_decode(completion, start)
        except (ValueError, RecursionError):
            found, end = None, start + 1
        if isinstance(found, dict):
            yield found
        start = completion.find("{", end)


def _text(found: dict[str, Any]) -> str | None:
    text = found.get("text")
    return clean(text) if isinstance(text, str) and text.strip() else None


def _stances(found: dict[str, Any], rules: Rules) -> dict[str, float]:
    given = found.get("stances")
    if not isinstance(given, dict):
        return {}
    return {topic: float(given[topic]) for topic in rules.topics if _is_stance(given.get(topic))}


def _is_stance(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -1 <= value <= 1  # NaN is in no range


def _prose(completion: str, rules: Rules) -> Answer | None:
    named = [a for a in rules.actions if re.search(rf"(?<!\w){re.escape(a.name)}(?!\w)", completion, re.IGNORECASE)]
    if len(named) != 1:
        return None
    rated = _RATED.search(completion)
    return Answer(named[0], importance=read_rating(rated[1] or rated[2]) if rated else None)
