"""One log-in door, and a brake on guessing."""

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client

from agentlab.common.signin import SIGN_IN_FAILURES

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
