"""What became of a response on its way to the table, as a callout beside the turn; `choice.remark` decides."""

import re
from dataclasses import dataclass
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from agentlab.common.text import visible
from capture.choice import Move, reached_table, remark, was_refused
from capture.notes import Note
from capture.turns import Turn


@dataclass(frozen=True)
class Callout:
    """`kind` is `changed` (the clamp: red) or `note` (quiet). `word`: what a note says at the turn's head; "" for what
    is said of a change."""

    kind: str
    label: str
    html: SafeString
    word: str = ""


def changes(turn: Turn, limits: tuple[Any, Any] | None = None) -> list[Callout]:
    """At most one callout. `limits` are the raise-to totals the agent knew of. A turn need not name its `change`: both
    amounts say it, and where they do not, nothing is said."""
    sent = _sent(turn)
    if sent is None:
        return []
    found = remark(Move(turn.asked_action or sent.action, turn.asked_amount), sent, turn.change, limits)
    if found is None:
        return []
    label = "Action changed" if found.kind == "changed" else "How it was sent"
    return [Callout(found.kind, label, _with_strong_amounts(found.text))]


def _sent(turn: Turn) -> Move | None:
    """What reached the table: read from the messages that did, and what they leave open from the record's own words,
    as an agent of another kind has messages of another shape. None where no message was recorded, none was sent, or
    the last was refused."""
    if not turn.decision or was_refused(turn.decision):
        return None
    read = reached_table(turn.decision) or Move(turn.action)
    if turn.action not in (None, read.action):  # two words for what was sent: the amount may belong to either
        return read
    return Move(read.action, turn.amount if read.amount is None else read.amount)


def note(said: Note) -> Callout:
    return Callout("note", "Note", visible(said.text), said.word)


def _with_strong_amounts(text: str) -> SafeString:
    """The amounts are what the eye looks for; those in brackets are an aside."""
    told, bracket, aside = text.partition(" (")
    strong = re.sub(r"(?<![\w&#;])\d[\d,.]*(?<=\d)", r"<strong>\g<0></strong>", visible(told))
    return format_html("{}{}", mark_safe(strong), visible(bracket + aside))  # noqa: S308 - visible() has escaped it
