"""One turn as its page shows it: what was shown, what came to mind, what was done, and what that changed."""

from dataclasses import dataclass, field

from agentlab.persona.events import Payload, Probed, Reacted, Recalled, Reflected, Remembered, Snapshot
from agentlab.persona.models import StudyPersona, StudyRun, TraceEvent
from agentlab.persona.reading import memories_named, readable
from agentlab.persona.replaying import stored_events
from agentlab.persona.state import Belief, MemoryEvent, MemoryId, PersonaState
from agentlab.persona.trace import Difference, fold

Source = tuple[MemoryId, MemoryEvent | None]  # None where the trace no longer tells what it was


@dataclass(frozen=True)
class RecalledRow:
    """A memory that came to mind. `memory` is None where the trace no longer tells what it was."""

    recalled: Recalled
    memory: MemoryEvent | None
    tied: bool
    sources: list["Source"] = field(default_factory=list)

    @property
    def zero_vector(self) -> bool:
        return self.memory is not None and not any(self.memory.vector)


@dataclass(frozen=True)
class BeliefRow:
    topic: str
    before: Belief | None
    after: Belief

    @property
    def change(self) -> float:
        return self.after.stance - self.before.stance if self.before else 0.0


@dataclass
class TurnPage:
    """`unread` are the sequences of events that cannot be read. `difference` is the first place, up to this turn, where
    the trace does not hold; `rebuilt` says whether it holds up to the turn before."""

    turn: int
    reacted: Reacted | None = None
    recalled: list[RecalledRow] = field(default_factory=list)
    others: list[MemoryEvent] = field(default_factory=list)
    beliefs: list[BeliefRow] = field(default_factory=list)
    made: list[MemoryEvent] = field(default_factory=list)
    summaries: list[tuple[MemoryEvent, list[Source]]] = field(default_factory=list)
    probed: list[Probed] = field(default_factory=list)
    recorded_sha256: str = ""
    replayed_sha256: str = ""
    difference: Difference | None = None
    unread: list[int] = field(default_factory=list)
    rebuilt: bool = True
    before: PersonaState | None = None  # the state that it reacted in, where that can be rebuilt

    @property
    def broken_before(self) -> bool:
        return self.difference is not None and self.difference.turn < self.turn


def read_turn(run: StudyRun, persona: StudyPersona, turn: int) -> TurnPage | None:
    """None where the trace has no such turn."""
    rows = TraceEvent.objects.filter(run=run, persona=persona.number, turn=turn).order_by("sequence")
    events = [(sequence, readable(payload)) for sequence, payload in rows.values_list("sequence", "payload")]
    if not events:
        return None
    page = TurnPage(turn, unread=[sequence for sequence, event in events if event is None])
    earlier = fold(run.study_sha256, persona.key, stored_events(run, persona.number, turn=turn - 1))
    page.rebuilt = earlier.difference is None
    before = page.before = earlier.state if page.rebuilt else None
    after = fold(run.study_sha256, persona.key, stored_events(run, persona.number, turn=turn))
    page.difference = after.difference
    page.replayed_sha256 = after.state.sha256() if after.state and not after.difference else ""
    for _, event in events:
        if event is not None:
            _add(page, event, before)
    named = memories_named(run, persona.number, _recalled_ids(page))
    summaries = [one for one in (*named.values(), *page.made) if one.sources]
    inside = memories_named(run, persona.number, [id for one in summaries for id in one.sources])
    if page.reacted:
        scores = [one.score for one in page.reacted.recalled]
        for one in page.reacted.recalled:
            memory = named.get(one.memory)
            sources = [(id, inside.get(id)) for id in memory.sources] if memory else []
            page.recalled.append(RecalledRow(one, memory, scores.count(one.score) > 1, sources))
    came = set(_recalled_ids(page))
    page.others = [memory for memory in before.memories if memory.id not in came] if before and page.reacted else []
    page.summaries = [(one, [(id, inside.get(id)) for id in one.sources]) for one in page.made if one.sources]
    page.made = [one for one in page.made if not one.sources]
    return page


def _add(page: TurnPage, event: Payload, before: PersonaState | None) -> None:
    match event:
        case Reacted():
            page.reacted = event
        case Remembered(memory) | Reflected(memory):
            page.made.append(memory)
        case Probed():
            page.probed.append(event)
        case Snapshot(beliefs, sha256):
            page.recorded_sha256 = sha256
            page.beliefs = [BeliefRow(one.topic, before.belief(one.topic) if before else None, one) for one in beliefs]


def _recalled_ids(page: TurnPage) -> list[MemoryId]:
    return [one.memory for one in page.reacted.recalled] if page.reacted else []


@dataclass(frozen=True)
class DiffRow:
    """One part of two states that is not the same in both; "" where one does not have it."""

    part: str
    checkpoint: str
    replayed: str


def compare_states(checkpoint: PersonaState | None, replayed: PersonaState | None, limit: int = 40) -> list[DiffRow]:
    """Where a checkpoint and the state that its trace gives part."""
    ours, theirs = _parts(checkpoint), _parts(replayed)
    differing = [part for part in {**ours, **theirs} if ours.get(part) != theirs.get(part)]
    return [DiffRow(part, ours.get(part, ""), theirs.get(part, "")) for part in differing[:limit]]


def _parts(state: PersonaState | None) -> dict[str, str]:
    if state is None:
        return {}
    parts = {"persona": state.persona, "embedder": state.embedder}
    counters = state.counters
    parts |= {f"counter {name}": str(getattr(counters, name)) for name in counters.__struct_fields__}
    parts |= {f"belief {one.topic}": f"{one.stance:+.6f}, confidence {one.confidence:.6f}" for one in state.beliefs}
    parts |= {
        f"memory {one.turn}:{one.sequence}": f"{one.text} (importance {one.importance:.3f}, at {one.time:g})"
        for one in state.memories
    }
    return parts
