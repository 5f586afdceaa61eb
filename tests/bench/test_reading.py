"""What the API's read of a hand costs beside the least that anybody could do: keep each turn as one JSON text, fetch
forty of them with one MGET, and decode them.
"""

import json
import statistics
import time
from collections.abc import Callable

import pytest
import redis
from django.test import Client

from capture.frozen import freeze
from capture.prompt import Prompt
from capture.turns import Turn, TurnKey
from tests.bench.turn_workload import Workload, turns
from tests.capture.making import play

pytestmark = [pytest.mark.bench, pytest.mark.django_db]
KEY = "test-service-key"
ROUNDS, TURNS = 60, 40


def forty() -> list[Workload]:
    """Forty turns late in a session, when its history is full."""
    return list(turns(200))[-TURNS:]


def as_turn(one: Workload, index: int, envelope: str) -> Turn:
    knowledge = {"state": one.state, "actions": one.action_log, "history": one.hand_history, "notes": one.notes}
    return Turn(
        TurnKey("rocky", "T-1", 7, index),
        Prompt(envelope, one.remainder),
        one.response,
        knowledge=freeze(knowledge),
        decision=[one.message],
        action="call",
        cost=one.cost,
    )


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def test_reading_forty_turns_costs_a_few_times_the_bare_fetch(capture_redis: redis.Redis, settings) -> None:  # PF-4
    settings.AGENT_CAPTURE_SERVICE_KEY = KEY
    found = forty()
    play([as_turn(one, index, found[0].envelope) for index, one in enumerate(found)])
    keys = [f"json:{index}" for index in range(TURNS)]
    capture_redis.mset({key: one.as_json() for key, one in zip(keys, found, strict=True)})
    client, scope = Client(), {"tableId": "T-1", "handNumber": 7, "agentId": "rocky"}

    def bare() -> None:
        for record in capture_redis.mget(keys):
            json.loads(record)

    def through_the_api() -> None:
        answer = client.get("/internal/agent-capture/hand", scope, headers={"x-service-key": KEY})
        assert answer.status_code == 200

    ours, theirs = [], []
    for _ in range(ROUNDS):  # side by side, so that what else this machine does weighs on both
        theirs.append(seconds(bare))
        ours.append(seconds(through_the_api))
    ratio = statistics.median(ours) / statistics.median(theirs)
    print(f"API {statistics.median(ours) * 1e3:.2f} ms, bare {statistics.median(theirs) * 1e3:.2f} ms: {ratio:.2f} x")
    assert ratio <= 4
