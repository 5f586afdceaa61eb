"""What a hosted agent holds in its head, for one connection and no longer.

A `game_state` overwrites the one before it; a `player_action` is appended to this hand's log; a `hand_result` goes to
a history of twenty; a new hand empties the log. Nothing fills it again after a reconnect: an agent that comes back in
the middle of a hand sees the pot and not who built it.

The values are plain dictionaries with the names on the wire, so that what is captured is what was received.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from agentlab.hosted.frames import GameState, HandResult, PlayerAction, ToAgent

HISTORY = 20
NOTES = 20
NOTE_LENGTH = 200

Frame = dict[str, Any]


Gap = Literal["", "reconnected", "log_gap"]


def gap(state: Frame, action_log: Sequence[Frame], hand_history: Sequence[Frame]) -> Gap:
    """What such a memory lacks of the hand in `state`: nothing, or actions that the table had counted. A memory is as
    old as its connection: one in which an earlier hand has ended shows that it did not begin in the middle of this."""
    if heard_before(state, action_log) == state["actionIndex"]:
        return ""
    whole = any(hand["handNumber"] < state["handNumber"] for hand in hand_history)
    return "log_gap" if whole else "reconnected"


def heard_before(state: Frame, action_log: Sequence[Frame]) -> int:
    """How many of the actions before this turn it heard."""
    number, due = state["handNumber"], state["actionIndex"]
    return len(
        {one["actionIndex"] for one in action_log if one["handNumber"] == number and 0 <= one["actionIndex"] < due}
    )


@dataclass(frozen=True, slots=True)
class Whispers:
    """What its owner has whispered to an agent. `said`: oldest first, as `build_turn_context` takes them; `fresh`: the
    ids of those among them that no turn is known to have heard."""

    said: list[dict[str, str]] = field(default_factory=list)
    fresh: tuple[int, ...] = ()


@dataclass
class Memory:
    """One connection's memory. `notes` are the agent's own, `whispers` its owner's ({"author", "at", "text"})."""

    state: Frame | None = None
    action_log: list[Frame] = field(default_factory=list)
    hand_history: list[Frame] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    whispers: list[Frame] = field(default_factory=list)

    def hear(self, frame: ToAgent) -> None:
        """Takes in one frame; those that carry nothing to remember (`your_turn`, `rejected`) leave it as it is."""
        match frame:
            case GameState():
                if self.state is None or self.state["handNumber"] != frame.hand_number:
                    self.action_log.clear()
                self.state = msgspec.to_builtins(frame)
            case PlayerAction():
                if self._is_this_hand(frame.hand_number):
                    self.action_log.append(msgspec.to_builtins(frame))
            case HandResult():
                self.hand_history.append(msgspec.to_builtins(frame))
                del self.hand_history[:-HISTORY]
            case _:
                pass

    def note(self, text: str) -> None:
        """Keeps a remark of the agent's own: shortened, once, the newest twenty."""
        remark = " ".join(text.split())[:NOTE_LENGTH]
        if remark and remark not in self.notes:
            self.notes.append(remark)
            del self.notes[:-NOTES]

    def _is_this_hand(self, hand_number: int) -> bool:
        """An action of another hand (late, or before any state came) is not this hand's action."""
        return self.state is not None and self.state["handNumber"] == hand_number
