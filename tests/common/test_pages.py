"""The pages that belong to no room: home, sign-in, colours, and what is said when something is wrong."""

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner() -> User:
    return User.objects.create_user("ada", password="only for tests")


@pytest.fixture
def operator() -> User:
    return User.objects.create_user("operator", password="only for tests", is_staff=True)


def test_the_home_page_links_every_room_to_an_operator(client: Client, operator: User) -> None:  # VW-1
    client.force_login(operator)
    page = client.get("/").content.decode()
    for room in ("/agent-capture", "/agents", "/factory", "/personas", "/admin/"):
        assert f'href="{room}"' in page


def test_an_owner_is_shown_no_way_to_what_is_not_theirs(client: Client, owner: User) -> None:  # SF-1
    client.force_login(owner)
    page = client.get("/").content.decode()
    assert "/agent-capture" not in page
    assert 'href="/admin/"' not in page


def test_whoever_is_not_signed_in_is_sent_to_the_form_and_back(client: Client, operator: User) -> None:  # SF-1
    response = client.get("/agent-capture?table=T-4&hand=1")
    assert response["Location"] == "/login?next=/agent-capture%3Ftable%3DT-4%26hand%3D1"
    sent = {"username": "operator", "password": "only for tests", "next": "/agent-capture"}
    assert client.post("/login", sent)["Location"] == "/agent-capture"


def test_sign_in_leads_nowhere_else(client: Client, owner: User) -> None:  # SF-4
    sent = {"username": "ada", "password": "only for tests", "next": "//elsewhere.test/"}
    assert client.post("/login", sent)["Location"] == "/"


def test_a_part_asked_for_after_the_session_ended_reloads_the_page(client: Client) -> None:  # VW-10
    response = client.get("/login?next=/agent-capture", headers={"HX-Request": "true"})
    assert response["HX-Refresh"] == "true"
    assert b"<form" not in response.content


def test_colours_are_kept_in_a_cookie_and_drawn_by_the_server(client: Client) -> None:
    response = client.post("/theme", {"theme": "dark", "next": "/login"})
    assert response["Location"] == "/login"
    assert response.cookies["theme"]["samesite"] == "Lax"
    assert 'data-theme="dark"' in client.get("/").content.decode()


@pytest.mark.parametrize("wanted", ["//elsewhere.test", "https://elsewhere.test/", "javascript:alert(1)"])
def test_colours_lead_nowhere_else(client: Client, wanted: str) -> None:  # SF-4
    assert client.post("/theme", {"theme": "dark", "next": wanted})["Location"] == "/"


def test_a_colour_that_there_is_not_is_refused_and_a_made_up_cookie_ignored(client: Client) -> None:  # SF-4
    assert client.post("/theme", {"theme": "<b>"}).status_code == 400
    client.cookies["theme"] = '"><script>'
    assert 'data-theme="system"' in client.get("/").content.decode()


def test_what_is_not_there_is_a_page_to_a_person_and_json_to_a_program(client: Client, owner: User) -> None:  # SF-4
    client.force_login(owner)
    page = client.get("/nowhere")
    assert page.status_code == 404
    assert "Nothing here" in page.content.decode()
    answer = client.get("/api/nowhere")
    assert answer.status_code == 404
    assert answer.json() == {"error": {"code": "not_found", "message": "There is nothing here."}}


def test_a_form_without_its_token_is_refused_in_words(owner: User) -> None:  # SF-4
    client = Client(enforce_csrf_checks=True)
    client.force_login(owner)
    response = client.post("/theme", {"theme": "dark"})
    assert response.status_code == 403
    assert "reload the page" in response.content.decode()


def test_a_fault_of_ours_shows_no_trace(client: Client, owner: User, monkeypatch: pytest.MonkeyPatch) -> None:  # SF-4
    def fails(*args: object, **kwargs: object) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr("agentlab.home.render", fails)
    client.raise_request_exception = False
    with override_settings(DEBUG=False):
        response = client.get("/")
    assert response.status_code == 500
    assert "Something broke" in response.content.decode()
    assert b"secret" not in response.content


def test_every_page_has_its_landmarks(client: Client) -> None:
    page = client.get("/").content.decode()
    assert page.count("<h1") == 1
    for part in ('class="skip" href="#main"', '<main id="main" tabindex="-1">', 'aria-label="Main"', 'role="status"'):
        assert part in page
