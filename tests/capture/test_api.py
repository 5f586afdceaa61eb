"""The internal API: scopes, outcomes, bytes, refusals."""

import base64
import json
import struct
from decimal import Decimal
from typing import Any

import pytest
import redis
from django.core.cache import cache
from django.test import Client
from hypothesis import given, settings
from hypothesis import strategies as st

from capture.frozen import freeze
from capture.jsonable import from_json, to_json
from capture.models import AgentCallRecord
from capture.prompt import Prompt
from capture.reading import read_hand, read_hand_all
from capture.service_key import WRONG_KEYS
from capture.wire import HandJson, PinJson, RecentHandsJson, hand_from_json, pin_from_json, recent_from_json
from tests.capture.making import HAND, TABLE, charge, charge_all, play, take_redis_away, turn, write
from tests.capture.test_buffer import put_another_kind

API = "/internal/agent-capture/"
KEY = "test-service-key"
SCOPE = {"tableId": TABLE, "handNumber": HAND, "agentId": "rocky"}

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("capture_redis")]


@pytest.fixture(autouse=True)
def _nobody_has_guessed_yet(settings) -> None:
    cache.clear()
    settings.AGENT_CAPTURE_SERVICE_KEY = KEY


def get(path: str, query: dict[str, Any] | None = None, key: str | None = KEY, **extra: Any) -> Any:
    headers = {} if key is None else {"x-service-key": key}
    return Client().get(API + path, query or {}, headers=headers, **extra)


def post(path: str, body: Any, key: str = KEY, kind: str = "application/json") -> Any:
    data = body if isinstance(body, bytes) else json.dumps(body)
    return Client().post(API + path, data, content_type=kind, headers={"x-service-key": key})


def error_of(response: Any) -> dict[str, str]:
    body = response.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"code", "message"}
    return body["error"]


def test_one_agents_turns_come_with_all_that_is_known_of_them() -> None:  # RD-1
    play([turn("rocky", 3, asked_action="raise", asked_amount=500, change="clamp", renderer="r-1"), turn("nit", 4)])
    (said,) = get("hand", SCOPE).json()["turns"]
    assert said.items() >= {
        "agentId": "rocky", "actionIndex": 3, "isFallback": False, "captureOutcome": "recorded", "kept": False,
        "knowledge": {"state": {"who": "rocky.T-1.7.3"}}, "prompt": "envelope of rocky\nremainder rocky.T-1.7.3",
        "response": "response rocky.T-1.7.3", "decision": [{"type": "action", "action": "call", "by": "rocky.T-1.7.3"}],
        "action": "call", "amount": 13, "askedAction": "raise", "askedAmount": 500, "change": "clamp",
        "model": "house-1", "routing": "local", "agentVersionId": "rocky-v3", "renderer": "r-1",
        "inputTokens": 103, "outputTokens": 20, "cost": 0.0028, "capturedAt": "2026-11-01T12:00:03Z",
    }.items()  # fmt: skip


def test_what_was_not_captured_is_left_out_and_what_was_empty_is_there() -> None:  # CAP-7
    write(turn("rocky", 0, knowledge=None, decision=None, reasoning=None, renderer=None, cost=None))
    write(turn("rocky", 1, decision=[], reasoning="", response=""))
    absent, empty = get("hand", SCOPE).json()["turns"]
    assert not {"knowledge", "decision", "reasoning", "renderer", "cost"} & set(absent)
    assert (empty["decision"], empty["reasoning"], empty["response"]) == ([], "", "")
    assert None not in [*absent.values(), *empty.values()]


def test_nothing_but_none_is_taken_for_nothing(capture_redis: redis.Redis) -> None:  # CAP-7
    zeros = {"amount": 0, "asked_amount": 0, "input_tokens": 0, "output_tokens": 0, "cost": Decimal(0)}
    write(turn("rocky", 0, knowledge=freeze({"memory": {}, "n": 0, "no": False}), decision=[{}, 0, False], **zeros))
    write(turn("rocky", 1, knowledge=freeze({})))
    for _ in ("from the buffer", "from the kept rows"):
        first, second = get("hand", SCOPE).json()["turns"]
        told = [first[name] for name in ("amount", "askedAmount", "inputTokens", "outputTokens", "cost")]
        told += [first["knowledge"], first["decision"], second["knowledge"]]
        # As text, since to Python 0 and False are equal.
        assert json.dumps(told) == '[0, 0, 0, 0, 0, {"memory": {}, "n": 0, "no": false}, [{}, 0, false], {}]'
        post("promote", SCOPE)
        capture_redis.flushdb()


def test_counts_beyond_32_bits_are_told(capture_redis: redis.Redis) -> None:  # RD-1
    many = 3_000_000_000
    play([turn("rocky", 0, input_tokens=many, output_tokens=many, amount=many)])
    (said,) = get("hand", SCOPE).json()["turns"]
    assert [said[name] for name in ("inputTokens", "outputTokens", "amount")] == [many] * 3


def test_a_fallback_is_listed_with_the_four_things_absent() -> None:  # RD-1
    charge_all(charge("rocky", 0, is_fallback=True, fallback_reason="timed out"))
    (said,) = get("hand", SCOPE).json()["turns"]
    assert (said["isFallback"], said["fallbackReason"], said["captureOutcome"]) == (True, "timed out", "none")
    assert not {"knowledge", "prompt", "response", "decision"} & set(said)


@pytest.mark.parametrize("missing", SCOPE)
def test_a_hand_without_its_whole_scope_is_a_bad_request(missing: str) -> None:  # RD-1
    play([turn("rocky", 0)])
    response = get("hand", {name: value for name, value in SCOPE.items() if name != missing})
    assert response.status_code == 400
    assert missing in error_of(response)["message"]


def test_the_operators_view_has_everybody() -> None:  # RD-2
    play([turn("rocky", 0), turn("nit", 1)])
    said = get("hand-all", {"tableId": TABLE, "handNumber": HAND}).json()
    assert [one["agentId"] for one in said["turns"]] == ["rocky", "nit"]


def test_recent_hands_are_paged_newest_first() -> None:  # RD-6
    for hand in range(1, 6):
        play([turn("rocky", hand, hand=hand)])
    first = get("hands", {"limit": 2}).json()
    second = get("hands", {"limit": 2, "before": first["nextBefore"]}).json()
    last = get("hands", {"limit": 2, "before": second["nextBefore"]}).json()
    assert [hand["handNumber"] for page in (first, second, last) for hand in page["hands"]] == [5, 4, 3, 2, 1]
    assert "nextBefore" not in last


def test_hands_with_such_a_turn_alone_may_be_asked_for() -> None:  # RD-6
    charge_all(charge("rocky", 0, hand=1, change="clamp"), charge("rocky", 0, hand=2, is_fallback=True))
    said = {word: get("hands", {"only": word}).json()["hands"] for word in ("clamped", "fallback", "lost")}
    assert {word: [hand["handNumber"] for hand in hands] for word, hands in said.items()} == {
        "clamped": [1], "fallback": [2], "lost": [],
    }  # fmt: skip
    assert "clamped, fallback, lost" in error_of(get("hands", {"only": "odd"}))["message"]
    assert get("hands", {"only": "lost", "kept": "true"}).status_code == 400


def test_a_line_says_how_many_turns_were_clamped_and_nothing_where_it_is_not_known() -> None:  # RD-6, CAP-7
    charge_all(charge("rocky", 0, hand=1, change="clamp"), charge("rocky", 0, hand=2, change=""))
    charge_all(charge("rocky", 0, hand=3, change=None))
    said = {hand["handNumber"]: hand.get("clamped", "not said") for hand in get("hands").json()["hands"]}
    assert said == {1: 1, 2: 0, 3: "not said"}


def test_a_line_says_how_many_turns_seem_to_have_reconnected_and_a_turn_its_note() -> None:  # RD-6, VW-9, CAP-7
    charge_all(*(charge("rocky", 0, hand=hand, note=note) for hand, note in ((7, "reconnected"), (2, ""), (3, None))))
    said = {hand["handNumber"]: hand.get("reconnected", "not said") for hand in get("hands").json()["hands"]}
    assert said == {7: 1, 2: 0, 3: "not said"}
    assert [hand["handNumber"] for hand in get("hands", {"only": "reconnected"}).json()["hands"]] == [7]
    assert get("hand", SCOPE).json()["turns"][0]["note"] == "reconnected"


def test_what_became_of_a_choice_is_told_when_its_record_is_gone() -> None:  # RD-1, CAP-7
    charge_all(*(charge("rocky", index, change=word) for index, word in enumerate(["clamp", "", None])))
    told = [said.get("change", "not said") for said in get("hand", SCOPE).json()["turns"]]
    assert told == ["clamp", "not said", "not said"]


def test_hosts_of_other_versions_are_understood() -> None:  # RD-5
    import msgspec

    play([turn("rocky", 0)])
    new = {"whatComesNext": [1]}
    hand, listed = get("hand", SCOPE).json() | new, get("hands").json()
    pinned = post("promote", SCOPE).json() | new
    del hand["listsWhole"], listed["hands"][0]["agentVersionIds"], pinned["damaged"]  # as before there were such
    hand["turns"][0] |= new | {"change": "a word of later"}
    (view,) = hand_from_json(msgspec.convert(hand, HandJson)).turns
    assert (view.turn.prompt, view.change) == (turn("rocky", 0).prompt, "a word of later")
    assert recent_from_json(msgspec.convert(listed, RecentHandsJson)).hands[0].clamped is None
    assert pin_from_json(msgspec.convert(pinned, PinJson)).damaged == 0


def test_a_damaged_list_of_turns_is_told(capture_redis: redis.Redis) -> None:  # RD-1, CAP-9
    play([turn("rocky", 0)])
    assert get("hand", SCOPE).json()["listsWhole"] is True
    put_another_kind(capture_redis, f"hand:{{{TABLE}:{HAND}}}:rocky")
    said = get("hand", SCOPE).json()
    assert (said["listsWhole"], said["bufferAnswered"], len(said["turns"])) == (False, True, 1)


def test_lists_can_be_of_some_agents_and_of_kept_hands_alone() -> None:  # RD-6
    play([turn("rocky", 0, hand=1), turn("nit", 1, hand=1)])
    play([turn("nit", 0, hand=2)])
    post("promote", SCOPE | {"handNumber": 1})
    (mine,) = get("hands", {"agentId": "rocky"}).json()["hands"]
    assert (mine["handNumber"], mine["turns"], mine["agentIds"], mine["kept"]) == (1, 1, ["rocky"], 1)
    (kept,) = get("hands", {"kept": "true"}).json()["hands"]
    assert (kept["handNumber"], kept["turns"], kept["kept"]) == (1, 2, 1)


def test_promotion_says_pinned_then_already_pinned_and_un_pinning_how_many_there_were() -> None:  # PIN-1, PIN-2
    play([turn("rocky", 0), turn("rocky", 2), turn("nit", 1)])
    assert post("promote", SCOPE).json() == {
        "outcome": "pinned", "pinned": 2, "kept": 2, "turns": 2, "expired": 0, "lost": 0, "pending": 0, "damaged": 0,
    }  # fmt: skip
    assert post("promote", SCOPE).json()["outcome"] == "already_pinned"
    assert set(AgentCallRecord.objects.values_list("agent_id", flat=True)) == {"rocky"}
    assert post("unpin", SCOPE).json() == {"removed": 2}
    assert post("unpin", SCOPE).json() == {"removed": 0}


def test_promotion_without_an_agent_is_a_bad_request_and_writes_nothing() -> None:  # PIN-1
    play([turn("rocky", 0)])
    response = post("promote", {"tableId": TABLE, "handNumber": HAND})
    assert (response.status_code, AgentCallRecord.objects.count()) == (400, 0)


def test_a_silent_redis_is_503_for_a_pin_and_never_an_outcome(settings) -> None:  # PIN-2
    play([turn("rocky", 0)])
    post("promote", SCOPE)
    take_redis_away(settings)
    response = post("promote", SCOPE)
    assert response.status_code == 503
    assert "Redis is down" in error_of(response)["message"]
    said = get("hand", SCOPE).json()
    assert (said["bufferAnswered"], len(said["turns"])) == (False, 1)


# ---- the key


EVERY = [
    ("get", "hand"), ("get", "hand-all"), ("get", "hands"), ("get", "today"), ("post", "promote"), ("post", "unpin"),
    ("get", "neighbours"), ("get", "neighbours-all"), ("get", "../schema"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path"), EVERY)
def test_every_route_is_closed_to_a_browser_however_signed_in(admin_client: Client, method: str, path: str) -> None:
    # RD-4
    response = getattr(admin_client, method)(f"/internal/{path.removeprefix('../')}" if ".." in path else API + path)
    assert response.status_code == 401
    assert "WWW-Authenticate" in response.headers


@pytest.mark.parametrize("key", ["", "wrong", KEY[:-1], KEY + " ", KEY.upper(), "ключ", "\x00", "x" * 10_000])
def test_any_other_key_is_refused(key: str) -> None:  # RD-4
    response = get("hands", key=key)
    assert response.status_code == 401
    assert KEY not in response.content.decode()


def test_where_no_key_is_configured_nothing_opens(settings) -> None:  # RD-4
    settings.AGENT_CAPTURE_SERVICE_KEY = ""
    assert get("hands", key="").status_code == 401
    assert get("hands", key=None).status_code == 401


def test_a_key_beyond_ascii_is_compared_by_its_bytes(settings) -> None:  # RD-4
    settings.AGENT_CAPTURE_SERVICE_KEY = "schlüssel"
    as_wsgi_says_it = "schlüssel".encode().decode("latin-1")
    assert get("hands", key=as_wsgi_says_it).status_code == 200
    assert get("hands", key="schlüssel").status_code == 401


def test_wrong_keys_are_throttled_by_address_and_the_right_one_still_opens() -> None:  # RD-4
    for _ in range(WRONG_KEYS.limit):
        assert get("hands", key="guess").status_code == 401
    response = get("hands", key="guess")
    assert (response.status_code, response.headers["Retry-After"]) == (429, str(WRONG_KEYS.seconds))
    assert error_of(response)["code"] == "too_many_requests"
    assert get("hands", key="guess", REMOTE_ADDR="10.0.0.9").status_code == 401
    assert get("hands").status_code == 200


# ---- bad input

BAD_QUERIES = [
    {"tableId": "a\0b"}, {"tableId": ""}, {"tableId": "x" * 201}, {"agentId": "a\0"}, {"agentId": ""},
    {"handNumber": "-1"}, {"handNumber": "7.0"}, {"handNumber": " 7"}, {"handNumber": "٧"}, {"handNumber": "x"},
    {"handNumber": str(2**63)}, {"handNumber": "9" * 5000}, {"handNumber": ""}, {"agentId": ["rocky", "nit"]},
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD_QUERIES, ids=repr)
def test_a_query_that_names_no_hand_is_a_bad_request_in_the_one_shape(bad: dict[str, str]) -> None:  # SF-4
    response = get("hand", SCOPE | bad)
    assert response.status_code == 400
    error_of(response)


BAD_BODIES = [
    b"", b"{", b"[]", b"null", b'"x"', b"\xff", b"[" * 5000, b'{"tableId": NaN}', b"{}" + b" " * 20_000,
    b'{"tableId": "T", "handNumber": 1e400, "agentId": "a"}', b'{"tableId": "T", "handNumber": true, "agentId": "a"}',
    b'{"tableId": "T", "handNumber": 1, "agentId": "\\ud800"}', b'{"tableId": "T", "handNumber": 1, "agentId": 5}',
    b'{"tableId": "T", "handNumber": ' + b"9" * 5000 + b', "agentId": "a"}', b'{"tableId": {}, "handNumber": 1}',
    b'{"tableId": "T", "handNumber": 1, "agentId": null}', b'{"tableId": "T", "handNumber": 1.5, "agentId": "a"}',
]  # fmt: skip


@pytest.mark.parametrize("body", BAD_BODIES, ids=lambda body: repr(body[:60]))
@pytest.mark.parametrize("path", ["promote", "unpin"])
def test_a_body_that_names_no_hand_is_refused_and_quoted_nowhere(path: str, body: bytes) -> None:  # SF-4
    response = post(path, body)
    assert response.status_code in (400, 413)
    error_of(response)


def test_what_was_sent_is_not_in_the_answer_nor_in_the_log(caplog: pytest.LogCaptureFixture) -> None:  # SF-4
    response = post("promote", SCOPE | {"handNumber": "sk-secret", "agentId": "sk-secret" * 100})
    assert "sk-secret" not in response.content.decode() + caplog.text


def test_other_methods_and_kinds_are_refused_in_the_one_shape() -> None:  # SF-4
    client = Client(headers={"x-service-key": KEY})
    assert error_of(client.post(f"{API}hand"))["code"] == "method_not_allowed"
    assert error_of(client.get(f"{API}promote"))["code"] == "method_not_allowed"
    assert error_of(client.options(f"{API}promote"))["code"] == "method_not_allowed"
    assert post("promote", b"tableId=T", kind="application/x-www-form-urlencoded").status_code == 415


# ---- bytes

ODD = [
    "NUL \0 here", "\ud83e alone", "\ud83d\ude00 two halves 😀",
    "\u202eRTL <script>alert(1)</script> $5 … $10", "a\r\nb\r",
    "é" * 500_000,
]  # fmt: skip


@pytest.mark.parametrize("text", ODD, ids=lambda text: ascii(text[:10]))
@pytest.mark.parametrize("store", ["buffer", "kept rows"])
def test_any_text_comes_over_exactly(capture_redis: redis.Redis, text: str, store: str) -> None:  # CAP-9
    knowledge = {"text": text, "nan": [float("nan"), float("inf"), -0.0], "big": 2**63, 1: "int", "1": "text"}
    knowledge |= {"digits": Decimal("1.10"), "$decimal": "a word of the game", "list": [{"$map": []}, b"\0\xff"]}
    write(
        turn(
            prompt=Prompt(text, text),
            response=text,
            reasoning=text,
            knowledge=freeze(knowledge),
            decision=[{text: text}],
        )
    )
    if store == "kept rows":
        post("promote", SCOPE)
        capture_redis.flushdb()
    response = get("hand", SCOPE)
    assert response.content.isascii()
    said = response.json()["turns"][0]
    assert from_json(said["prompt"]) == f"{text}\n{text}"
    assert from_json(said["response"]) == from_json(said["reasoning"]) == text
    assert from_json(said["decision"]) == [{text: text}]
    assert freeze(from_json(said["knowledge"])) == freeze(knowledge)


def test_a_text_that_json_can_say_is_plain_text_in_the_answer() -> None:  # CAP-9
    write(turn(response="\0 \ud83e 😀"))
    assert get("hand", SCOPE).json()["turns"][0]["response"] == "\0 \ud83e 😀"


TEXTS = st.text(st.characters(codec=None, categories=None)) | st.sampled_from(["\ud83d\ude00", "$map", "$text"])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.decimals() | st.binary() | st.datetimes() | TEXTS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS | st.integers(), inner), max_leaves=8
)


@settings(max_examples=60)
@given(VALUES)
def test_whatever_was_recorded_survives_json_in_ascii(value: Any) -> None:  # CAP-9
    written = json.dumps(to_json(value), allow_nan=False)
    assert written.isascii()
    assert freeze(from_json(json.loads(written))) == freeze(value)


@pytest.mark.parametrize("bits", ["7ff8000000000001", "fff8000000000000", "7ff8000000000000", "7ff0000000000000"])
def test_a_number_that_is_none_keeps_its_bits_in_json(bits: str) -> None:  # CAP-9
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    assert freeze(from_json(json.loads(json.dumps(to_json(value), allow_nan=False)))) == freeze(value)


JUNK = [
    {"$nonsense": 1}, {"$bytes": "?"}, {"$int": "x"}, {"$map": 5}, {"$map": [[1]]}, {"$decimal": []},
    {"$map": [[[], 1]]}, {"$float": "?"}, {"$text": "=="}, {"$datetime": "yesterday"},
    {"$float": "NaN:3ff0000000000000"}, {"$float": "NaN:7f"}, {"$float": 1},
]  # fmt: skip


@pytest.mark.parametrize("junk", JUNK, ids=repr)
def test_a_marker_that_is_none_of_ours_is_refused(junk: Any) -> None:  # SF-4
    with pytest.raises(ValueError, match="marker"):
        from_json(junk)


def test_a_hand_comes_over_whole() -> None:  # RD-5
    import msgspec

    play([turn("rocky", 0, cost=Decimal("0.1234567891")), turn("nit", 1, agent_version_id=None, change="clamp")])
    charge_all(charge("rocky", 2, is_fallback=True, fallback_reason="timed out"))
    post("promote", SCOPE)
    said = get("hand-all", {"tableId": TABLE, "handNumber": HAND})
    came = hand_from_json(msgspec.convert(json.loads(said.content), HandJson))
    here = read_hand_all(TABLE, HAND)
    assert came.turns[0] == here.turns[0]
    assert came.turns[2] == here.turns[2]
    assert [view.turn.response for view in came.turns[:2]] == [view.turn.response for view in here.turns[:2]]


def test_a_prompt_that_changed_on_the_way_is_said_not_shown() -> None:  # CAP-9
    import msgspec

    play([turn("rocky", 0)])
    data = get("hand", SCOPE).json()
    data["turns"][0]["prompt"] = "envelope of nobody" + data["turns"][0]["prompt"][17:]
    (view,) = hand_from_json(msgspec.convert(data, HandJson)).turns
    assert view.turn is None
    assert "hash" in view.damaged


def test_ids_beyond_ascii_come_over_exactly_too() -> None:  # CAP-9, CAP-12
    write(turn("ход", 0, table="стол \u202e"))
    charge_all(charge("ход", 0, table="стол \u202e", action="ход"))
    asked = {"tableId": "стол \u202e", "handNumber": HAND}
    answers = [get("hand", asked | {"agentId": "ход"}), get("hand-all", asked)]
    answers += [get("hands"), get("today", {"agentId": "ход"})]
    assert all(answer.content.isascii() for answer in answers)
    assert [answer.json()["turns"][0]["agentId"] for answer in answers[:2]] == ["ход", "ход"]
    assert answers[2].json()["hands"][0]["tableId"] == "стол \u202e"
    assert list(answers[3].json()["agents"]) == ["ход"]


def test_damaged_knowledge_is_given_as_the_bytes_that_there_are() -> None:  # CAP-9
    write(turn(knowledge=b"\xc1 not MessagePack"))
    said = get("hand", SCOPE).json()["turns"][0]
    assert said["knowledge"] == {"$bytes": base64.b64encode(b"\xc1 not MessagePack").decode()}
    assert read_hand(TABLE, HAND, agent_id="rocky").turns[0].turn.knowledge == b"\xc1 not MessagePack"
