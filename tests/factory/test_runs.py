"""A whole run with the rehearsal: which sends happened, what each one carried, what stands in the rows."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from factory.models import AgentAttempt, FactoryRun, RunNote
from factory.providers.rehearsal import Rehearsal
from factory.retention import SnapshotStore
from factory.workflow import RunEnd, Sent

pytestmark = pytest.mark.django_db
Run = Callable[..., tuple[int, RunEnd]]


@pytest.fixture
def task(tmp_path: Path) -> Path:
    path = tmp_path / "task.md"
    path.write_bytes(b"Write a slugify command.\r\n")
    return path


def attempts(run_id: int) -> list[AgentAttempt]:
    return list(AgentAttempt.objects.filter(run_id=run_id).order_by("number"))


def reply_of(sent: Sent) -> str | None:
    return sent.end.reply.text if sent.end.reply else None


def inputs(attempt: AgentAttempt) -> list[tuple[str, str, str]]:
    return [(row.source_kind, row.delivery_mode, row.label) for row in attempt.inputs.order_by("seq")]


def test_build_is_three_turns_of_one_session(run: Run, task: Path) -> None:  # FA-2 FA-4
    run_id, end = run(str(task))
    assert end.state == "succeeded"
    plan, build, review = attempts(run_id)
    assert [a.phase for a in (plan, build, review)] == ["plan", "build", "review"]
    assert [a.turn_index for a in (plan, build, review)] == [1, 2, 3]
    assert {a.session_id for a in (plan, build, review)} == {f"rehearsal-{run_id}"}
    assert [a.previous_turn_attempt_id for a in (plan, build, review)] == [None, plan.pk, build.pk]
    assert {a.retry_of_attempt_id for a in (plan, build, review)} == {None}
    assert {a.send_kind for a in (plan, build, review)} == {"initial"}


def test_the_prompt_file_is_inline_once_and_history_afterwards(
    run: Run, task: Path, store: SnapshotStore
) -> None:  # FA-10
    run_id, _ = run(str(task))
    plan, build, review = attempts(run_id)
    assert inputs(plan) == [("prompt_file", "inline", "task.md")]
    assert inputs(build)[1:] == [("prompt_file", "session_history", "task.md")]
    assert inputs(review)[1] == ("prompt_file", "session_history", "task.md")
    data = task.read_bytes()
    sent = plan.inputs.get()
    assert (sent.sha256, sent.size_bytes) == (hashlib.sha256(data).hexdigest(), len(data))
    assert (store.root / plan.pk / "1").read_bytes() == data
    assert data.decode() in (plan.user_prompt or "")
    assert data.decode() not in (build.user_prompt or "") + (review.user_prompt or "")
    inherited = build.inputs.get(source_kind="prompt_file")
    assert (inherited.capture_status, inherited.artifact_status, inherited.detail) == (
        "not_applicable",
        "never_captured",
        "sent on turn 1 (plan)",
    )


def test_the_prompt_files_snapshot_is_of_the_bytes_that_were_read_at_the_start(
    run: Run, task: Path, store: SnapshotStore
) -> None:  # FA-10
    class Rewriting(Rehearsal):
        def open(self, workspace: Path, run_id: int):  # type: ignore[no-untyped-def]
            task.write_text("something else")
            return super().open(workspace, run_id)

    run_id, _ = run(str(task), provider=Rewriting())
    assert (store.root / attempts(run_id)[0].pk / "1").read_bytes() == b"Write a slugify command.\r\n"


def test_the_previous_envelope_is_inline_exactly_on_the_turn_that_includes_it(
    run: Run, task: Path, store: SnapshotStore
) -> None:  # FA-10
    run_id, _ = run(str(task))
    _, build, review = attempts(run_id)
    assert ("previous_envelope", "inline", "plan") in inputs(build)
    assert ("previous_envelope", "session_history", "plan") in inputs(review)
    assert ("previous_envelope", "inline", "build") in inputs(review)
    envelope = (store.root / build.pk / "1").read_bytes()
    assert envelope.decode() in (build.user_prompt or "")
    assert envelope == b'{"steps":["read the request","write the file","check it"],"summary":"A plan in three steps."}'


def test_words_given_inline_are_the_task_and_no_input(run: Run) -> None:  # FA-10
    run_id, _ = run("Write a slugify command.", workflow="ask")
    (attempt,) = attempts(run_id)
    assert attempt.task_prompt == "Write a slugify command."
    assert (attempt.input_coverage, attempt.declared_input_count) == ("complete", 0)
    assert attempt.input_packet_version == 1


def test_the_stable_task_stands_on_every_attempt(run: Run, task: Path) -> None:  # FA-3
    run_id, _ = run(str(task), provider=Rehearsal(frozenset({"parse"})))
    assert {a.task_prompt for a in attempts(run_id)} == {"Write a slugify command.\r\n"}


def test_an_unreadable_reply_goes_back_once_in_the_same_session(run: Run, task: Path) -> None:  # FA-2 FA-4
    run_id, end = run(str(task), workflow="ask", provider=Rehearsal(frozenset({"parse"})))
    first, second = attempts(run_id)
    assert (first.state, first.failure) == ("failed", "parse")
    assert (second.send_kind, second.turn_index) == ("parse_retry", 2)
    assert second.previous_turn_attempt_id == second.retry_of_attempt_id == first.pk
    assert second.session_id == first.session_id
    assert second.user_prompt and first.task_prompt and first.task_prompt not in second.user_prompt
    assert inputs(second) == [("prompt_file", "session_history", "task.md")]
    assert (second.input_coverage, second.declared_input_count) == ("complete", 0)
    assert end.state == "succeeded"


def test_a_failed_check_goes_back_once_with_what_it_printed(run: Run) -> None:  # FA-2 FA-4
    check = "cat ask.txt; grep -q done ask.txt"
    run_id, end = run("Do it", workflow="ask", provider=Rehearsal(frozenset({"check"})), check=check)
    first, second = attempts(run_id)
    assert (first.state, first.failure, first.error) == ("failed", "check", "check failed (exit 1)")
    assert second.send_kind == "gate_retry"
    assert second.retry_of_attempt_id == first.pk
    assert check in (second.user_prompt or "") and "draft" in (second.user_prompt or "")
    assert (second.state, end.state) == ("succeeded", "succeeded")


def test_a_check_that_never_passes_ends_the_run_as_failed(run: Run) -> None:  # FA-2
    run_id, end = run("Do it", workflow="ask", check="exit 3")
    assert [a.send_kind for a in attempts(run_id)] == ["initial", "gate_retry"]
    assert (end.state, end.reason) == ("failed", "ask: check failed (exit 3)")
    assert FactoryRun.objects.get(pk=run_id).state == "failed"


def test_what_each_failed_check_printed_stands_on_its_attempt(run: Run) -> None:  # FA-13
    check = 'n=$(cat n 2>/dev/null || echo 0); n=$((n+1)); echo $n > n; echo "output of check $n"; exit 4'
    run_id, _ = run("Do it", workflow="ask", check=check)
    first, second = attempts(run_id)
    assert (first.check_command, first.check_output) == (check, "output of check 1")
    assert (second.check_command, second.check_output) == (check, "output of check 2")


def test_the_check_runs_after_the_work_and_not_after_plan_or_review(run: Run, tmp_path: Path) -> None:  # FA-2
    run_id, _ = run("Do it", check=f"echo x >> {tmp_path}/checked")
    assert (tmp_path / "checked").read_text() == "x\n"
    assert len(attempts(run_id)) == 3


def test_a_failed_provider_fails_attempt_and_run(run: Run) -> None:  # FA-2
    run_id, end = run("Do it", provider=Rehearsal(frozenset({"fail"})))
    (attempt,) = attempts(run_id)
    assert (attempt.state, attempt.failure) == ("failed", "provider")
    assert end.state == "failed"


def test_a_provider_that_breaks_is_a_failed_attempt_and_no_crash(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:  # SF-4
    from factory.providers.rehearsal import RehearsalSession

    monkeypatch.setattr(RehearsalSession, "_answer", lambda self, messages: 1 / 0)
    run_id, end = run("Do it")
    assert attempts(run_id)[0].error == "ZeroDivisionError: division by zero"
    assert end.state == "failed"


def test_an_interrupt_records_the_attempt_as_cancelled(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:  # FA-2
    from factory.providers.rehearsal import RehearsalSession

    def interrupted(self: object, messages: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(RehearsalSession, "_answer", interrupted)
    run_id, end = run("Do it")
    assert [a.state for a in attempts(run_id)] == ["cancelled"]
    assert end.state == FactoryRun.objects.get(pk=run_id).state == "cancelled"


def test_a_review_that_does_not_approve_is_no_success(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:  # FA-2
    from factory.providers.rehearsal import RehearsalSession

    answer = RehearsalSession._answer

    def rejecting(self: RehearsalSession, messages: object) -> str:
        return answer(self, messages).replace("true", "false")  # type: ignore[arg-type]

    monkeypatch.setattr(RehearsalSession, "_answer", rejecting)
    run_id, end = run("Do it")
    assert (end.state, attempts(run_id)[-1].state) == ("failed", "succeeded")
    assert "did not approve" in RunNote.objects.get(run_id=run_id).text


def test_the_context_is_available_by_path_and_read_by_a_tool_is_tool_use(
    run: Run, tmp_path: Path, store: SnapshotStore
) -> None:  # FA-10 FA-13
    context = tmp_path / "context"
    context.mkdir()
    (context / "notes.md").write_text("Use hyphens.")
    run_id, _ = run("Do it", workflow="ask", context=str(context))
    (attempt,) = attempts(run_id)
    assert inputs(attempt) == [("context_handoff", "path_reference", "notes.md")]
    assert "Use hyphens." not in (attempt.user_prompt or "")
    assert str(context) in (attempt.user_prompt or "")
    assert [call.name for call in attempt.tool_calls.all()] == ["read", "write"]
    assert attempt.tool_calls.all()[0].output == "Use hyphens."


def test_attached_text_is_in_the_message_and_an_attached_image_is_an_attachment(
    run: Run, tmp_path: Path
) -> None:  # FA-10
    image = Path(__file__).parent.parent / "data/media/pillow/hopper.png"
    notes = tmp_path / "notes.txt"
    notes.write_text("Use hyphens.")
    run_id, _ = run("Do it", workflow="ask", attach=[str(notes), str(image)])
    (attempt,) = attempts(run_id)
    assert inputs(attempt) == [
        ("explicit_attachment", "inline", "notes.txt"),
        ("explicit_attachment", "provider_attachment", "hopper.png"),
    ]
    assert "Use hyphens." in (attempt.user_prompt or "")
    assert attempt.inputs.get(seq=2).sha256 == hashlib.sha256(image.read_bytes()).hexdigest()


def test_tokens_duration_model_and_state_stand_on_the_attempt(run: Run) -> None:  # FA-13
    run_id, _ = run("Do it", workflow="ask")
    (attempt,) = attempts(run_id)
    assert attempt.input_tokens and attempt.output_tokens
    assert attempt.duration_ms is not None and attempt.started_at and attempt.ended_at
    assert (attempt.model, attempt.provider, attempt.state) == ("rehearsal-1", "rehearsal", "succeeded")
    assert attempt.cost is None
    assert attempt.reply and attempt.reply.startswith("{")


def test_the_same_request_gives_the_same_answers(run: Run) -> None:  # FA-2
    (_, one), (_, two) = run("Do it"), run("Do it")
    assert [reply_of(sent) for sent in one.sent] == [reply_of(sent) for sent in two.sent]


def test_a_task_with_odd_characters_comes_back_exactly(run: Run) -> None:  # FA-1 FA-3
    from factory.resolve import inline_request

    odd = "NUL \x00, substitute \x1a and \x1a0, \u202e bidi, é"
    run_id, _ = run(inline_request(odd), workflow="ask")
    (attempt,) = attempts(run_id)
    assert attempt.task_prompt == FactoryRun.objects.get(pk=run_id).task == odd
    assert odd in (attempt.user_prompt or "")


def test_a_number_that_is_given_again_finds_a_folder_of_its_own(run: Run, settings: Any) -> None:  # FA-2 SF-5
    """As in a database that was set back to a copy of itself, while the folders of later runs stayed."""
    first, _ = run("Do it", workflow="ask")
    older = Path(settings.STATE_DIR) / "workspaces" / f"run-{first + 1}"
    older.mkdir()
    (older / "ask.txt").write_text("older")
    again, end = run("Do it", workflow="ask")
    assert (again, end.state, (older / "ask.txt").read_text()) == (first + 1, "succeeded", "older")
    assert Path(FactoryRun.objects.get(pk=again).workspace) == older.with_name(f"run-{again}-2")
