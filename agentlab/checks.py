"""System checks of the project's own settings. A room's own checks are in the room."""

import os
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

from agentlab.common.given import check_endpoint
from agentlab.hosted.model_adapters import open_model


@register(Tags.database, deploy=True)
def stores_are_named(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """What a local site takes by itself, a deployed one would have in a folder of whoever started it."""
    missing = [name for name in ("DATABASE_URL", "AGENT_CAPTURE_REDIS_URL") if not _is_set(name)]
    if settings.HOSTED_AGENT_URL:  # hands come from there
        missing = [name for name in missing if name == "DATABASE_URL"]
    return [
        Warning(f"{name} is not set.", hint=f"The default lies in {settings.STATE_DIR}.", id="agentlab.W002")
        for name in missing
    ]


def _is_set(name: str) -> bool:
    return bool(os.environ.get(name) or os.environ.get(f"{name}_FILE"))


@register(Tags.security, deploy=True)
def hosts_are_names(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """A request's host has no scheme and no path, and its port is not compared: such an entry lets nobody in."""
    return [
        Error(
            f"ALLOWED_HOSTS names {host[:100]!r}, which no request can match.",
            hint="The name alone, without scheme, port or path: agentlab.example",
            id="agentlab.E003",
        )
        for host in settings.ALLOWED_HOSTS
        if not _is_host(host)
    ]


def _is_host(entry: str) -> bool:
    inside = entry[1:-1] if entry.startswith("[") and entry.endswith("]") else entry.replace(":", "/")
    return not any(character in "/@?#[]" or character.isspace() for character in inside)


@register(deploy=True)
def models_can_be_asked(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """What `play` and the factory would find out at their start, or at the first turn of an agent."""
    address, key = settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY
    try:
        if address:
            check_endpoint(address, key)
    except ValueError as error:
        return [Error(f"{error}.", hint="The client adds /chat/completions to it.", id="agentlab.E004")]
    try:
        open_model(settings.AGENTLAB_MODEL, base_url=address, api_key=key)
    except ValueError as error:
        return [Error(f"AGENTLAB_MODEL: {error}.", hint="house, openai:NAME or answers:FILE.", id="agentlab.E005")]
    return []


@register(Tags.security)
def other_host(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """Hands are read from another host over HTTP, with the key that it knows."""
    if not settings.HOSTED_AGENT_URL:
        return []
    found: list[CheckMessage] = []
    url = urlsplit(settings.HOSTED_AGENT_URL)
    if url.scheme not in {"http", "https"} or not url.hostname:
        found.append(Error("HOSTED_AGENT_URL is no address.", hint="https://host, without a path.", id="agentlab.E001"))
    elif url.scheme == "http" and url.hostname not in {"localhost", "127.0.0.1", "::1"}:
        found.append(
            Warning(
                "HOSTED_AGENT_URL sends the service key and receives prompts without encryption.",
                hint="Use https://.",
                id="agentlab.W001",
            )
        )
    if not settings.AGENT_CAPTURE_SERVICE_KEY:
        found.append(
            Error(
                "HOSTED_AGENT_URL is set and AGENT_CAPTURE_SERVICE_KEY is not: the other host will refuse.",
                hint="Set it to the other host's key.",
                id="agentlab.E002",
            )
        )
    return found
