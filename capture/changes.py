"""What changed between the response and the table. A wrong callout is worse than none: both sides must be known."""

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString

from agentlab.common.numbers import amount
from agentlab.common.text import visible
from capture.turns import Turn

Number = int | float | Decimal


@dataclass(frozen=True)
class Callout:
    """`kind` is `changed` (the clamp: red) or `note` (quiet)."""

    kind: str
    label: str
    html: SafeString


def changes(turn: Turn, limits: tuple[Any, Any] | None = None) -> list[Callout]:
    """What a reader must be told about this turn's action. `limits` are the raise-to totals it knew of.

    The clamp: the amount asked for and the one that reached the table are both known and differ. A rename, an all-in
    given as a number and a changed verb are quiet notes. Amounts are compared as numbers.
    """
    asked, sent = _number(turn.asked_amount), _number(turn.amount)
    differ = asked is not None and sent is not None and asked != sent
    if turn.change == "all_in":
        return [_all_in(asked, sent)] if differ else []
    if differ and turn.change != "rename":
        return [_clamp(turn, limits)]
    if _verb(turn.asked_action) == _verb(turn.action) or turn.choice_source is None:
        return []
    return [_verbs(turn)] if turn.asked_action and turn.action else []


def _number(value: Any) -> Number | None:
    """The value as a number; None where it is none, NaN included."""
    if isinstance(value, str):
        try:
            value = Decimal(value.strip())
        except InvalidOperation:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or value != value:
        return None
    return value


def _verb(action: str | None) -> str:
    return (action or "").strip().casefold().replace("-", "_").replace(" ", "_")


def _clamp(turn: Turn, limits: tuple[Any, Any] | None) -> Callout:
    same = _verb(turn.asked_action) == _verb(turn.action) or not turn.asked_action
    words = ("", "") if same else (f"{turn.asked_action} ", f"{turn.action} ")
    could = format_html(" It could raise to {}–{}.", *map(amount, limits)) if limits else ""
    return Callout(
        "changed",
        "Action changed",
        format_html(
            "It asked for {}<strong>{}</strong>, and {}<strong>{}</strong> reached the table.{}",
            visible(words[0]),
            visible(amount(turn.asked_amount)),
            visible(words[1]),
            amount(turn.amount),
            could,
        ),
    )


def _all_in(asked: Number | None, sent: Number | None) -> Callout:
    return Callout(
        "note",
        "All-in",
        format_html(
            "It asked for {}, all it had: an all-in, which the table counts as {}.", amount(asked), amount(sent)
        ),
    )


def _verbs(turn: Turn) -> Callout:
    asked, sent = visible(str(turn.asked_action)), visible(str(turn.action))
    if turn.change == "rename":
        return Callout("note", "Renamed", format_html("It said “{}”; the table's word for it is “{}”.", asked, sent))
    return Callout("note", "Action replaced", format_html("It asked to {}, and {} was sent.", asked, sent))
