"""A study runs on any workers in any order, survives them, and writes one trace."""

import contextlib
import gc
import json
import os
from concurrent.futures import Future

import pytest
from django.db import IntegrityError, connection, transaction

from agentlab.persona import reading, runs
from agentlab.persona import runner as running
from agentlab.persona import work as working
from agentlab.persona.events import read_payload
from agentlab.persona.executors import Inline, Processes, open_workers
from agentlab.persona.models import StudyPersona, StudyRun, TraceEvent
from agentlab.persona.planning import Plan
from agentlab.persona.replaying import stored_events, trace_sha256, verify
from agentlab.persona.runner import INSERT_EVENT, Pace, Runner
from agentlab.persona.runs import RunError, claim, create
from agentlab.persona.study import read_study
from agentlab.persona.work import run_job

from .making import crowd, study, written
from .running import first_answers, ran
from .workers import MARK, VICTIM, Forgetful, Remembered, Shuffled, Slow, Stuck, dies_always, dies_once

pytestmark = pytest.mark.django_db


def _lines(run: StudyRun) -> list:
    return list(TraceEvent.objects.filter(run=run).values_list("persona", "turn", "sequence", "payload", "seal"))


def test_a_study_runs_to_its_end_and_counts_what_it_wrote(plan) -> None:  # PE-3 PE-4
    run = ran(plan)
    assert (run.status, run.turns) == (StudyRun.Status.COMPLETE, 5 * 45)
    assert run.events == TraceEvent.objects.filter(run=run).count()
    assert run.trace_sha256 == trace_sha256(run)
    kinds = set(TraceEvent.objects.filter(run=run).values_list("kind", flat=True))
    assert kinds == {"arrived", "reacted", "remembered", "reflected", "snapshot", "probed"}


def test_every_turn_of_every_persona_is_there_once(plan) -> None:  # PE-4
    run = ran(plan)
    reacted = TraceEvent.objects.filter(run=run, kind="reacted").values_list("persona", "turn")
    assert sorted(reacted) == [(persona, turn) for persona in range(5) for turn in range(1, 46)]


@pytest.mark.parametrize("seed", range(5))
def test_answers_in_any_order_give_the_same_rows_in_the_same_order(plan, seed: int) -> None:  # PE-4
    plain = ran(plan)
    workers = Shuffled(seed)
    with contextlib.closing(workers):
        mixed = ran(plan, workers)
    assert mixed.trace_sha256 == plain.trace_sha256
    assert [row[:4] for row in _lines(mixed)] == [row[:4] for row in _lines(plain)]


def test_running_twice_makes_two_runs_that_share_nothing(plan) -> None:  # PE-3
    first = ran(plan)
    before = _lines(first)
    second = create(plan, executor="a test")
    assert second.pk != first.pk
    assert _lines(second) == []
    assert _lines(Runner(second, Inline()).go()) == before == _lines(first)


def test_no_event_is_written_twice(plan) -> None:  # PE-3 PE-5
    run = ran(plan)
    row = TraceEvent.objects.filter(run=run).values_list(
        "run_id", "persona", "turn", "sequence", "kind", "label", "payload", "seal"
    )[7]
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(INSERT_EVENT, row)


def test_a_poisoned_turn_fails_its_persona_and_not_the_study(plan, monkeypatch) -> None:  # PE-4 PE-5
    plain = ran(plan)
    real = working.turn

    def poisoned(persona, shown, *rest):
        if persona.id == VICTIM and shown.turn == 5:
            raise ZeroDivisionError("the pot is empty")
        return real(persona, shown, *rest)

    monkeypatch.setattr(working, "turn", poisoned)
    run = ran(plan)
    assert run.status == StudyRun.Status.INCOMPLETE
    assert run.turns == 4 * 45 + 4
    assert StudyPersona.objects.get(run=run, key=VICTIM).failed == "ZeroDivisionError: the pot is empty"
    assert verify(run) is None

    monkeypatch.setattr(working, "turn", real)  # what was wrong is put right: resuming tries again
    again = Runner(claim(run.pk, executor="a test"), Inline()).go()
    assert (again.status, again.trace_sha256) == (StudyRun.Status.COMPLETE, plain.trace_sha256)


def test_work_that_raises_by_itself_fails_its_persona(plan) -> None:  # PE-4
    def broken(data: bytes) -> bytes:
        if b"p2" in data:
            raise MemoryError("no room")
        return run_job(data)

    run = ran(plan, work=broken)
    assert [one.key for one in StudyPersona.objects.filter(run=run).exclude(failed="")] == ["p2"]


def test_a_dead_workers_jobs_are_given_again(plan, tmp_path, monkeypatch) -> None:  # PE-4 PE-5
    plain = ran(plan)
    monkeypatch.setenv(MARK, str(tmp_path / "died"))
    with contextlib.closing(Processes(2)) as workers:
        run = ran(plan, workers, work=dies_once)
    assert (tmp_path / "died").exists()
    assert (run.status, run.trace_sha256) == (StudyRun.Status.COMPLETE, plain.trace_sha256)


def test_a_job_that_kills_every_worker_fails_its_persona_alone(plan) -> None:  # PE-4
    with contextlib.closing(Processes(2)) as workers:
        run = ran(plan, workers, work=dies_always)
    failed = {one.key: one.failed for one in StudyPersona.objects.filter(run=run).exclude(failed="")}
    assert failed == {VICTIM: "its worker died 3 times"}
    assert run.turns == 4 * 45
    assert verify(run) is None


def test_a_late_answer_is_dropped_and_counted(plan, monkeypatch) -> None:  # PE-4 PE-5
    plain = ran(plan)
    monkeypatch.setattr(running, "HEARTBEAT", 0.01)
    run = ran(plan, Forgetful(), patience=0.0)
    assert run.trace_sha256 == plain.trace_sha256
    assert run.late_results > 0


def test_a_job_that_is_never_answered_fails_its_persona(plan, monkeypatch) -> None:  # PE-4
    class Silent(Forgetful):
        def submit(self, work, data):
            from concurrent.futures import Future

            future = Future()
            if b"p2" not in data:
                future.set_result(work(data))
            return future

    monkeypatch.setattr(running, "HEARTBEAT", 0.01)
    run = ran(plan, Silent(), patience=0.0)
    assert "no answer" in StudyPersona.objects.get(run=run, key="p2").failed
    assert run.turns == 4 * 45


def test_stopped_and_resumed_is_as_never_stopped(plan) -> None:  # PE-5
    plain = ran(plan)
    run = create(plan, executor="a test")
    stops = 0
    while run.status != StudyRun.Status.COMPLETE:
        run = first_answers(run)
        assert verify(run) is None  # at any point, trace and checkpoints agree
        if run.status == StudyRun.Status.STOPPED:
            stops += 1
            run = claim(run.pk, executor="a test")
    assert stops > 5
    assert run.trace_sha256 == plain.trace_sha256
    assert run.turns == 5 * 45
    assert _lines(run) == _lines(plain)


def test_what_was_recalled_is_the_same_after_a_resume(plan) -> None:  # PE-5
    def recalled(run):
        rows = TraceEvent.objects.filter(run=run, kind="reacted", turn__gte=21)
        return [read_payload(bytes(row.payload)).recalled for row in rows]

    plain = ran(plan)
    run = first_answers(create(plan, executor="a test"))
    resumed = Runner(claim(run.pk, executor="a test"), Inline()).go()
    assert recalled(resumed) == recalled(plain)


def test_a_runner_that_lost_its_run_writes_nothing_more(plan) -> None:  # PE-5
    run = create(plan, executor="a test")
    written_so_far = []

    def taken_over(progress) -> None:
        if not written_so_far:
            StudyRun.objects.filter(pk=run.pk).update(epoch=7)
            written_so_far.append(TraceEvent.objects.filter(run=run).count())

    with pytest.raises(RunError, match="another runner has taken over"):
        Runner(run, Inline(), on_progress=taken_over).go()
    assert TraceEvent.objects.filter(run=run).count() == written_so_far[0]
    run.refresh_from_db()
    assert run.status == StudyRun.Status.RUNNING


def test_a_run_that_another_process_holds_is_not_claimed(plan, monkeypatch) -> None:  # PE-5
    run = create(plan, executor="a test")
    parent = os.getppid()
    me = run.runner.split(":")[0]
    StudyRun.objects.filter(pk=run.pk).update(runner=f"{me}:{parent}:{runs._began(parent)}")
    with pytest.raises(RunError, match=f"running in process {parent}"):
        claim(run.pk, executor="a test")
    StudyRun.objects.filter(pk=run.pk).update(runner=f"{me}:{parent}:1")  # its number, but another process since
    assert claim(run.pk, executor="a test").epoch == 2


def test_a_run_on_another_machine_is_held_while_it_gives_signs_of_life(plan) -> None:  # PE-5
    run = create(plan, executor="a test")
    StudyRun.objects.filter(pk=run.pk).update(runner="elsewhere:1:1")
    with pytest.raises(RunError, match="elsewhere"):
        claim(run.pk, executor="a test")
    StudyRun.objects.filter(pk=run.pk).update(updated_at="2020-01-01T00:00Z")
    assert claim(run.pk, executor="a test").epoch == 2


def test_another_embedder_is_refused(plan) -> None:  # PE-5 PE-7
    run = create(plan, executor="a test")
    StudyRun.objects.filter(pk=run.pk).update(runner="", embedder="hashing-0/256")
    with pytest.raises(RunError, match="began with hashing-0/256"):
        claim(run.pk, executor="a test")


def test_a_worker_with_another_embedder_is_refused_too(plan) -> None:  # PE-7
    run = create(plan, executor="a test")
    run.embedder = "hashing-0/256"
    ended = Runner(run, Inline()).go()
    assert ended.turns == 0
    assert "hashing-0/256" in StudyPersona.objects.filter(run=run).first().failed


def test_what_is_complete_or_not_there_is_not_resumed(plan) -> None:  # SF-4
    run = ran(plan)
    for number, said in ((run.pk, "is complete"), (999_999, "there is no study 999999")):
        with pytest.raises(RunError, match=said):
            claim(number, executor="a test")


def test_events_read_back_as_they_were_written(plan) -> None:  # PE-3
    run = ran(plan)
    events = list(stored_events(run, 2, turn=3))
    assert {event.turn for event in events} == {0, 1, 2, 3}
    assert [event.sequence for event in events if event.turn == 3] == list(range(sum(e.turn == 3 for e in events)))


def test_a_study_of_one_persona_and_of_more_personas_than_the_window_runs(tmp_path) -> None:  # PE-4
    for count, turns in ((1, 61), (70, 2)):
        run = ran(read_study(written(tmp_path, crowd(count, turns))), Shuffled(1, window=8))
        assert run.turns == count * turns
        assert verify(run) is None


@pytest.mark.parametrize("shape", ["processes:1", "processes:2", "processes:8"])
def test_any_number_of_processes_writes_the_same_trace(plan, shape: str) -> None:  # PE-4
    with contextlib.closing(open_workers(shape)) as workers:
        run = ran(plan, workers)
    assert run.trace_sha256 == ran(plan).trace_sha256


class TestPlan:
    def test_stretches_go_round_the_personas(self) -> None:  # PE-4
        plan = Plan(2, 5, 2, {})
        first = plan.take(9)
        assert [(s.number, s.first, s.last, s.arrives) for s in first] == [(0, 1, 2, True), (1, 1, 2, True)]
        plan.close(1, 2, False)
        assert plan.take(9) == []  # the first persona's turns are still out
        plan.close(0, 2, False)
        assert [(s.number, s.first, s.last, s.arrives) for s in plan.take(9)] == [(0, 3, 4, False), (1, 3, 4, False)]

    def test_it_goes_on_from_what_is_committed(self) -> None:  # PE-5
        plan = Plan(3, 5, 2, {0: 5, 1: 3})
        assert [(s.number, s.first, s.last) for s in plan.take(9)] == [(2, 1, 2), (1, 4, 4)]
        plan.close(2, 2, False)
        assert [(s.number, s.first, s.last) for s in plan.take(9)] == [(2, 3, 4)]

    def test_a_failed_persona_gets_no_more(self) -> None:  # PE-4
        plan = Plan(2, 4, 2, {})
        plan.take(9)
        plan.close(0, 1, True)
        plan.close(1, 2, False)
        assert [s.number for s in plan.take(9)] == [1]
        assert plan.failed == 1


def test_an_export_is_readable_lines_of_every_event(plan) -> None:  # PE-3
    from agentlab.persona import exporting

    run = ran(plan)
    lines = [json.loads(line) for line in exporting.lines(run)]
    assert lines[0]["study_sha256"] == run.study_sha256
    assert lines[0]["definition"]["personas"][2]["id"] == "p2"
    assert len(lines) == 1 + run.events
    reacted = next(line for line in lines[1:] if line["kind"] == "reacted" and line["turn"] == 5)
    assert reacted["shown"]["text"] == "The levy would cost 90 a year"
    assert set(reacted["recalled"][0]) == {"memory", "recency", "importance", "similarity", "score"}


def test_the_study_content_helper_makes_valid_studies(tmp_path) -> None:
    assert read_study(written(tmp_path, study())).name == "Levy"


def test_jobs_that_wait_behind_slow_ones_are_not_given_again(plan, monkeypatch) -> None:  # PE-4 PE-8
    monkeypatch.setattr(running, "HEARTBEAT", 0.01)
    workers = Slow(0.25)
    with contextlib.closing(workers):
        run = ran(plan, workers, patience=1.5)  # less than a window of jobs takes, more than any of them
    assert (run.status, run.late_results) == (StudyRun.Status.COMPLETE, 0)
    assert workers.given == 5 * 3


@pytest.mark.parametrize("count", [1, 2])
def test_a_job_that_never_ends_fails_its_persona_and_frees_its_workers(plan, monkeypatch, count: int) -> None:  # PE-4
    monkeypatch.setattr(running, "HEARTBEAT", 0.05)
    workers = Stuck(count)
    with contextlib.closing(workers):
        run = ran(plan, workers, patience=1.0)
    failed = {one.key: one.failed for one in StudyPersona.objects.filter(run=run).exclude(failed="")}
    assert failed == {VICTIM: "no answer within 3 × 1 s"}
    assert (run.status, run.turns) == (StudyRun.Status.INCOMPLETE, 4 * 45)
    assert workers.ended == 1 + count


def test_a_runner_that_ends_with_an_error_does_not_leave_a_run_that_looks_alive(plan) -> None:  # PE-5 SF-5
    class Gone(Inline):
        def submit(self, work, data):
            future = super().submit(work, data)
            if b"p3" in data:
                future = Future()
                future.cancel()
                future.set_running_or_notify_cancel()
            return future

    run = create(plan, executor="a test")
    with pytest.raises(RunError, match="the workers are gone"):
        Runner(run, Gone()).go()
    run.refresh_from_db()
    assert (run.status, run.turns) == (StudyRun.Status.STOPPED, 3 * 20)
    assert verify(run) is None
    assert Runner(claim(run.pk, executor="a test"), Inline()).go().status == StudyRun.Status.COMPLETE


def test_a_second_ctrl_c_leaves_a_run_that_is_stopped(plan) -> None:  # PE-5
    run = create(plan, executor="a test")

    def interrupted(progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Runner(run, Inline(), on_progress=interrupted).go()
    run.refresh_from_db()
    assert run.status == StudyRun.Status.STOPPED
    assert verify(run) is None


@pytest.mark.parametrize("said", ["NUL \0 in it", "half \ud83d a pair", "two\nlines", "x" * 10_000])
def test_whatever_a_failure_says_fails_its_persona_alone(plan, monkeypatch, said: str) -> None:  # PE-4 SF-5
    real = working.turn

    def poisoned(persona, shown, *rest):
        if persona.id == VICTIM and shown.turn == 5:
            raise RuntimeError(said)
        return real(persona, shown, *rest)

    monkeypatch.setattr(working, "turn", poisoned)
    run = ran(plan)
    failed = StudyPersona.objects.get(run=run, key=VICTIM).failed
    assert failed.startswith("RuntimeError: ")
    assert "\0" not in failed
    assert "\n" not in failed
    assert (run.status, run.turns) == (StudyRun.Status.INCOMPLETE, 4 * 45 + 4)


def test_a_paid_answer_is_written_while_others_are_awaited(tmp_path, monkeypatch) -> None:  # PE-5 PE-8
    plan = read_study(written(tmp_path, crowd(5, 6)))
    monkeypatch.setattr(running, "paid", lambda *names: True)
    monkeypatch.setattr(running, "HEARTBEAT", 0.01)
    plain = ran(plan)

    class FirstWaits:
        """Answers at once, but for the very first job."""

        window, deaths, first = 4, (), None

        def submit(self, work, data):
            future = Future()
            if self.first is None:
                self.first = lambda: future.set_result(work(data))
            else:
                future.set_result(work(data))
            return future

    workers, seen = FirstWaits(), []

    def progress(done) -> None:
        seen.append(TraceEvent.objects.filter(run=run, kind="reacted").values_list("persona", flat=True).count())
        if workers.first and seen[-1] >= 4:
            workers.first()
            workers.first = None

    run = create(plan, executor="a test")
    ended = Runner(run, workers, on_progress=progress).go()
    assert seen[0] < 4 <= max(seen[:8])
    assert ended.trace_sha256 == plain.trace_sha256
    assert verify(ended) is None


def test_two_resumes_at_once_are_one_resume(plan) -> None:  # PE-5
    run = first_answers(create(plan, executor="a test"))
    stale = StudyRun.objects.get(pk=run.pk)
    first = claim(run.pk, executor="a test")
    with pytest.MonkeyPatch.context() as patch:  # the second looked before the first had claimed it
        patch.setattr(runs, "stored", lambda number: stale)
        with pytest.raises(RunError, match="has just taken"):
            claim(run.pk, executor="a test")
    assert Runner(first, Inline()).go().status == StudyRun.Status.COMPLETE


def test_the_rate_counts_from_the_first_turns_written_and_waits_until_it_means_something() -> None:  # PE-4
    pace = Pace()  # its workers took 40 seconds to start
    assert pace.rate(40.0, 20) == 0.0
    assert pace.rate(41.0, 420) == 0.0
    assert pace.rate(42.0, 1_020) == 500.0
    assert pace.rate(50.0, 2_020) == 200.0


def test_reactions_are_counted_as_they_are_written_and_the_counts_are_those_of_the_trace(tmp_path) -> None:  # PE-3
    plan = read_study(written(tmp_path, crowd(3, 400)))  # more turns than a chart has points
    begun = create(plan, executor="a test")
    assert reading.reactions(begun) == {}
    stopped = first_answers(begun)
    assert 0 < stopped.turns < 1_200
    run = Runner(claim(stopped.pk, executor="a test"), Inline()).go()
    left = reading.reactions(run)
    assert sum(sum(of.values()) for of in left.values()) == run.turns == 1_200
    assert {turn for of in left.values() for turn in of} <= set(reading.charted_turns(400))
    run.reacted = None  # an older run
    assert reading.reactions(run) == left


def test_an_older_run_that_is_gone_on_with_counts_what_was_there_already(tmp_path) -> None:  # PE-5
    stopped = first_answers(create(read_study(written(tmp_path, crowd(3, 400))), executor="a test"))
    StudyRun.objects.update(reacted=None)
    run = Runner(claim(stopped.pk, executor="a test"), Inline()).go()
    assert sum(sum(of.values()) for of in reading.reactions(run).values()) == 1_200


def test_a_run_that_is_deleted_under_its_runner_ends_in_one_line(plan) -> None:  # PE-5 SF-4
    run = create(plan, executor="a test")

    def deleted(progress) -> None:
        StudyRun.objects.filter(pk=run.pk).delete()

    with pytest.raises(RunError, match="was deleted meanwhile"):
        Runner(run, Inline(), on_progress=deleted).go()
    assert not TraceEvent.objects.exists()


def test_an_answered_job_is_forgotten_at_once(plan) -> None:  # PF-6
    workers = Remembered()
    gc.disable()  # what is left in a ring stays until the collector comes by, and a study's memory grows with its turns
    try:
        with contextlib.closing(workers):
            ran(plan, workers)
        alive = sum(given() is not None for given in workers.given)
    finally:
        gc.enable()
    assert (len(workers.given), alive) == (5 * 3, 0)
