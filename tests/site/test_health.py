"""`/healthz`: what a monitor learns, and what nobody learns."""

import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import redis
from django.db import connection
from django.test import Client, override_settings
from django.utils import timezone
from django_redis import get_redis_connection

from agentlab import health
from agentlab.agents.models import InferenceCharge

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


def test_without_redis_the_site_cannot_serve(client: Client) -> None:  # SF-5
    changed = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}
    changed["capture"] = {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": "unix:///nowhere/redis.sock"}
    with override_settings(CACHES=changed):
        response = client.get("/healthz")
    assert (response.status_code, response.json()["captureRedis"]) == (503, "down")


def test_a_redis_that_hangs_is_down_in_time(client: Client, a_redis_that_hangs: None) -> None:  # SF-5
    response = client.get("/healthz")
    assert (response.status_code, response.json()["captureRedis"]) == (503, "down")


def test_without_its_database_the_site_cannot_serve(client: Client, capture_redis: redis.Redis) -> None:  # SF-5
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE agent_inference_charges RENAME TO elsewhere")
        try:
            response = client.get("/healthz")
        finally:
            cursor.execute("ALTER TABLE elsewhere RENAME TO agent_inference_charges")
    assert response.status_code == 503
    assert response.json() == {"ok": False, "database": "down", "captureRedis": "up", "lastCapturedTurnAge": None}


def test_where_hands_come_from_another_host_no_redis_is_needed(client: Client) -> None:  # RD-5
    with override_settings(HOSTED_AGENT_URL="https://hands.example"):
        response = client.get("/healthz")
    assert (response.status_code, response.json()["captureRedis"]) == (200, "elsewhere")


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
