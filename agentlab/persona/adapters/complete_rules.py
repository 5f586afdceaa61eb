"""The default model: answers a prompt by reading it with a few rules. No network, the same answer every time.

It stands where a language model would, so that a study with a tier B runs on a machine without one. It reads what the
prompt says and nothing else. Profiles, memories and what is shown are other people's words and may look like parts of
the prompt: so the question and the actions are the last ones, profile and views the first, and what is argued stands
under the last heading of that name. A line without a number is no stance.
"""

import json
import re
from itertools import takewhile

_STANCE = re.compile(r"- (.+): ([+-]\d\.\d\d)")
_OPINION = re.compile(r"What is your view on (.+), from -1 \(against\) to 1 \(for\)\?")
_FIELD = re.compile(r"What is your (.+)\?")
_ACTIONS = re.compile(r"^You may: (.*)$", re.MULTILINE)
PROFILE, VIEWS, ARGUED = "Profile:", "Views, from -1 (against) to 1 (for):", "It argues:"
QUESTION, INTERVIEW = "\nQuestion: ", "\nAnswer in a few words."
UNKNOWN = "I do not know."
MILD = 0.15  # agreement below which it has nothing to say


class RuleModel:
    id = "rules-1"

    def complete(self, prompt: str) -> str:
        sections = _sections(prompt)
        if prompt.endswith(INTERVIEW):
            return _answered(prompt.removesuffix(INTERVIEW).rpartition(QUESTION)[2], sections)
        views, argued = _stances(sections.get(VIEWS, [])), _stances(sections.get(ARGUED, []))
        shared = [topic for topic in argued if topic in views]
        agreement = sum(views[t] * argued[t] for t in shared) / len(shared) if shared else 0.0
        actions = _ACTIONS.findall(prompt)[-1].split(", ")
        action, words = _choice(actions, agreement)
        return json.dumps({"action": action, "text": words, "importance": 1 + round(9 * min(1.0, abs(agreement)))})


def _choice(actions: list[str], agreement: float) -> tuple[str, str | None]:
    if agreement >= MILD:
        return _first(actions, ("share", "like", "reply")), "This is how I see it, too."
    if agreement <= -MILD:
        return _first(actions, ("report", "dislike", "reply")), "I do not see it that way."
    return _first(actions, ("ignore",)), None


def _first(actions: list[str], wanted: tuple[str, ...]) -> str:
    return next((action for action in wanted if action in actions), actions[0])


def _answered(question: str, sections: dict[str, list[str]]) -> str:
    if opinion := _OPINION.fullmatch(question):
        stance = _stances(sections.get(VIEWS, [])).get(opinion[1])
        return UNKNOWN if stance is None else f"{stance:+.2f}"
    field = _FIELD.fullmatch(question)
    return (_value(sections.get(PROFILE, []), field[1]) if field else "") or UNKNOWN


def _value(lines: list[str], asked: str) -> str:
    """The whole of a profile's field, which may have several lines; "" where there is no such field."""
    for number, line in enumerate(lines):
        name, value = line[2 : 2 + len(asked)], line[2 + len(asked) :]
        if line.startswith("- ") and name.replace("_", " ") == asked and value.startswith(": "):
            rest = takewhile(lambda one: not one.startswith("- "), lines[number + 1 :])
            return "\n".join([value[2:], *rest]).strip()
    return ""


def _stances(lines: list[str]) -> dict[str, float]:
    found = [_STANCE.fullmatch(line) for line in lines]
    return {stance[1]: float(stance[2]) for stance in found if stance}


def _sections(prompt: str) -> dict[str, list[str]]:
    """{heading: its lines}, of the headings that are read."""
    sections: dict[str, list[str]] = {}
    current: list[str] = []
    for line in prompt.split("\n"):
        if line == ARGUED or (line in (PROFILE, VIEWS) and line not in sections):
            current = sections[line] = []
        elif line.startswith(("You see, from ", "What comes to mind:", "Question: ")):
            current = []
        else:
            current.append(line)
    return sections
