"""The default model: answers a prompt by reading it with a few rules. No network, the same answer every time.

It stands where a language model would, so that a study with a tier B runs on a machine without one. It reads what the
prompt says and nothing else.
"""

import json
import re

_FIELD = re.compile(r"^- (.+?): (.*)$")
_QUESTION = re.compile(r"^Question: What is your (?:view on )?(.+?)(?:, from -1 .*)?\?$", re.MULTILINE)
MILD = 0.15  # agreement below which it has nothing to say


class RuleModel:
    id = "rules-1"

    def complete(self, prompt: str) -> str:
        sections = _sections(prompt)
        if question := _QUESTION.search(prompt):
            return _recalled(question[1], sections)
        views, argued = sections.get("Views", {}), sections.get("It argues", {})
        shared = [topic for topic in argued if topic in views]
        agreement = sum(float(views[t]) * float(argued[t]) for t in shared) / len(shared) if shared else 0.0
        actions = re.findall(r"^You may: (.*)$", prompt, re.MULTILINE)[-1].split(", ")
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


def _recalled(asked: str, sections: dict[str, dict[str, str]]) -> str:
    fields = {name.replace("_", " "): value for name, value in sections.get("Profile", {}).items()}
    return fields.get(asked) or sections.get("Views", {}).get(asked) or "I do not know."


def _sections(prompt: str) -> dict[str, dict[str, str]]:
    """{heading: {field: value}}; a heading is a line that ends with a colon, cut at its first comma."""
    sections: dict[str, dict[str, str]] = {}
    current: dict[str, str] = {}
    for line in prompt.splitlines():
        if field := _FIELD.match(line):
            current.setdefault(field[1], field[2])
        elif line.endswith(":"):
            current = sections.setdefault(line[:-1].split(",")[0], {})
    return sections
