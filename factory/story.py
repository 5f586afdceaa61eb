"""What an agent said and did in an attempt, in the order in which it happened, where that is recorded. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from django.utils.safestring import SafeString

from agentlab.common.text import ON_DEMAND_BYTES, clip, visible

SAID_BYTES = 2_000  # of the words before one call: a hundred calls then stay a page that loads at once


class Placed(Protocol):
    """A tool call with the characters of the reply that came before it; None where that is not recorded."""

    @property
    def reply_offset(self) -> int | None: ...


Call = TypeVar("Call", bound=Placed)


@dataclass(frozen=True)
class Words:
    """Some of the reply as HTML; `cut` where only its beginning is shown."""

    html: SafeString
    cut: bool


@dataclass(frozen=True)
class Step(Generic[Call]):
    """A tool call and the words before it. The last words of an attempt stand without a call."""

    said: Words | None
    call: Call | None


def tell(reply: str | None, calls: Sequence[Call], *, since: int = 0, to_the_end: bool = True) -> list[Step[Call]]:
    """The calls with the words between them. `since` is how much of the reply was said before the first of them was
    thought of; with `to_the_end` the rest of the reply follows. Where no order is recorded: the calls alone."""
    words = reply or ""
    if not is_ordered(calls):
        return [Step(None, call) for call in calls]
    steps: list[Step[Call]] = []
    at = since
    for call in calls:
        here = max(at, call.reply_offset if call.reply_offset is not None else at)
        steps.append(Step(_words(words[at:here], SAID_BYTES), call))
        at = here
    rest = _words(words[at:], ON_DEMAND_BYTES) if to_the_end else None
    return [*steps, Step(rest, None)] if rest else steps


def is_ordered(calls: Sequence[Placed]) -> bool:
    return any(call.reply_offset is not None for call in calls)


def _words(said: str, limit: int) -> Words | None:
    said = said.strip("\n")
    if not said.strip():
        return None
    shown = clip(said, limit)
    return Words(visible(shown), len(shown) < len(said))
