"""Reading a hand back: the buffer's turns, the kept ones, and the ledger's facts beside them.

Three stores of three lifetimes answer together, and none answers for another: a turn that the buffer has let go is
still listed by the ledger, a kept turn is read whether or not the buffer remembers that its agent played. A hand
costs the same number of queries and round trips however many turns and agents it has.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.conf import settings
from django_redis import get_redis_connection

from agentlab.agents.models import HandResult, InferenceCharge
from capture.buffer import BufferUnavailable, DamagedKey, TurnBuffer
from capture.durable import from_row
from capture.models import AgentCallRecord
from capture.recent import Neighbours
from capture.turns import Number, Turn, TurnError, TurnKey

Place = tuple[int, str]  # action index, agent: the order of a hand
LONGEST_ID = 200
LARGEST_NUMBER = 2**63 - 1
# What both record and ledger may know of a turn (under one name in `Turn`, `TurnView` and the ledger's table), and
# what the ledger alone does.
SHARED_FACTS = (
    *("action", "amount", "change", "model", "routing", "agent_version_id", "input_tokens", "output_tokens", "cost"),
)
LEDGER_FACTS = (
    *SHARED_FACTS,
    *("is_fallback", "fallback_reason", "capture_outcome", "capture_reason", "duration_ms", "played_at", "note"),
)


@dataclass(frozen=True, slots=True)
class TurnView:
    """One turn as a reader gets it: the recorded four things where they are left, and the ledger's facts.

    None always means *not known* or *not recorded*, never *none*. Where record and ledger both know a fact, the record
    is shown: it is exact, and it is what the other three things belong to.
    """

    agent_id: str
    action_index: int
    turn: Turn | None  # None: a fallback, lost, expired, or damaged
    kept: bool = False  # a durable row holds it
    damaged: str = ""  # why a record that is there cannot be shown
    is_fallback: bool = False
    fallback_reason: str = ""
    capture_outcome: str | None = None  # pending, recorded, dropped, failed, none; None where the ledger has no row
    capture_reason: str = ""
    action: str | None = None  # what reached the table; the ledger's "" is as good as None
    amount: Number | None = None
    model: str = ""
    routing: str = ""
    agent_version_id: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: Number | None = None  # US dollars
    duration_ms: int | None = None
    played_at: datetime | None = None
    change: str | None = None  # the ledger's words; its "" (nothing changed) is as good as None
    note: str | None = None  # the ledger's word for what is odd about what it knew; None as above


@dataclass(frozen=True, slots=True)
class Hand:
    """A hand's turns in action order, of one agent or of all."""

    table_id: str
    hand_number: int
    turns: list[TurnView]
    buffer_answered: bool  # False: only kept turns and the ledger are in `turns`
    lists_whole: bool = True  # False: the buffer may have turns that its damaged lists no longer name
    net: dict[str, int] = field(default_factory=dict)  # chips that an agent won or lost, where that is known


def hot_buffer() -> TurnBuffer:
    """The capture Redis through Django's alias for it. Touches no server."""
    return TurnBuffer(get_redis_connection("capture"), settings.CAPTURE_TTL_SECONDS)


def check_hand(table_id: str, hand_number: int, agent_id: str = "-") -> None:
    """Raises ValueError, in one sentence, for ids and numbers that no store could hold."""
    check_asked_id("table", table_id)
    check_asked_id("agent", agent_id)
    if not isinstance(hand_number, int) or not 0 <= hand_number <= LARGEST_NUMBER:
        raise ValueError(f"The hand must be a whole number from 0 to {LARGEST_NUMBER}.")


def check_asked_id(name: str, text: object) -> None:
    """The same of one id, of a table or of an agent."""
    if not isinstance(text, str) or not 0 < len(text) <= LONGEST_ID:
        raise ValueError(f"The {name} must be text of 1 to {LONGEST_ID} characters.")
    if "\0" in text or not _is_utf8(text):
        raise ValueError(f"The {name} holds a character that no id has.")


def read_hand(table_id: str, hand_number: int, *, agent_id: str) -> Hand:
    """One agent's turns of a hand: the owner's read. It touches that agent's `turn:` and `hand:` keys, the `env:` keys
    that those name, and that agent's rows; nothing of a rival's is fetched. Raises ValueError (`check_hand`)."""
    check_hand(table_id, hand_number, agent_id)
    stored = _Stored(table_id, hand_number, agent_id)
    stored.read_buffer([agent_id])
    return stored.hand()


def read_hand_all(table_id: str, hand_number: int) -> Hand:
    """Every agent's turns of a hand: the operator's read. The buffer's own list of agents adds to those of the ledger
    and of the kept rows; it is never asked who played. Raises ValueError (`check_hand`)."""
    check_hand(table_id, hand_number)
    stored = _Stored(table_id, hand_number)
    stored.read_buffer()
    return stored.hand()


def neighbours_all(table_id: str, hand_number: int) -> Neighbours:
    """The hands before and after one at its table, by number, as far as a store has them: the operator's read. Ledger
    and kept rows are asked for the nearest, the buffer, which has no order, for the next number alone. Four queries
    and a trip. Raises ValueError (`check_hand`)."""
    check_hand(table_id, hand_number)
    older, newer = set(_beside(hand_number, table_id, "lt")), set(_beside(hand_number, table_id, "gt"))
    asked = {number for number in (hand_number - 1, hand_number + 1) if 0 <= number <= LARGEST_NUMBER}
    with suppress(BufferUnavailable):
        found = hot_buffer().hands_there(table_id, asked)
        older |= found & {hand_number - 1}
        newer |= found & {hand_number + 1}
    places = (max(older, default=None), min(newer, default=None))
    return Neighbours(*(None if number is None else (table_id, number) for number in places))


def _beside(hand_number: int, table_id: str, way: str) -> Iterator[int]:
    """The nearest numbers that way, of the ledger's hands and of the kept ones."""
    for model in (InferenceCharge, AgentCallRecord):
        hands = model._default_manager.filter(table_id=table_id, hand_number__gte=0)
        rows = hands.filter(**{f"hand_number__{way}": hand_number})
        nearest = rows.order_by("-hand_number" if way == "lt" else "hand_number")
        yield from nearest.values_list("hand_number", flat=True)[:1]


class _Stored:
    """What the three stores have of a hand, by place."""

    def __init__(self, table_id: str, hand_number: int, agent_id: str | None = None) -> None:
        self.table_id, self.hand_number = table_id, hand_number
        scope = {"table_id": table_id, "hand_number": hand_number}
        if agent_id is not None:
            scope["agent_id"] = agent_id
        rows = InferenceCharge.objects.filter(**scope).values("agent_id", "action_index", *LEDGER_FACTS)
        self.charges: dict[Place, dict[str, Any]] = {
            (row.pop("action_index"), row.pop("agent_id")): row
            | {"change": row["change"] or None, "note": row["note"] or None}
            for row in rows
        }
        # Their content is fetched only where the buffer has no whole record.
        self.kept: dict[Place, int] = {
            (index, agent): pk
            for index, agent, pk in AgentCallRecord.objects.filter(**scope).values_list(
                "action_index", "agent_id", "pk"
            )
        }
        self.net = dict(HandResult.objects.filter(**scope).order_by("agent_id").values_list("agent_id", "net"))
        self.turns: dict[Place, Turn] = {}
        self.damaged: dict[Place, str] = {}
        self.buffer_answered = self.lists_whole = True

    def read_buffer(self, agent_ids: list[str] | None = None) -> None:
        """Adds what the buffer has, of these agents or of everybody's; a buffer that does not answer adds nothing."""
        buffer = hot_buffer()
        try:
            found = buffer.turns_of_agents(
                self.table_id,
                self.hand_number,
                self._everybody(buffer) if agent_ids is None else agent_ids,
                known=self._known(),
            )
        except BufferUnavailable:
            self.buffer_answered = False
            return
        self.lists_whole = self.lists_whole and not found.unlisted
        self.turns = {_place(turn.key): turn for turn in found}
        self.damaged = {_place(key): reason for key, reason in found.damaged.items()}

    def _everybody(self, buffer: TurnBuffer) -> list[str]:
        """Who played: the buffer's list, where it is whole, added to what the ledger and the kept rows say."""
        listed: list[str] = []
        try:
            listed = buffer.agents(self.table_id, self.hand_number)
        except DamagedKey:
            self.lists_whole = False
        return sorted({*listed, *(agent for _, agent in [*self.charges, *self.kept])})

    def _known(self) -> dict[str, list[int]]:
        """The turns that were decided, as the ledger has them: action indices by agent."""
        known: dict[str, list[int]] = {}
        for (index, agent), facts in self.charges.items():
            if not facts["is_fallback"]:
                known.setdefault(agent, []).append(index)
        return known

    def read_kept(self) -> None:
        """Adds the kept turns that the buffer has no whole record of."""
        missing = [pk for place, pk in self.kept.items() if place not in self.turns]
        for row in AgentCallRecord.objects.filter(pk__in=missing) if missing else ():
            place = (row.action_index, row.agent_id)
            try:
                self.turns[place] = from_row(row)
                self.damaged.pop(place, None)
            except TurnError as error:
                self.damaged[place] = str(error)

    def hand(self) -> Hand:
        self.read_kept()
        places = sorted({*self.charges, *self.kept, *self.turns, *self.damaged})
        turns = [self._view(place) for place in places]
        return Hand(self.table_id, self.hand_number, turns, self.buffer_answered, self.lists_whole, self.net)

    def _view(self, place: Place) -> TurnView:
        turn = self.turns.get(place)
        facts = self.charges.get(place, {})
        return TurnView(
            agent_id=place[1],
            action_index=place[0],
            turn=turn,
            kept=place in self.kept,
            damaged=self.damaged.get(place, ""),
            **(facts if turn is None else facts | _recorded(turn, facts)),
        )


def _recorded(turn: Turn, facts: dict[str, Any]) -> dict[str, Any]:
    """The record's facts, which stand over the ledger's, where the record has them. A record from before the version
    tag takes its version from the ledger's row of the same turn."""
    known = {name: value for name in SHARED_FACTS if (value := getattr(turn, name)) is not None and value != ""}
    return known if "played_at" in facts else known | {"played_at": turn.captured_at}


def _place(key: TurnKey) -> Place:
    return (key.action_index, key.agent_id)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
