"""Studies and personas in the admin: operators look and search, each row leads to its page, nobody changes anything."""

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from agentlab.persona.models import StudyPersona, StudyRun
from agentlab.persona.runs import create
from agentlab.persona.study import read_study

from .making import study, written

pytestmark = pytest.mark.django_db

LISTS = ["studyrun", "studypersona"]
NAME = "Levy <b>\u202e"


@pytest.fixture
def run(tmp_path) -> StudyRun:
    people = [{"id": "ada", "name": NAME}, {"id": "bo"}]
    content = study(name=NAME, personas=people)
    return create(
        read_study(written(tmp_path, content)), executor="inline", owner_id=User.objects.create_user("olga").pk
    )


@pytest.mark.parametrize("page", LISTS)
def test_operators_look_and_change_nothing(run, admin_client: Client, page: str) -> None:  # VW-8
    row = {"studyrun": run, "studypersona": run.people.first()}[page]
    assert admin_client.get(f"/admin/persona/{page}/").status_code == 200
    change = f"/admin/persona/{page}/{row.pk}/change/"
    assert admin_client.get(change).status_code == 200
    for forbidden in (f"/admin/persona/{page}/add/", f"/admin/persona/{page}/{row.pk}/delete/"):
        assert admin_client.get(forbidden).status_code == 403
    assert admin_client.post(change, {"name": "Other", "status": "complete"}).status_code == 403
    assert admin_client.post(f"/admin/persona/{page}/", {"action": "delete_selected", "_selected_action": row.pk})
    assert (StudyRun.objects.get().name, StudyPersona.objects.count()) == (NAME, 2)


@pytest.mark.parametrize("page", LISTS)
def test_who_is_no_operator_finds_no_list(run, page: str) -> None:  # SF-1
    client = Client()
    for user in (None, User.objects.get(username="olga"), User.objects.create_user("op", is_staff=True)):
        if user:
            client.force_login(user)
        response = client.get(f"/admin/persona/{page}/", follow=True)
        assert b"Levy" not in response.content


@pytest.mark.parametrize("page", LISTS)
def test_names_are_inert_and_lead_to_the_page(run, admin_client: Client, page: str) -> None:  # VW-8 SF-2
    listed = admin_client.get(f"/admin/persona/{page}/").content.decode()
    assert NAME not in listed
    assert "Levy &lt;b&gt;" in listed
    assert 'title="U+202E"' in listed
    assert f'href="{reverse("study", args=[run.pk])}"' in listed
    assert page == "studyrun" or f'href="{reverse("study-persona", args=[run.pk, "ada"])}"' in listed


@pytest.mark.parametrize(
    ("page", "term", "found"),
    [
        *(("studyrun", "levy", 1), ("studyrun", "olga", 1), ("studyrun", "nobody", 0), ("studyrun", "9" * 40, 0)),
        *(("studypersona", "ada", 1), ("studypersona", "levy", 2), ("studypersona", "'; DROP", 0)),
    ],
)
def test_a_search_finds_by_what_a_row_is_called(run, admin_client: Client, page: str, term: str, found: int) -> None:
    listed = admin_client.get(f"/admin/persona/{page}/", {"q": term}).content.decode()  # VW-8
    assert listed.count('class="action-checkbox"') + listed.count("field-study") == found


def test_a_study_is_found_by_its_number(run, admin_client: Client) -> None:  # VW-8
    listed = admin_client.get("/admin/persona/studyrun/", {"q": str(run.pk)}).content.decode()
    assert reverse("study", args=[run.pk]) in listed


@pytest.mark.parametrize("page", LISTS)
def test_a_list_takes_as_many_queries_for_two_as_for_twenty(run, tmp_path, admin_client: Client, page: str) -> None:
    def queries() -> int:  # VW-8
        with CaptureQueriesContext(connection) as seen:
            assert admin_client.get(f"/admin/persona/{page}/").status_code == 200
        return len(seen)

    few = queries()
    for number in range(18):
        owner = User.objects.create_user(f"owner{number}")
        create(read_study(written(tmp_path, study(seed=number))), executor="inline", owner_id=owner.pk)
    assert queries() == few
