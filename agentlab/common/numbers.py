"""Numbers, counts, sizes, money, durations and times for eyes: every digit that was there, and none that was not."""

from datetime import UTC, datetime
from decimal import Decimal

LONGEST = 1000  # digits; a number that is longer than that only for its zeros is written with its exponent


def amount(value: object) -> str:
    """A number with all its digits (`1,353`, `0.999`, `1.10`, `NaN`); anything else as its own text."""
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, int):
        return whole(value, ",")
    if isinstance(value, Decimal):
        return f"{value:,f}" if _is_writable(value) else str(value)
    if isinstance(value, float):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value))
    return str(value)


def whole(value: int, form: str = "") -> str:
    """An integer in base 10, or in base 16 where Python refuses to write one so long."""
    return format(value, form) if value.bit_length() <= 10_000 else hex(value)


def signed(value: int) -> str:
    """What was won or lost: `+1,200`, `−48`, `0`."""
    return f"{'+' if value > 0 else '−' if value < 0 else ''}{whole(abs(value), ',')}"


def chips(value: int) -> str:
    """`+1 chip`, `−48 chips`, `0 chips`."""
    return f"{signed(value)} chip{'' if abs(value) == 1 else 's'}"


def counted(count: int, noun: str) -> str:
    """`1 turn`, `2 turns`, `1,353 turns`. `noun` is one whose plural ends in -s."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _is_writable(value: Decimal) -> bool:
    return value.is_finite() and abs(value.adjusted()) < LONGEST


def size(count: int | None) -> str:
    """A number of bytes for eyes: `812 B`, `7.5 KB`, `1.1 MB`. One KB is 1,000 bytes. Unknown is said, never 0."""
    if count is None:
        return "size unknown"
    if count < 1000:
        return f"{count} B"
    number = float(count)
    for unit in ("KB", "MB", "GB"):
        number /= 1000
        if number < 999.95 or unit == "GB":
            return f"{number:,.1f} {unit}"
    raise AssertionError("unreachable")


def money(value: Decimal | float | None) -> str:
    """US dollars, to the last digit that is not zero: `$0.0031`, `$1.20`, `$0`."""
    if value is None:
        return "cost unknown"
    value = Decimal(str(value)) if isinstance(value, float) else Decimal(value)
    if not _is_writable(value):
        return f"${value}"
    if value == 0:
        return "$0"
    whole, _, cents = f"{abs(value):,f}".partition(".")
    return f"{'−' if value < 0 else ''}${whole}.{cents.rstrip('0').ljust(2, '0')}"


def duration(milliseconds: float | None) -> str:
    """`85 ms`, `1.9 s`, `2 min 5 s`, `3 h 20 min`."""
    if milliseconds is None:
        return "duration unknown"
    if milliseconds < 100:
        return f"{milliseconds:.0f} ms"
    if milliseconds < 59_950:
        return f"{milliseconds / 1000:.1f} s"
    minutes, seconds = divmod(round(milliseconds / 1000), 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s"
    return f"{minutes // 60} h {minutes % 60} min"


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)


def date_and_time(moment: datetime) -> str:
    """`29 Nov 2026 14:02:11 UTC`."""
    moment = _utc(moment)
    return f"{moment.day} {moment:%b %Y %H:%M:%S} UTC"


def clock(moment: datetime) -> str:
    return f"{_utc(moment):%H:%M:%S}"


def ago(moment: datetime, now: datetime) -> str:
    """`just now`, `4 min ago`, `26 h ago`, `3 days ago`; a moment to come is given in full."""
    seconds = (now - moment).total_seconds()
    if seconds < -5:
        return date_and_time(moment)
    if seconds < 10:
        return "just now"
    for limit, unit, name in ((60, 1, "s"), (3600, 60, "min"), (48 * 3600, 3600, "h")):
        if seconds < limit:
            return f"{int(seconds // unit)} {name} ago"
    return f"{int(seconds // 86400)} days ago"
