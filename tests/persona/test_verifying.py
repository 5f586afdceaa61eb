"""A trace that was altered, or lacks something, is found and named; one that holds says so."""

import pytest
from django.db import connection

from agentlab.persona.executors import Inline
from agentlab.persona.models import Checkpoint, StudyDefinition, StudyPersona, StudyRun, TraceEvent
from agentlab.persona.replaying import verify
from agentlab.persona.runner import INSERT_EVENT, Runner
from agentlab.persona.runs import RunError, claim, create
from agentlab.persona.state import read_state

from .running import first_answers, ran

pytestmark = pytest.mark.django_db


def test_checkpoints_are_the_states_that_the_trace_gives(plan) -> None:  # PE-5 PE-6
    run = ran(plan)
    assert verify(run) is None
    for checkpoint in Checkpoint.objects.filter(run=run):
        state = read_state(bytes(checkpoint.state))
        assert (state.persona, state.counters.turns) == (f"p{checkpoint.persona}", 45)
        assert len(state.memories) <= 8


def _spoil(run: StudyRun, persona: int, turn: int, kind: str) -> None:
    """Flip one byte of a stored event behind everyone's back."""
    with connection.cursor() as cursor:
        place = [run.pk, persona, turn, kind]
        where = "WHERE run_id = %s AND persona = %s AND turn = %s AND kind = %s"
        cursor.execute(f"SELECT payload FROM study_trace {where}", place)
        payload = bytearray(cursor.fetchone()[0])
        payload[len(payload) // 2] ^= 1
        cursor.execute(f"UPDATE study_trace SET payload = %s {where}", [bytes(payload), *place])


def test_a_flipped_byte_is_found_named_and_kept_with_the_run(plan) -> None:  # PE-6
    run = ran(plan)
    _spoil(run, 3, 17, "reacted")
    found = verify(run)
    assert (found.persona, found.turn, found.sequence) == ("p3", 17, 0)
    run.refresh_from_db()
    assert run.replay == StudyRun.Replay.DIFFERS
    assert run.difference["persona"] == "p3"
    assert run.replayed_at is not None


def test_a_checkpoint_that_is_not_the_traces_state_is_found(plan) -> None:  # PE-6
    run = ran(plan)
    assert verify(run) is None
    other = Checkpoint.objects.get(run=run, persona=1).state
    Checkpoint.objects.filter(run=run, persona=2).update(state=other)
    assert (verify(run).persona, verify(run).what) == ("p2", "the checkpoint is not the state that the trace gives")


def test_a_persona_whose_events_are_gone_is_found(plan) -> None:  # PE-6
    run = ran(plan)
    TraceEvent.objects.filter(run=run, persona=4).delete()
    assert verify(run).persona == "p4"


def test_writing_more_turns_takes_the_verification_back(plan) -> None:  # PE-6
    run = first_answers(create(plan, executor="a test"))
    assert verify(run) is None
    run = claim(run.pk, executor="a test")
    assert run.replay == StudyRun.Replay.SAME
    run = Runner(run, Inline()).go()
    assert run.replay == StudyRun.Replay.NOT_VERIFIED


@pytest.mark.parametrize("finished", [True, False])
def test_events_of_nobody_are_found(plan, finished: bool) -> None:  # PE-3 PE-6
    run = ran(plan) if finished else first_answers(create(plan, executor="a test"))
    row = list(
        TraceEvent.objects.filter(run=run).values_list(
            "run_id", "persona", "turn", "sequence", "kind", "label", "payload", "seal"
        )[0]
    )
    row[1] = 99
    with connection.cursor() as cursor:
        cursor.execute(INSERT_EVENT, row)
    assert verify(run).what == "there is an event of persona number 99, and the study has 5"


def test_a_checkpoint_of_nobody_is_found(plan) -> None:  # PE-6
    run = ran(plan)
    Checkpoint.objects.create(run=run, persona=99, turn=1, state=b"x")
    assert "checkpoint of persona number 99" in verify(run).what


def test_a_persona_that_is_no_longer_listed_is_found(plan) -> None:  # PE-6
    run = first_answers(create(plan, executor="a test"))
    StudyPersona.objects.filter(run=run, key="p4").delete()  # had not arrived: the trace tells nothing of it
    assert verify(run).what == "4 personas are listed, 5 took part"


@pytest.mark.parametrize("data", [None, b"\x00"])
def test_a_study_that_is_not_what_it_was_is_found_and_not_gone_on_with(plan, data: bytes | None) -> None:  # PE-5 PE-6
    run = first_answers(create(plan, executor="a test"))
    if data is None:
        StudyDefinition.objects.all().delete()
    else:
        StudyDefinition.objects.update(data=data)
    assert "the study" in verify(run).what
    with pytest.raises(RunError, match=f"study {run.pk} "):
        claim(run.pk, executor="a test")


def test_a_long_verification_gives_signs_of_life(plan, monkeypatch) -> None:  # PE-6
    run = ran(plan)
    monkeypatch.setattr("agentlab.persona.replaying.HEARTBEAT", 0.0)
    heard = []

    def progress(done: int, of: int) -> None:
        heard.append((done, of, StudyRun.objects.get(pk=run.pk).replayed_at))

    assert verify(run, progress) is None
    assert [one[:2] for one in heard] == [(n, 5) for n in range(5)]
    assert len({one[2] for one in heard}) == 5
