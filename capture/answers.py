"""The owner's three questions about a turn, answered only where the record can: did it choose this, did it know what I
think it knew, and did the table get what it chose?"""

from collections.abc import Sequence

from agentlab.common.numbers import amount
from capture.changes import Callout
from capture.turns import Turn


def answers(turn: Turn | None, callouts: Sequence[Callout]) -> list[str]:
    """Short sentences for the head of a turn; none where nothing is certain. `callouts` are what the page shows."""
    if turn is None:
        return []
    said = []
    # A note about what was sent stands beside a rename and an all-in as well, which change nothing.
    other = turn.change in ("verb", "clamp")
    changed = any(callout.kind == "changed" or other for callout in callouts if not callout.word)
    if changed and turn.asked_action and turn.action:
        asked, sent = _move(turn.asked_action, turn.asked_amount), _move(turn.action, turn.amount)
        said.append(f"It asked for {asked}, and {sent} was sent.")
    elif _chose_this(turn) and not changed:
        said.append("It chose this.")
    if any(callout.word for callout in callouts):
        said.append("It knew something you may not expect.")
    return said


def _chose_this(turn: Turn) -> bool:
    """A choice was read from its answer, and nothing but its spelling was changed on the way out."""
    return bool(turn.choice_source and turn.asked_action and turn.change in (None, "rename", "all_in"))


def _move(action: str, chips: object) -> str:
    return action if chips is None else f"{action} {amount(chips)}"
