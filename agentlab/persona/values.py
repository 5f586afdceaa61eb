"""What every value of the engine obeys: exact types, canonical bytes, clean text, and draws from a hash.

A state or an event *is* its bytes. MessagePack with sorted sets and maps writes one value in one way; these checks keep
out what would be written in two (a whole number where a float belongs, True where a number belongs).
"""

import hashlib
import math
from typing import Any

import msgspec

ENCODER = msgspec.msgpack.Encoder(order="deterministic")

# What decoding raises for bytes that are not what they should be; nesting without end is one way.
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, TypeError)


class Invalid(ValueError):
    """A value that the engine refuses; the message names the place in one line."""


def canonical(value: Any) -> bytes:
    """The one spelling of a value: MessagePack, maps and sets sorted. Raises `Invalid` where it has none."""
    try:
        return ENCODER.encode(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise Invalid(f"cannot be written: {error}") from None


def sha256(data: bytes) -> str:
    """Lowercase hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def real(name: str, value: object, least: float = -math.inf, most: float = math.inf) -> None:
    """Refuse anything but a finite float within [least, most]."""
    if type(value) is not float or not math.isfinite(value) or not least <= value <= most:
        raise Invalid(f"{name} must be a finite float in [{least:g}, {most:g}], not {value!r}")


def whole(name: str, value: object, least: int = 0) -> None:
    """Refuse anything but an int of at least `least` (True is not 1)."""
    if type(value) is not int or value < least:
        raise Invalid(f"{name} must be a whole number of at least {least}, not {value!r}")


def text(name: str, value: object) -> None:
    """Refuse anything but a non-empty string."""
    if type(value) is not str or not value:
        raise Invalid(f"{name} must be a non-empty string, not {value!r}")


def clean(value: str) -> str:
    """The text with lone surrogates spelled out (`\\ud83d`): UTF-8 has no bytes for them. All else stays."""
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


def clip(value: float, least: float, most: float) -> float:
    return least if value < least else most if value > most else value


def why(error: BaseException, limit: int = 400) -> str:
    """Why something failed, as a line that any database and any terminal takes: `KeyError: 'x'`. Whatever was raised
    may hold any text: a NUL, which PostgreSQL refuses, or half of a pair of surrogates, which has no bytes."""
    said = clean(f"{type(error).__name__}: {error}").replace("\0", "\\0")
    return cut(" ".join(said.split()), limit)


def cut(value: str, limit: int) -> str:
    """The text in at most `limit` characters, with an ellipsis where it was longer."""
    return value if len(value) <= limit else value[: limit - 1].rstrip() + "…"


def draw(*names: object) -> float:
    """A number in [0, 1) that depends on the names alone: the first 53 bits of their SHA-256.

    It needs no generator whose position would have to be saved: a resumed study draws what it would have drawn.
    """
    digest = hashlib.sha256("\x1f".join(map(str, names)).encode()).digest()
    return (int.from_bytes(digest[:8], "big") >> 11) / 2**53
