"""System checks of what can be misconfigured around capture."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django_redis import get_redis_connection
from redis import RedisError
from redis.connection import parse_url

LEAST_KEY = 16  # characters


@register(Tags.caches)
def capture_redis_is_its_own(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """The buffer must not share a database with a cache: a cache may be cleared or evicted at any time."""
    caches: Any = settings.CACHES
    capture = _place(caches["capture"])
    return [
        Error(
            f"The capture buffer is in the same Redis database as the {name!r} cache.",
            hint="Give AGENT_CAPTURE_REDIS_URL and CACHE_URL two servers, or at least two database numbers.",
            id="capture.E001",
        )
        for name, cache in caches.items()
        if name != "capture" and _place(cache) == capture
    ]


def _place(cache: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Server and database number of a Redis cache; None for any other cache."""
    location = cache.get("LOCATION")
    url = location[0] if isinstance(location, list | tuple) else location
    if "redis" not in cache["BACKEND"].lower() or not isinstance(url, str):
        return None
    parts = parse_url(url)  # type: ignore[no-untyped-call]
    host = {"localhost": "127.0.0.1", "::1": "127.0.0.1"}.get(parts.get("host", "localhost"), parts.get("host"))
    server = (parts["path"],) if "path" in parts else (host or "127.0.0.1", parts.get("port", 6379))
    return (*server, parts.get("db", 0))


@register(Tags.caches)
def capture_redis_keeps_what_it_is_given(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """Asks the server, where it answers: a policy other than noeviction may throw out other keys than those that are
    written, turns of the day and what else lives there."""
    policy = _said("memory", "maxmemory_policy")
    if policy in (None, "noeviction"):
        return []
    return [
        Warning(
            f"The capture Redis may evict keys (maxmemory-policy {policy}).",
            hint="Set maxmemory-policy noeviction: a full buffer then refuses new turns, which the ledger counts.",
            id="capture.W001",
        )
    ]


@register(Tags.caches)
def capture_redis_is_one_server(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """Asks the server, where it answers. What is ours here speaks to one server, and a node of a cluster turns away
    every hand that is another node's."""
    if _said("cluster", "cluster_enabled") != 1:
        return []
    return [
        Warning(
            "AGENT_CAPTURE_REDIS_URL names a node of a Redis Cluster: it refuses the hands of the other nodes.",
            hint="Name a single server. Agents of your own may give TurnBuffer redis-py's cluster client.",
            id="capture.W003",
        )
    ]


def _said(section: str, name: str) -> Any:
    """None where the server does not answer or does not say: it may be up later, and not for everyone to ask."""
    try:
        return get_redis_connection("capture").info(section).get(name)
    except (RedisError, OSError):
        return None


@register(Tags.security, deploy=True)
def service_key_is_hard_to_guess(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """Without a key the internal API is closed, which is safe; with a short one it is open to guessing."""
    key = settings.AGENT_CAPTURE_SERVICE_KEY
    if not key or len(key) >= LEAST_KEY:
        return []
    return [
        Warning(
            f"AGENT_CAPTURE_SERVICE_KEY has fewer than {LEAST_KEY} characters.",
            hint="python -c 'import secrets; print(secrets.token_urlsafe(48))'",
            id="capture.W002",
        )
    ]
