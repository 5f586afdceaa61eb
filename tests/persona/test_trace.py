"""The trace alone gives every state, and any byte of it that changes is found."""

import ast
from pathlib import Path

import msgspec
import pytest

from agentlab.persona.events import KINDS, Event, Reacted, read_payload
from agentlab.persona.trace import fold
from agentlab.persona.values import Invalid

from .making import RULED, STUDY, lived, persona, rules
from .test_probes import ASKS

ROOT = Path(__file__).parent.parent.parent
NESTED = b"\x94\xa8snapshot\x90\xa1x" + b"\x91" * 100_000
BY = rules(cap=6, batch=3, probe_every=4, probe_ask=ASKS, model_above=0.0)


@pytest.fixture(scope="module")
def life():
    return lived(30, persona(calls=3), RULED, BY)


def test_folding_the_events_gives_the_states_bytes(life) -> None:  # PE-6
    events, state = life
    replay = fold(STUDY, "ada", events)
    assert replay.difference is None
    assert replay.state.to_bytes() == state.to_bytes()
    assert {event.kind for event in events} == set(KINDS)


def test_folding_calls_no_turn_and_reads_no_checkpoint() -> None:  # PE-6
    tree = ast.parse((ROOT / "agentlab/persona/trace.py").read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not imported & {"agentlab.persona.turn", "agentlab.persona.deciding", "agentlab.persona.models"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_byte_is_found_and_named(life, kind: str) -> None:  # PE-6
    events, _ = life
    place = next(n for n, event in enumerate(events) if event.kind == kind)
    payload = bytearray(events[place].payload)
    payload[len(payload) // 2] ^= 1
    spoiled = [*events[:place], msgspec.structs.replace(events[place], payload=bytes(payload)), *events[place + 1 :]]
    found = fold(STUDY, "ada", spoiled).difference
    assert (found.turn, found.sequence) == (events[place].turn, events[place].sequence)


def test_an_event_that_was_altered_with_its_seal_is_found_at_the_next_snapshot(life) -> None:  # PE-6
    from agentlab.persona.events import Remembered, write_event

    events, _ = life
    place = next(n for n, event in enumerate(events) if event.kind == "remembered" and event.turn == 5)
    old = read_payload(events[place].payload).memory
    forged = write_event(
        STUDY, "ada", 5, events[place].sequence, Remembered(msgspec.structs.replace(old, importance=1.0))
    )
    found = fold(STUDY, "ada", [*events[:place], forged, *events[place + 1 :]]).difference
    assert (found.turn, found.what) == (5, "the state rebuilt up to it is not the one that was recorded")


@pytest.mark.parametrize("gone", [0, 1, 5, 40])
def test_a_missing_event_is_found(life, gone: int) -> None:  # PE-6
    events, _ = life
    found = fold(STUDY, "ada", events[:gone] + events[gone + 1 :]).difference
    assert (found.turn, found.sequence) == (events[gone + 1].turn, events[gone + 1].sequence)


def test_an_event_that_is_there_twice_is_found(life) -> None:  # PE-5 PE-6
    events, _ = life
    found = fold(STUDY, "ada", [*events[:9], events[8], *events[9:]]).difference
    assert (found.turn, found.sequence) == (events[8].turn, events[8].sequence)


def test_events_of_another_persona_or_study_do_not_fit(life) -> None:  # PE-3 PE-6
    events, _ = life
    assert "seal" in fold(STUDY, "bo", events).difference.what
    assert "seal" in fold("6" * 64, "ada", events).difference.what


def test_two_equal_reactions_are_two_events() -> None:  # PE-3
    events, _ = lived(2, text="The very same words", by=rules(temperature=0.001))
    reacted = [event for event in events if event.kind == "reacted"]
    assert len({(event.turn, event.sequence) for event in reacted}) == 2


@pytest.mark.parametrize("data", [b"", b"\x91", b"\x92\xa7reacted\x01", b"\x91\xa7unknown", b"\xc1", NESTED])
def test_bytes_that_are_no_event_are_refused(data: bytes) -> None:  # PE-6 SF-4
    with pytest.raises(Invalid):
        read_payload(data)


def test_an_older_trace_stays_readable_where_fields_were_added_at_the_end(life) -> None:  # PE-6
    events, _ = life
    event = next(one for one in events if one.kind == "reacted")
    older = msgspec.msgpack.encode(msgspec.msgpack.decode(event.payload)[:-3])  # before prompt, response and fallback
    assert isinstance(read_payload(older), Reacted)


def test_an_event_carries_its_label() -> None:  # PE-3
    events, _ = lived(5, by=BY)
    assert all(isinstance(event, Event) for event in events)
    assert all(event.label == read_payload(event.payload).action for event in events if event.kind == "reacted")


def test_a_turn_that_breaks_off_is_found(life) -> None:  # PE-5 PE-6
    events, _ = life
    found = fold(STUDY, "ada", events[:-1]).difference
    assert (found.turn, found.sequence) == (events[-1].turn, events[-1].sequence)


def test_an_event_that_is_listed_as_another_is_found(life) -> None:  # PE-6
    events, _ = life
    place = next(n for n, event in enumerate(events) if event.kind == "reacted")
    spoiled = [*events[:place], msgspec.structs.replace(events[place], label="praise"), *events[place + 1 :]]
    assert "listed as" in fold(STUDY, "ada", spoiled).difference.what


def test_no_events_are_no_state_and_no_difference() -> None:  # PE-6
    replay = fold(STUDY, "ada", [])
    assert (replay.state, replay.difference) == (None, None)
