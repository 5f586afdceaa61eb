"""The panel is a plain function: an attempt and the turns before it in, six sections out."""

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory import messages, panel
from factory.extraction import extract_task
from factory.items import PacketItem
from factory.panel import AttemptFacts, PriorTurns, Recorded, build_panel, find_prior_turns
from factory.workflows import WORKFLOWS

ASK = WORKFLOWS["ask"].phases[0]
PLAN = WORKFLOWS["build"].phases[0]
NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
NONE = PriorTurns(())


def attempt(number: int = 1, **facts: Any) -> AttemptFacts:
    values = {"phase": "ask", "session_id": "s", "started_at": NOON + timedelta(minutes=number)} | facts
    return AttemptFacts(attempt_id=f"{number:032}", number=number, **values)


def item(seq: int, delivery: str, status: str = "captured", **facts: Any) -> Recorded:
    source = {"inline": "prompt_file", "path_reference": "context_handoff"}.get(delivery, "explicit_attachment")
    return Recorded(seq, PacketItem(seq, f"file-{seq}", source, delivery, capture_status=status, **facts))  # type: ignore[arg-type]


# The task -------------------------------------------------------------------------------------------------------


def test_a_recorded_task_is_the_task() -> None:  # AI-1
    task = build_panel(attempt(task_prompt="Do it", user_prompt="something else"), NONE).task
    assert (task.text, task.derived, task.note) == ("Do it", False, "")


def test_a_recorded_task_says_which_file_it_came_from() -> None:  # AI-1
    facts = attempt(task_prompt="Do it", coverage="complete", inputs=(item(1, "inline"),))
    assert build_panel(facts, NONE).task.origin == "from file-1"


@pytest.mark.parametrize("phase", [ASK, PLAN], ids=lambda phase: phase.name)
def test_a_known_opening_message_gives_its_task_labelled_as_derived(phase: Any) -> None:  # AI-3
    message = messages.opening(phase, "Do it\r\n\r\nwell ", context_root="/x")
    task = build_panel(attempt(user_prompt=message), NONE).task
    assert (task.text, task.derived, task.found_in) == ("Do it\r\n\r\nwell ", True, 1)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_what_is_taken_out_is_the_task_or_nothing(task: str) -> None:  # AI-3
    assert extract_task(messages.opening(PLAN, task)) in {task, None}


@pytest.mark.parametrize(
    "message",
    [
        "### prompt\n\nDo it\n\n### reply\n\nsomehow",  # an unknown template
        messages.opening(ASK, "a\n### prompt\nb"),  # a repeated opening boundary
        messages.opening(ASK, "a\n### reply\nb"),  # a repeated closing boundary
        messages.opening(ASK, "a").replace("### reply", "### answer"),  # a missing one
        messages.opening(ASK, "a").replace("### prompt", "prompt"),
        messages.continuing(ASK),
        messages.opening(ASK, "a", included=()).replace("nothing else", "more"),  # another ending
        "",
    ],
)
def test_doubtful_boundaries_show_the_whole_message_instead(message: str) -> None:  # AI-3
    assert extract_task(message) is None
    task = build_panel(attempt(user_prompt=message), NONE).task
    assert task.text is None
    assert task.note.startswith(
        "Task instructions were not captured separately for this attempt. The exact user message is available below."
    )


def test_where_no_message_was_recorded_none_is_said_to_be_below() -> None:  # AI-2
    task = build_panel(attempt(user_prompt=None), NONE).task
    assert task.note.startswith(
        "Task instructions were not captured separately for this attempt, nor is its message recorded."
    )


def opened(number: int, task: str = "Do it", **facts: Any) -> AttemptFacts:
    return attempt(number, user_prompt=messages.opening(ASK, task), **facts)


def test_a_correction_recovers_the_task_from_the_nearest_turn_of_its_phase() -> None:  # AI-4
    run = [opened(1, "older"), opened(2, "Do it"), attempt(3, user_prompt="fix"), attempt(4, user_prompt="fix again")]
    task = build_panel(run[3], find_prior_turns(run[3], run)).task
    assert (task.text, task.derived, task.found_in) == ("Do it", True, 2)


def test_a_turn_of_another_phase_between_makes_it_ambiguous() -> None:  # AI-4
    run = [opened(1), attempt(2, phase="build", user_prompt="x"), attempt(3, user_prompt="fix")]
    task = build_panel(run[2], find_prior_turns(run[2], run)).task
    assert task.text is None
    assert task.reason == panel.AMBIGUOUS_TASK


@pytest.mark.parametrize(
    "other",
    [
        {"started_at": None},
        {"started_at": NOON + timedelta(minutes=2)},  # the same moment
    ],
)
def test_times_that_do_not_order_the_turns_give_no_task_and_say_so(other: dict[str, Any]) -> None:  # AI-4
    run = [opened(1, **other), attempt(2, user_prompt="fix")]
    prior = find_prior_turns(run[1], run)
    assert (prior.turns, prior.ambiguous) == ((), True)
    built = build_panel(run[1], prior)
    assert built.task.text is None and built.task.reason == panel.AMBIGUOUS_TASK
    assert built.inherited.turns == ()
    assert built.inherited.notes == (panel.AMBIGUOUS_TURNS, panel.OPAQUE)


# Prior turns ----------------------------------------------------------------------------------------------------


def numbers(prior: PriorTurns) -> list[int]:
    return [turn.number for turn in prior.turns]


def test_prior_turns_are_the_earlier_ones_of_the_same_session_in_order() -> None:  # AI-4
    run = [attempt(3), attempt(1), attempt(4), attempt(2, session_id="other"), attempt(5)]
    assert numbers(find_prior_turns(run[2], run)) == [1, 3]


def test_equal_starts_among_earlier_turns_go_by_id() -> None:  # AI-4
    run = [attempt(2, started_at=NOON), attempt(1, started_at=NOON), attempt(3)]
    assert numbers(find_prior_turns(run[2], run)) == [1, 2]


def test_no_session_is_never_grouped() -> None:  # AI-4
    run = [attempt(1, session_id=None), attempt(2, session_id=None)]
    assert find_prior_turns(run[1], run) == NONE


def test_an_attempt_without_a_start_has_no_order() -> None:  # AI-4
    run = [attempt(1), attempt(2, started_at=None)]
    assert find_prior_turns(run[1], run).ambiguous


def test_recorded_lineage_wins_over_times() -> None:  # AI-4
    first = attempt(1, turn_index=1, started_at=NOON + timedelta(hours=9))
    stray = attempt(2)
    third = attempt(3, turn_index=2, previous_turn_attempt_id=first.attempt_id, started_at=None)
    assert numbers(find_prior_turns(third, [first, stray, third])) == [1]


def test_lineage_in_a_circle_ends() -> None:  # AI-4
    one = attempt(1, turn_index=2, previous_turn_attempt_id=f"{2:032}")
    two = attempt(2, turn_index=3, previous_turn_attempt_id=f"{1:032}")
    assert numbers(find_prior_turns(one, [one, two])) == [2]


def test_following_and_correcting_are_two_relations() -> None:  # FA-4 AI-4
    first, second = attempt(1, turn_index=1), attempt(2, turn_index=2, previous_turn_attempt_id=f"{1:032}")
    corrected = replace(second, retry_of_attempt_id=f"{1:032}")
    follows = build_panel(second, find_prior_turns(second, [first, second])).inherited
    corrects = build_panel(corrected, find_prior_turns(corrected, [first, corrected])).inherited
    assert (follows.previous, follows.retried) == (first, None)
    assert (corrects.previous, corrects.retried) == (first, first)


def test_turns_that_were_not_recorded_are_counted_as_such() -> None:  # AI-4
    third = attempt(3, turn_index=3, previous_turn_attempt_id="f" * 32)
    answer = build_panel(third, find_prior_turns(third, [third])).inherited.group.answer
    assert answer == "2 earlier turns, 2 of them not recorded"


def test_a_later_turn_says_that_the_providers_history_cannot_be_listed() -> None:  # AI-4
    first, second = attempt(1, turn_index=1), attempt(2, turn_index=2, previous_turn_attempt_id=f"{1:032}")
    assert panel.OPAQUE in build_panel(second, find_prior_turns(second, [first, second])).inherited.notes
    assert build_panel(first, NONE).inherited.notes == ()


def test_the_kind_of_a_send_is_never_guessed() -> None:  # AI-4
    run = [attempt(1), attempt(2, user_prompt="Your reply could not be read")]
    assert build_panel(run[1], find_prior_turns(run[1], run)).dispatch_kind == panel.UNKNOWN_KIND
    assert build_panel(attempt(send_kind="parse_retry"), NONE).dispatch_kind == "Parse correction"
    assert build_panel(attempt(send_kind="gate_retry"), NONE).dispatch_kind == "Check correction"


# Items and words ------------------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from(["inline", "path_reference", "provider_attachment", "session_history"]), max_size=20))
def test_every_item_stands_exactly_once_in_its_order(deliveries: list[str]) -> None:  # AI-5
    inputs = tuple(item(seq, delivery) for seq, delivery in enumerate(deliveries, 1))
    built = build_panel(attempt(inputs=inputs, coverage="complete"), NONE)
    groups = (built.dispatch, built.inherited.group, built.files, built.attachments)
    shown = [one.item.seq for group in groups for one in group.items]
    assert sorted(shown) == list(range(1, len(deliveries) + 1))
    assert all([one.item.seq for one in group.items] == sorted(one.item.seq for one in group.items) for group in groups)


def test_the_delivery_is_said_in_the_contracts_words() -> None:  # AI-2
    words = {one.item.delivery_mode: one.delivered for one in (item(1, mode) for mode in panel.DELIVERED)}
    assert words["path_reference"] == "Available by path"
    assert words["inline"] == "Included in message"
    assert words["provider_attachment"] == "Attached to request"


def test_three_absences_have_three_sentences() -> None:  # AI-2 AI-5
    assert build_panel(attempt(), NONE).accounting == "Attachment accounting was not recorded for this attempt."
    empty = attempt(coverage="complete", declared=0, captured=0, omitted=0)
    assert build_panel(empty, NONE).accounting == "No explicit files or attachments were supplied on this dispatch."
    partial = attempt(coverage="partial", captured=1, inputs=(item(1, "path_reference"),))
    assert build_panel(partial, NONE).accounting == ""


def test_not_recorded_is_never_called_none() -> None:  # AI-5
    built = build_panel(attempt(), NONE)
    assert built.files.answer == built.attachments.answer == "not recorded"
    assert built.counts == ""


def test_what_was_inherited_is_not_supplied_on_this_dispatch() -> None:  # AI-2
    facts = attempt(coverage="complete", declared=0, captured=0, omitted=0, inputs=(item(1, "session_history"),))
    assert build_panel(facts, NONE).accounting == panel.NOTHING_SUPPLIED


def test_an_unknown_count_is_unknown_and_never_0() -> None:  # AI-5
    inputs = (item(1, "path_reference"), item(2, "path_reference", "enumeration_incomplete", detail="stopped"))
    built = build_panel(attempt(coverage="partial", captured=1, inputs=inputs), NONE)
    assert built.counts == "declared unknown · captured 1 · omitted unknown"
    assert built.files.answer == "1 file · Available by path; how many more is unknown"


def test_a_file_that_was_not_captured_shows_in_the_summary() -> None:  # AI-5
    inputs = (item(1, "path_reference"), item(2, "path_reference", "unreadable"))
    built = build_panel(attempt(coverage="partial", inputs=inputs), NONE)
    assert built.files.answer == "2 files · Available by path · 1 captured"


def test_the_six_sections_stand_in_the_contracts_order() -> None:  # AI-1
    names = [one.name for one in fields(panel.InputPanel)]
    order = ["task", "dispatch", "inherited", "files", "attachments"]
    assert [name for name in names if name in order] == order
