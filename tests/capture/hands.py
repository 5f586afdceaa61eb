"""Hands for the tests of the pages, written into the real stores: what a table's agents would have left there."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import redis

from agentlab.agents.models import InferenceCharge
from capture.buffer import TurnBuffer
from capture.frozen import freeze
from capture.prompt import Prompt
from capture.turns import Turn, TurnKey

TABLE = "T-4"
ENVELOPE = (
    "You are a no-limit hold'em player at a table of six. You see your cards, the board and what the others did. "
    "Answer with a short thought and one JSON object.\n\n[Strategy]\nPlay few hands and play them hard. "
    "Fold what is dominated. Raise when you would call.\n\n[Skill: pot odds]\nCompare the price with your chance.\n\n"
    "[Skill: position]\nThe later you act, the more you know; widen with position and tighten without it."
)
SEATS = [
    {"seat": 0, "agentId": "rocky", "stack": 176, "bet": 24, "status": "active", "connected": True, "cards": None},
    {"seat": 1, "agentId": "bluffy", "stack": 152, "bet": 24, "status": "active", "connected": True, "cards": None},
    {"seat": 2, "agentId": "nit", "stack": 199, "bet": 1, "status": "folded", "connected": False, "cards": None},
]


def heard(agent: str, action: str, amount: int | None = None, street: str = "preflop", **more: Any) -> dict[str, Any]:
    seat = next((s["seat"] for s in SEATS if s["agentId"] == agent), 3)
    frame = {"type": "player_action", "handNumber": 184, "actionIndex": 0, "seat": seat, "agentId": agent}
    return frame | {"street": street, "action": action, "amount": amount, "allIn": False, "cause": "chosen"} | more


LOG = [
    heard("nit", "call", 2, actionIndex=0),
    heard("rocky", "raise", 8, actionIndex=1),
    heard("bluffy", "call", 8, actionIndex=2),
    heard("nit", "check", street="flop", actionIndex=3),
    heard("bluffy", "raise", 24, street="flop", actionIndex=4),
]


def _result(seat: int, agent: str, net: int, cards: list[str] | None) -> dict[str, Any]:
    facts = {"seat": seat, "agentId": agent, "net": net, "won": max(0, 2 * net), "returned": 0}
    return facts | {"stack": 200 + net, "status": "active", "cards": cards}


PAST = [
    {
        "type": "hand_result",
        "tableId": TABLE,
        "handNumber": number,
        "actionIndex": 6,
        "board": ["2c", "9d", "Js", "Qh", "3s"],
        "showdown": True,
        "pots": [{"amount": 40, "shares": {0: 40}}],
        "seats": [_result(0, "rocky", 20, ["Ah", "Qd"]), _result(1, "bluffy", -20, None)],
    }
    for number in range(164, 184)
]


def arguments(hole: list[str], **changed: Any) -> dict[str, Any]:
    """The arguments of `build_turn_context` at this table."""
    state = {
        "type": "game_state",
        "tableId": TABLE,
        "handNumber": 184,
        "actionIndex": 5,
        "street": "flop",
        "board": ["7h", "Td", "2c"],
        "pot": 64,
        "pots": [{"amount": 16, "seats": [0, 1, 2]}],
        "currentBet": 24,
        "button": 0,
        "smallBlind": 1,
        "bigBlind": 2,
        "ante": 0,
        "seats": SEATS,
        "toAct": 0,
        "yourSeat": 0,
        "holeCards": hole,
        "toCall": 24,
        "deploymentId": 12,
    }
    turn = {
        "type": "your_turn",
        "legalActions": ["fold", "call", "raise"],
        "chipRange": {"min": 48, "max": 200},
        "turnEndsAt": 1795960931000,
    }
    values: dict[str, Any] = {
        "state": state,
        "turn": turn,
        "action_log": LOG,
        "hand_history": PAST,
        "notes": ["Bluffy bets most flops that nobody raised.", "Nit folds to a second bet."],
        "whispers": [{"author": "ada", "at": "2026-11-29 13:58", "text": "Stop paying off the river."}],
    }
    return values | changed


def prompt(hole: str = "Ah Ks", envelope: str = ENVELOPE) -> Prompt:
    lines = "\n".join(f"hand {hand['handNumber']} [2c 9d Js Qh 3s]: rocky +20, bluffy -20" for hand in PAST)
    return Prompt(
        envelope,
        f"[Table]\nHand 184, blinds 1/2.\nStreet: flop. Board: 7h Td 2c.\nPot: 64.\n\n[This hand]\n"
        "preflop: nit calls 2, rocky (you) raises to 8, bluffy calls 8\n"
        f"flop (7h Td 2c): nit checks, bluffy raises to 24\n\n[Recent hands]\n{lines}\n\n"
        f"[Your turn]\nYou hold {hole}.\nTo call: 24.\nLegal actions: fold, call, raise.",
    )


@dataclass(frozen=True)
class Played:
    """A turn for the buffer (None: not captured) and its line in the ledger."""

    agent: str
    index: int
    turn: Turn | None
    charge: dict[str, Any] = field(default_factory=dict)


def turn(agent: str, index: int, *, hand: int = 184, table: str = TABLE, **changed: Any) -> Turn:
    """A clean recorded turn: a raise to 200 that was asked for and sent."""
    made = Turn(
        TurnKey(agent, table, hand, index),
        prompt(),
        "I hold top pair with the best kicker, and Bluffy bets this board with anything.\n\n"
        '```json\n{"action": "raise", "amount": 200}\n```',
        knowledge=freeze(arguments(["Ah", "Ks"])),
        decision=[{"type": "action", "handNumber": hand, "actionIndex": index, "action": "raise", "amount": 200}],
        action="raise",
        amount=200,
        asked_action="raise",
        asked_amount=200,
        choice_source="content",
        model="house-1",
        routing="local",
        agent_version_id=f"{agent}-v12",
        renderer="turn-context 1",
        input_tokens=2104,
        output_tokens=88,
        cost=Decimal("0.0031"),
        captured_at=datetime(2026, 11, 29, 14, 2, 11, tzinfo=UTC),
    )
    return replace(made, **changed)


def captured(agent: str, index: int, *, charge: dict[str, Any] | None = None, **changed: Any) -> Played:
    return Played(agent, index, turn(agent, index, **changed), charge or {})


def fallback(agent: str, index: int, reason: str = "the model did not answer in time") -> Played:
    facts = {
        "is_fallback": True,
        "fallback_reason": reason,
        "capture_outcome": "none",
        "action": "fold",
        "amount": None,
    }
    return Played(agent, index, None, facts)


def lost(agent: str, index: int, outcome: str = "dropped", reason: str = "buffer full") -> Played:
    return Played(
        agent, index, None, {"capture_outcome": outcome, "capture_reason": reason, "action": "call", "amount": 24}
    )


def expired(agent: str, index: int) -> Played:
    return Played(agent, index, None, {"action": "call", "amount": 24})


def story() -> list[Played]:
    """One hand with everything that a page must tell apart."""
    call = {"action": "call", "asked_action": "call", "amount": 24, "asked_amount": None}
    said = "The price is right.\n" + '{"action": "call"}'
    sent = [{"type": "action", "handNumber": 184, "actionIndex": 4, "action": "call", "amount": None}]
    unseen = arguments(["Jd", "9d"], action_log=[], hand_history=[], notes=[], whispers=[])
    asked = 'I want it all in the middle now.\n\n{"action": "raise", "amount": 500}'
    reasoned = "They have shown weakness twice. My price is one in three, my chance about one in two."
    return [
        captured("nit", 1, response=said, decision=sent, **call),
        captured("bluffy", 2),
        captured("rocky", 3, response=asked, asked_amount=500, change="clamp", reasoning=reasoned),
        fallback("nit", 4),
        captured("bluffy", 5, knowledge=freeze(unseen), response=said, decision=sent, **call),
        lost("rocky", 6),
        captured("bluffy", 7, knowledge=None, decision=None, agent_version_id=None),
        captured("rocky", 8, decision=[], response="", reasoning=None),
        captured("bluffy", 9, asked_amount=176, change="all_in"),
        captured("rocky", 10, asked_action="fold", asked_amount=None, action="check", amount=None, change="verb"),
        captured("nit", 11, decision=[*sent, {"refused": "late: that turn is over"}], response=said, **call),
    ]


def store(
    client: redis.Redis,
    played: list[Played],
    *,
    table: str = TABLE,
    hand: int = 184,
    at: datetime | None = None,
) -> None:
    """Writes the turns into the buffer and their lines into the ledger."""
    start = at or datetime.now(UTC) - timedelta(minutes=2)
    turns = [replace(p.turn, key=TurnKey(p.agent, table, hand, p.index)) for p in played if p.turn is not None]
    TurnBuffer(client).write(turns)
    InferenceCharge.objects.bulk_create(_charge(p, table, hand, start) for p in played)


def _charge(played: Played, table: str, hand: int, start: datetime) -> InferenceCharge:
    facts: dict[str, Any] = {
        "action": played.turn.action if played.turn else "raise",
        "amount": played.turn.amount if played.turn else 200,
        "change": (played.turn.change or "") if played.turn else "",
        "agent_version_id": played.turn.agent_version_id if played.turn else f"{played.agent}-v12",
        "model": "house-1",
        "routing": "local",
        "input_tokens": 2104,
        "output_tokens": 88,
        "cost": Decimal("0.0031"),
        "duration_ms": 1900,
        "capture_outcome": "recorded",
    }
    return InferenceCharge(
        agent_id=played.agent,
        table_id=table,
        hand_number=hand,
        action_index=played.index,
        played_at=start + timedelta(seconds=3 * played.index),
        **(facts | played.charge),
    )


def days_ago(days: float) -> datetime:
    return datetime.now(UTC) - timedelta(days=days)
