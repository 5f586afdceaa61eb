"""What an agent knew, arranged for eyes: nothing lost, nothing made up, whatever its shape."""

import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capture.frozen import Marker, freeze, thaw
from capture.knowing import Said, action_words, arrange
from capture.knowledge import read_knowledge
from capture.recorded import recorded_html, spelt
from tests.capture import hands

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=8)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner))
ARGUMENTS = st.sampled_from(["state", "turn", "action_log", "hand_history", "notes", "whispers", "another"])


def test_known_arguments_have_their_places() -> None:  # VW-2
    known = arrange(hands.arguments(["Ah", "Ks"]), {"rocky": "Rocky"})
    assert known.board == ["7h", "Td", "2c"]
    assert known.hole_cards == ["Ah", "Ks"]
    assert dict(known.facts)["May raise to"] == "48–200"
    assert known.limits == (48, 200)
    assert known.streets is not None
    assert [line.told for line in known.streets] == [
        "nit calls 2 → Rocky raises to 8 → bluffy calls 8",
        "nit checks → bluffy raises to 24",
    ]
    assert known.more == "20 recent hands, 2 notes, 1 whisper"
    assert known.latest_whisper is not None
    assert known.latest_whisper.text == "Stop paying off the river."
    assert known.others == []


def test_a_past_hand_is_one_line() -> None:
    known = arrange(hands.arguments([]), {"rocky": "Rocky"})
    assert known.past_hands is not None
    assert known.past_hands[0].number == "164"
    assert known.past_hands[0].results == ["Rocky +20 with Ah Qd", "bluffy −20"]


def test_an_action_that_the_table_forced_does_not_look_like_one_that_was_chosen() -> None:  # VW-2
    log = [
        hands.heard("nit", "fold", cause="timeout"),
        hands.heard("rocky", "call", 500, allIn=True),
        hands.heard("bluffy", "check", cause="disconnected"),
        hands.heard("nit", "fold"),
    ]
    (line,) = arrange({"action_log": log}, {}).streets or []
    assert line.actions == [
        "nit folds (timeout)",
        "rocky calls 500, all-in",
        "bluffy checks (disconnected)",
        "nit folds",
    ]


def test_what_is_absent_is_not_empty() -> None:  # CAP-7
    nothing = arrange({}, {})
    assert nothing.board is None
    assert nothing.streets is None
    assert not nothing.heard_nothing
    assert arrange({"action_log": []}, {}).heard_nothing


@given(st.dictionaries(ARGUMENTS, VALUES))
def test_any_shape_is_shown_whole_or_listed_by_its_name(arguments: dict[str, Any]) -> None:  # CAP-3
    known = arrange(arguments, {})
    listed = {name for name, _ in known.others}
    placed = {
        "state": isinstance(arguments.get("state"), dict),
        "action_log": known.streets is not None,
        "hand_history": known.past_hands is not None,
        "notes": known.notes is not None,
        "whispers": known.whispers is not None,
        "turn": isinstance(arguments.get("turn"), dict),
    }
    for name in arguments:
        assert name in listed or placed[name]


@given(VALUES)
def test_any_recorded_value_can_be_shown(value: Any) -> None:  # CAP-9
    shown = recorded_html(thaw(freeze(value)))
    shown.encode()
    assert "<script" not in shown


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "null"),
        (True, "true"),
        (0, "0"),
        (-0.0, "-0.0"),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (2**63, "9223372036854775808"),
        (Decimal("1.10"), "1.10"),
        (b"\x00\xff", "2 bytes: 00 ff"),
        (Marker("unencodable", "socket.socket"), "socket.socket: could not be recorded (unencodable)"),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02 00:00:00+00:00"),
    ],
)
def test_a_scalar_is_spelt_as_it_was_recorded(value: object, words: str) -> None:  # CAP-9
    assert spelt(value) == words


def test_null_and_the_word_null_look_different() -> None:  # CAP-7
    assert recorded_html(None) != recorded_html("null")
    assert "empty text" in recorded_html("")
    assert "empty list" in recorded_html([])
    assert "empty object" in recorded_html({})


def test_keys_that_are_not_text_say_their_type() -> None:  # CAP-9
    shown = recorded_html({1: "a", "1": "b"})
    assert '1 <span class="soft">(int)</span>' in shown
    assert "<dt>1</dt>" in shown


def test_a_dict_with_counting_keys_stays_a_dict() -> None:
    assert "<dl" in recorded_html({"0": "x", "2": "y"})


def test_like_objects_are_a_table_and_unlike_ones_are_not() -> None:
    alike = recorded_html([{"a": 1, "b": 2}, {"a": 3, "b": 4}])
    assert "<th" in alike
    assert ">4</span>" in alike
    assert "<th" not in recorded_html([{"a": 1, "b": 2}, {"a": 3, "c": 4}])


def test_what_is_nested_too_deep_for_tables_is_still_there() -> None:
    value: Any = "the end"
    for _ in range(100):
        value = [value]
    assert "the end" in recorded_html(value)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("a" * 50 + "z" * 2_950, "… the first 50 characters of 3,000"),
        ([7] * 1_000, "… and 995 more"),
        ({f"k{number}": "0123456789" for number in range(1_000)}, "… and 995 more"),
        ([{"a": "0123456789", "b": 2}] * 1_000, "… and 997 more"),
        ([["0123456789"]] * 1_000, "… and 995 more"),
        ([["a" * 60]] * 3, "… the first 50 characters of 60"),
        ([[]] * 1_000, "… and 995 more"),
        ([{}] * 1_000, "… and 995 more"),
        ([""] * 1_000, "… and 995 more"),
        ({"k" * 60 + str(number): {} for number in range(1_000)}, "… the first 50 characters of 61"),
        ({"k" * 50: "v" * 70, "l": 1}, "… 70 characters"),
        ([{"k" * 3_000: 1, "l": 2}] * 9, "… the first 50 characters of 3,000"),
    ],
)
def test_of_a_long_value_the_beginning_is_shown_and_the_rest_is_counted(value: Any, said: str) -> None:  # VW-2, PF-4
    assert "… " not in recorded_html(value)
    shown = recorded_html(value, limit=50)
    assert said in shown
    assert len(shown) < 1_000


@given(VALUES, st.integers(0, 200))
def test_a_shorter_view_of_any_value_is_whole_html(value: Any, limit: int) -> None:  # CAP-9
    shown = recorded_html(thaw(freeze(value)), limit=limit)
    for tag in ("dl", "ol", "li", "table", "td", "span", "div"):
        assert len(re.findall(f"<{tag}[ >]", shown)) == shown.count(f"</{tag}>")


@pytest.mark.parametrize(
    ("verb", "chips", "words"),
    [
        ("raise", 200, "raises to 200"),
        ("raise", None, "raises"),
        ("call", 24, "calls 24"),
        ("fold", None, "folds"),
        ("check", 0, "checks"),
        ("jump", 3, "jump 3"),
        ("<b>", None, "<b>"),
    ],
)
def test_an_action_in_words(verb: str, chips: int | None, words: str) -> None:
    assert action_words(verb, chips) == words


@pytest.mark.parametrize("notes", [["Nit raised"], ("Nit raised",), "Nit raised", ["a", 7]])
def test_notes_of_an_agent_at_no_table_stand_with_what_else_it_knew(notes: Any) -> None:  # CAP-3, VW-2
    known = arrange(read_knowledge(freeze({"question": "Fold?", "notes": notes})), {})
    assert known.others == [("question", "Fold?"), ("notes", list(notes) if isinstance(notes, tuple) else notes)]
    assert (known.notes, known.more) == (None, "")


@pytest.mark.parametrize("author", [{}, {"author": None}, {"author": ""}])
def test_a_whisper_of_nobody_in_particular_names_nobody(author: dict[str, Any]) -> None:  # VW-2
    known = arrange({"whispers": [{"text": "Wait."} | author]}, {})
    assert known.latest_whisper == Said("", "", "Wait.")
