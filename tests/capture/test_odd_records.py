"""Records that no agent of ours writes, by every way to them: they are shown whole, or it is said why not."""

import json
from decimal import Decimal
from typing import Any

import pytest
import redis
from django.test import Client

from capture.buffer import _turn_key
from capture.frozen import freeze, thaw
from capture.turns import encode_turn
from tests.capture.making import HAND, TABLE, play, turn

pytestmark = pytest.mark.django_db

KEY = "k" * 20
PLACE = f"table={TABLE}&hand={HAND}"
LONG = 10**5000


@pytest.fixture
def service(settings: Any) -> Client:
    settings.AGENT_CAPTURE_SERVICE_KEY = KEY
    return Client(headers={"x-service-key": KEY})


def read(service: Client) -> dict[str, Any]:
    answer = service.get(f"/internal/agent-capture/hand?tableId={TABLE}&handNumber={HAND}&agentId=rocky")
    assert answer.status_code == 200
    return dict(json.loads(answer.content)["turns"][0])


def keep(service: Client) -> dict[str, Any]:
    body = {"tableId": TABLE, "handNumber": HAND, "agentId": "rocky"}
    answer = service.post("/internal/agent-capture/promote", body, content_type="application/json")
    assert answer.status_code == 200
    return dict(answer.json())


@pytest.mark.parametrize(
    "fields",
    [
        {"amount": LONG, "asked_amount": LONG + 1, "asked_action": "raise", "action": "raise", "decision": None},
        {"asked_amount": Decimal("1E+999999"), "asked_action": "raise", "amount": Decimal("1E-999999")},
        {"knowledge": freeze({"pot": LONG, "odds": Decimal("1E+999999"), LONG: [[[[[[[[[{"deep": LONG}]]]]]]]]]})},
        {"decision": [{"type": "action", "action": "raise", "amount": LONG}], "asked_action": "raise"},
        {"input_tokens": LONG, "cost": LONG},
        {"cost": Decimal("1E+999999")},
    ],
    ids=["amounts", "exponents", "knowledge", "decision", "counts", "cost"],
)
def test_numbers_of_any_length_are_shown_from_both_stores(  # CAP-9, VW-3
    fields: dict[str, Any], service: Client, admin_client: Client, capture_redis: redis.Redis
) -> None:
    play([turn(**fields)])
    for store in ("buffer", "kept"):
        for path in ("", *(f"/part?agent=rocky&turn=0&part={part}" for part in ("knowledge", "sent"))):
            answer = admin_client.get(f"/agent-capture{path}{'&' if path else '?'}{PLACE}")
            assert answer.status_code in (200, 404), (store, path)  # 404: nothing was captured of that part
            assert len(answer.content) < 200_000, (store, path)
        assert "damaged" not in read(service)
        assert keep(service)["kept"] == 1
        capture_redis.flushdb()


@pytest.mark.parametrize(
    "changed",
    [
        {"response": 5},
        {"remainder": None},
        {"decision": b"zz"},
        {"key": ["rocky"]},
        {"captured_at": "soon"},
        {"new": 1},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_record_in_another_encoding_is_called_damaged_everywhere_and_kept_nowhere(  # CAP-9, PIN-2, SF-5
    changed: dict[str, Any], service: Client, admin_client: Client, capture_redis: redis.Redis
) -> None:
    odd = turn()
    play([odd])
    record = thaw(encode_turn(odd, None)[0]) | changed
    capture_redis.set(_turn_key(odd.key), freeze(record), keepttl=True)
    assert read(service)["damaged"]
    assert admin_client.get(f"/agent-capture?{PLACE}").status_code == 200
    for where in ("part", "raw"):
        answer = admin_client.get(f"/agent-capture/{where}?{PLACE}&agent=rocky&turn=0&part=response")
        assert answer.status_code in (404, 410)
    assert keep(service)["pinned"] == 0
