"""How much a memory weighs: a rule, or a rating that could be read."""

import math

import pytest

from agentlab.persona.importance import by_rule, read_rating
from agentlab.persona.rules import KNOWN_ACTIONS

IGNORE, LIKE, SHARE = (KNOWN_ACTIONS[name] for name in ("ignore", "like", "share"))


def test_the_same_action_and_change_weigh_the_same_each_time() -> None:  # PE-8
    assert by_rule(SHARE, 0.07) == by_rule(SHARE, 0.07)


def test_effort_and_change_each_make_a_memory_weightier() -> None:  # PE-8
    assert by_rule(IGNORE, 0.0) < by_rule(LIKE, 0.0) < by_rule(SHARE, 0.0)
    assert by_rule(LIKE, 0.0) < by_rule(LIKE, 0.1) < by_rule(LIKE, 0.3)


@pytest.mark.parametrize("action", KNOWN_ACTIONS.values(), ids=lambda action: action.name)
@pytest.mark.parametrize("change", [0.0, 0.01, 0.4, 2.0, 10.0])
def test_a_weight_lies_between_nothing_and_one(action, change: float) -> None:  # PE-8
    assert 0 < by_rule(action, change) <= 1


@pytest.mark.parametrize(
    "said", [8, 8.0, "8", "8/10", "Rating: 8", "8 - because it is near", "I'd say 8 out of 10", "80/100"]
)
def test_a_rating_is_read_however_it_is_said(said) -> None:  # PE-8
    assert read_rating(said) == 0.8


@pytest.mark.parametrize(
    "said",
    [
        *(
            None,
            "",
            "high",
            "85",
            85,
            0,
            -3,
            "-3",
            True,
            math.nan,
            math.inf,
            [8],
            {"rating": 8},
            "11/10",
            "1e400",
            "v2",
        ),
        *(10**400, -(10**400), "9" * 400, "8" * 1_000_000),
    ],
)
def test_what_is_no_rating_is_none(said) -> None:  # PE-8
    assert read_rating(said) is None
