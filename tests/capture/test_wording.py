"""Why a turn is not here: one sentence for each reason, and never the wrong one."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from capture.reading import Hand, TurnView
from capture.wording import absence, age_limit, empty_hand, losses, outcome_counts, remaining, unknown_actions
from tests.capture.making import turn

NOW = datetime(2026, 11, 29, 14, 0, tzinfo=UTC)
DAY = timedelta(days=1)
PLAIN = TurnView("rocky", 1, None, capture_outcome="recorded", played_at=NOW - timedelta(hours=1))


def why(view: TurnView, *, answered: bool = True) -> str:
    return absence(view, now=NOW, ttl=DAY, buffer_answered=answered)


@pytest.mark.parametrize(
    ("view", "part"),
    [
        (
            replace(PLAIN, is_fallback=True, fallback_reason="timeout", capture_outcome="none"),
            "No decision was made: timeout. The agent sent no action, and nothing was recorded.",
        ),
        (replace(PLAIN, is_fallback=True, action="fold"), "No decision was made. The agent sent a safe action, and"),
        (replace(PLAIN, capture_outcome="dropped", capture_reason="buffer full"), "lost (dropped: buffer full)"),
        (replace(PLAIN, capture_outcome="failed"), "lost (failed)"),
        (replace(PLAIN, damaged="the envelope is gone"), "cannot be rebuilt: the envelope is gone"),
        (replace(PLAIN, played_at=NOW - DAY), "Expired: captured turns live 24 hours"),
        (replace(PLAIN, capture_outcome="pending"), "still on its way, or was lost"),
        (PLAIN, "in the buffer no more, though its time is not over"),
    ],
)
def test_each_absence_has_its_own_reason(view: TurnView, part: str) -> None:  # VW-6
    assert part in why(view)


def test_a_silent_buffer_is_never_called_empty() -> None:  # VW-6
    assert "does not answer" in why(PLAIN, answered=False)


def test_what_the_ledger_knows_holds_even_when_the_buffer_is_silent() -> None:  # RD-2
    lost = replace(PLAIN, capture_outcome="dropped")
    assert "lost" in why(lost, answered=False)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(86400, "24 hours"), (3600, "1 hour"), (90, "90 seconds"), (120, "2 minutes"), (1, "1 second")],
)
def test_how_long_captures_live(seconds: int, words: str) -> None:
    assert age_limit(timedelta(seconds=seconds)) == words


def test_losses_count_decisions_alone() -> None:  # CAP-10
    views = [
        *(replace(PLAIN, action_index=i) for i in range(7)),
        replace(PLAIN, capture_outcome="dropped", capture_reason="buffer full"),
        replace(PLAIN, is_fallback=True, capture_outcome="none"),
    ]
    assert losses(views) == "7 of 8 turns recorded, 1 dropped: buffer full"
    assert losses(views[:7]) == ""


def test_a_lost_turn_that_can_be_read_is_not_counted_twice() -> None:  # CAP-10
    views = [
        replace(PLAIN, turn=turn(), capture_outcome="failed", capture_reason="timed out"),
        replace(PLAIN, action_index=1, capture_outcome="failed", capture_reason="timed out"),
        replace(PLAIN, action_index=2, turn=turn()),
    ]
    assert losses(views) == "1 of 3 turns recorded, 2 failed: timed out; a record of 1 of these is here all the same"


@pytest.mark.parametrize(
    ("indexes", "words"),
    [
        ([], ""),
        ([0, 1, 2], ""),
        ([0, 1, 3], "nothing known of action 2"),
        ([1, 4], "nothing known of actions 0, 2, 3"),
        ([10**18], f"nothing known of {10**18} actions"),
    ],
)
def test_an_action_that_no_agent_took_is_not_passed_over(indexes: list[int], words: str) -> None:  # VW-6
    assert unknown_actions([replace(PLAIN, action_index=index) for index in indexes]) == words


def test_a_hands_counts_name_what_became_of_each() -> None:
    views = [replace(PLAIN, turn=turn()), PLAIN, replace(PLAIN, is_fallback=True, capture_outcome="none")]
    views += [replace(PLAIN, damaged="cut off"), replace(PLAIN, damaged="cut off", capture_outcome="failed")]
    assert outcome_counts(views, buffer_answered=True) == ["1 recorded", "1 fallback", "1 damaged", "1 gone"]
    assert "1 out of reach" in outcome_counts(views, buffer_answered=False)  # silence is not absence


def test_a_hand_of_which_only_damage_is_left_is_not_said_to_have_gone() -> None:  # VW-6, CAP-9
    views = [replace(PLAIN, damaged="cut off"), replace(PLAIN, action_index=2)]
    said = empty_hand(Hand("T-1", 7, views, True), now=NOW + DAY, ttl=DAY)
    assert said == "No turn of this hand can be read: of its 2 turns 1 is there, but damaged."


def test_a_damaged_list_is_not_taken_for_an_empty_one() -> None:  # VW-6, CAP-9
    said = empty_hand(Hand("T-1", 7, [], True, lists_whole=False), now=NOW, ttl=DAY)
    assert said == "No such hand in the ledger, and what is recorded of it cannot be told."


def test_a_hand_with_one_recorded_turn_is_not_empty() -> None:  # VW-6
    hand = Hand("T-1", 7, [replace(PLAIN, turn=turn()), PLAIN], True)
    assert empty_hand(hand, now=NOW, ttl=DAY) == ""


def test_what_is_left_of_a_hands_time_is_the_first_turns() -> None:
    early = replace(PLAIN, turn=turn(), played_at=NOW - timedelta(hours=3))
    late = replace(PLAIN, turn=turn(), played_at=NOW - timedelta(minutes=1))
    assert remaining(Hand("T-1", 7, [early, late], True), now=NOW, ttl=DAY) == "expires in 21 h"
    kept = [replace(view, kept=True) for view in (early, late)]
    assert remaining(Hand("T-1", 7, kept, True), now=NOW, ttl=DAY) == ""
