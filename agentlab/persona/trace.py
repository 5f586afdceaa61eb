"""From events to state: the only way a state comes about, in a turn and in a replay alike.

A turn writes events and applies them; a replay reads the stored ones and applies them again. It calls no turn and reads
no checkpoint, so that what it rebuilds is a check on both.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from agentlab.persona.events import (
    SNAPSHOT,
    Arrived,
    Event,
    Payload,
    Reacted,
    Reflected,
    Remembered,
    Snapshot,
    kind,
    label,
    read_payload,
    seal,
    write_event,
)
from agentlab.persona.state import VERSION, Counters, MemoryEvent, PersonaState
from agentlab.persona.values import Invalid


class Draft:
    """The events of one turn in the making, and the state that they give so far."""

    def __init__(self, study: str, persona: str, turn: int, state: PersonaState | None) -> None:
        self.study, self.persona, self.turn = study, persona, turn
        self.events: list[Event] = []
        self._state = state

    @property
    def state(self) -> PersonaState:
        assert self._state is not None
        return self._state

    @property
    def sequence(self) -> int:
        """The place of the next event within the turn."""
        return len(self.events)

    def add(self, payload: Payload) -> None:
        """Append one event and apply it."""
        self._state = apply(self._state, self.study, self.persona, self.turn, payload)
        self.events.append(write_event(self.study, self.persona, self.turn, self.sequence, payload))

    def remember(self, memory: MemoryEvent) -> None:
        self.add(Remembered(memory))


def apply(state: PersonaState | None, study: str, persona: str, turn: int, payload: Payload) -> PersonaState:
    """The state after one event. Raises `Invalid` where the event cannot follow."""
    if isinstance(payload, Arrived):
        if state is not None:
            raise Invalid("a persona arrives once")
        return PersonaState(VERSION, study, persona, payload.embedder, payload.beliefs, (), Counters())
    if state is None:
        raise Invalid("a trace begins with the persona's arrival")
    match payload:
        case Reacted():
            return _reacted(state, turn, payload)
        case Remembered(memory):
            return _remembered(state, memory)
        case Reflected(memory):
            return _reflected(state, memory)
        case Snapshot(beliefs, _):
            return msgspec.structs.replace(state, beliefs=beliefs)
    return state


def _reacted(state: PersonaState, turn: int, event: Reacted) -> PersonaState:
    if turn != state.counters.turns + 1:
        raise Invalid(f"turn {turn} does not follow turn {state.counters.turns}")
    asked = state.counters.model_calls + (event.prompt is not None)
    return msgspec.structs.replace(
        state, counters=msgspec.structs.replace(state.counters, turns=turn, model_calls=asked)
    )


def _remembered(state: PersonaState, memory: MemoryEvent) -> PersonaState:
    # What a persona brings along does not count towards its first reflection.
    gathered = state.counters.importance + (memory.importance if memory.turn else 0.0)
    return msgspec.structs.replace(
        state,
        memories=(*state.memories, memory),
        counters=msgspec.structs.replace(state.counters, importance=gathered),
    )


def _reflected(state: PersonaState, memory: MemoryEvent) -> PersonaState:
    gone = set(memory.sources)
    kept = tuple(one for one in state.memories if one.id not in gone)
    if len(kept) + len(gone) != len(state.memories):
        raise Invalid(f"summary {memory.turn}:{memory.sequence} names a source that is not there")
    counters = msgspec.structs.replace(state.counters, reflections=state.counters.reflections + 1, importance=0.0)
    return msgspec.structs.replace(state, memories=(*kept, memory), counters=counters)


@dataclass(frozen=True)
class Difference:
    """The first place where a trace does not hold. `turn` and `sequence` are -1 where it is the checkpoint itself."""

    persona: str
    turn: int
    sequence: int
    what: str


@dataclass
class Replay:
    """One persona's events folded as far as they hold."""

    state: PersonaState | None = None
    events: int = 0
    difference: Difference | None = None


def fold(study: str, persona: str, events: Iterable[Event]) -> Replay:
    """Apply stored events in order. Stops at the first that was altered, is missing, cannot follow, or whose
    snapshot does not fit the state that was rebuilt."""
    replay = Replay()
    turn, sequence, whole = 0, 0, False
    for event in events:
        if whole:
            turn, sequence = turn + 1, 0
        problem = _problem(replay, study, persona, event, (turn, sequence))
        if problem:
            replay.difference = Difference(persona, event.turn, event.sequence, problem)
            return replay
        sequence += 1
        replay.events += 1
        whole = event.kind == SNAPSHOT  # the last of every turn
    if replay.events and not whole:
        replay.difference = Difference(persona, turn, sequence, "it is missing: the turn breaks off")
    return replay


def _problem(replay: Replay, study: str, persona: str, event: Event, due: tuple[int, int]) -> str:
    """Apply one event to the replay; a sentence where it does not hold, else ""."""
    if (event.turn, event.sequence) != due:
        return f"event {due[0]}:{due[1]} is missing before it"
    if seal(study, persona, event.turn, event.sequence, event.payload) != event.seal:
        return "its bytes are not those that were written (the seal does not fit)"
    try:
        payload = read_payload(event.payload)
        if (event.kind, event.label) != (kind(payload), label(payload)):
            return f"it is listed as {event.kind} {event.label}, and is {kind(payload)} {label(payload)}"
        replay.state = apply(replay.state, study, persona, event.turn, payload)
    except Invalid as error:
        return str(error)
    if isinstance(payload, Snapshot) and replay.state.sha256() != payload.state_sha256:
        return "the state rebuilt up to it is not the one that was recorded"
    return ""
