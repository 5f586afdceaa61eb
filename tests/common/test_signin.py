"""One log-in door, and a brake on guessing."""

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache, caches
from django.test import Client

from agentlab.common.signin import SIGN_IN_FAILURES
from agentlab.common.throttle import FailureLimit

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_failures_yet() -> None:
    cache.clear()
    User.objects.create_user("ann", password="right")


def _sign_in(client: Client, name: str, password: str, address: str = "127.0.0.1") -> int:
    return client.post("/login", {"username": name, "password": password}, REMOTE_ADDR=address).status_code


def test_too_many_wrong_passwords_are_refused_with_a_readable_page(client: Client) -> None:  # RD-4
    for _ in range(SIGN_IN_FAILURES.limit):
        assert _sign_in(client, "ann", "wrong") == 200
    assert _sign_in(client, "ann", "right") == 429
    page = client.post("/login", {"username": "ann", "password": "right"}).content.decode()
    assert "Too many failed attempts" in page


def test_one_guesser_locks_out_neither_other_addresses_nor_other_people(client: Client) -> None:  # RD-4
    User.objects.create_user("bob", password="right")
    for _ in range(SIGN_IN_FAILURES.limit + 1):
        _sign_in(client, "ann", "wrong", address="10.0.0.1")
    assert _sign_in(Client(), "ann", "right", address="10.0.0.2") == 302
    assert _sign_in(Client(), "bob", "right", address="10.0.0.1") == 302


def test_a_success_forgets_the_failures_before_it(client: Client) -> None:  # RD-4
    for _ in range(3):
        for _ in range(SIGN_IN_FAILURES.limit - 1):
            assert _sign_in(Client(), "ann", "wrong") == 200
        assert _sign_in(Client(), "ann", "right") == 302


def test_odd_user_names_are_refused_quietly(client: Client) -> None:  # SF-4
    for name in ("a\0b", "x" * 5000, "\ud83d", ""):
        assert _sign_in(client, name.encode("utf-8", "replace").decode(), "wrong") == 200


def test_admins_own_login_is_the_same_door(client: Client) -> None:  # RD-4
    response = client.get("/admin/login/?next=/admin/")
    assert (response.status_code, response.headers["Location"]) == (302, "/login?next=%2Fadmin%2F")
    client.force_login(User.objects.get(username="ann"))
    assert client.get("/admin/login/").status_code == 404


def test_failures_are_forgotten_once_their_time_is_over() -> None:  # RD-4
    for seconds, reached in ((300, True), (0, False)):
        limit = FailureLimit(f"for-{seconds}", limit=1, seconds=seconds)
        limit.failed("ann")
        assert limit.reached("ann") is reached


def test_failing_under_many_other_names_makes_no_count_forgotten() -> None:  # RD-4
    for _ in range(SIGN_IN_FAILURES.limit):
        SIGN_IN_FAILURES.failed("ann", "10.0.0.1")
    for number in range(3000):
        SIGN_IN_FAILURES.failed(f"made up {number}", "10.0.0.1")
    assert SIGN_IN_FAILURES.reached("ann", "10.0.0.1")


def test_while_the_cache_is_away_people_sign_in_and_guessers_are_counted_here(settings, client: Client) -> None:
    # RD-4, SF-5
    away = {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": "redis://127.0.0.1:1/0"}
    settings.CACHES = {**settings.CACHES, "default": away}
    caches["here"].clear()
    assert _sign_in(Client(), "ann", "right") == 302
    for _ in range(SIGN_IN_FAILURES.limit):
        assert _sign_in(client, "ann", "wrong") == 200
    assert _sign_in(client, "ann", "right") == 429
    assert client.get("/internal/agent-capture/hands", headers={"x-service-key": "guess"}).status_code == 401


def test_a_made_up_forwarding_header_gives_a_guesser_no_new_tries(client: Client) -> None:  # RD-4
    for number in range(SIGN_IN_FAILURES.limit):
        headers = {"x-forwarded-for": f"10.0.0.{number}", "x-real-ip": f"10.0.0.{number}"}
        assert client.post("/login", {"username": "ann", "password": "wrong"}, headers=headers).status_code == 200
    headers = {"x-forwarded-for": "10.1.0.1", "forwarded": "for=10.1.0.1"}
    assert client.post("/login", {"username": "ann", "password": "right"}, headers=headers).status_code == 429


@pytest.mark.parametrize(
    "elsewhere",
    [
        "https://evil.example",
        "//evil.example",
        "/\\evil.example",
        "\t//evil.example",
        "javascript:alert(1)",
        "http:evil",
    ],
)
def test_signing_in_and_choosing_colours_lead_nowhere_else(client: Client, elsewhere: str) -> None:  # SF-4
    signed = client.post("/login", {"username": "ann", "password": "right", "next": elsewhere})
    coloured = client.post("/theme", {"theme": "dark", "next": elsewhere})
    assert (signed.headers["Location"], coloured.headers["Location"]) == ("/", "/")


def test_signing_in_makes_a_new_session(client: Client) -> None:  # SF-1
    session = client.session
    session["planted"] = True
    session.save()
    planted = session.session_key
    assert _sign_in(client, "ann", "right") == 302
    assert client.session.session_key != planted


def test_no_form_is_taken_without_its_token() -> None:  # SF-1
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.get(username="ann"))
    for path in ("/login", "/logout", "/theme", "/agents/new", "/agent-capture/keep"):
        assert strict.post(path, {"theme": "dark"}).status_code == 403, path
