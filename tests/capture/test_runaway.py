"""Answers far longer than any that means something: a hostile model must not hold up the seats beside it."""

from capture.choice import LONGEST, parse_choice


def test_a_choice_at_the_end_of_a_runaway_answer_is_read() -> None:  # HA-6
    choice = parse_choice("so, " * 1_000_000 + '{"action": "call"}')
    assert choice is not None and choice.action == "call"


def test_of_a_runaway_answer_only_the_end_is_read() -> None:  # HA-5, HA-6
    assert parse_choice('{"action": "call"}' + "x" * LONGEST) is None
    assert parse_choice('{"action": "call"}' + "x" * (LONGEST - 100)) is not None
