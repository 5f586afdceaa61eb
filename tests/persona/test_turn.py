"""A turn is a function: of the persona, what it is shown, its state, and what the ports answer."""

import pytest

from agentlab.persona.events import Snapshot, read_payload
from agentlab.persona.state import MEMORY_TEXT, Presentation, SeedMemory, beliefs_from, read_state
from agentlab.persona.turn import arrive, turn
from agentlab.persona.values import Invalid

from .making import PLAIN, RULED, STUDY, arrived, lived, persona, rules, shown


def test_the_same_turn_twice_is_the_same_turn() -> None:  # PE-1
    state = arrived()
    first = turn(persona(), shown(), state, PLAIN, rules())
    second = turn(persona(), shown(), state, PLAIN, rules())
    assert first.events == second.events
    assert first.state.to_bytes() == second.state.to_bytes()


def test_a_turn_leaves_its_state_as_it_was() -> None:  # PE-1
    _, state = lived(5)
    before = state.to_bytes()
    after = turn(persona(), shown(6), state, PLAIN, rules()).state
    assert state.to_bytes() == before != after.to_bytes()


def test_an_outcome_says_what_was_done_remembered_and_changed() -> None:  # PE-1
    who = persona(trust={"Post": 1.0})
    outcome = turn(who, shown(social_proof=5000), arrived(who), PLAIN, rules())
    assert outcome.reaction.action in {"ignore", "like", "share", "reply", "dislike"}
    assert outcome.change["levy"] > 0
    assert outcome.memories == outcome.state.memories
    assert outcome.state.belief("levy").stance == 0.4 + outcome.change["levy"]


def test_a_turn_that_yields_three_memories_of_one_kind_keeps_three_in_order() -> None:  # PE-1
    held = beliefs_from(dict.fromkeys(("council", "levy", "pool"), (0.0, 0.0)))
    who = persona(beliefs=held, trust={"Post": 1.0})
    argued = {"council": 0.9, "levy": 0.9, "pool": 0.9}
    by = rules(topics=("council", "levy", "pool"), rate=1.0)
    outcome = turn(who, shown(stances=argued, social_proof=9000), arrived(who, by=by), PLAIN, by)
    shifts = [one for one in outcome.memories if one.kind == "shift"]
    assert [next(iter(one.tags)) for one in shifts] == ["council", "levy", "pool"]
    assert [one.sequence for one in shifts] == sorted(one.sequence for one in shifts)
    assert len({one.id for one in outcome.memories}) == len(outcome.memories)


def test_what_is_seen_twice_is_remembered_twice_also_after_a_resume() -> None:  # PE-2 PE-5
    who = persona(memories=(SeedMemory("The levy passes committee"),))
    state = arrived(who)
    by = rules(actions=rules().actions[1:])  # nothing to ignore with
    for number in (1, 9):
        while state.counters.turns + 1 < number:
            state = turn(who, shown(state.counters.turns + 1, "Other news"), state, PLAIN, by).state
        state = turn(who, shown(number), read_state(state.to_bytes()), PLAIN, by).state
    alike = [one for one in state.memories if "The levy passes committee" in one.text and one.kind != "shift"]
    assert len({one.id for one in alike}) == 3


def test_passing_something_over_unmoved_leaves_no_memory() -> None:  # PE-1
    calm = shown(stances={}, source="", position=50)
    outcome = turn(persona(), calm, arrived(), PLAIN, rules(temperature=0.01))
    assert (outcome.reaction.action, outcome.memories, outcome.change) == ("ignore", (), {})


def test_turns_follow_one_another() -> None:  # PE-4
    state = arrived()
    for number in (0, 2, 7):
        with pytest.raises(Invalid):
            turn(persona(), shown(number or 1, time=1.0) if number else _at(3), state, PLAIN, rules())


def _at(number: int) -> Presentation:
    return shown(number)


def test_a_state_serves_its_own_persona_alone() -> None:  # PE-2
    with pytest.raises(Invalid, match="bo"):
        turn(persona("bo"), shown(), arrived(persona("ada")), PLAIN, rules())


def test_memory_texts_are_bounded_and_what_was_shown_is_not_cut() -> None:  # PE-9
    long = "Ünïcode and a long story about the levy. " * 200
    outcome = turn(persona(), shown(text=long, social_proof=900), arrived(), RULED, rules(actions=rules().actions[1:]))
    assert outcome.reaction.shown.text == long
    assert all(len(one.text) <= MEMORY_TEXT for one in outcome.memories)


@pytest.mark.parametrize("text", ["\x00", "\u202elevy", "\ud83d alone", "🙂" * 50, "a\r\nb", "\u200b"])
def test_odd_text_is_shown_and_remembered(text: str) -> None:  # PE-1
    who = persona(memories=(SeedMemory(text),))
    state = arrive(who, STUDY, PLAIN, rules()).state
    presented = shown(text=text.encode("utf-8", "backslashreplace").decode(), social_proof=900)
    outcome = turn(who, presented, read_state(state.to_bytes()), PLAIN, rules(actions=rules().actions[1:]))
    assert read_state(outcome.state.to_bytes()) == outcome.state


def test_every_turn_ends_with_a_snapshot_of_its_own_state() -> None:  # PE-3 PE-6
    outcome = turn(persona(), shown(), arrived(), PLAIN, rules())
    last = read_payload(outcome.events[-1].payload)
    assert isinstance(last, Snapshot)
    assert last.state_sha256 == outcome.state.sha256()
    assert last.beliefs == outcome.state.beliefs


def test_beliefs_stay_in_range_and_move_towards_what_is_argued() -> None:  # PE-1
    who = persona(beliefs=beliefs_from({"levy": (0.9, 0.0)}), trust={"Post": 1.0})
    state = arrived(who, by=rules(rate=1.0))
    for number in range(1, 80):
        state = turn(who, shown(number, stances={"levy": 1.0}, social_proof=10**6), state, PLAIN, rules(rate=1.0)).state
        held = state.belief("levy")
        assert 0.9 <= held.stance <= 1.0
        assert 0.0 <= held.confidence <= 1.0


def test_an_argument_beyond_tolerance_leaves_the_stance() -> None:  # PE-1
    who = persona(beliefs=beliefs_from({"levy": (0.9, 0.1)}))
    outcome = turn(who, shown(stances={"levy": -1.0}), arrived(who), PLAIN, rules(tolerance=1.0))
    assert outcome.change == {}
    assert outcome.state.belief("levy").confidence < 0.1
