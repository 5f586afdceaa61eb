"""What an agent said and did in an attempt, in the order in which it happened, where that is recorded. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from django.utils.safestring import SafeString

from agentlab.common.text import ON_DEMAND_BYTES, clip, first_line, visible

SAID_BYTES = 2_000  # of the words before one call: a hundred calls then stay a page that loads at once


Call = TypeVar("Call")


@dataclass(frozen=True)
class Words:
    """Some of the reply as HTML; `cut` where only its beginning is shown. `line` is the first that says something."""

    html: SafeString
    cut: bool
    line: SafeString


@dataclass(frozen=True)
class Step(Generic[Call]):
    """A tool call and the words before it. The last words of an attempt stand without a call."""

    said: Words | None
    call: Call | None


def tell(
    reply: str | None, calls: Sequence[tuple[Call, int | None]], *, since: int = 0, to_the_end: bool = True
) -> list[Step[Call]]:
    """The calls with the words between them. Each comes with the number of characters of the reply that had been said
    before it, None where that is not recorded. `since` is how much of the reply was said before the first of them was
    thought of; with `to_the_end` the rest of the reply follows. Where no order is recorded: the calls alone."""
    said = reply or ""
    if not is_ordered(calls):
        return [Step(None, call) for call, _ in calls]
    steps: list[Step[Call]] = []
    at = since
    for call, offset in calls:
        here = at if offset is None else max(at, offset)
        steps.append(Step(_words(said[at:here], SAID_BYTES), call))
        at = here
    rest = words(said, since=at) if to_the_end else None
    return [*steps, Step(rest, None)] if rest else steps


def is_ordered(calls: Sequence[tuple[object, int | None]]) -> bool:
    return any(offset is not None for _, offset in calls)


def words(reply: str, *, since: int) -> Words | None:
    """What was said from this character on, None where that is nothing."""
    return _words(reply[since:], ON_DEMAND_BYTES)


def _words(said: str, limit: int) -> Words | None:
    said = said.strip("\n")
    if not said.strip():
        return None
    shown = clip(said, limit)
    return Words(visible(shown), len(shown) < len(said), visible(first_line(said, 200)))
