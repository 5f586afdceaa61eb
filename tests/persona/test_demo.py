"""A new site has one study to look at: finished, verified, and made once."""

import pytest
from django.contrib.auth.models import User

from agentlab.persona.demo import FIRST, ensure_first_study
from agentlab.persona.executors import Inline
from agentlab.persona.models import StudyRun
from agentlab.persona.runner import Runner
from agentlab.persona.runs import create
from agentlab.persona.study import read_study

pytestmark = pytest.mark.django_db


def test_the_first_study_is_finished_verified_and_made_once() -> None:  # PE-6
    owner = User.objects.create_user("ada")
    run = ensure_first_study(owner.pk)
    assert (run.status, run.replay, run.owner) == ("complete", "same", owner)
    assert ensure_first_study(owner.pk) == run
    assert StudyRun.objects.count() == 1


def test_a_first_study_that_was_cut_short_is_gone_on_with() -> None:  # PE-5
    owner = User.objects.create_user("ada")
    begun = create(read_study(FIRST), executor="inline", owner_id=owner.pk)
    runner = Runner(begun, Inline(), on_progress=lambda progress: runner.stop())
    assert runner.go().status == "stopped"
    assert (ensure_first_study(owner.pk).pk, ensure_first_study(owner.pk).status) == (begun.pk, "complete")


def test_a_first_study_that_another_process_is_at_is_left_to_it(monkeypatch) -> None:  # PE-5 SF-4
    owner = User.objects.create_user("ada")
    begun = create(read_study(FIRST), executor="inline", owner_id=owner.pk)
    monkeypatch.setattr("agentlab.persona.runs._alive", lambda run: True)
    assert ensure_first_study(owner.pk) == begun
    assert (StudyRun.objects.get().status, StudyRun.objects.get().turns) == ("running", 0)
