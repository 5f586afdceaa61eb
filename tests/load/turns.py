"""Turns of a world: hands at many tables over many days, in the ledger, kept, and in the hot buffer."""

import random
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings

from agentlab.agents.models import HandResult, InferenceCharge
from capture.buffer import TurnBuffer
from capture.durable import to_row
from capture.models import AgentCallRecord
from capture.reading import hot_buffer
from capture.turns import Turn
from tests.capture import hands as samples
from tests.load.loading import Say, load
from tests.load.sizes import Size

LEDGER = (
    *("agent_id", "table_id", "hand_number", "action_index", "agent_version_id", "deployment_id", "model", "routing"),
    *("input_tokens", "output_tokens", "cost", "duration_ms", "played_at", "action", "amount", "change", "note"),
    *("is_fallback", "fallback_reason", "capture_outcome", "capture_reason"),
)
RESULTS = ("agent_id", "table_id", "hand_number", "net", "ended_at")
KEPT = tuple(column.name for column in AgentCallRecord._meta.concrete_fields if not column.primary_key)
BUSY, QUIET, VETERANS = "busy", "quiet", ("veteran-1", "veteran-2")
BUSY_VERSIONS = 120
LATE = "the model did not answer in time"
ACTIONS = ("fold", "check", "call", "raise")


@dataclass
class Spot:
    """Where a turn is, and what became of it."""

    agent: str
    table: str
    hand: int
    index: int
    version: str
    at: datetime
    outcome: str = "recorded"

    def charge(self) -> tuple[Any, ...]:
        """The row of the ledger, in the order of LEDGER."""
        fallback, seed = self.outcome == "none", self.hand * 31 + self.index
        change = None if fallback else {0: "clamp", 1: "all_in", 2: "verb"}.get(seed % 101, "")
        note = None if fallback else "reconnected" if seed % 499 == 0 else ""
        action = ACTIONS[seed % 4]
        return (
            *(self.agent, self.table, self.hand, self.index, self.version, 7, "house-1", "local"),
            *(2000 + seed % 500, 40 + seed % 90, Decimal(seed % 9000) / 1_000_000, 900 + seed % 2000, self.at),
            *("fold" if fallback else action, 24 if action == "raise" else None, change, note, fallback),
            *(LATE if fallback else "", self.outcome, "buffer full" if self.outcome in ("dropped", "failed") else ""),
        )


@dataclass
class Played:
    """Deals a world's hands. While the ledger's rows are drawn from it, it notes what to keep, what is hot, and what
    the hands came to."""

    size: Size
    begin: datetime
    end: datetime
    agents: Sequence[str]
    seed: int = 1
    kept: list[Spot] = field(default_factory=list)
    hot: deque[Spot] = field(default_factory=deque)
    results: list[tuple[Any, ...]] = field(default_factory=list)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        self.hot = deque(maxlen=self.size.hot)
        chance, made, number = random.Random(self.seed), 0, 0
        while made < self.size.turns:
            hand = self._hand(chance, made, number)
            self._keep(hand, made, number)
            self.hot.extend(turn for turn in hand if turn.outcome == "recorded")
            self.results += results(hand)
            yield from (turn.charge() for turn in hand)
            made, number = made + len(hand), number + 1

    def _hand(self, chance: random.Random, made: int, number: int) -> list[Spot]:
        age = made / self.size.turns
        step = (self.end - self.begin) / (self.size.turns + 300)
        start = self.begin + step * made
        old, tables = age < self.size.old, self.size.tables
        table = f"old-{self.seed}-{number % 3}" if old else f"T{self.seed}-{number % tables}"
        players = chance.sample(self.agents, chance.randint(2, 8))
        if chance.random() < 0.5:
            players[0] = BUSY
        if old:
            players[1] = VETERANS[number % 2]
        count = min(chance.randint(8, 40), self.size.turns - made)
        return [
            Spot(who, table, number // (3 if old else tables) + 1, index, _version(who, age), at, _outcome(chance))
            for index in range(count)
            for who, at in [(players[index % len(players)], start + step * 3 * index)]
        ]

    def _keep(self, hand: list[Spot], made: int, number: int) -> None:
        """The busy one's owner flags most, operators keep a whole hand now and then, until the share is reached."""
        share = self.size.kept * (made + len(hand)) / self.size.turns
        if len(self.kept) >= share:
            return
        whole = number % 4 == 0
        self.kept += [turn for turn in hand if turn.outcome == "recorded" and (whole or turn.agent == BUSY)]


def results(hand: Sequence[Spot]) -> Iterator[tuple[Any, ...]]:
    """One row for each agent of the hand, in the order of RESULTS: the first wins what the others lose."""
    players, last = list(dict.fromkeys(turn.agent for turn in hand)), hand[-1]
    for place, agent in enumerate(players):
        yield (agent, last.table, last.hand, -24 if place else 24 * (len(players) - 1), last.at)


def _version(agent: str, age: float) -> str:
    return f"{agent}-v{1 + int(age * (BUSY_VERSIONS if agent == BUSY else 2))}"


def _outcome(chance: random.Random) -> str:
    """What is rare is so in both worlds, and fills a page in both."""
    draw = chance.random()
    return "none" if draw < 0.015 else "dropped" if draw < 0.03 else "failed" if draw < 0.045 else "recorded"


def sample(turn: Spot) -> Turn:
    """The whole record of a turn, as large as a real one."""
    made = samples.turn(turn.agent, turn.index, hand=turn.hand, table=turn.table, agent_version_id=turn.version)
    return replace(made, captured_at=turn.at)


def charge(hands: Sequence[Sequence[Spot]], say: Say = lambda _: None) -> None:
    load(InferenceCharge, LEDGER, (turn.charge() for hand in hands for turn in hand), say)
    load(HandResult, RESULTS, (row for hand in hands for row in results(hand)), say)


def keep(turns: Sequence[Spot], say: Say = lambda _: None) -> None:
    """Kept rows; their content is that of a few real ones, as a row's key is in columns of its own."""
    models = [_values(to_row(sample(turn), agent_version_id=None, pinned_at=turn.at)) for turn in turns[:40]]
    rows = ([*_key(turn), *models[place % len(models)][5:-2], *_times(turn)] for place, turn in enumerate(turns))
    load(AgentCallRecord, KEPT, rows, say)


def _key(turn: Spot) -> tuple[Any, ...]:
    return (turn.agent, turn.table, turn.hand, turn.index, turn.version)


def _times(turn: Spot) -> tuple[datetime, datetime]:
    """Captured, and pinned: one agent's turns of a hand at one moment, on the quarter of an hour after it."""
    past = timedelta(minutes=turn.at.minute % 15, seconds=turn.at.second, microseconds=turn.at.microsecond)
    return turn.at, turn.at - past + timedelta(minutes=15, microseconds=turn.hand)


def _values(row: AgentCallRecord) -> list[Any]:
    return [getattr(row, name) for name in KEPT]


def heat(turns: Sequence[Spot]) -> None:
    """Into the capture Redis, as an agent's recorder does."""
    buffer = TurnBuffer(hot_buffer()._redis, settings.CAPTURE_TTL_SECONDS)
    for place in range(0, len(turns), 200):
        buffer.write(sample(turn) for turn in turns[place : place + 200])


def hand(table: str, number: int, agents: Sequence[str], count: int, at: datetime) -> list[Spot]:
    """A hand as it is wanted: these agents in turn, so many actions, five seconds between them."""
    return [
        Spot(who, table, number, index, f"{who}-v1", at + timedelta(seconds=5 * index))
        for index in range(count)
        for who in [agents[index % len(agents)]]
    ]
