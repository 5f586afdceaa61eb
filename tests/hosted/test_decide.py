import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as some

from agentlab.hosted.decide import Legal, clamp, safe_action
from capture.choice import parse_choice

FACING = Legal(frozenset({"fold", "call", "raise"}), least=200, most=800, to_call=100, stack=700)
FREE = Legal(frozenset({"check", "raise"}), least=100, most=700, to_call=0, stack=700)
SHORT = Legal(frozenset({"fold", "call"}), to_call=200, stack=200)
# Owes 14, holds 50 and has 32 in front: a raise is to at least 64, and to at most 82.
STREET_TOTAL = Legal(frozenset({"fold", "call", "raise"}), least=64, most=82, to_call=14, stack=50)


@pytest.mark.parametrize(
    ("asked", "amount", "legal", "sent", "chips", "change"),
    [
        ("raise", 300, FACING, ("raise", 300), 300, None),
        ("raise", 800, FACING, ("raise", 800), 800, None),
        ("raise", Decimal("300.0"), FACING, ("raise", 300), 300, None),
        ("fold", None, FACING, ("fold", None), None, None),
        ("call", None, FACING, ("call", None), 100, None),
        ("check", None, FREE, ("check", None), None, None),
        # a synonym is a rename
        ("bet", 300, FREE, ("raise", 300), 300, "rename"),
        ("all_in", None, FACING, ("raise", 800), 800, "rename"),
        ("all_in", 700, FACING, ("raise", 800), 800, "rename"),
        ("all_in", None, SHORT, ("call", None), 200, "rename"),
        # the whole remaining stack means all-in
        ("raise", 50, STREET_TOTAL, ("raise", 82), 82, "all_in"),
        ("bet", 700, FACING, ("raise", 800), 800, "all_in"),
        # out of range
        ("raise", 120, FACING, ("raise", 200), 200, "clamp"),
        ("raise", 5000, FACING, ("raise", 800), 800, "clamp"),
        ("bet", 33, FREE, ("raise", 100), 100, "clamp"),
        ("raise", -5, FACING, ("raise", 200), 200, "clamp"),
        ("raise", Decimal("250.5"), FACING, ("raise", 250), 250, "clamp"),
        ("raise", None, FACING, ("raise", 200), 200, "clamp"),
        ("raise", math.nan, FACING, ("raise", 200), 200, "clamp"),
        ("raise", math.inf, FACING, ("raise", 800), 800, "clamp"),
        ("raise", 10**30, FACING, ("raise", 800), 800, "clamp"),
        # a raise that is not offered
        ("raise", 500, SHORT, ("call", None), 200, "clamp"),
        # a number on a call is no amount
        ("call", 300, FACING, ("call", None), 100, None),
        ("check", 300, FREE, ("check", None), None, None),
        # the verb had to change
        ("fold", None, FREE, ("check", None), None, "verb"),
        ("call", None, FREE, ("check", None), None, "verb"),
        ("check", None, FACING, ("fold", None), None, "verb"),
    ],
)
def test_a_choice_becomes_the_nearest_legal_action_and_says_what_changed(asked, amount, legal, sent, chips, change):
    # HA-6
    decision = clamp(asked, amount, legal)
    assert (decision.action, decision.amount) == sent
    assert decision.chips == chips
    assert decision.change == change
    assert decision.asked_action == asked


def test_what_was_asked_for_is_kept_beside_what_is_sent():
    # HA-6
    decision = clamp("raise", 5000, FACING)
    assert (decision.asked_amount, decision.amount) == (5000, 800)
    assert clamp("call", 300, FACING).asked_amount is None


@pytest.mark.parametrize(
    ("answer", "legal", "sent"),
    [
        ('I considered {"action": "fold"} first.\n{"action": "raise", "amount": 5}', SHORT, ("call", None)),
        ('Folding is safe, and so is a call. {"action": "raise", "amount": 5}', FACING, ("raise", 200)),
        ('I would not raise here; raising is mad. {"action": "check"}', FACING, ("fold", None)),
        ('To fold would be weak. {"action": "fold"}', FREE, ("check", None)),
    ],
)
def test_an_illegal_choice_is_never_swapped_for_a_move_in_the_words_beside_it(answer, legal, sent):
    # HA-6
    choice = parse_choice(answer)
    decision = clamp(choice.action, choice.amount, legal)
    assert (decision.action, decision.amount) == sent
    assert decision.change in ("clamp", "verb")


def test_no_other_verb_is_guessed_at():
    # HA-6
    with pytest.raises(ValueError, match="no poker action"):
        clamp("dance", None, FACING)


@pytest.mark.parametrize(("legal", "action"), [(FREE, "check"), (FACING, "fold"), (SHORT, "fold")])
def test_the_safe_action_checks_where_that_is_free_and_folds_elsewhere(legal, action):
    # HA-6
    assert safe_action(legal).action == action
    assert safe_action(legal).asked_action is None


numbers = some.none() | some.integers() | some.floats() | some.decimals()


@given(
    asked=some.sampled_from(["fold", "check", "call", "bet", "raise", "all_in"]),
    amount=numbers,
    legal=some.sampled_from([FACING, FREE, SHORT, STREET_TOTAL]),
)
def test_whatever_is_asked_what_is_sent_is_legal(asked, amount, legal):
    # HA-6
    decision = clamp(asked, amount, legal)
    assert decision.action in legal.actions
    if decision.action == "raise":
        assert type(decision.amount) is int
        assert legal.least <= decision.amount <= legal.most
    else:
        assert decision.amount is None
    assert not (asked == "fold" and decision.action not in {"fold", "check"})
    assert not (asked == "call" and decision.action == "raise")
