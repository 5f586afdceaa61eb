"""The frames: the names on the wire, and nothing but frames gets in."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentlab.hosted import frames
from agentlab.hosted.frames import Action, Enter, FrameError, PostBlind, Sit, Stand, encode, read_to_table


def names(struct: type[msgspec.Struct]) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(struct)}


@pytest.mark.parametrize(
    ("struct", "tag", "fields"),
    [
        (frames.Enter, "enter", {"agentToken"}),
        (frames.Sit, "sit", set()),
        (frames.Stand, "stand", set()),
        (frames.PostBlind, "post_blind", set()),
        (frames.Action, "action", {"handNumber", "actionIndex", "action", "amount"}),
        (frames.YourTurn, "your_turn", {"legalActions", "chipRange", "turnEndsAt"}),
        (frames.Rejected, "rejected", {"handNumber", "actionIndex", "reason"}),
        (frames.GameState, "game_state", {"tableId", "handNumber", "actionIndex", "holeCards", "board", "pot"}),
        (frames.PlayerAction, "player_action", {"handNumber", "actionIndex", "agentId", "action", "amount"}),
        (frames.HandResult, "hand_result", {"tableId", "handNumber", "board", "pots", "seats"}),
    ],
)
def test_frames_have_the_names_that_agents_know(struct: Any, tag: str, fields: set[str]) -> None:  # HA-1
    assert struct.__struct_config__.tag == tag
    exact = tag not in {"game_state", "player_action", "hand_result"}
    assert names(struct) == fields if exact else names(struct) >= fields


@pytest.mark.parametrize(
    "frame",
    [
        Enter(agent_token="x.y"),
        Sit(),
        Stand(),
        PostBlind(),
        Action(hand_number=3, action_index=0, action="raise", amount=200),
        Action(hand_number=3, action_index=1, action="fold"),
    ],
)
def test_what_an_agent_sends_is_what_the_table_reads(frame: Any) -> None:  # HA-1
    assert read_to_table(encode(frame)) == frame
    assert read_to_table(encode(frame).encode()) == frame


def action(**change: Any) -> str:
    return json.dumps({"type": "action", "handNumber": 1, "actionIndex": 0, "action": "call", **change})


@pytest.mark.parametrize(
    "message",
    [
        "",
        "null",
        "[]",
        "42",
        "{",
        "{}",
        '{"type":null}',
        '{"type":"game_state"}',
        '{"type":"sit","seat":1}',
        '{"type":"enter"}',
        '{"type":"enter","agentToken":7}',
        '{"type":"enter","agentToken":"' + "x" * 3000 + '"}',
        action(action="bet"),
        action(action="raise", amount=200.0),
        action(action="raise", amount="200"),
        action(action="raise", amount=True),
        action(action="raise", amount=float("nan")),
        action(action="raise", amount=float("inf")),
        action(action="raise", amount=-1),
        action(action="raise", amount=2**63),
        action(handNumber=None),
        action(handNumber=1.0),
        action(actionIndex=-1),
        action(extra=1),
        "[" * 4000,
        "\x00",
        "\ud800",
        b"\xff\xfe",
        action().encode("utf-16"),
    ],
)
def test_what_is_no_frame_is_malformed(message: str | bytes) -> None:  # HA-9
    with pytest.raises(FrameError) as error:
        read_to_table(message)
    assert error.value.code == "malformed"


def test_a_long_message_is_refused_unread() -> None:  # HA-9
    with pytest.raises(FrameError) as error:
        read_to_table('{"type":"sit"}' + " " * frames.MAX_FRAME_TO_TABLE)
    assert error.value.code == "too_large"


def test_a_refusal_quotes_nothing_of_the_message() -> None:  # CAP-6
    for message in (
        '{"type":"enter","agentToken":{"secret-value":1}}',
        '{"type":"secret-value"}',
        '{"type":"sit","secret-value":1}',
        action(action="secret-value"),
    ):
        with pytest.raises(FrameError) as error:
            read_to_table(message)
        assert "secret" not in str(error.value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["type", "action"]), inner),
    max_leaves=10,
)


@given(st.binary() | st.text() | json_values.map(json.dumps))
def test_whatever_comes_in_is_a_frame_or_a_frame_error(message: str | bytes) -> None:  # HA-9
    try:
        frame = read_to_table(message)
    except FrameError as error:
        assert error.code in {"malformed", "too_large"}
    else:
        assert isinstance(frame, Enter | Sit | Stand | PostBlind | Action)
