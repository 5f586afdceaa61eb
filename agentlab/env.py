"""Typed readers of environment variables. A value that cannot be read is refused, never guessed."""

from django.core.exceptions import ImproperlyConfigured
from redis.connection import parse_url

from agentlab.common.given import given


def text(name: str, default: str = "") -> str:
    """The variable's text; `NAME_FILE` names a file that holds it (for secrets). Empty counts as unset."""
    try:
        return given(name) or default
    except ValueError as error:
        raise ImproperlyConfigured(str(error)) from None


def flag(name: str, default: bool) -> bool:
    """True or False, spelled 1/0, true/false, yes/no or on/off."""
    value = text(name).lower()
    if not value:
        return default
    if value in {"1", "true", "yes", "on"}:
        return True
    if value in {"0", "false", "no", "off"}:
        return False
    raise ImproperlyConfigured(f"{name} must be true or false, not {value!r}")


def whole(name: str, default: int, *, least: int = 0, most: int = 10**15) -> int:
    """A whole number from `least` to `most`."""
    value = text(name)
    if not value:
        return default
    if not value.isascii() or not value.isdigit() or len(value) > 18 or not least <= int(value) <= most:
        raise ImproperlyConfigured(f"{name} must be a whole number from {least} to {most}, not {value[:40]!r}")
    return int(value)


def one_of(name: str, default: str, allowed: tuple[str, ...]) -> str:
    """One of the words that are allowed."""
    value = text(name, default)
    if value not in allowed:
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(allowed)}, not {value[:40]!r}")
    return value


def redis_url(name: str, default: str = "") -> str:
    """A Redis address. What is wrong with it is not quoted: it may hold a password."""
    value = text(name, default)
    try:
        if value:
            parse_url(value)  # type: ignore[no-untyped-call]
    except ValueError:
        raise ImproperlyConfigured(f"{name} cannot be read: redis://host:6379/0, rediss:// or unix:///path") from None
    return value


def names(name: str, default: list[str]) -> list[str]:
    """A comma-separated list."""
    value = text(name)
    return [part.strip() for part in value.split(",") if part.strip()] if value else default
