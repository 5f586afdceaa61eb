"""What is wrong with a mapping that somebody wrote, and where: in one line, down to the key."""

import re
from typing import Any

import msgspec

from agentlab.common.misfit import in_plain_words
from agentlab.persona.values import Invalid, cut

SHOWN = 60  # characters of a key or an id that a message repeats
MESSAGE = 300

_STEP = re.compile(r"\.(\w+)|\[(\d+)\]|(\[\.\.\.\])")


def refusal(given: Any, kind: type, error: Exception, shapes: dict[str, str]) -> tuple[str, str]:
    """(what, where) of what `msgspec.convert(given, kind)` raised; `where` is a path such as `.beliefs[levy]`, `shapes`
    says in words what each pattern asks for.

    msgspec leaves out which entry of a mapping it was (`[...]`); it is found by trying one after the other.
    """
    said, _, inner = str(error).partition(" - at `")
    message = in_plain_words(said, shapes)
    of_key = inner.startswith("key` in `")
    steps: list[Any] = []
    where = ""
    for field, index, some in _STEP.findall(inner.partition("$")[2]):
        step = field or (int(index) if index else _guilty(given, kind, steps) if some else None)
        steps.append(step)
        where += f".{field}" if field else f"[{index}]" if index else _shown(step)
        if step is None:
            break
    if of_key and None not in steps:
        where += _shown(_guilty(given, kind, steps))
        message = f"its key: {message}"
    return message, where


def one_line(text: str) -> str:
    return cut(" ".join(text.split()), MESSAGE)


def _shown(key: object) -> str:
    return "[...]" if key is None else f"[{cut(str(key), SHOWN)}]"


def _guilty(given: Any, kind: type, steps: list[Any]) -> Any:
    """The key of the mapping at `steps` whose entry is refused; None where each is accepted alone."""
    held = given
    for step in steps:
        held = held[step]
    for key in held:
        try:
            msgspec.convert(_with(given, steps, {key: held[key]}), kind)
        except (msgspec.ValidationError, Invalid):
            return key
    return None


def _with(given: Any, steps: list[Any], leaf: Any) -> Any:
    """A copy of `given` in which `leaf` stands at `steps`."""
    if not steps:
        return leaf
    made = list(given) if isinstance(given, list) else dict(given)
    made[steps[0]] = _with(given[steps[0]], steps[1:], leaf)
    return made
