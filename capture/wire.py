"""Hands and lists as JSON, and read back: what the internal API says, and what a viewer on another host hears.

A key that is not there was not recorded or is not known; `[]` and `""` are there, and mean it. Everything is ASCII
once it is written, so that any text survives; what JSON cannot say is a marker (`jsonable.py`). `prompt` is the exact
text; its last `remainderCharacters` code points are this turn's own part, and what stands before them (and one
newline) is the envelope.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from capture.frozen import freeze
from capture.jsonable import ascii_json, from_json
from capture.knowledge import read_knowledge
from capture.pinning import Outcome, PinResult
from capture.prompt import Prompt
from capture.reading import SHARED_FACTS, Hand, TurnView
from capture.recent import AgentDay, Neighbours, RecentHand, RecentHands
from capture.turns import Turn, TurnKey

Text = str | dict[str, Any]
Number = int | float | dict[str, Any]


class TurnJson(msgspec.Struct, rename="camel", kw_only=True):
    """One turn. The four things, and every fact that is not known, are left out."""

    agent_id: str
    action_index: int
    is_fallback: bool
    kept: bool
    knowledge: Any | UnsetType = UNSET
    prompt: Text | UnsetType = UNSET
    remainder_characters: int | UnsetType = UNSET
    envelope_hash: str | UnsetType = UNSET
    response: Text | UnsetType = UNSET
    reasoning: Text | UnsetType = UNSET
    decision: list[Any] | UnsetType = UNSET
    action: Text | UnsetType = UNSET
    amount: Number | UnsetType = UNSET
    asked_action: Text | UnsetType = UNSET
    asked_amount: Text | Number | UnsetType = UNSET
    choice_source: str | UnsetType = UNSET
    change: str | UnsetType = UNSET
    note: str | UnsetType = UNSET
    model: Text | UnsetType = UNSET
    routing: Text | UnsetType = UNSET
    agent_version_id: str | UnsetType = UNSET
    renderer: str | UnsetType = UNSET
    input_tokens: int | UnsetType = UNSET
    output_tokens: int | UnsetType = UNSET
    cost: Number | UnsetType = UNSET
    duration_ms: int | UnsetType = UNSET
    captured_at: datetime | UnsetType = UNSET
    played_at: datetime | UnsetType = UNSET
    capture_outcome: str | UnsetType = UNSET
    capture_reason: str | UnsetType = UNSET
    fallback_reason: str | UnsetType = UNSET
    damaged: str | UnsetType = UNSET


class ResultJson(msgspec.Struct, rename="camel"):
    """What a hand came to for an agent: the chips that it won, less than 0 where it lost some."""

    agent_id: str
    net: int


class HandJson(msgspec.Struct, rename="camel"):
    table_id: str
    hand_number: int
    buffer_answered: bool
    turns: list[TurnJson]
    lists_whole: bool = True
    results: list[ResultJson] = []


class TurnPlaceJson(msgspec.Struct, rename="camel"):
    action_index: int
    agent_id: str


class RecentHandJson(msgspec.Struct, rename="camel"):
    table_id: str
    hand_number: int
    turns: int
    fallbacks: int
    kept: int
    lost: int
    agent_ids: list[str]
    actions: list[str]
    last_played_at: datetime
    agent_version_ids: list[str] = []
    clamped: int | UnsetType = UNSET
    reconnected: int | UnsetType = UNSET
    first: dict[str, TurnPlaceJson] = {}
    results: list[ResultJson] = []


class RecentHandsJson(msgspec.Struct, rename="camel"):
    hands: list[RecentHandJson]
    next_before: str | UnsetType = UNSET


class PlaceJson(msgspec.Struct, rename="camel"):
    table_id: str
    hand_number: int


class NeighboursJson(msgspec.Struct, rename="camel"):
    older: PlaceJson | UnsetType = UNSET
    newer: PlaceJson | UnsetType = UNSET


class AgentDayJson(msgspec.Struct, rename="camel"):
    turns: int
    fallbacks: int
    kept_hands: int
    cost: Number | UnsetType = UNSET
    clamped: int | UnsetType = UNSET
    lost: int | UnsetType = UNSET
    net: int | UnsetType = UNSET
    hands: int = 0


class AgentDaysJson(msgspec.Struct, rename="camel"):
    agents: dict[str, AgentDayJson]


class PinJson(msgspec.Struct, rename="camel"):
    outcome: Literal["pinned", "already_pinned", "nothing_to_capture"]
    pinned: int
    kept: int
    turns: int
    expired: int
    lost: int
    pending: int
    damaged: int = 0


class UnpinJson(msgspec.Struct, rename="camel"):
    removed: int


# ---- hands

VIEW_FACTS = (
    *SHARED_FACTS,
    *("duration_ms", "played_at", "capture_outcome", "capture_reason", "fallback_reason", "damaged", "note"),
)
RECORD_FACTS = ("asked_action", "asked_amount", "choice_source", "renderer", "captured_at")


def hand_to_json(hand: Hand) -> HandJson:
    """What is written here of texts and values is JSON already (`ascii_json`), for the renderer to put in its place."""
    turns = [_turn_to_json(view) for view in hand.turns]
    facts = (hand.buffer_answered, turns, hand.lists_whole, _results(hand.net))
    return HandJson(_value(hand.table_id), hand.hand_number, *facts)


def _results(net: Mapping[str, int]) -> list[ResultJson]:
    return [ResultJson(_value(agent_id), chips) for agent_id, chips in net.items()]


def _net(said: Iterable[ResultJson]) -> dict[str, int]:
    return {result.agent_id: result.net for result in said}


def _turn_to_json(view: TurnView) -> TurnJson:
    record = {} if view.turn is None else _record(view.turn)
    return TurnJson(
        agent_id=_value(view.agent_id),
        action_index=view.action_index,
        is_fallback=view.is_fallback,
        kept=view.kept,
        **_facts(view, VIEW_FACTS),
        **record,
    )


def _record(turn: Turn) -> dict[str, Any]:
    values: dict[str, Any] = {
        "prompt": turn.prompt.text,
        "response": turn.response,
        "reasoning": turn.reasoning,
        "knowledge": None if turn.knowledge is None else _arguments(turn.knowledge),
        "decision": turn.decision,
    }
    return _facts(turn, RECORD_FACTS) | {
        "remainder_characters": len(turn.prompt.remainder),
        "envelope_hash": turn.prompt.envelope_hash,
        **{name: _value(value) for name, value in values.items() if value is not None},
    }


def _arguments(knowledge: bytes) -> Any:
    """What it knew; where the bytes cannot be read, the bytes."""
    try:
        return read_knowledge(knowledge)
    except ValueError:
        return knowledge


def _facts(source: object, names: Iterable[str]) -> dict[str, Any]:
    values = {name: getattr(source, name) for name in names}
    return {name: _fact(value) for name, value in values.items() if value is not None and value != ""}


def _fact(value: Any) -> Any:
    if isinstance(value, Decimal):
        return _number(value)
    return value if isinstance(value, datetime) else _value(value)


def _value(value: Any) -> Any:
    """A recorded value, or its JSON where it is not one that the encoder writes in ASCII and without loss."""
    if value is None or isinstance(value, bool) or (isinstance(value, str) and value.isascii()):
        return value
    return ascii_json(value)


def _number(value: Decimal) -> Any:
    """The JSON number that reads back as this decimal, or a marker where there is none."""
    if not value.is_finite() or Decimal(repr(float(value))) != value:
        return ascii_json(value)
    return int(value) if value == int(value) else float(value)


def hand_from_json(said: HandJson) -> Hand:
    """Raises ValueError for what is no hand."""
    turns = [_view_from_json(said, turn) for turn in said.turns]
    return Hand(said.table_id, said.hand_number, turns, said.buffer_answered, said.lists_whole, _net(said.results))


def _view_from_json(hand: HandJson, said: TurnJson) -> TurnView:
    key = TurnKey(said.agent_id, hand.table_id, hand.hand_number, said.action_index)
    facts = _known(said, VIEW_FACTS)
    turn = None
    if said.prompt is not UNSET:
        shared = {name: facts[name] for name in SHARED_FACTS if name in facts}
        turn = _turn_from_json(key, said, shared | _known(said, RECORD_FACTS))
        if turn is None:
            facts["damaged"] = "the prompt that came over does not have its hash"
    return TurnView(
        agent_id=key.agent_id,
        action_index=key.action_index,
        turn=turn,
        kept=said.kept,
        is_fallback=said.is_fallback,
        **facts,
    )


def _turn_from_json(key: TurnKey, said: TurnJson, facts: dict[str, Any]) -> Turn | None:
    text, size = from_json(said.prompt), said.remainder_characters
    prompt = Prompt(text[: -size - 1], text[-size:]) if size else Prompt(text)
    if prompt.envelope_hash != said.envelope_hash:
        return None
    parts = _known(said, ("response", "reasoning", "decision"))
    if said.knowledge is not UNSET:
        parts["knowledge"] = freeze(from_json(said.knowledge))
    return Turn(key, prompt, **parts, **facts)


def _known(said: TurnJson, names: Iterable[str]) -> dict[str, Any]:
    values = {name: getattr(said, name) for name in names}
    known = {name: from_json(value) for name, value in values.items() if value is not UNSET}
    return known | {"cost": _cost(known["cost"])} if "cost" in known else known


def _cost(value: Any) -> Decimal | None:
    """US dollars out of a number or a marker, exactly."""
    if value is UNSET:
        return None
    read = from_json(value)
    return Decimal(repr(read)) if isinstance(read, float) else Decimal(read)


# ---- lists


def recent_to_json(recent: RecentHands) -> RecentHandsJson:
    hands = [
        RecentHandJson(
            _value(hand.table_id),
            hand.hand_number,
            hand.turns,
            hand.fallbacks,
            hand.kept,
            hand.lost,
            [_value(agent_id) for agent_id in hand.agent_ids],
            [_value(action) for action in hand.actions],
            hand.last_played_at,
            [_value(version_id) for version_id in hand.agent_version_ids],
            UNSET if hand.clamped is None else hand.clamped,
            UNSET if hand.reconnected is None else hand.reconnected,
            {kind: TurnPlaceJson(index, _value(agent_id)) for kind, (index, agent_id) in hand.first.items()},
            _results(hand.net),
        )
        for hand in recent.hands
    ]
    return RecentHandsJson(hands, UNSET if recent.next_before is None else recent.next_before)


def recent_from_json(said: RecentHandsJson) -> RecentHands:
    return RecentHands(
        [_recent_from_json(hand) for hand in said.hands], None if said.next_before is UNSET else said.next_before
    )


def _recent_from_json(said: RecentHandJson) -> RecentHand:
    """A host of an older version says nothing of clamped turns, of others, or of where the first of them is."""
    facts: dict[str, Any] = {
        name: None if value is UNSET else value for name, value in msgspec.structs.asdict(said).items()
    }
    first = {kind: (at.action_index, at.agent_id) for kind, at in said.first.items()}
    net = _net(facts.pop("results"))
    return RecentHand(**facts | {"first": first, "net": net})


def neighbours_to_json(found: Neighbours) -> NeighboursJson:
    return NeighboursJson(
        *(UNSET if place is None else PlaceJson(_value(place[0]), place[1]) for place in (found.older, found.newer))
    )


def neighbours_from_json(said: NeighboursJson) -> Neighbours:
    places = (said.older, said.newer)
    return Neighbours(*(None if place is UNSET else (place.table_id, place.hand_number) for place in places))


def days_to_json(days: Mapping[str, AgentDay]) -> AgentDaysJson:
    return AgentDaysJson({agent_id: _day_to_json(day) for agent_id, day in days.items()})


def _day_to_json(day: AgentDay) -> AgentDayJson:
    cost = UNSET if day.cost is None else _number(day.cost)
    clamped, lost, net = (UNSET if count is None else count for count in (day.clamped, day.lost, day.net))
    return AgentDayJson(day.turns, day.fallbacks, day.kept_hands, cost, clamped, lost, net, day.hands)


def days_from_json(said: AgentDaysJson) -> dict[str, AgentDay]:
    return {
        agent_id: AgentDay(
            day.turns,
            day.fallbacks,
            _cost(day.cost),
            day.kept_hands,
            None if day.clamped is UNSET else day.clamped,
            None if day.lost is UNSET else day.lost,
            None if day.net is UNSET else day.net,
            day.hands,
        )
        for agent_id, day in said.agents.items()
    }


# ---- pins


def pin_to_json(result: PinResult) -> PinJson:
    return msgspec.convert(result, PinJson, from_attributes=True)


def pin_from_json(said: PinJson) -> PinResult:
    return PinResult(**msgspec.structs.asdict(said) | {"outcome": Outcome(said.outcome)})
