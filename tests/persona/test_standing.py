"""How a study stands: running, silent, failed, verified, and what its page says of it."""

from datetime import timedelta

import pytest
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from agentlab.persona import verifying
from agentlab.persona.executors import Inline
from agentlab.persona.models import StudyPersona, StudyRun
from agentlab.persona.replaying import Moving, verify
from agentlab.persona.runner import Runner
from agentlab.persona.runs import create
from agentlab.persona.study import read_study
from tests.pages import assert_valid_html

from .making import crowd, study, written
from .running import client_of, html_of, made

pytestmark = pytest.mark.django_db


def test_replay_has_four_states_in_words(run, olga) -> None:  # PE-6
    def page() -> str:
        return client_of(olga).get(reverse("study", args=[run.pk])).content.decode()

    assert "Not verified" in page()
    StudyRun.objects.update(replay="running", replayed_at=timezone.now())
    assert "VERIFYING" in page()
    assert "Verify now" not in page()
    assert "hx-trigger" in page()
    verify(run)
    assert "Replay gives the same state ✓" in page()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE study_trace SET label = 'praise' WHERE run_id = %s AND persona = 1 AND turn = 7 AND sequence = 0",
            [run.pk],
        )
    verify(run)
    text = page()
    assert "Replay differs ✗" in text
    assert reverse("study-turn", args=[run.pk, "bo", 7]) in text
    assert "Checkpoint and replayed state side by side" in text
    assert_valid_html(client_of(olga).get(reverse("study", args=[run.pk])))


def test_a_failed_persona_is_told_with_its_reason(run, olga) -> None:  # PE-4
    StudyPersona.objects.filter(run=run, key="bo").update(failed="ValueError: no luck")
    StudyRun.objects.update(status="incomplete")
    page = client_of(olga).get(reverse("study", args=[run.pk])).content.decode()
    assert "bo stopped: ValueError: no luck" in page
    assert f"manage.py study resume {run.pk}" in page


@pytest.mark.django_db(transaction=True)
def test_the_verify_button_replays_in_the_background(run, olga) -> None:  # PE-6
    threads = []
    real = verifying.start
    verifying.start, before = lambda run: threads.append(real(run)), verifying.start
    try:
        response = client_of(olga).post(reverse("study-verify", args=[run.pk]), follow=True)
    finally:
        verifying.start = before
    assert response.status_code == 200
    threads[0].join(30)
    run.refresh_from_db()
    assert run.replay == StudyRun.Replay.SAME


@pytest.mark.django_db(transaction=True)
def test_a_second_press_begins_no_second_verification(run) -> None:  # PE-6
    StudyRun.objects.update(replay="running", replayed_at="2999-01-01T00:00Z")
    assert verifying.start(run) is None
    StudyRun.objects.update(replayed_at="2020-01-01T00:00Z")  # its process is long gone
    thread = verifying.start(run)
    assert thread is not None
    thread.join(30)


def test_a_run_that_is_written_to_meanwhile_is_not_called_different(run, monkeypatch) -> None:  # PE-6
    def moved(given, on_progress):
        StudyRun.objects.update(events=given.events + 5)

    monkeypatch.setattr("agentlab.persona.replaying._first_difference", moved)
    with pytest.raises(Moving):
        verify(run)
    run.refresh_from_db()
    assert run.replay == StudyRun.Replay.NOT_VERIFIED


def test_a_verification_that_was_cut_off_is_not_called_running_and_may_be_begun_again(run, olga) -> None:  # PE-6
    StudyRun.objects.update(replay="running", replayed_at=timezone.now() - timedelta(minutes=3))
    page = html_of(olga, run)
    assert "Not verified: a verification was cut off" in page
    assert "VERIFYING" not in page
    assert "Verify now" in page
    assert "hx-trigger" not in page
    assert "verification is running" not in client_of(olga).get("/personas").content.decode()


def test_a_run_that_is_being_written_is_not_offered_for_verification(run, olga) -> None:  # PE-6
    StudyRun.objects.update(status="running", replay="not_verified", updated_at=timezone.now())
    page = html_of(olga, run)
    assert "RUNNING" in page
    assert "Not verified: the trace is being written." in page
    assert "Verify now" not in page


def test_a_run_that_nothing_is_heard_of_is_not_called_running(run, olga) -> None:  # PE-5 PE-6
    StudyRun.objects.update(status="running", updated_at=timezone.now() - timedelta(minutes=9))
    page = html_of(olga, run)
    assert "SILENT" in page
    assert "RUNNING" not in page
    assert f"manage.py study resume {run.pk}" in page
    assert "Verify now" in page
    assert "SILENT" in client_of(olga).get("/personas").content.decode()


def test_a_resume_that_may_pay_again_says_so(run, olga) -> None:  # PE-5 PE-8
    again = "that were under way when it ended are then made again"
    StudyRun.objects.update(status="stopped")
    assert again not in html_of(olga, run)
    StudyRun.objects.update(model="openai:gpt")
    assert f"Calls of openai:gpt {again}" in html_of(olga, run)
    StudyRun.objects.update(status="complete")
    assert again not in html_of(olga, run)


def test_what_stopped_everybody_is_told_once(tmp_path, olga) -> None:  # PE-4
    run = made(tmp_path, olga, crowd(8, 1))
    StudyPersona.objects.filter(run=run).update(failed="PortFailed: gpt: APITimeoutError")
    StudyPersona.objects.filter(run=run, key="p7").update(failed="ValueError: <b>")
    page = html_of(olga, run)
    assert page.count("APITimeoutError") == 1
    assert "7 of 8 personas stopped: PortFailed" in page
    assert "(p0, p1, p2, p3, p4, …)" in page
    assert "p7 stopped: ValueError: &lt;b&gt;" in page
    assert "8 personas failed in all." in page


def test_a_run_without_a_checkpoint_says_so(tmp_path, olga) -> None:  # PE-6
    run = made(tmp_path, olga, study(), stop=True)
    page = html_of(olga, run)
    assert "No checkpoint yet" in page
    assert "past turn 0" not in page


def test_a_study_whose_model_was_never_there_says_so_before_anything_else(tmp_path, olga, monkeypatch) -> None:  # PE-8
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
    monkeypatch.setattr("agentlab.persona.adapters.openai.RETRIES", 0)
    content = study(tier_b={"budget": 5, "model": "openai:m", "above": 0.0})
    alone = Runner(create(read_study(written(tmp_path, content)), executor="a test", owner_id=olga.pk), Inline()).go()
    html = client_of(olga).get(reverse("study", args=[alone.pk])).content.decode()
    said = "None of 5 model calls was answered with a reaction: every reaction is arithmetic alone."
    assert f"{said} The first of them: no answer: m: APIConnectionError." in html
    assert html.index(said) < html.index("Beliefs")
    assert "COMPLETE" in html  # by the study's own rule: arithmetic decides where no model does
    assert "asked 5 of at most 5 times, 0 answered" in html


def test_a_study_whose_model_always_answered_has_no_such_warning(run, olga) -> None:  # PE-8
    assert run.answered and not run.fallbacks
    assert b"model calls" not in client_of(olga).get(reverse("study", args=[run.pk])).content
