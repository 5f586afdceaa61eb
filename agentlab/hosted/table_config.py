"""What a table is, what it is asked for by ports, and what it reports."""

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import msgspec

from agentlab.hosted.frames import MAX_CHIPS
from agentlab.hosted.game import LEAST_SEATS, MOST_SEATS

LONGEST_TABLE_ID = 200


def now_ms() -> int:
    """Milliseconds since 1970-01-01 UTC, the time of `turnEndsAt` and of tokens."""
    return time.time_ns() // 1_000_000


class TableConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What a table is. Chips are integers, times milliseconds."""

    table_id: str
    public_key: str
    """Of the issuer whose tokens open this table: hex."""
    wait_for: int = 2
    """Seats that must be ready before the first hand."""
    seats: int = MOST_SEATS
    small_blind: int = 50
    big_blind: int = 100
    ante: int = 0
    buy_in: int = 10_000
    turn_ms: int = 30_000
    pause_ms: int = 0
    """Between two hands."""
    seed: str | int | None = None
    """None: cards that nobody can foretell."""
    host: str = "127.0.0.1"
    port: int = 0

    def __post_init__(self) -> None:
        """Raises ValueError for a table at which nothing could be played."""
        if not 0 < len(self.table_id) <= LONGEST_TABLE_ID or "\0" in self.table_id:
            raise ValueError(f"a table id has 1 to {LONGEST_TABLE_ID} characters and no NUL")
        if not LEAST_SEATS <= self.wait_for <= self.seats <= MOST_SEATS:
            raise ValueError(f"a table has {LEAST_SEATS} to {MOST_SEATS} seats and waits for that many at most")
        if not 0 < self.small_blind <= self.big_blind <= self.buy_in <= MAX_CHIPS // MOST_SEATS or self.ante < 0:
            raise ValueError("blinds are above 0, and a buy-in pays at least the big one")
        if self.turn_ms <= 0 or self.pause_ms < 0:
            raise ValueError("a turn takes time, and a pause is not negative")


class HandNumbers:
    """The port that reserves hand numbers; this one counts in memory. `reserve` returns only once the number is kept
    for ever, so that a (table, hand) pair is never used twice."""

    def __init__(self) -> None:
        self._next = count(1)

    async def reserve(self) -> int:
        return next(self._next)


Deployments = Callable[[int, list[str]], Awaitable[Mapping[str, int]]]
"""Asked before a hand (hand number, agents dealt in): which deployment plays each. Agents left out keep theirs."""
Journal = Callable[[str, dict[str, Any]], None]
"""Told every frame that an agent sent and the table could read: agent id, frame. `agentToken` is left out."""


@dataclass
class Report:
    """What happened at a table, in counts."""

    hands: int = 0
    last_hand_number: int = 0
    turns: int = 0
    forced: dict[str, int] = field(default_factory=Counter)
    """Safe actions taken for a seat, by cause."""
    refused: dict[str, int] = field(default_factory=Counter)
    """Frames not taken, by the code in their reason."""
    refused_by: dict[str, int] = field(default_factory=Counter)
    """The same by agent id."""
    bought_in_again: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    """Hands that could not be dealt, by file, with the reason."""
