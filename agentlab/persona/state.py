"""Who a persona is, what it is shown, and what it carries from turn to turn.

A `PersonaState` crosses every boundary as `state.to_bytes()`: equal states are equal bytes, and bytes that would not
come back the same do not load. Nothing in it refers to a clock, a random source or another persona. Values are frozen,
so two runs that start from one checkpoint share nothing that either could change.
"""

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import msgspec

from agentlab.persona.values import UNREADABLE, Invalid, canonical, real, sha256, text, whole

VERSION = 1
MEMORY_TEXT = 140  # characters; bounds both the state (PF-6) and the prompt

MemoryId = tuple[int, int]  # (turn, sequence): with the state's study and persona, a memory's whole name
Scalar = str | int | float | bool


class Belief(msgspec.Struct, frozen=True, array_like=True):
    """A stance in [-1, 1] on one topic, held with a confidence in [0, 1]."""

    topic: str
    stance: float
    confidence: float

    def __post_init__(self) -> None:
        text("a belief's topic", self.topic)
        real(f"stance on {self.topic}", self.stance, -1.0, 1.0)
        real(f"confidence on {self.topic}", self.confidence, 0.0, 1.0)


class MemoryEvent(msgspec.Struct, frozen=True, array_like=True):
    """One thing remembered. `time` is the study's time; `vector` is int8 (see `vectors`).

    `valence` in [-1, 1] is how the persona took it. `depth` is 0 for an original and one more than its deepest source
    for a summary; `sources` names what a summary stands for.
    """

    turn: int
    sequence: int
    time: float
    kind: str
    text: str
    importance: float
    valence: float
    vector: bytes
    tags: frozenset[str] = frozenset()
    depth: int = 0
    sources: tuple[MemoryId, ...] = ()

    def __post_init__(self) -> None:
        name = f"memory {self.turn}:{self.sequence}"
        whole(f"turn of {name}", self.turn)
        whole(f"sequence of {name}", self.sequence)
        whole(f"depth of {name}", self.depth)
        real(f"time of {name}", self.time)
        real(f"importance of {name}", self.importance, 0.0, 1.0)
        real(f"valence of {name}", self.valence, -1.0, 1.0)
        text(f"text of {name}", self.text)

    @property
    def id(self) -> MemoryId:
        return self.turn, self.sequence


class Counters(msgspec.Struct, frozen=True, array_like=True):
    """What decides the next turn beside beliefs and memories: turns taken, model calls used of the budget,
    reflections made, and the importance gathered since the last one."""

    turns: int = 0
    model_calls: int = 0
    reflections: int = 0
    importance: float = 0.0

    def __post_init__(self) -> None:
        for name in ("turns", "model_calls", "reflections"):
            whole(f"counter {name}", getattr(self, name))
        real("counter importance", self.importance, 0.0)


class PersonaState(msgspec.Struct, frozen=True, array_like=True):
    """What one persona carries. `study` is the SHA-256 of the validated study file."""

    version: int
    study: str
    persona: str
    embedder: str
    beliefs: tuple[Belief, ...]
    memories: tuple[MemoryEvent, ...]
    counters: Counters

    def __post_init__(self) -> None:
        if self.version != VERSION:
            raise Invalid(f"a state of version {self.version!r}; this engine reads version {VERSION}")
        topics = [belief.topic for belief in self.beliefs]
        if topics != sorted(set(topics)):
            raise Invalid("beliefs must be sorted by topic, each topic once")
        ids = [memory.id for memory in self.memories]
        if any(a >= b for a, b in pairwise(ids)):
            raise Invalid("memories must be in the order of their ids, each id once")
        if len({len(memory.vector) for memory in self.memories}) > 1:
            raise Invalid("memories hold vectors of different lengths")

    def to_bytes(self) -> bytes:
        return canonical(self)

    def sha256(self) -> str:
        return sha256(self.to_bytes())

    def belief(self, topic: str) -> Belief | None:
        return next((belief for belief in self.beliefs if belief.topic == topic), None)


class SeedMemory(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A memory that a persona brings along. `time` is at most 0: before the study begins."""

    text: str
    importance: float = 0.5
    time: float = 0.0
    valence: float = 0.0


class Persona(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who takes part: never changes during a study. `calls` is its share of the model budget."""

    id: str
    name: str
    profile: dict[str, Scalar | list[str]] = {}
    beliefs: tuple[Belief, ...] = ()
    trust: dict[str, float] = {}
    memories: tuple[SeedMemory, ...] = ()
    calls: int = 0


class Presentation(msgspec.Struct, frozen=True, array_like=True):
    """A stimulus as shown to this persona at this time.

    `position` is its place in the feed (1 is the top), `social_proof` how many others are said to have reacted, and
    `stances` what it argues on each topic, in [-1, 1].
    """

    turn: int
    time: float
    stimulus: str
    text: str
    source: str = ""
    position: int = 1
    social_proof: int = 0
    stances: dict[str, float] = {}

    def __post_init__(self) -> None:
        whole("turn of a presentation", self.turn, 1)
        real("time of a presentation", self.time)
        whole("position of a presentation", self.position, 1)
        whole("social proof of a presentation", self.social_proof)
        for topic, stance in self.stances.items():
            text("topic of a presentation", topic)
            real(f"stance of a presentation on {topic}", stance, -1.0, 1.0)


def beliefs_from(held: Mapping[str, tuple[float, float]]) -> tuple[Belief, ...]:
    """Beliefs from {topic: (stance, confidence)}, sorted. Raises `Invalid` for a topic that is not text."""
    for topic in held:
        text("a belief's topic", topic)
    return tuple(Belief(topic, *held[topic]) for topic in sorted(held))


def stance_text(stance: float) -> str:
    """`+0.40`; what rounds to nothing has no sign of its own, so never `-0.00`."""
    return f"{round(stance, 2) or 0.0:+.2f}"


_DECODER = msgspec.msgpack.Decoder(PersonaState)
_PLACE = re.compile(r"\$\[5\]\[(\d+)\]")


def read_state(data: bytes) -> PersonaState:
    """The state that these bytes are. Raises `Invalid`, naming the memory where it is one, for anything else:
    what would be written differently from how it was read is no state."""
    try:
        state = _DECODER.decode(data)
    except UNREADABLE as error:
        raise Invalid(f"not a persona's state: {error}{_memory_named(str(error), data)}") from None
    if state.to_bytes() != data:
        raise Invalid("not a persona's state: its bytes are not canonical")
    return state


def _memory_named(message: str, data: bytes) -> str:
    """` (memory turn:sequence)` where the decoder's message points into the memories, and the rest can be read."""
    place = _PLACE.search(message)
    if not place:
        return ""
    try:
        raw: Any = msgspec.msgpack.decode(data)[5][int(place[1])]
    except UNREADABLE:
        return ""
    return f" (memory {raw[0]}:{raw[1]})" if isinstance(raw, list) and len(raw) > 1 else ""
