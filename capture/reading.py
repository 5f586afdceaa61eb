"""Reading a hand back: the buffer's turns, the kept ones, and the ledger's facts beside them.

Three stores of three lifetimes answer together, and none answers for another: a turn that the buffer has let go is
still listed by the ledger, a kept turn is read whether or not the buffer remembers that its agent played.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capture.turns import Turn


@dataclass(frozen=True, slots=True)
class TurnView:
    """One turn as a reader gets it: the recorded four things where they are left, the ledger's facts where it has them.

    None always means *not known* or *not recorded*, never *none*.
    """

    agent_id: str
    action_index: int
    turn: Turn | None  # None: a fallback, lost, expired or not whole
    kept: bool  # a durable row holds it
    is_fallback: bool
    fallback_reason: str
    capture_outcome: str | None  # pending, recorded, dropped, failed, none; None where the ledger has no row
    capture_reason: str
    action: str | None  # what reached the table
    amount: int | Decimal | float | None
    model: str
    routing: str
    agent_version_id: str | None
    input_tokens: int | None
    output_tokens: int | None
    cost: Decimal | None  # US dollars
    duration_ms: int | None
    played_at: datetime | None


@dataclass(frozen=True, slots=True)
class Hand:
    """A hand's turns in action order, of one agent or of all."""

    table_id: str
    hand_number: int
    turns: list[TurnView]
    buffer_answered: bool  # False: only kept turns and the ledger are in `turns`


@dataclass(frozen=True, slots=True)
class RecentHand:
    """A hand of the ledger, in one line. Counts are of the agents asked for."""

    table_id: str
    hand_number: int
    turns: int
    fallbacks: int
    kept: int  # durable rows
    lost: int  # captures dropped or failed
    last_played_at: datetime

    @property
    def fallback_only(self) -> bool:
        return self.turns == self.fallbacks


@dataclass(frozen=True, slots=True)
class RecentHands:
    """A page of hands, newest first. `next_before` is the cursor of the page after it, None at the end."""

    hands: list[RecentHand]
    next_before: str | None


def read_hand(table_id: str, hand_number: int, *, agent_id: str) -> Hand:
    """One agent's turns of a hand: the owner's read. Touches that agent's keys and rows alone."""
    raise NotImplementedError


def read_hand_all(table_id: str, hand_number: int) -> Hand:
    """Every agent's turns of a hand: the operator's read."""
    raise NotImplementedError


def recent_hands(
    before: str | None = None, limit: int = 25, agent_ids: list[str] | None = None, *, kept: bool = False
) -> RecentHands:
    """The ledger's hands, newest first; of these agents alone where `agent_ids` is given. Raises ValueError for a
    cursor that is none of ours."""
    raise NotImplementedError
