"""A persona's turn: a pure function of the persona, what it is shown, its state, and the ports' answers.

It stores nothing and reads no clock, no file, no database. A turn happens as a whole or raises.
"""

from dataclasses import dataclass

import msgspec

from agentlab.persona import reaction, reflection
from agentlab.persona.deciding import decide
from agentlab.persona.events import Arrived, Event, Reacted, Reflected, Snapshot
from agentlab.persona.importance import by_rule
from agentlab.persona.ports import EmbedPort, Ports
from agentlab.persona.probes import probe
from agentlab.persona.retrieval import rank
from agentlab.persona.rules import Rules
from agentlab.persona.state import MEMORY_TEXT, Belief, MemoryEvent, Persona, PersonaState, Presentation
from agentlab.persona.trace import Draft
from agentlab.persona.values import Invalid, clean, clip, cut
from agentlab.persona.vectors import quantise

NOTICED = 0.005  # a belief change below this leaves no memory of its own
SHIFTED = 0.05  # from here on a changed belief is remembered as such


@dataclass(frozen=True)
class Outcome:
    """What a turn returns: the reaction, the new memories, the belief change, the events that say so, and the state."""

    reaction: Reacted | None
    memories: tuple[MemoryEvent, ...]
    change: dict[str, float]
    events: tuple[Event, ...]
    state: PersonaState


def arrive(persona: Persona, study: str, ports: Ports, rules: Rules) -> Outcome:
    """Turn 0: the persona comes with its first beliefs and the memories it brings, consolidated down to the cap.

    Raises `Invalid` and `PortFailed`.
    """
    draft = Draft(study, persona.id, 0, None)
    draft.add(Arrived(persona.name, ports.embed.id, persona.profile, persona.beliefs))
    for seed, vector in zip(persona.memories, _embedded(ports.embed, [m.text for m in persona.memories]), strict=True):
        brought = MemoryEvent(
            0,
            draft.sequence,
            seed.time,
            "brought",
            cut(clean(seed.text), MEMORY_TEXT),
            seed.importance,
            seed.valence,
            vector,
        )
        draft.remember(brought)
        if len(draft.state.memories) > rules.cap:
            _reflect(draft, rules, 0.0)
    _snapshot(draft, draft.state.beliefs)
    return Outcome(None, draft.state.memories, {}, tuple(draft.events), draft.state)


def turn(
    persona: Persona,
    presentation: Presentation,
    state: PersonaState,
    ports: Ports,
    rules: Rules = Rules(),  # noqa: B008
) -> Outcome:
    """One reaction. Raises `Invalid` where state and persona do not belong together or an embedding is unusable,
    and `PortFailed` where there is none."""
    if state.persona != persona.id or state.embedder != ports.embed.id:
        raise Invalid(
            f"a state of {state.persona} with {state.embedder} is not one of {persona.id} with {ports.embed.id}"
        )
    vector = _embedded(ports.embed, [presentation.text])[0]
    if state.memories and len(state.memories[0].vector) != len(vector):
        raise Invalid(f"the embedder answered {len(vector)} dimensions; memories hold {len(state.memories[0].vector)}")
    recalled = rank(state.memories, vector, presentation.time, rules.tau, rules.k)
    reacted, after = decide(persona, presentation, state, ports, rules, recalled)
    draft = Draft(state.study, persona.id, presentation.turn, state)
    draft.add(reacted)
    moved = reaction.change(state.beliefs, after)
    _remember(draft, reacted, moved, vector, rules)
    if reflection.due(draft.state.memories, draft.state.counters, rules):
        _reflect(draft, rules, presentation.time)
    if rules.probe_every and presentation.turn % rules.probe_every == 0:
        for probed in probe(persona, msgspec.structs.replace(draft.state, beliefs=after), rules, ports):
            draft.add(probed)
    _snapshot(draft, after)
    made = tuple(memory for memory in draft.state.memories if memory.turn == presentation.turn)
    return Outcome(reacted, made, moved, tuple(draft.events), draft.state)


def _embedded(port: EmbedPort, texts: list[str]) -> list[bytes]:
    """Each text once through the port, refused as a whole where one vector is unusable."""
    if not texts:
        return []
    vectors = port.embed([clean(text) for text in texts])
    if len(vectors) != len(texts):
        raise Invalid(f"the embedder answered {len(vectors)} vectors for {len(texts)} texts")
    return [quantise(vector) for vector in vectors]


def _remember(draft: Draft, reacted: Reacted, moved: dict[str, float], vector: bytes, rules: Rules) -> None:
    """What stays of the turn: the encounter, unless it was passed over and changed nothing, and each belief that
    shifted.

    All of them carry the stimulus' vector: it is what will bring them back to mind.
    """
    shown = reacted.shown
    action = rules.action(reacted.action)
    assert action is not None
    if not action.idle or sum(map(abs, moved.values())) >= NOTICED:
        wrote = f" “{reacted.text}” to" if reacted.text else ""
        told = cut(clean(f"{action.name}{wrote}: {shown.text}"), MEMORY_TEXT)
        _keep(draft, shown, "encounter", told, reacted.importance, reacted.appraisal, vector, frozenset(shown.stances))
    for topic, delta in sorted(moved.items()):
        if abs(delta) >= SHIFTED:
            told = cut(
                f"{topic}: {'more in favour' if delta > 0 else 'more against'} after “{shown.text}”", MEMORY_TEXT
            )
            weight = by_rule(action, abs(delta))
            _keep(draft, shown, "shift", clean(told), weight, clip(delta, -1.0, 1.0), vector, frozenset([topic]))


def _keep(
    draft: Draft,
    shown: Presentation,
    kind: str,
    told: str,
    importance: float,
    valence: float,
    vector: bytes,
    tags: frozenset[str],
) -> None:
    draft.remember(MemoryEvent(draft.turn, draft.sequence, shown.time, kind, told, importance, valence, vector, tags))


def _reflect(draft: Draft, rules: Rules, time: float) -> None:
    """One consolidation; none where there is nothing to consolidate."""
    parts = reflection.sources(draft.state.memories, rules)
    if parts:
        draft.add(Reflected(reflection.summarise(parts, draft.turn, draft.sequence, time)))


def _snapshot(draft: Draft, beliefs: tuple[Belief, ...]) -> None:
    after = msgspec.structs.replace(draft.state, beliefs=beliefs)
    draft.add(Snapshot(beliefs, after.sha256()))
