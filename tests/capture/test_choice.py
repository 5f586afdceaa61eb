"""Reading a model's choice. The answers here are made up, each for one habit of models; the real ones are in
test_real_answers.py."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capture.choice import Choice, Move, Remark, parse_choice, reached_table, remark

CALL, FOLD, RAISE_5 = '{"action":"call"}', '{"action":"fold"}', '{"action":"raise","amount":5}'


def read(text: str) -> tuple[str, Any] | None:
    choice = parse_choice(text)
    return (choice.action, choice.amount) if choice else None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"action":"fold"}', ("fold", None)),
        ('```json\n{"action": "raise", "amount": 40}\n```', ("raise", 40)),
        (f"I hold top pair, so I raise.\n\n{RAISE_5}\n\nGood luck!", ("raise", 5)),
        (f"I considered {CALL} at first, but no: {RAISE_5}", ("raise", 5)),
        (f"See [1]: {CALL}", ("call", None)),
        (f"```text\nthe plan\n```\n```json\n{CALL}\n```", ("call", None)),
        (f"[{CALL}]", ("call", None)),
        ('{"decision": {"action": "raise", "raiseTo": 60}}', ("raise", 60)),
        ('{"action": {"type": "raise", "amount": 60}}', ("raise", 60)),
        ('{"type": "action", "handNumber": 7, "actionIndex": 3, "action": "fold"}', ("fold", None)),
        ('{"thoughts": "a {brace}", "action": "check"}', ("check", None)),
        ('{"name": "raise", "arguments": "{\\"amount\\": 50}"}', ("raise", 50)),
        ('{"name": "act", "parameters": {"action": "bet", "amount": 50}}', ("bet", 50)),
    ],
)
def test_a_json_object_is_read_whatever_stands_around_it(text: str, found: Any) -> None:  # HA-6
    assert read(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"<think>{FOLD}</think>{CALL}", ("call", None)),
        (f"<think>{CALL}", None),
        (f"{FOLD} is what I thought at first</think>{CALL}", ("call", None)),
        (f"<thinking>{FOLD}<thinking>{FOLD}</thinking>{FOLD}</thinking>", None),
        (f"<result>\n{FOLD}\n</result>\n{CALL}", ("call", None)),
        (f"{CALL}\n<tool_response>{FOLD}", ("call", None)),
        (f"<result>{FOLD}", None),
        (f"<｜tool▁outputs▁begin｜>{FOLD}<｜tool▁outputs▁end｜>", None),
        (f"Observation: {FOLD}\n\n{CALL}", ("call", None)),
        (f"```tool_output\n{FOLD}\n```", None),
        (f"{CALL}\nUser: the next hand\nAssistant: {RAISE_5}", ("call", None)),
        ('{"opponent": "Nit", "action": "raise", "amount": 4}', None),
        ('{"type": "player_action", "seat": 2, "action": "raise", "amount": 4}', None),
        (f"[{FOLD}, {CALL}]", None),
    ],
)
def test_thoughts_and_invented_results_are_no_choice(text: str, found: Any) -> None:  # HA-6
    assert read(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"action": "check",\n ', ("check", None)),
        ('{"action": "raise", "amount": 40, "reasoning": "I hold', ("raise", 40)),
        ('{"action": "raise", "amount": 40', ("raise", None)),  # 40, or the beginning of 400
        ('{"action": "rai', None),
        ('{"reasoning": "I could \\"action\\": \\"fold\\" but', None),
        ("{'action': 'raise', 'amount': 40,}", ("raise", 40)),
        ('{"action": "raise", "amount": 40, "why": "he said "call", so"}', ("raise", 40)),
        ("{action: 'call'}", ("call", None)),
        (f'{{"action": "fold", "why": "bro{CALL}', ("call", None)),
    ],
)
def test_what_is_cut_off_or_not_quite_json_is_read_where_it_stands_whole(text: str, found: Any) -> None:  # HA-6
    assert read(text) == found


@pytest.mark.parametrize(
    ("amount", "found"),
    [
        ("7", 7),
        ("1,000", 1000),
        ("1 000", 1000),
        ("$1,200", 1200),
        ("40 chips", 40),
        ("to 40", 40),
        ("2.5", 2.5),
        (40.0, 40),
        (1e2, 100),
        (0, 0),
        (-5, -5),
        (10**30, 10**30),
        ("2.5bb", None),
        ("3x", None),
        ("half pot", None),
        ("50%", None),
        ("1.000", None),
        ("1,5", None),
        ("1,00", None),
        ("40 or 50", None),
        ("", None),
        (True, None),
        ([40], None),
        (None, None),
        ("9" * 400, None),
    ],
)
def test_an_amount_is_its_own_digits_or_unreadable(amount: Any, found: Any) -> None:  # HA-6
    answer = json.dumps({"action": "raise", "amount": amount})
    assert read(answer) == ("raise", found)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_number_that_is_none_is_no_amount(number: str) -> None:  # HA-6
    assert read(f'{{"action": "raise", "amount": {number}}}') == ("raise", None)


@pytest.mark.parametrize(
    "name", ["amount", "raise_to", "raiseTo", "Raise-To", "bet_amount", "size", "total", "bet_size"]
)
def test_amounts_stand_under_several_names(name: str) -> None:  # HA-6
    assert read(json.dumps({"action": "raise", name: 40})) == ("raise", 40)


def test_the_amount_to_raise_by_is_not_one_to_raise_to() -> None:  # HA-6
    assert read('{"action": "raise", "raise_by": 40}') == ("raise", None)


def test_an_amount_is_never_taken_from_the_prose_beside_the_object() -> None:  # HA-6
    assert read('I raise to $1850, three times his 600.\n{"action": "raise", "amount": 1500}') == ("raise", 1500)
    assert read('I raise to 1850.\n{"action": "raise"}') == ("raise", None)


@pytest.mark.parametrize("verb", ["fold", "check", "call"])
def test_a_number_on_a_fold_a_check_or_a_call_is_no_amount(verb: str) -> None:  # HA-6
    assert read(json.dumps({"action": verb, "amount": 40})) == (verb, None)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("FOLD", ("fold", None)),
        ("Bet", ("bet", 40)),
        ("raise_to", ("raise", 40)),
        ("re-raise", ("raise", 40)),
        ("raise to 60", ("raise", 40)),
        ("All-In", ("all_in", 40)),
        ("shove", ("all_in", 40)),
        ("raise all in", ("all_in", 40)),
        ("check/fold", None),
        ("fold|call|raise", None),
        ("dance", None),
        ("I will not fold", None),
        ("", None),
    ],
)
def test_a_verb_is_one_of_poker_in_whatever_spelling(said: str, found: Any) -> None:  # HA-6
    assert read(json.dumps({"action": said, "amount": 40})) == found


def test_the_action_may_carry_its_amount_and_the_amount_may_be_all_of_it() -> None:  # HA-6
    assert read('{"action": "raise to 60"}') == ("raise", 60)
    assert read('{"action": "raise", "amount": "all-in"}') == ("all_in", None)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("call", ("call", None)),
        ("**Fold**", ("fold", None)),
        (f"<answer>{CALL}</answer>", ("call", None)),
        (f"<output>{CALL}</output>", ("call", None)),
        ("```\nfold\n```", ("fold", None)),
        ("All-in.", ("all_in", None)),
        ("Call 62 chips.", ("call", None)),
        ("Raise to 1,000", ("raise", 1000)),
        ("raise 2.5bb", None),
        ("Thoughts first.\n\n**Final decision: Check**\nThat is all.", ("check", None)),
        ("Action: raise\nAmount: 1,000", ("raise", 1000)),
        ("Action: fold\nNo wait.\nAction: call", ("call", None)),
        ('<invoke name="call">\n<parameter name="raise_to">32</parameter>\n</invoke>', ("call", None)),
        (
            '<invoke name="act"><parameter name="action">raise</parameter><parameter name="amount">9</parameter>',
            ("raise", 9),
        ),
        ("<action>raise</action>\n<amount>50</amount>", ("raise", 50)),
        ("I would [Fold] but [Raise 50]", None),
        ("This is a clear fold, I cannot call here.", None),
        ("I might raise. Or call 20. Or fold.", None),
        ("Opponent action: raise", None),
        ("", None),
        ("   \n", None),
    ],
)
def test_words_are_read_only_where_they_are_nothing_but_a_choice(text: str, found: Any) -> None:  # HA-6
    assert read(text) == found


def test_the_record_says_which_channel_the_choice_was_read_from() -> None:  # HA-6
    call = {"name": "raise_to", "args": {"amount": 40}}
    assert parse_choice("", f"thinking… {RAISE_5}") == Choice("raise", 5, "reasoning")
    assert parse_choice(" \n", f"<think>{CALL}</think>") == Choice("call", None, "reasoning")
    assert parse_choice(CALL, RAISE_5) == Choice("call", None, "content")
    assert parse_choice("I fold.", RAISE_5) == Choice("fold", None, "content")
    assert parse_choice("no idea", RAISE_5) is None
    assert parse_choice(FOLD, FOLD, call) == Choice("raise", 40, "tool_call")


def test_a_call_of_another_tool_is_no_choice() -> None:  # HA-6
    other = {"name": "hand_equity", "args": {"range": "AA"}}
    assert parse_choice("", None, other) is None
    assert parse_choice(CALL, None, other) == Choice("call", None, "content")
    assert parse_choice("", None, {"name": "functions.act", "args": '{"action":"bet","amount":"7"}'}) == Choice(
        "bet", 7, "tool_call"
    )


@pytest.mark.parametrize("call", [{}, {"name": None, "args": None}, {"name": 3}, {"name": "raise", "args": "{"}])
def test_an_odd_tool_call_is_no_error(call: dict[str, Any]) -> None:  # HA-6
    assert parse_choice("", None, call) in (None, Choice("raise", None, "tool_call"))


PIECES = [
    *"{}[]\"'\\:,\n\x00\u202e\ud83e",
    CALL,
    RAISE_5,
    "action",
    "raise",
    "amount",
    "40",
    "<think>",
    "</think>",
    "```",
]
PIECES += ["<result>", "</result>", "Action:", '<invoke name="', "Observation:"]
pieces = st.sampled_from(PIECES)


@given(st.lists(pieces | st.text(max_size=5), max_size=30).map("".join))
def test_any_text_gives_a_choice_or_none(text: str) -> None:  # HA-6
    for choice in (parse_choice(text), parse_choice("", text)):
        assert choice is None or choice.action in ("fold", "check", "call", "bet", "raise", "all_in")


@given(
    st.text(st.characters(exclude_characters="{}[]<>`\":'=")),
    st.sampled_from(["fold", "check", "call", "bet", "raise", "all_in"]),
    st.none() | st.integers(0, 10**9) | st.floats(0.01, 1e6),
    st.text(),
    st.booleans(),
)
def test_a_choice_that_was_written_is_read(
    prose: str, action: str, amount: Any, why: str, fenced: bool
) -> None:  # HA-6
    answer = json.dumps({"action": action, "amount": amount, "why": why}, indent=2 if fenced else None)
    text = f"{prose}\n```json\n{answer}\n```\n{prose}" if fenced else f"{prose} {answer}"
    wanted = amount if action in ("bet", "raise", "all_in") else None
    assert read(text) == (action, wanted)


HOSTILE = [
    '{"a":',
    "[",
    '{"a":{"b":1,',
    "<think>",
    "<think ",
    '<invoke name="x">',
    '<parameter name="x"',
    "<|outputbegin",
    "\n",
]
HOSTILE += [
    "Action:\n",
    "<action>",
    "<result ",
    " ",
    "*",
    "{",
    "9",
    "Observation:",
    "</think",
    "action: 'a' ",
    "```",
    '{"',
    "\\",
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_hostile_answer_is_given_up_on_in_time_that_grows_with_its_length(unit: str) -> None:  # HA-6
    assert parse_choice(unit * (500_000 // len(unit))) is None


# ---- what became of the choice


def test_the_callout_shows_both_amounts_and_the_limits() -> None:  # VW-3
    said = remark(Move("raise", 500), Move("raise", 200), "clamp", (40, 200))
    assert said == Remark(
        "changed", "Changed on the way out: the response asked for 500; 200 reached the table (limit 40–200)."
    )


@pytest.mark.parametrize(
    ("asked", "sent"), [(120, 200), (33, 20), (0.999, 1), (0, 20), (Decimal("1.1"), Decimal("1.10001"))]
)
def test_the_callout_fires_where_both_amounts_are_known_and_differ(asked: Any, sent: Any) -> None:  # VW-3
    said = remark(Move("raise", asked), Move("raise", sent), "clamp")
    assert said is not None
    assert said.kind == "changed"
    assert f"{asked}" in said.text
    assert f"{sent}" in said.text


def test_a_renamed_bet_that_was_clamped_too_has_the_callout() -> None:  # VW-3
    said = remark(Move("bet", 33), Move("raise", 20), "clamp", (20, 20))
    assert said == Remark(
        "changed", "Changed on the way out: the response asked for 33; 20 reached the table (limit 20–20)."
    )


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        (Move("raise", 200), Move("raise", 200)),
        (Move("raise", Decimal("200.00")), Move("raise", 200)),
        (Move("raise", "200"), Move("raise", 200)),
        (Move("raise", None), Move("raise", 200)),
        (Move("raise", "2.5bb"), Move("raise", 200)),
        (Move("raise", float("nan")), Move("raise", 200)),
        (Move("raise", 500), Move("raise", None)),
        (Move("raise", 500), None),
        (Move(None, 500), Move("raise", 200)),
        (Move("call", 62), Move("call", None)),
        (Move("call", 62), Move("call", 20)),
    ],
)
def test_there_is_no_callout_where_they_agree_or_one_is_unreadable(asked: Move, sent: Move | None) -> None:  # VW-3
    assert remark(asked, sent, None) is None


def test_a_rename_and_an_all_in_given_as_a_number_get_a_quiet_note() -> None:  # VW-3
    renamed = remark(Move("bet", 40), Move("raise", 40), "rename")
    all_in = remark(Move("raise", 50), Move("raise", 82), "all_in")
    assert renamed == Remark("note", "The response said bet 40; raise 40 was sent.")
    assert all_in == Remark("note", "50 is the whole stack that was left: sent as all-in, 82.")


def test_a_verb_that_changed_is_said_in_its_own_quiet_note() -> None:  # VW-3
    assert remark(Move("fold"), Move("check"), "verb") == Remark("note", "The response said fold; check was sent.")
    assert remark(Move("raise", 500), Move("call"), "clamp") == Remark(
        "note", "The response said raise 500; call was sent."
    )
    assert remark(Move(None), Move("check"), "verb") is None


def test_what_reached_the_table_is_the_last_action_that_was_not_refused() -> None:  # VW-3
    enter, action = {"type": "enter"}, {"type": "action", "action": "raise", "amount": 200}
    assert reached_table([enter, action]) == Move("raise", 200)
    assert reached_table([json.dumps(action)]) == Move("raise", 200)
    assert reached_table([action, {"refused": "not your turn"}]) is None
    assert reached_table([enter]) is None
    assert reached_table([]) is None
    assert reached_table(None) is None
    assert reached_table(["{", 7, b"x", {"type": "action", "action": 3}]) is None
