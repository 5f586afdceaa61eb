"""The callout beside a turn of anybody's agent, which need not name what changed."""

from typing import Any

import pytest

from capture.changes import changes
from capture.prompt import Prompt
from capture.turns import Turn, TurnKey

MESSAGE = {"type": "action", "action": "raise", "amount": 60}
ASKED = {"asked_action": "raise", "asked_amount": 120, "action": "raise", "amount": 60}


def said(decision: list[Any] | None, **fields: Any) -> list[tuple[str, str]]:
    turn = Turn(TurnKey("mine", "T-1", 1, 0), Prompt("e"), "r", decision=decision, **fields)
    return [(callout.kind, str(callout.html)) for callout in changes(turn)]


RED = (
    "changed",
    "Changed on the way out: the response asked for <strong>120</strong>; <strong>60</strong> reached the table.",
)


@pytest.mark.parametrize(
    "decision",
    [[MESSAGE], [{"type": "action", "action": "raise"}], [{"kind": "bet", "chips": 60}], ["raise 60"]],
)
def test_two_amounts_that_differ_are_called_out_without_a_word_for_the_change(decision: Any) -> None:  # VW-3
    assert said(decision, **ASKED) == [RED]


@pytest.mark.parametrize("missing", ["asked_action", "action"])
def test_one_word_for_the_act_is_enough(missing: str) -> None:  # VW-3
    assert said([MESSAGE], **ASKED | {missing: None}) == [RED]


@pytest.mark.parametrize("decision", [None, [], [MESSAGE, {"refused": "late"}]])
def test_what_is_not_known_to_have_reached_the_table_is_not_said_to_have_changed(decision: Any) -> None:  # VW-3, CAP-7
    assert said(decision, **ASKED) == []


@pytest.mark.parametrize(
    "fields",
    [
        ASKED | {"asked_amount": 60},
        ASKED | {"asked_amount": None},
        ASKED | {"asked_amount": "half of it"},
        ASKED | {"amount": None},
        ASKED | {"asked_action": "all_in"},  # perhaps all that was left
        {"asked_amount": 120, "amount": 60},  # nobody says of what
        {"asked_action": "call", "asked_amount": 120, "action": "call", "amount": 60},
    ],
)
def test_where_one_is_unknown_or_they_agree_nothing_is_said(fields: dict[str, Any]) -> None:  # VW-3
    assert said([{"kind": "bet"}], **fields) == []


def test_the_messages_count_for_more_than_the_words_beside_them() -> None:  # VW-3
    assert said([MESSAGE | {"amount": 120}], **ASKED) == []
    assert said([{"type": "action", "action": "bet"}], **ASKED) == []  # of which of the two is the amount?


def test_what_an_agent_of_another_trade_did_is_compared_likewise() -> None:  # VW-3
    refund = {"asked_action": "refund", "asked_amount": 500}
    assert said([{"type": "action", "action": "ignore"}], **refund, action="ignore") == [
        ("note", "The response said refund <strong>500</strong>; ignore was sent.")
    ]
    assert said(["refunded"], **refund, action="refund", amount=10)[0][0] == "changed"
    assert said(["refunded"], **refund, action="refund", amount=500) == []
    assert said(["refunded"], **refund, action="refund") == []


def test_a_word_that_is_given_wins() -> None:  # VW-3
    assert said([MESSAGE], **ASKED, change="rename") == []
    assert said([MESSAGE], **ASKED, change="all_in")[0][0] == "note"
    assert said([MESSAGE], **ASKED, change="clamp") == [RED]
