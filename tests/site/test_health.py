"""`/healthz`: what a monitor learns, and what nobody learns."""

import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import OperationalError, connection
from django.test import Client, override_settings
from django.utils import timezone
from django_redis import get_redis_connection

from agentlab import health
from agentlab.agents.models import InferenceCharge
from agentlab.common import schema
from capture import sources

pytestmark = pytest.mark.django_db(transaction=True)  # the checks run on threads of their own


def captured(at: datetime, outcome: str = "recorded") -> None:
    InferenceCharge.objects.create(
        agent_id="rocky", table_id="T", hand_number=1, action_index=0, played_at=at, capture_outcome=outcome
    )


@pytest.fixture
def a_redis_that_hangs(settings: object) -> Iterator[None]:
    """A socket that takes connections and never says a word."""
    from django.core.cache import caches

    with socket.create_server(("127.0.0.1", 0)) as silent:
        changed = {
            **settings.CACHES,
            "capture": {**settings.CACHES["capture"], "LOCATION": f"redis://127.0.0.1:{silent.getsockname()[1]}"},
        }
        with override_settings(CACHES=changed):
            yield
    caches["capture"].close()


def test_a_site_with_both_stores_is_well(client: Client, capture_redis: redis.Redis) -> None:  # HA-10
    response = client.get("/healthz")
    assert response.status_code == 200
    assert response.json() == {"ok": True, "database": "up", "captureRedis": "up", "lastCapturedTurnAge": None}


def test_it_tells_how_long_ago_the_last_turn_was_captured(client: Client, capture_redis: redis.Redis) -> None:
    captured(timezone.now() - timedelta(seconds=90))
    assert 90 <= client.get("/healthz").json()["lastCapturedTurnAge"] < 120


def test_a_turn_that_was_dropped_is_no_captured_turn(client: Client, capture_redis: redis.Redis) -> None:
    captured(timezone.now(), "dropped")
    assert client.get("/healthz").json()["lastCapturedTurnAge"] is None


def test_without_redis_the_site_serves_and_says_what_is_lost(client: Client) -> None:  # SF-5, CAP-10
    changed = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}
    changed["capture"] = {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": "unix:///nowhere/redis.sock"}
    with override_settings(CACHES=changed):
        response = client.get("/healthz")
    said = response.json()
    assert (response.status_code, said["ok"], said["captureRedis"]) == (200, True, "down")
    assert said["reason"].startswith("The capture Redis does not answer: turns that are played now are counted and not")


def test_a_redis_that_hangs_is_down_in_time(client: Client, a_redis_that_hangs: None) -> None:  # SF-5
    response = client.get("/healthz")
    assert (response.status_code, response.json()["captureRedis"]) == (200, "down")


def test_without_its_database_the_site_cannot_serve(client: Client, capture_redis: redis.Redis) -> None:  # SF-5
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE agent_inference_charges RENAME TO elsewhere")
        try:
            response = client.get("/healthz")
        finally:
            cursor.execute("ALTER TABLE elsewhere RENAME TO agent_inference_charges")
    assert response.status_code == 503
    said = response.json()
    assert said.pop("reason").startswith("The database does not answer: no page but this one works. Turns ")
    assert said == {"ok": False, "database": "down", "captureRedis": "up", "lastCapturedTurnAge": None}


def test_who_is_signed_in_is_told_as_much_without_a_look_at_who_that_is(
    client: Client, capture_redis: redis.Redis, django_user_model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:  # SF-5
    client.force_login(django_user_model.objects.create_user("ann"))
    monkeypatch.setattr("django.contrib.sessions.backends.db.SessionStore.load", lambda store: 1 / 0)
    assert client.get("/healthz").json()["ok"]


@pytest.fixture
def an_old_schema(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The factory's later migrations were never run: what they add is not there."""
    monkeypatch.setattr(schema, "_is_current", False)
    call_command("migrate", "factory", "0005", verbosity=0)
    yield
    call_command("migrate", "factory", verbosity=0)


def test_an_old_schema_is_named_and_once_it_is_migrated_the_site_is_well(  # SF-5
    client: Client, capture_redis: redis.Redis, an_old_schema: None
) -> None:
    response = client.get("/healthz")
    assert response.status_code == 503
    said = response.json()
    assert (said["ok"], said["database"], said["reason"]) == (False, "up", "migrations are missing")
    call_command("migrate", "factory", verbosity=0)
    response = client.get("/healthz")
    assert (response.status_code, "reason" in response.json()) == (200, False)


@pytest.mark.parametrize("local", [True, False])
def test_a_page_over_an_old_schema_says_how_it_is_brought_up_to_date(
    settings: Any, django_user_model: Any, an_old_schema: None, local: bool
) -> None:  # SF-5
    settings.LOCAL = local
    client = Client(raise_request_exception=False)
    client.force_login(django_user_model.objects.create_user("ada"))
    for path in ("/factory", "/"):
        response = client.get(path)
        said = response.content.decode()
        assert (response.status_code, "manage.py migrate" in said, "make run" in said) == (503, True, local), path
        assert "Something broke" not in said


def test_a_program_is_told_of_an_old_schema_in_json(django_user_model: Any, an_old_schema: None) -> None:  # SF-5
    client = Client(raise_request_exception=False)
    client.force_login(django_user_model.objects.create_user("ada"))
    response = client.get(f"/api/collector/attempts/{'a' * 32}")
    assert response.status_code == 503
    assert "manage.py migrate" in response.json()["error"]["message"]


def test_a_fault_over_a_schema_of_today_is_still_called_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:  # SF-5
    assert not schema.why_unready(ValueError("no"))
    assert not schema.why_unready(OperationalError("the disk is full"))
    monkeypatch.setattr(schema, "is_behind", lambda: True)
    assert not schema.why_unready(None)


def test_a_page_and_a_program_are_told_that_the_database_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    # SF-5
    def gone(*_: Any, **__: Any) -> None:
        raise OperationalError("connection refused")

    monkeypatch.setattr("agentlab.common.schema.is_behind", gone)
    monkeypatch.setattr("agentlab.home.is_operator", gone)
    client = Client(raise_request_exception=False)
    monkeypatch.setattr("django.contrib.auth.middleware.get_user", lambda request: User(username="ada"))
    page = client.get("/")
    assert (page.status_code, "The database does not answer." in page.content.decode()) == (503, True)


def test_what_is_known_of_the_schema_is_asked_once(  # SF-5
    client: Client, capture_redis: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.get("/healthz")
    monkeypatch.setattr(schema, "is_behind", lambda: pytest.fail("it was known"))
    assert client.get("/healthz").status_code == 200


@pytest.fixture
def another_host(live_server: Any, settings: Any) -> Iterator[Any]:
    """Its own stores behind the internal API; these pages have them from there."""
    settings.HOSTED_AGENT_URL, settings.ALLOWED_HOSTS = live_server.url, ["*"]
    yield settings
    sources._client.cache_clear()


def test_where_hands_come_from_another_host_it_is_asked_and_no_redis_is_needed(  # RD-5
    client: Client, another_host: Any
) -> None:
    captured(timezone.now())
    response = client.get("/healthz")
    said = response.json()
    assert (response.status_code, said["captureRedis"], said["hostedAgent"]) == (200, "elsewhere", "up")
    assert "reason" not in said


def test_another_host_that_refuses_our_key_gives_no_hands_and_the_site_serves(  # RD-5
    client: Client, another_host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = sources.RemoteHands(another_host.HOSTED_AGENT_URL, "not its key")
    monkeypatch.setattr(health, "hand_source", lambda: other)
    response = client.get("/healthz")
    said = response.json()
    assert (response.status_code, said["ok"], said["hostedAgent"]) == (200, True, "down")
    assert "refused our service key. Hands cannot be shown until that is mended" in said["reason"]
    assert another_host.HOSTED_AGENT_URL not in response.content.decode()


def test_another_host_that_is_away_or_silent_is_told_of_in_time(client: Client, settings: Any) -> None:  # RD-5, SF-5
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        settings.HOSTED_AGENT_URL = f"http://127.0.0.1:{port}"
        response = client.get("/healthz")
        assert (response.status_code, response.json()["hostedAgent"]) == (200, "down")
        assert response.json()["reason"].startswith("The hosted agent does not answer in time.")
    settings.HOSTED_AGENT_URL = f"http://127.0.0.1:{port}/gone"
    assert client.get("/healthz").json()["reason"].startswith("The hosted agent cannot be reached.")


def test_it_is_not_sent_to_https_and_not_cached(client: Client, capture_redis: redis.Redis) -> None:
    with override_settings(SECURE_SSL_REDIRECT=True):
        assert client.get("/healthz").status_code == 200
        assert client.get("/").status_code == 301
    assert "no-store" in client.get("/healthz").headers["Cache-Control"]


def test_it_is_read_only(client: Client) -> None:  # SF-4
    assert client.post("/healthz").status_code == 405


def test_a_clock_that_runs_behind_makes_no_negative_age(client: Client, capture_redis: redis.Redis) -> None:
    captured(datetime(2999, 1, 1, tzinfo=UTC))
    assert client.get("/healthz").json()["lastCapturedTurnAge"] == 0


def test_the_questions_are_asked_side_by_side_and_within_a_limit() -> None:
    assert health.SECONDS <= 3
    assert get_redis_connection("capture").connection_pool.connection_kwargs["socket_timeout"] <= health.SECONDS
