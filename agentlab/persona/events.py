"""The payloads of trace events: the only record of a study, and enough to rebuild every state of it.

An event's place is (persona, turn, sequence). Turn 0 is the persona's arrival; the last event of every turn is a
`Snapshot`. Payloads are MessagePack arrays whose first element names the kind; fields are only ever added at the end,
with a default, so that an old trace stays readable.
"""

import hashlib
from typing import get_args

import msgspec

from agentlab.persona.state import Belief, MemoryEvent, MemoryId, Presentation, Scalar
from agentlab.persona.values import UNREADABLE, Invalid, canonical


class Recalled(msgspec.Struct, frozen=True, array_like=True):
    """A memory that was retrieved, with the three factors of its score and their product."""

    memory: MemoryId
    recency: float
    importance: float
    similarity: float
    score: float


class Arrived(msgspec.Struct, frozen=True, array_like=True, tag="arrived"):
    """The persona enters the study with its profile and its first beliefs."""

    name: str
    embedder: str
    profile: dict[str, Scalar | list[str]]
    beliefs: tuple[Belief, ...]


class Reacted(msgspec.Struct, frozen=True, array_like=True, tag="reacted"):
    """What it was shown, what it remembered, and what it did.

    `tier` is A (arithmetic) or B (model). `prompt` and `response` are exact, and null on tier A. `fallback` says why a
    turn meant for the model was answered by arithmetic after all; "" where it was not.
    """

    shown: Presentation
    recalled: tuple[Recalled, ...]
    tier: str
    action: str
    text: str | None
    importance: float
    rated_by: str
    arousal: float
    appraisal: float
    prompt: str | None = None
    response: str | None = None
    fallback: str = ""


class Remembered(msgspec.Struct, frozen=True, array_like=True, tag="remembered"):
    """A new memory; its turn and sequence are the event's own."""

    memory: MemoryEvent


class Reflected(msgspec.Struct, frozen=True, array_like=True, tag="reflected"):
    """A summary takes the place of its sources."""

    memory: MemoryEvent


class Snapshot(msgspec.Struct, frozen=True, array_like=True, tag="snapshot"):
    """The beliefs after the turn, and the SHA-256 of the whole state's bytes."""

    beliefs: tuple[Belief, ...]
    state_sha256: str


class Probed(msgspec.Struct, frozen=True, array_like=True, tag="probed"):
    """A question put to the persona, the answer that its profile calls for, and the one it gave.

    `distance` is 0 (as expected) to 1; `drifted` says whether it is beyond the study's tolerance. `answered` is False
    where there was no answer, or none that could be measured: then it is neither kept nor drifted.
    """

    probe: str
    question: str
    expected: str
    given: str
    distance: float
    drifted: bool
    answered: bool = True


Payload = Arrived | Reacted | Remembered | Reflected | Snapshot | Probed
KINDS: tuple[str, ...] = tuple(str(one.__struct_config__.tag) for one in get_args(Payload))
SNAPSHOT = "snapshot"

_DECODER: msgspec.msgpack.Decoder[Payload] = msgspec.msgpack.Decoder(Payload)


class Event(msgspec.Struct, frozen=True, array_like=True):
    """One line of the trace as it is stored: its place within the persona, its kind, what lists count it by (the
    action of a reaction, how a probe ended), its exact bytes, and their seal."""

    turn: int
    sequence: int
    kind: str
    label: str
    payload: bytes
    seal: bytes


def seal(study: str, persona: str, turn: int, sequence: int, payload: bytes) -> bytes:
    """SHA-256 over an event's place and payload: a byte that changes later no longer fits it."""
    return hashlib.sha256(canonical((study, persona, turn, sequence, payload))).digest()


def kind(payload: Payload) -> str:
    return str(payload.__struct_config__.tag)


def label(payload: Payload) -> str:
    match payload:
        case Reacted():
            return payload.action
        case Remembered(memory) | Reflected(memory):
            return memory.kind
        case Probed():
            return "drifted" if payload.drifted else "kept" if payload.answered else "unanswered"
    return ""


def write_event(study: str, persona: str, turn: int, sequence: int, payload: Payload) -> Event:
    data = canonical(payload)
    return Event(turn, sequence, kind(payload), label(payload), data, seal(study, persona, turn, sequence, data))


def read_payload(data: bytes) -> Payload:
    """Raises `Invalid` where the bytes are no event of ours."""
    try:
        return _DECODER.decode(data)
    except UNREADABLE as error:
        raise Invalid(f"not an event: {error}") from None
