"""The record: what a turn is, and its exact encoding."""

import dataclasses
import json
import math
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capture.frozen import freeze
from capture.prompt import Prompt
from capture.turns import Turn, TurnError, TurnKey, decode_turn, encode_turn, freeze_decision, read_record

KEY = TurnKey("rocky", "T-1", 7, 0)
ODD_TEXT = "NUL \x00, lone \ud83e, right to left \u202eabc, CRLF\r\n, emoji 🂡, ход"

any_text = st.text(st.characters(exclude_categories=())) | st.just(ODD_TEXT)
numbers = st.integers() | st.floats(allow_nan=False) | st.decimals(allow_nan=False) | st.none()
messages = st.dictionaries(st.sampled_from(["action", "amount", "note"]), any_text.filter(lambda text: '"' not in text))
decisions = st.none() | st.lists(messages | messages.map(json.dumps), max_size=2)


def again(turn: Turn) -> Turn:
    data, _ = encode_turn(turn, freeze_decision(turn))
    return decode_turn(read_record(data), turn.prompt.envelope)


@given(
    st.builds(
        Turn,
        key=st.builds(
            TurnKey, *(any_text.map(lambda t: t.replace("\0", "")),) * 2, *(st.integers(-(2**63), 2**63 - 1),) * 2
        ),
        prompt=st.builds(Prompt, any_text, any_text),
        response=any_text,
        reasoning=st.none() | any_text,
        knowledge=st.none() | st.binary(),
        decision=decisions,
        action=st.none() | any_text,
        amount=numbers,
        asked_action=st.none() | any_text,
        asked_amount=numbers | any_text,
        change=st.sampled_from([None, "rename", "all_in", "verb", "clamp"]),
        model=any_text,
        routing=any_text,
        agent_version_id=st.none() | any_text,
        input_tokens=st.none() | st.integers(0),
        cost=numbers,
        captured_at=st.none() | st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1), timezones=st.timezones()),
    )
)
def test_every_turn_comes_back_as_it_was_written(turn: Turn) -> None:  # CAP-9
    assert again(turn) == turn


def test_absent_stays_absent_and_empty_stays_empty() -> None:  # CAP-7
    bare = again(Turn(KEY, Prompt("e", "r"), ""))
    assert (bare.knowledge, bare.decision, bare.reasoning, bare.amount) == (None, None, None, None)
    full = again(Turn(KEY, Prompt("e"), "", knowledge=b"", decision=[], reasoning="", amount=0, action=""))
    assert (full.knowledge, full.decision, full.reasoning, full.amount, full.action) == (b"", [], "", 0, "")


def test_a_megabyte_of_prompt_comes_back_byte_for_byte() -> None:  # CAP-9
    prompt = Prompt("E" * 1_000_000, ODD_TEXT * 10_000)
    assert again(Turn(KEY, prompt, ODD_TEXT)).prompt.text == "E" * 1_000_000 + "\n" + ODD_TEXT * 10_000


def test_amounts_keep_their_digits_and_their_kind() -> None:  # CAP-9
    turn = again(Turn(KEY, Prompt("e"), "", amount=Decimal("1.10"), asked_amount="2.5bb", cost=Decimal("0.000001")))
    assert (str(turn.amount), turn.asked_amount, str(turn.cost)) == ("1.10", "2.5bb", "0.000001")
    infinite = again(Turn(KEY, Prompt("e"), "", amount=-math.inf))
    assert infinite.amount == -math.inf


def test_the_decision_is_what_it_was_when_the_turn_was_recorded() -> None:  # CAP-4
    message = {"v": 1}
    turn = Turn(KEY, Prompt("e"), "", decision=[message])
    frozen = freeze_decision(turn)
    message["v"] = 2
    data, _ = encode_turn(turn, frozen)
    assert decode_turn(read_record(data), "e").decision == [{"v": 1}]


def test_a_decision_that_nobody_redacted_is_redacted_here() -> None:  # CAP-6
    turn = Turn(KEY, Prompt("e"), "", decision=[{"agentToken": "zzz", "odd": "\ud83e"}])
    data, _ = encode_turn(turn, freeze_decision(turn))
    assert b"zzz" not in data
    assert decode_turn(read_record(data), "e").decision == [{"agentToken": "[redacted]", "odd": "\ud83e"}]


@pytest.mark.parametrize("levels", [150, 300, 480, 600, 5000])
def test_a_message_too_deep_to_look_through_costs_itself_and_not_its_siblings(levels: int) -> None:  # CAP-6
    deep: Any = {"token": "zzz"}
    for _ in range(levels):
        deep = [deep]
    data, _ = encode_turn(turn := Turn(KEY, Prompt("e"), "", decision=[{"a": 1}, deep]), freeze_decision(turn))
    assert b"zzz" not in data
    decision = decode_turn(read_record(data), "e").decision
    assert decision is not None
    assert (decision[0], len(decision)) == ({"a": 1}, 2)


def test_prompts_responses_and_knowledge_are_exact_and_not_redacted() -> None:  # CAP-6
    text = '{"token": "zzz"}'
    turn = Turn(KEY, Prompt(text, text), text, knowledge=freeze({"token": "zzz"}))
    assert again(turn) == turn


def test_times_are_aware_and_utc_and_now_where_there_is_none() -> None:  # CAP-1
    before = datetime.now(UTC)
    assert before <= Turn(KEY, Prompt("e"), "").captured_at <= datetime.now(UTC)
    there = datetime(2026, 11, 1, 14, tzinfo=timezone(timedelta(hours=2)))
    for at in (there, datetime(2026, 11, 1, 12)):
        turn = again(Turn(KEY, Prompt("e"), "", captured_at=at))
        assert turn.captured_at == datetime(2026, 11, 1, 12, tzinfo=UTC)
        assert turn.captured_at.tzinfo is UTC


class Silent(tzinfo):
    def utcoffset(self, when: datetime | None) -> timedelta:
        raise AttributeError


AHEAD = timezone(timedelta(hours=9))


@pytest.mark.parametrize("at", [datetime(1, 1, 1, tzinfo=AHEAD), datetime(2026, 1, 1, tzinfo=Silent())])
def test_a_time_that_cannot_be_told_in_utc_fails_its_record_and_not_its_turn(at: datetime) -> None:  # CAP-10
    turn = Turn(KEY, Prompt("e"), "", captured_at=at)
    with pytest.raises(TurnError, match="captured_at cannot be told in UTC"):
        encode_turn(turn, None)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"response": 7}, "response is int, not str"),
        ({"response": None}, "response is NoneType, not str"),
        ({"knowledge": {"a": "zzz"}}, "knowledge is dict, not bytes"),
        ({"prompt": "zzz"}, "prompt is not a Prompt"),
        ({"prompt": Prompt("e", None)}, "prompt is not a Prompt"),  # type: ignore[arg-type]
        ({"cost": "zzz"}, "cost is str, not int"),
        ({"model": object()}, "model is object, not str"),
        ({"decision": {"a": "zzz"}}, "decision is dict, not list"),
        ({"captured_at": "zzz"}, "captured_at is str, not datetime"),
        ({"key": ("zzz", "t", 1, 1)}, "key is not a TurnKey"),
    ],
)
def test_a_turn_that_cannot_be_written_says_why_without_content(fields: dict[str, Any], said: str) -> None:  # CAP-10
    made: dict[str, Any] = {"key": KEY, "prompt": Prompt("e"), "response": ""}
    turn = Turn(**(made | fields))
    with pytest.raises(TurnError, match=said) as caught:
        encode_turn(turn, freeze_decision(turn))
    assert "zzz" not in str(caught.value)


@pytest.mark.parametrize(
    "parts",
    [
        ("a\0", "t", 1, 1),
        ("a", "t\0", 1, 1),
        (7, "t", 1, 1),
        ("a", None, 1, 1),
        ("a", "t", "1", 1),
        ("a", "t", 1, True),
    ],
)
def test_an_id_with_a_nul_or_of_another_type_is_refused_at_the_edge(parts: tuple[Any, ...]) -> None:  # CAP-12
    with pytest.raises(ValueError, match=r"NUL|must be"):
        TurnKey(*parts)


@given(st.integers(0, 10_000), st.integers(0, 255))
def test_a_damaged_record_is_a_turn_or_refused_by_name(place: int, byte: int) -> None:  # CAP-9
    data, _ = encode_turn(Turn(KEY, Prompt("env", "rem"), "said", decision=[{"a": 1}]), freeze([{"a": 1}]))
    damaged = bytearray(data)
    damaged[place % len(data)] = byte
    try:
        turn = decode_turn(read_record(bytes(damaged)), "env")
    except TurnError:
        return
    assert isinstance(turn, Turn)


@pytest.mark.parametrize("field", ["response", "knowledge", "decision", "captured_at", "remainder", "key", "unknown"])
def test_a_record_with_a_field_of_another_type_is_refused(field: str) -> None:  # CAP-9
    data, _ = encode_turn(Turn(KEY, Prompt("env", "rem"), "said"), None)
    with pytest.raises(TurnError):
        decode_turn(read_record(data) | {field: 7}, "env")


@given(st.binary(max_size=80))
def test_bytes_that_are_no_record_are_refused_by_name(data: bytes) -> None:  # CAP-9
    with pytest.raises(TurnError):
        read_record(data)


def test_an_envelope_other_than_the_turns_own_is_refused() -> None:  # CAP-8
    data, _ = encode_turn(Turn(KEY, Prompt("env", "rem"), "said"), None)
    with pytest.raises(TurnError, match="hash"):
        decode_turn(read_record(data), "another")


def test_a_turn_cannot_be_changed() -> None:  # CAP-4
    turn = Turn(KEY, Prompt("e"), "said")
    with pytest.raises(dataclasses.FrozenInstanceError):
        turn.response = "other"  # type: ignore[misc]
