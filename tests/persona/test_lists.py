"""What lists and menus say of a study, without a look at its own page."""

from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agentlab.persona.executors import Inline
from agentlab.persona.models import StudyDefinition, StudyRun
from agentlab.persona.runner import Runner
from agentlab.persona.runs import create
from agentlab.persona.study import read_study
from tests.pages import assert_no_inline_code, assert_valid_html

from .making import study, written

pytestmark = pytest.mark.django_db


@pytest.fixture
def olga() -> User:
    return User.objects.create_user("olga")


def _ran(folder: Path, owner: User, **changes: object) -> StudyRun:
    return Runner(
        create(read_study(written(folder, study(**changes))), executor="a test", owner_id=owner.pk), Inline()
    ).go()


def _html(user: User, path: str) -> str:
    client = Client()
    client.force_login(user)
    response = client.get(path)
    assert response.status_code == 200
    assert_valid_html(response)
    assert_no_inline_code(response)
    return response.content.decode()


@pytest.mark.parametrize("path", ["/personas", "/"])
def test_a_list_marks_a_study_whose_model_did_not_answer(tmp_path, olga, monkeypatch, path: str) -> None:  # PE-8
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
    monkeypatch.setattr("agentlab.persona.adapters.openai.RETRIES", 0)
    _ran(tmp_path, olga, tier_b={"budget": 5, "model": "openai:m", "above": 0.0})
    _ran(tmp_path, olga, tier_b={"budget": 5, "above": 0.0})  # the rules answer each time
    html = _html(olga, path)
    assert html.count("COMPLETE</span>") == 2
    assert html.count("ANSWERED</span>") == html.count("0 OF 5 ANSWERED</span>") == 1
    assert 'class="badge badge-warning"' in html[: html.index("0 OF 5 ANSWERED")].rpartition("<span")[2]


@pytest.mark.parametrize("path", ["/personas", "/"])
def test_the_mark_asks_nothing_for_each_row(tmp_path, olga, path: str) -> None:  # PE-8
    asked = []
    for _ in range(2):
        _ran(tmp_path, olga)
        StudyRun.objects.update(fallbacks=3)
        with CaptureQueriesContext(connection) as queries:
            _html(olga, path)
        asked.append(len(queries))
    assert asked[0] == asked[1]


def test_the_menu_of_a_comparison_tells_studies_of_one_name_apart(tmp_path, olga) -> None:  # PE-3
    first, second, here = (_ran(tmp_path, olga, seed=seed) for seed in (-3, 8, 8))
    StudyRun.objects.filter(pk=second.pk).update(seed=None)  # its file could not be read
    StudyRun.objects.update(started_at=datetime(2026, 11, 29, 14, 2, 11, tzinfo=UTC))
    html = _html(olga, f"/personas/{here.pk}")
    begun = "begun 29 Nov 2026 14:02:11 UTC"
    assert f'<option value="{first.pk}">{first.pk} · Levy · seed -3 · {begun}</option>' in html
    assert f'<option value="{second.pk}">{second.pk} · Levy · {begun}</option>' in html
    html = _html(olga, f"/personas/compare?a={first.pk}&b={here.pk}")
    assert "<span>seed -3</span>" in html and "<span>seed 8</span>" in html


def test_runs_of_before_get_the_seed_of_their_file(tmp_path, olga) -> None:  # PE-3
    known, lost = _ran(tmp_path, olga, seed=-3), _ran(tmp_path, olga, seed=8)
    StudyRun.objects.update(seed=None)
    StudyDefinition.objects.filter(pk=lost.study_sha256).update(data=b"?")
    import_module("agentlab.persona.migrations.0006_seed_in_the_runs_row").fill(apps, None)
    assert dict(StudyRun.objects.values_list("pk", "seed")) == {known.pk: -3, lost.pk: None}


def test_what_can_be_had_or_deleted_looks_like_any_link(tmp_path, olga) -> None:  # VW-10
    html = _html(olga, f"/personas/{_ran(tmp_path, olga).pk}")
    for words in ("CSV of every stance", "Whole trace as JSON lines", "Delete this study …"):
        paragraph = html[: html.index(words)].rpartition("<p")[2]
        assert paragraph.startswith(' class="facts">')  # within `.tools` a link has the look of the text around it
