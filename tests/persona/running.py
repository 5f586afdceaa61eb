"""Running a study in a test, and asking for its pages."""

from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from agentlab.persona.executors import Inline
from agentlab.persona.models import StudyRun
from agentlab.persona.runner import Runner
from agentlab.persona.runs import create
from agentlab.persona.study import read_study
from tests.pages import assert_valid_html

from .making import study, written

HOSTILE = '<script>alert("x")</script>'
CONTENT = study(
    name=f"Levy {HOSTILE}",
    cap=6,
    reflection={"batch": 3, "at": 3},
    tier_b={"budget": 4, "above": 0.1},
    probes={"every": 4, "fields": ["age"], "opinions": ["levy"], "drift_above": 0.0},
    schedule={"turns": 12},
    stimuli=[
        {
            "text": f"The levy passes committee {HOSTILE}",
            "source": "Post\u202e",
            "social_proof": 80,
            "stances": {"levy": 0.8},
        },
        {"text": "The levy would cost 90 a year", "social_proof": 40, "stances": {"levy": -0.5}},
        {"text": "Weather"},
    ],
)


def ran(plan, workers=None, **given) -> StudyRun:
    return Runner(create(plan, executor="a test"), workers or Inline(), **given).go()


def first_answers(run: StudyRun) -> StudyRun:
    """Run until the first answers are written, then stop."""
    runner = Runner(run, Inline(), on_progress=lambda progress: runner.stop())
    return runner.go()


def client_of(user: User | None) -> Client:
    client = Client()
    if user:
        client.force_login(user)
    return client


def html_of(user: User, run: StudyRun, name: str = "study", *rest, **query) -> str:
    response = client_of(user).get(reverse(name, args=[run.pk, *rest]), query)
    assert_valid_html(response)
    return response.content.decode()


def made(tmp_path, owner: User, content: dict, stop: bool = False) -> StudyRun:
    run = create(read_study(written(tmp_path, content)), executor="inline", owner_id=owner.pk)
    return run if stop else Runner(run, Inline()).go()
