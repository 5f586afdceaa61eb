"""Character probes: does the persona still know who it is and what it thought at first?

A probe is an interview. It reads the state and changes none of it.
"""

import re

from agentlab.persona.events import Probed
from agentlab.persona.ports import PortFailed, Ports
from agentlab.persona.prompting import interview_prompt
from agentlab.persona.rules import Ask, Rules
from agentlab.persona.state import Persona, PersonaState, stance_text
from agentlab.persona.values import clean

_NUMBER = re.compile(r"(?<![\w.])[-+−]?(?:\d+(?:\.\d+)?|\.\d+)(?!\.?\w)")
# The question's own words, said again: "on a scale from -1 (against) to 1 (for)".
_SCALE = re.compile(r"[-−]1\s*(?:\([^)\n]{0,30}\)\s*)?(?:to|and|through|\.{2,3}|…)\s*\+?1\b(?!\.?\d)")
_WORD = re.compile(r"\w+")
READ = 2_000  # characters of an answer in which a number is looked for


def interview(persona: Persona, state: PersonaState, question: str, ports: Ports) -> str:
    """The model's answer to a question, out of profile and beliefs. Raises `PortFailed`, also where there is no
    model."""
    if ports.complete is None:
        raise PortFailed("this study has no model to interview")
    return clean(ports.complete.complete(interview_prompt(persona, state.beliefs, question)))


def probe(persona: Persona, state: PersonaState, rules: Rules, ports: Ports) -> list[Probed]:
    """Every question that applies to this persona, asked once."""
    asked = [
        _opinion(persona, state, ask, rules, ports) if ask.topic else _field(persona, state, ask, rules, ports)
        for ask in rules.probe_ask
    ]
    return [probed for probed in asked if probed]


def _field(persona: Persona, state: PersonaState, ask: Ask, rules: Rules, ports: Ports) -> Probed | None:
    """A field of the profile. Without a model the persona *is* its profile, and there is nothing to ask."""
    if ask.field not in persona.profile or ports.complete is None:
        return None
    expected = _spelled(persona.profile[ask.field])
    question = f"What is your {ask.field.replace('_', ' ')}?"
    given, failure = _asked(persona, state, question, ports)
    if failure:
        return Probed(ask.id, question, expected, failure, 1.0, drifted=False, answered=False)
    distance = 1.0 - _overlap(expected, given)
    return Probed(ask.id, question, expected, given, distance, beyond(distance, rules.drift_above))


def _opinion(persona: Persona, state: PersonaState, ask: Ask, rules: Rules, ports: Ports) -> Probed | None:
    """The first opinion on a topic against the one now held (or said, where there is a model); half of |Δ|."""
    first = next((belief for belief in persona.beliefs if belief.topic == ask.topic), None)
    held = state.belief(ask.topic)
    if first is None or held is None:
        return None
    question = f"What is your view on {ask.topic}, from -1 (against) to 1 (for)?"
    given, failure = stance_text(held.stance), ""
    if ports.complete is not None:
        given, failure = _asked(persona, state, question, ports)
    said = None if failure else read_stance(given)
    if said is None:
        return Probed(ask.id, question, stance_text(first.stance), failure or given, 1.0, drifted=False, answered=False)
    distance = abs(said - first.stance) / 2.0
    return Probed(ask.id, question, stance_text(first.stance), given, distance, beyond(distance, rules.drift_above))


def beyond(distance: float, limit: float) -> bool:
    """Does this distance count as drift? Not by what binary fractions add: 0.1 is 0.15 from -0.2 on a scale of two, not
    a hair more."""
    return round(distance - limit, 9) > 0


def read_stance(answer: str) -> float | None:
    """The first number on the scale that the answer names; None where it names none. "0.4, on a scale of -1 to 1" is
    0.4, "85" is nothing."""
    for number in _NUMBER.findall(_SCALE.sub(" ", answer[:READ])):
        stance = float(number.replace("−", "-"))
        if -1.0 <= stance <= 1.0:
            return stance
    return None


def _asked(persona: Persona, state: PersonaState, question: str, ports: Ports) -> tuple[str, str]:
    """(answer, why there is none)"""
    try:
        return interview(persona, state, question, ports), ""
    except PortFailed as failure:
        return "", f"(no answer: {failure})"


def _overlap(expected: str, given: str) -> float:
    """The share of the expected answer's words that the given one holds (recall of tokens, as reading tests score)."""
    wanted = _WORD.findall(expected.casefold())
    said = set(_WORD.findall(given.casefold()))
    return sum(word in said for word in wanted) / len(wanted) if wanted else 1.0


def _spelled(value: object) -> str:
    return "; ".join(value) if isinstance(value, list) else str(value)
