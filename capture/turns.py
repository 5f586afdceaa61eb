"""One turn of an agent, and its exact encoding."""

import dataclasses
import datetime
from decimal import Decimal
from typing import Any, Final

from capture.frozen import freeze, thaw, type_name
from capture.outbound import redact
from capture.prompt import Prompt

Number = int | float | Decimal


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class TurnKey:
    """Which turn: the grain of the inference ledger. Raises ValueError for an id that no store could keep apart."""

    agent_id: str
    table_id: str
    hand_number: int
    action_index: int

    def __post_init__(self) -> None:
        check_id("agent_id", self.agent_id)
        check_id("table_id", self.table_id)
        check_number("hand_number", self.hand_number)
        check_number("action_index", self.action_index)


def check_id(name: str, value: object) -> None:
    """Ids are text without NUL. Raises ValueError."""
    if not isinstance(value, str):
        raise ValueError(f"{name} must be text")
    if "\0" in value:
        raise ValueError(f"{name} holds a NUL character")


def check_number(name: str, value: object) -> None:
    """Hand numbers and action indices are integers of 64 bits, as in the ledger. Raises ValueError."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{name} must be an integer")
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{name} must fit in 64 bits")


@dataclasses.dataclass(frozen=True, slots=True)
class Turn:
    """What an agent knew, was told, said and sent in one turn. None is *not captured*; `[]` is *nothing sent*.

    `knowledge` is what `captures_knowledge` froze; `decision` the messages that went out (`TurnOutbound.take`).
    `action` and `amount` reached the table, `asked_action` and `asked_amount` stood in the response, and `change`
    says how the two differ: rename, all_in, verb or clamp. `choice_source` says which channel was read, `renderer`
    is the fingerprint of what rendered the prompt. `cost` is in US dollars, `captured_at` aware UTC.
    """

    key: TurnKey
    prompt: Prompt
    response: str
    reasoning: str | None = None
    knowledge: bytes | None = None
    decision: list[Any] | None = None
    action: str | None = None
    amount: Number | None = None
    asked_action: str | None = None
    asked_amount: Number | str | None = None
    choice_source: str | None = None
    change: str | None = None
    model: str = ""
    routing: str = ""
    agent_version_id: str | None = None
    renderer: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: Number | None = None
    captured_at: datetime.datetime = None  # type: ignore[assignment]  # now where None

    def __post_init__(self) -> None:
        object.__setattr__(self, "captured_at", _utc(self.captured_at))


def _utc(at: Any) -> Any:
    """Now where there is none. What cannot be told in UTC (the ends of time, another type) stays, to be refused when
    the turn is encoded: making a turn never fails."""
    if at is None:
        return datetime.datetime.now(datetime.UTC)
    try:
        return at.replace(tzinfo=datetime.UTC) if at.tzinfo is None else at.astimezone(datetime.UTC)
    except Exception:
        return at


class TurnError(ValueError):
    """A turn that cannot be written, or bytes that are no turn. The message names fields and types, never content."""


_TEXT: Final = (str, type(None))
_NUMBER: Final = (int, float, Decimal, type(None))
_COUNT: Final = (int, type(None))
# What each field may hold; key, envelope and decision are written in their own ways.
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "remainder": (str,),
    "response": (str,),
    "reasoning": _TEXT,
    "knowledge": (bytes, type(None)),
    "action": _TEXT,
    "amount": _NUMBER,
    "asked_action": _TEXT,
    "asked_amount": (*_NUMBER, str),
    "choice_source": _TEXT,
    "change": _TEXT,
    "model": (str,),
    "routing": (str,),
    "agent_version_id": _TEXT,
    "renderer": _TEXT,
    "input_tokens": _COUNT,
    "output_tokens": _COUNT,
    "cost": _NUMBER,
    "captured_at": (datetime.datetime,),
}
_FIELDS: Final = tuple(name for name in _TYPES if name != "remainder")


def freeze_decision(turn: Turn) -> bytes | None:
    """The turn's messages as they are now; None stays None."""
    return None if turn.decision is None else freeze(turn.decision)


def encode_turn(turn: Turn, decision: bytes | None) -> tuple[bytes, str]:
    """The record and its envelope's hash. The record has everything but the envelope, which is stored once under
    its hash. `decision` is `freeze_decision(turn)`, made when the turn was recorded; it loses its credentials
    here, however it came, so that none can reach a store.

    Raises TurnError for a field of the wrong type.
    """
    prompt, key = turn.prompt, turn.key
    if _checked("captured_at", turn.captured_at).tzinfo is not datetime.UTC:
        raise TurnError("captured_at cannot be told in UTC")
    if not isinstance(key, TurnKey):
        raise TurnError("key is not a TurnKey")
    if not (isinstance(prompt, Prompt) and isinstance(prompt.envelope, str) and isinstance(prompt.remainder, str)):
        raise TurnError("prompt is not a Prompt of two texts")
    record = {name: value for name in _FIELDS if (value := _checked(name, getattr(turn, name))) is not None}
    if decision is not None:
        record["decision"] = freeze([redact(message) for message in _messages(decision)])
    envelope_hash = prompt.envelope_hash
    record |= {
        "key": [key.agent_id, key.table_id, key.hand_number, key.action_index],
        "envelope": envelope_hash,
        "remainder": prompt.remainder,
        # As text the record is plain builtins, which freeze at the speed of C.
        "captured_at": turn.captured_at.isoformat(),
    }
    return freeze(record), envelope_hash


def _checked(name: str, value: Any) -> Any:
    if not isinstance(value, _TYPES[name]):
        raise TurnError(f"{name} is {type_name(value)}, not {_TYPES[name][0].__name__}")
    return value


def _messages(decision: bytes) -> list[Any]:
    messages = thaw(decision)
    if not isinstance(messages, list):
        raise TurnError(f"decision is {type_name(messages)}, not list")
    return messages


def read_record(data: bytes) -> dict[str, Any]:
    """The stored fields of a turn, envelope still as its hash. Raises TurnError where the bytes are no turn."""
    try:
        record = thaw(data)
    except ValueError:
        raise TurnError("the record cannot be decoded") from None
    if not isinstance(record, dict) or not isinstance(record.get("envelope"), str):
        raise TurnError("the record is not a turn")
    return record


def decode_turn(record: dict[str, Any], envelope: str) -> Turn:
    """The turn that `encode_turn` wrote, with its envelope back. Raises TurnError where a field is not as written,
    or the envelope is not the one the turn was made with."""
    fields = dict(record)
    try:
        prompt = Prompt(envelope, _checked("remainder", fields.pop("remainder")))
        key = TurnKey(*fields.pop("key"))
        if prompt.envelope_hash != fields.pop("envelope"):
            raise TurnError("the envelope does not have the hash it is stored under")
        decision = fields.pop("decision", None)
        fields["captured_at"] = datetime.datetime.fromisoformat(fields["captured_at"])
        known = {name: _checked(name, value) for name, value in fields.items()}
        return Turn(key, prompt, decision=None if decision is None else _messages(decision), **known)
    except (TypeError, ValueError, KeyError, OverflowError) as error:  # a time before the year 1 overflows
        raise error if isinstance(error, TurnError) else TurnError("the record is not a turn") from None
