"""The ledger's rows as its writer knows them, and how one that does not fit is reduced to what does. No Django."""

from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

TEXT_LIMITS = {
    "agent_id": 200,
    "table_id": 200,
    "agent_version_id": 200,
    "model": 200,
    "routing": 200,
    "action": 40,
    "change": 20,
    "note": 20,
    "fallback_reason": 200,
    "capture_reason": 200,
}
PROSE = {"fallback_reason", "capture_reason"}
HAND = ("agent_id", "table_id", "hand_number")
KEY = (*HAND, "action_index")
NEVER_UNKNOWN = {*KEY, "model", "routing", "action", "played_at", "net", "ended_at"}
INT64 = 2**63
COST_STEP = Decimal("1e-10")
COST_LIMIT = Decimal(10) ** 10
KNOWN_OUTCOMES = ("recorded", "dropped", "failed")

Key = tuple[str, str, int, int]
HandKey = tuple[str, str, int]


class NoRow(ValueError):
    """What must be there for a row to exist at all (its key, its time) cannot be stored."""


@dataclass(frozen=True)
class Charge:
    """One inference turn, without content. `cost` is in US dollars, `duration_ms` in milliseconds, `played_at` aware.

    A fallback turn has `capture_outcome` "none"; any other begins as "pending". `change` is the word for what became
    of the model's choice, `note` what is odd about what the agent knew; "" is nothing, None not known. `heard` are the
    ids of whispers that the turn was decided with and that no turn was noted for yet; it is no column of the ledger.
    """

    agent_id: str
    table_id: str
    hand_number: int
    action_index: int
    played_at: datetime
    agent_version_id: str | None = None
    deployment_id: int | None = None
    model: str = ""
    routing: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: Decimal | None = None
    duration_ms: int | None = None
    action: str = ""
    amount: int | None = None
    change: str | None = None
    note: str | None = None
    is_fallback: bool = False
    fallback_reason: str = ""
    capture_outcome: str = "pending"
    capture_reason: str = ""
    heard: tuple[int, ...] = ()

    @property
    def key(self) -> Key:
        return (self.agent_id, self.table_id, self.hand_number, self.action_index)


@dataclass(frozen=True)
class Outcome:
    """What became of a turn's capture, for the row of the same key."""

    key: Key
    outcome: str
    reason: str = ""


@dataclass(frozen=True)
class Result:
    """What a hand came to for one agent that was dealt in, as the table said it: `net` chips, its stack after the hand
    less its stack before. `ended_at` aware."""

    agent_id: str
    table_id: str
    hand_number: int
    net: int
    ended_at: datetime

    @property
    def key(self) -> HandKey:
        return (self.agent_id, self.table_id, self.hand_number)


def fit(charge: Charge) -> tuple[Charge, list[str]]:
    """The charge as the table can hold it, and the names of the fields that were refused (left empty).

    Text that a person reads keeps what can be kept of it: odd characters as escapes, cut with an ellipsis. A name or a
    number is right or absent. Raises NoRow.
    """
    refused: list[str] = []
    values = {field.name: _fitted(field.name, getattr(charge, field.name), refused) for field in fields(Charge)}
    for name in (*KEY, "played_at"):
        if name in refused:
            raise NoRow(f"{name} cannot be stored")
    return replace(charge, **_with_outcome(values)), refused


def fit_outcome(outcome: Outcome) -> Outcome:
    """The outcome as the table can hold it. Raises NoRow where it is none, or its key is none."""
    refused: list[str] = []
    key = [_fitted(name, value, refused) for name, value in zip(KEY, outcome.key, strict=True)]
    if refused or outcome.outcome not in KNOWN_OUTCOMES:
        raise NoRow("the outcome names no turn" if refused else "no such outcome")
    reason = _fitted("capture_reason", outcome.reason, refused)
    return Outcome((key[0], key[1], key[2], key[3]), outcome.outcome, reason)


def fit_result(result: Result) -> Result:
    """The result as the table can hold it. Raises NoRow: without one of its facts there is none."""
    refused: list[str] = []
    values = {field.name: _fitted(field.name, getattr(result, field.name), refused) for field in fields(Result)}
    if refused:
        raise NoRow(f"{refused[0]} cannot be stored")
    return Result(**values)


def bare(charge: Charge) -> Charge:
    """What is left where the database refuses the row for a reason that `fit` does not know: that the turn was."""
    return Charge(
        *charge.key,
        played_at=charge.played_at,
        is_fallback=charge.is_fallback,
        capture_outcome=charge.capture_outcome,
    )


def _with_outcome(values: dict[str, Any]) -> dict[str, Any]:
    """A fallback was never captured, and every other turn has an outcome: the table's own rule."""
    if values["is_fallback"]:
        return {**values, "capture_outcome": "none", "capture_reason": ""}
    if values["capture_outcome"] not in KNOWN_OUTCOMES:
        return {**values, "capture_outcome": "pending"}
    return values


def _fitted(name: str, value: Any, refused: list[str]) -> Any:
    if name in PROSE:
        return "" if value is None else _prose(str(value), TEXT_LIMITS[name])
    if name == "is_fallback":
        return bool(value)
    if name == "heard":
        ids = value if isinstance(value, tuple | list) else ()
        return tuple(whisper for whisper in ids if isinstance(whisper, int) and 0 < whisper < INT64)
    if name == "capture_outcome" or _is_unknown(name, value):
        return value
    fits = _FITS.get(name, _fits_text if name in TEXT_LIMITS else _fits_whole)
    try:
        return fits(name, value)
    except (ValueError, TypeError, ArithmeticError):
        refused.append(name)
        return "" if name in {"model", "routing", "action"} else None


def _is_unknown(name: str, value: Any) -> bool:
    return value is None and name not in NEVER_UNKNOWN


def _prose(text: str, limit: int) -> str:
    kept = text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()
    return kept if len(kept) <= limit else kept[: limit - 1] + "…"


def _fits_text(name: str, value: Any) -> str:
    if not isinstance(value, str) or "\0" in value or len(value) > TEXT_LIMITS[name]:
        raise ValueError
    value.encode()  # a lone surrogate raises
    return str(value)


def _fits_whole(name: str, value: Any) -> int:
    if isinstance(value, float):
        value = round(value) if name == "duration_ms" else value
    if not isinstance(value, int) or not -INT64 <= value < INT64:
        raise ValueError
    return int(value)


def _fits_cost(_: str, value: Any) -> Decimal:
    cost = value if isinstance(value, Decimal) else Decimal(str(value))
    rounded = cost.quantize(COST_STEP)
    if not rounded.is_finite() or abs(rounded) >= COST_LIMIT:
        raise InvalidOperation
    return rounded


def _fits_time(_: str, value: Any) -> datetime:
    if not isinstance(value, datetime):
        raise TypeError
    return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


_FITS = {"cost": _fits_cost, "played_at": _fits_time, "ended_at": _fits_time}
