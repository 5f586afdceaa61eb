"""Memories are capped; what gives way is named by the summary that takes its place."""

import pytest

from agentlab.persona import reflection
from agentlab.persona.events import Reflected, read_payload
from agentlab.persona.loaders import load_personas
from agentlab.persona.rules import Rules
from agentlab.persona.state import Counters, MemoryEvent, Persona, SeedMemory
from agentlab.persona.trace import Draft, fold

from .making import STUDY, arrived, lived, memory, persona, rules, smallville


def _fill(count: int, by: Rules) -> tuple[list[MemoryEvent], list[MemoryEvent]]:
    """So many memories, one after the other, each followed by a reflection where it is due: (live, summaries)."""
    live: list[MemoryEvent] = []
    made = []
    for n in range(count):
        live.append(memory(0, turn=n + 1, time=float(n)))
        if reflection.due(live, Counters(), by):
            parts = reflection.sources(live, by)
            summary = reflection.summarise(parts, n + 1, 1, float(n))
            live = [one for one in live if one.id not in summary.sources] + [summary]
            made.append(summary)
        assert len(live) <= by.cap
    return live, made


def test_a_cap_of_four_and_six_events_leave_every_id_live_or_named() -> None:  # PE-9
    live, _ = _fill(6, rules(cap=4, batch=2))
    named = {source for one in live for source in one.sources}
    assert {(n + 1, 0) for n in range(6)} <= {one.id for one in live} | named


def test_past_the_cap_a_batch_gives_way_not_one_at_a_time() -> None:  # PE-9
    _, made = _fill(20, rules(cap=10, batch=5))
    assert [len(summary.sources) for summary in made] == [5, 5, 5]


def test_a_summary_is_weightier_than_its_sources_and_points_where_they_do() -> None:  # PE-9
    parts = [memory(0, (1, 0), importance=0.3), memory(1, (1, 1), importance=0.6, tags=frozenset({"levy"}))]
    summary = reflection.summarise(parts, 9, 2, 9.0)
    assert summary.importance > 0.6
    assert (summary.id, summary.depth, summary.sources) == ((9, 2), 1, ((1, 0), (1, 1)))
    assert summary.tags == {"levy"}
    assert "memory 0" in summary.text
    assert "memory 1" in summary.text


def test_opposite_memories_make_a_summary_with_a_zero_vector() -> None:  # PE-7 PE-9
    summary = reflection.summarise([memory(0, (1, 0)), memory(1, (-1, 0))], 2, 0, 2.0)
    assert summary.vector == bytes(2)


def test_nothing_to_reflect_on_is_no_reflection() -> None:  # PE-9
    by = rules(cap=4, batch=2)
    assert not reflection.due([], Counters(importance=99.0), by)
    assert reflection.sources([], by) == []
    assert reflection.sources([memory()], by) == []
    assert [one for one in arrived().memories if one.sources] == []


def test_enough_importance_calls_for_a_reflection_below_the_cap() -> None:  # PE-9
    minds = [memory(n) for n in range(6)]
    by = rules(cap=64, batch=3, reflect_at=2.0)
    assert reflection.due(minds, Counters(importance=2.0), by)
    assert not reflection.due(minds, Counters(importance=1.9), by)
    assert not reflection.due(minds[:5], Counters(importance=2.0), by)


def test_a_reflection_happens_once_a_turn_resets_the_count_and_calls_for_no_other() -> None:  # PE-9
    events, state = lived(60, by=rules(cap=64, batch=2, reflect_at=0.5))
    reflected = [event for event in events if event.kind == "reflected"]
    turns = [event.turn for event in reflected]
    assert len(turns) > 5
    assert len(turns) == len(set(turns))
    assert state.counters.reflections == len(turns)
    last = max(turns)
    since = [m.importance for m in state.memories if m.turn > last]
    assert state.counters.importance == pytest.approx(sum(since))


def test_ten_thousand_turns_stay_within_the_cap_and_lose_nothing() -> None:  # PE-9
    by = rules(cap=12, batch=4, k=2)
    events, state = lived(10_000, by=by)
    sources: dict = {}
    originals = set()
    live: set = set()
    for event in events:
        if event.kind in ("remembered", "reflected"):
            made = read_payload(event.payload).memory
            sources[made.id] = made.sources
            live = (live - set(made.sources)) | {made.id}
            if not made.sources:
                originals.add(made.id)
        if event.kind == "snapshot":
            assert len(live) <= by.cap
    assert live == {one.id for one in state.memories}
    reached, todo = set(), list(live)
    while todo:
        one = todo.pop()
        reached.add(one)
        todo += sources[one]
    assert len(originals) > 5_000
    assert originals <= reached
    assert max(one.depth for one in state.memories) <= 12  # grows with the logarithm of what was lived


def test_a_real_day_of_912_memories_consolidates_to_64(tmp_path) -> None:  # PE-9
    [(_, entry)] = load_personas("smallville", smallville(tmp_path))
    assert len(entry["memories"]) == 912
    seeds = tuple(SeedMemory(m["text"], m["importance"], m["time"]) for m in entry["memories"])
    who = Persona(id=entry["id"], name=entry["name"], profile=entry["profile"], memories=seeds)
    events, state = lived(0, who, by=rules(cap=64))
    assert len(state.memories) <= 64
    assert [event.kind for event in events].count("remembered") == 912
    reflections = [read_payload(event.payload) for event in events if event.kind == "reflected"]
    assert all(isinstance(one, Reflected) and len(one.memory.sources) >= 2 for one in reflections)
    assert fold(STUDY, who.id, events).state == state


def test_a_summary_of_what_is_not_there_does_not_apply() -> None:  # PE-6 PE-9
    _, state = lived(2)
    draft = Draft(STUDY, "ada", 3, state)
    with pytest.raises(ValueError, match="not there"):
        draft.add(Reflected(reflection.summarise([memory(7, turn=77), memory(8, turn=77)], 3, 0, 3.0)))
    assert persona().id == "ada"
