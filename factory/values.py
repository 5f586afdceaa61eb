"""Reading values out of records that nobody promised to keep a shape: wrong kinds become None, never an error."""

import json
import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

_LARGEST = 2**43  # so that a million of them can be added in a 64-bit number: SQLite refuses a sum beyond that
NO_OFFSET = "Times in this file name no zone; they are read as UTC."
"""What the reader of such times is told."""


def mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def text(value: object) -> str:
    return value if isinstance(value, str) else ""


def count(value: object) -> int | None:
    """A whole number that can be stored and added up with others, else None."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST:
        return None
    return value


def total(numbers: list[int | None]) -> int | None:
    """The sum of what is known; None where nothing is, or where it is no `count`."""
    known = [number for number in numbers if number is not None]
    return count(sum(known)) if known else None


def money(value: object) -> Decimal | None:
    """Dollars as a Decimal that the cost column holds, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    if not isinstance(value, int) and not math.isfinite(value):
        return None
    if not 0 <= value < 10**9:
        return None
    return Decimal(str(value)).quantize(Decimal("1e-10"))


def written(value: object) -> str:
    """The value as JSON text; of one that is nested beyond all reason only this is said."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (RecursionError, ValueError):
        return "(nested too deeply to be written)"


def lacks_offset(value: object) -> bool:
    """Is it a time whose writer did not say in which zone? `moment` takes it for UTC, and a reader should know."""
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is None
    except ValueError:
        return False


def moment(value: object) -> datetime | None:
    """An aware time from ISO text (one without an offset is UTC) or from milliseconds since 1970, else None."""
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value)
            return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            return datetime.fromtimestamp(value / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None
