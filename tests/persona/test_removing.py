"""A study is deleted whole, by whoever may, and not while it runs."""

from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from agentlab.common.models import AuditEntry, Deed
from agentlab.persona import removing
from agentlab.persona.executors import Inline
from agentlab.persona.models import Checkpoint, StudyDefinition, StudyPersona, StudyRun, TraceEvent
from agentlab.persona.runner import Runner, TakenOver
from agentlab.persona.runs import RunError, create
from agentlab.persona.study import read_study

from .making import crowd, study, written

pytestmark = pytest.mark.django_db
ROWS = (StudyRun, StudyPersona, Checkpoint, TraceEvent, StudyDefinition)


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def olga() -> User:
    return User.objects.create_user("olga")


def _ran(folder: Path, owner: User | None = None, content: dict | None = None) -> StudyRun:
    made = create(read_study(written(folder, content or study())), executor="a test", owner_id=owner and owner.pk)
    return Runner(made, Inline()).go()


def _client(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def _counts(**of_run: object) -> list[int]:
    return [model.objects.filter(**of_run).count() for model in (StudyPersona, Checkpoint, TraceEvent)]


def _deleted(*words: str) -> str:
    out = StringIO()
    call_command("study", "delete", *words, stdout=out, stderr=StringIO())
    return out.getvalue()


def test_the_page_says_what_goes_and_asks_once(tmp_path, olga) -> None:  # PE-3
    run = _ran(tmp_path, olga)
    url = reverse("study-delete", args=[run.pk])
    assert url in _client(olga).get(reverse("study", args=[run.pk])).content.decode()
    asked = " ".join(_client(olga).get(url).content.decode().split())
    assert f"2 personas, 6 turns, {run.events} events, about " in asked
    assert "It cannot be had back." in asked
    assert StudyRun.objects.filter(pk=run.pk).exists()
    answer = _client(olga).post(url, follow=True)
    assert answer.redirect_chain == [("/personas", 302)]
    assert f"Study {run.pk} is deleted." in answer.content.decode()
    assert [model.objects.count() for model in ROWS] == [0] * len(ROWS)
    assert _client(olga).get(reverse("study", args=[run.pk])).status_code == 404
    assert _client(olga).post(url).status_code == 404


def test_an_operator_may_and_to_others_it_is_not_there(tmp_path, olga) -> None:  # SF-1
    run = _ran(tmp_path, olga)
    url = reverse("study-delete", args=[run.pk])
    assert _client(User.objects.create_user("sam")).get(url).status_code == 404
    assert _client(User.objects.create_user("sue")).post(url).status_code == 404
    assert StudyRun.objects.filter(pk=run.pk).exists()
    assert _client(User.objects.create_user("op", is_staff=True)).post(url).status_code == 302
    assert not StudyRun.objects.exists()


def test_who_deleted_what_is_in_the_audit(tmp_path, olga) -> None:  # PE-3
    runs = [_ran(tmp_path, olga), _ran(tmp_path)]
    _client(olga).post(reverse("study-delete", args=[runs[0].pk]))
    _deleted(str(runs[1].pk), "--yes")
    noted = AuditEntry.objects.order_by("id").values_list("actor_name", "deed", "agent_id", "detail")
    detail = f"6 turns, {runs[0].events} events"
    assert list(noted) == [
        ("olga", Deed.DELETED, f"study {runs[0].pk}", detail),
        ("command line", Deed.DELETED, f"study {runs[1].pk}", detail),
    ]


def test_other_studies_stay_and_so_does_the_file_that_they_share(tmp_path, olga) -> None:  # PE-3
    first, same, other = _ran(tmp_path, olga), _ran(tmp_path, olga), _ran(tmp_path, olga, study(seed=8))
    kept = [_counts(run=run) for run in (same, other)]
    removing.remove(first, olga)
    assert [_counts(run=run) for run in (same, other)] == kept
    assert _counts(run=first.pk) == [0, 0, 0]
    assert StudyDefinition.objects.filter(pk=same.study_sha256).exists()
    removing.remove(same, olga)
    assert list(StudyDefinition.objects.values_list("pk", flat=True)) == [other.study_sha256]


def test_a_study_that_runs_is_refused_and_one_that_was_killed_is_not(tmp_path, olga) -> None:  # PE-5
    run = create(read_study(written(tmp_path, study())), executor="a test", owner_id=olga.pk)
    url = reverse("study-delete", args=[run.pk])
    page = _client(olga).get(url).content.decode()
    assert "It is running: stop it first" in page and 'class="primary"' not in page
    refused = _client(olga).post(url, follow=True)
    assert f"Not deleted: study {run.pk} is running: stop it first" in refused.content.decode()
    with pytest.raises(CommandError, match="is running: stop it first"):
        _deleted(str(run.pk), "--yes")
    assert StudyRun.objects.filter(pk=run.pk).exists()
    StudyRun.objects.update(runner="")  # nobody's
    assert "is deleted" in _deleted(str(run.pk), "--yes")


def test_a_study_that_somebody_goes_on_with_meanwhile_stays(tmp_path, olga) -> None:  # PE-5
    run = _ran(tmp_path, olga)
    StudyRun.objects.update(epoch=run.epoch + 1)
    with pytest.raises(RunError, match="gone on with meanwhile"):
        removing.remove(run, olga)
    assert TraceEvent.objects.count() == run.events


def test_whoever_still_runs_it_is_told_that_it_was_deleted_and_writes_nothing(tmp_path, olga) -> None:  # PE-5
    run = create(read_study(written(tmp_path, study())), executor="a test", owner_id=olga.pk)
    runner = Runner(run, Inline())
    StudyRun.objects.update(runner="")  # of a host that was not heard of for long
    removing.remove(StudyRun.objects.get(), olga)
    with pytest.raises(TakenOver, match=f"study {run.pk} was deleted meanwhile"):
        runner.go()
    assert [model.objects.count() for model in ROWS] == [0] * len(ROWS)


def test_it_goes_whole_or_not_at_all(tmp_path, olga, monkeypatch) -> None:  # PE-3
    run = _ran(tmp_path, olga)

    def broken(*words: object, **more: object) -> None:
        raise DatabaseError("disk full")

    monkeypatch.setattr("agentlab.persona.removing.audit.record", broken)
    before = [model.objects.count() for model in ROWS]
    with pytest.raises(CommandError, match="the database failed: disk full"):
        _deleted(str(run.pk), "--yes")
    assert [model.objects.count() for model in ROWS] == before


def test_a_long_trace_is_deleted_by_as_many_statements_as_a_short_one(tmp_path, olga) -> None:  # PE-3
    asked = []
    for turns in (2, 40):
        run = _ran(tmp_path, olga, crowd(3, turns))
        with CaptureQueriesContext(connection) as queries:
            removing.holds(run)
            removing.remove(run, olga)
        asked.append(len(queries))
        assert not [one for one in queries.captured_queries if one["sql"].startswith('SELECT "study_trace"')]
    assert asked[0] == asked[1]


def test_on_a_terminal_the_command_asks(tmp_path, monkeypatch) -> None:  # SF-4
    run = _ran(tmp_path)
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    with pytest.raises(CommandError, match="nothing is deleted"):
        _deleted(str(run.pk))
    assert StudyRun.objects.exists()
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    told = _deleted(str(run.pk))
    assert told.startswith(f"Study {run.pk} is deleted: 2 personas, 6 turns, {run.events} events, about ")
    assert told.count("\n") == 1


def test_without_a_terminal_the_command_deletes_only_what_is_meant(tmp_path, monkeypatch) -> None:  # SF-4
    run = _ran(tmp_path)
    monkeypatch.setattr("sys.stdin", StringIO("y\n"))
    with pytest.raises(CommandError, match="--yes says that it is meant"):
        _deleted(str(run.pk))
    assert StudyRun.objects.exists()
    with pytest.raises(CommandError, match="there is no study 999"):
        _deleted("999", "--yes")
