"""System checks: what can be misconfigured around capture is said before anybody plays."""

import contextlib
import socket
import threading
from typing import Any

import pytest
import redis
from django.core.checks import run_checks

from capture.buffer import BufferUnavailable
from capture.checks import (
    capture_redis_is_its_own,
    capture_redis_is_one_server,
    capture_redis_keeps_what_it_is_given,
    service_key_is_hard_to_guess,
)
from capture.reading import hot_buffer
from tests.capture.making import take_redis_away, turn
from tests.faults.redis_node import RedisNode


def ids(messages: list[Any]) -> list[str]:
    return [message.id for message in messages]


def share(settings: Any, capture: str, cache: str) -> None:
    default = {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": cache}
    settings.CACHES = {"default": default, "capture": {**settings.CACHES["capture"], "LOCATION": capture}}


@pytest.mark.parametrize(
    ("capture", "cache"),
    [
        ("redis://h:6379/0", "redis://h"),
        ("redis://localhost/1", "redis://127.0.0.1:6379?db=1"),
        ("redis://user:word@h/0", "rediss://h:6379/0"),
        ("unix:///run/r.sock?db=2", "unix:///run/r.sock?db=2"),
    ],
)
def test_a_buffer_in_the_caches_database_is_an_error(settings, capture: str, cache: str) -> None:  # CAP-11
    share(settings, capture, cache)
    (message,) = capture_redis_is_its_own(None)
    assert (message.id, "'default'" in message.msg, "word" in message.msg) == ("capture.E001", True, False)


@pytest.mark.parametrize(
    ("capture", "cache"),
    [
        ("redis://h/0", "redis://h/1"), ("redis://h:1/0", "redis://h:2/0"), ("redis://a/0", "redis://b/0"),
        ("unix:///run/r.sock", "redis://h/0"),
    ],
)  # fmt: skip
def test_a_buffer_of_its_own_is_no_error(settings, capture: str, cache: str) -> None:  # CAP-11
    share(settings, capture, cache)
    assert capture_redis_is_its_own(None) == []


def test_the_default_settings_share_nothing(settings) -> None:  # CAP-11
    assert capture_redis_is_its_own(None) == []


@pytest.mark.parametrize(
    ("policy", "found"), [("noeviction", []), ("allkeys-lru", ["capture.W001"]), ("volatile-ttl", ["capture.W001"])]
)
def test_a_policy_that_may_evict_keys_is_a_warning(capture_redis: redis.Redis, policy: str, found: list[str]) -> None:
    # CAP-11
    before = capture_redis.config_get("maxmemory-policy")["maxmemory-policy"]
    capture_redis.config_set("maxmemory-policy", policy)
    try:
        assert ids(capture_redis_keeps_what_it_is_given(None)) == found
    finally:
        capture_redis.config_set("maxmemory-policy", before)


def test_a_node_of_a_cluster_is_a_warning(settings) -> None:  # CAP-12
    options = ("--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf")
    for given, found in (((), []), (options, ["capture.W003"])):
        with RedisNode(*given) as node:
            share(settings, f"redis://127.0.0.1:{node.port}/0", "redis://h")
            assert ids(capture_redis_is_one_server(None)) == found


def test_a_redis_that_hangs_is_asked_once_for_each_thing(settings) -> None:  # CAP-10
    asked: list[socket.socket] = []

    def takes_every_call() -> None:
        with contextlib.suppress(OSError):
            while True:
                asked.append(listener.accept()[0])

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=takes_every_call, daemon=True).start()
        share(settings, f"redis://127.0.0.1:{listener.getsockname()[1]}/0", "redis://h")
        with pytest.raises(BufferUnavailable, match="timed out"):
            hot_buffer().write([turn()])
        listener.shutdown(socket.SHUT_RDWR)
    assert len(asked) == 1  # to try again is to call again, while the turns behind wait for both


def test_a_redis_that_is_not_up_yet_is_not_complained_of(settings) -> None:  # CAP-11
    take_redis_away(settings)
    assert capture_redis_keeps_what_it_is_given(None) == []
    assert capture_redis_is_one_server(None) == []


@pytest.mark.parametrize(("key", "found"), [("", []), ("k" * 16, []), ("k" * 15, ["capture.W002"])])
def test_a_short_key_is_a_warning_where_the_site_is_deployed(settings, key: str, found: list[str]) -> None:  # RD-4
    settings.AGENT_CAPTURE_SERVICE_KEY = key
    assert ids(service_key_is_hard_to_guess(None)) == found


def test_the_checks_are_registered(settings) -> None:  # CAP-11, SF-3
    share(settings, "redis://h/0", "redis://h/0")
    settings.AGENT_CAPTURE_SERVICE_KEY = "short"
    take_redis_away(settings)
    settings.CACHES = {**settings.CACHES, "default": settings.CACHES["capture"]}
    found = ids(run_checks(include_deployment_checks=True))
    assert {"capture.E001", "capture.W002"} <= set(found)
