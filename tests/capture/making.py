"""Turns and ledger rows for tests: every part different from turn to turn, so that a mix-up shows."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings

from agentlab.agents.models import HandResult, InferenceCharge
from capture.buffer import TurnBuffer
from capture.frozen import freeze
from capture.prompt import Prompt
from capture.reading import hot_buffer
from capture.turns import Turn, TurnKey

TABLE, HAND = "T-1", 7
PLAYED = datetime(2026, 11, 1, 12, tzinfo=UTC)


def turn(agent: str = "rocky", index: int = 0, *, table: str = TABLE, hand: int = HAND, **fields: Any) -> Turn:
    name = f"{agent}.{table}.{hand}.{index}"
    made: dict[str, Any] = {
        "prompt": Prompt(f"envelope of {agent}", f"remainder {name}"),
        "response": f"response {name}",
        "knowledge": freeze({"state": {"who": name}}),
        "decision": [{"type": "action", "action": "call", "by": name}],
        "action": "call",
        "amount": 10 + index,
        "model": "house-1",
        "routing": "local",
        "agent_version_id": f"{agent}-v3",
        "cost": Decimal("0.0028"),
        "input_tokens": 100 + index,
        "output_tokens": 20,
        "captured_at": PLAYED + timedelta(seconds=index),
    }
    return Turn(TurnKey(agent, table, hand, index), **(made | fields))


def charge(
    agent: str = "rocky", index: int = 0, *, table: str = TABLE, hand: int = HAND, **fields: Any
) -> InferenceCharge:
    fallback = fields.get("is_fallback", False)
    made = {
        "played_at": PLAYED + timedelta(seconds=index),
        "action": "fold" if fallback else "call",
        "capture_outcome": "none" if fallback else "recorded",
        "agent_version_id": f"{agent}-v3",
    }
    return InferenceCharge(agent_id=agent, table_id=table, hand_number=hand, action_index=index, **(made | fields))


def charge_all(*charges: InferenceCharge) -> None:
    InferenceCharge.objects.bulk_create(charges)


def result(agent: str, net: int, *, table: str = TABLE, hand: int = HAND, ended_at: datetime = PLAYED) -> None:
    """What a hand came to for an agent, in chips."""
    HandResult.objects.create(agent_id=agent, table_id=table, hand_number=hand, net=net, ended_at=ended_at)


def write(*turns: Turn, ttl: int | None = None) -> None:
    TurnBuffer(hot_buffer()._redis, ttl or settings.CAPTURE_TTL_SECONDS).write(turns)


def play(turns: list[Turn]) -> None:
    """Into the buffer and the ledger, as a hosted agent does."""
    write(*turns)
    charge_all(
        *(
            charge(one.key.agent_id, one.key.action_index, table=one.key.table_id, hand=one.key.hand_number)
            for one in turns
        )
    )


def take_redis_away(settings: Any) -> None:
    """From now on the capture Redis is an address where nobody listens (`settings`: pytest-django's fixture)."""
    nowhere = {**settings.CACHES["capture"], "LOCATION": "redis://127.0.0.1:1/0"}
    settings.CACHES = {**settings.CACHES, "capture": nowhere}
