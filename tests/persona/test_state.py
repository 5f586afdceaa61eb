"""A state is its bytes."""

import contextlib
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentlab.persona.state import Belief, Counters, MemoryEvent, PersonaState, beliefs_from, read_state
from agentlab.persona.turn import turn
from agentlab.persona.values import Invalid, canonical, draw

from .making import PLAIN, arrived, lived, memory, persona, rules, shown

ROOT = Path(__file__).parent.parent.parent

texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30)
shares = st.floats(0, 1)
signed = st.floats(-1, 1)
memories = st.builds(
    MemoryEvent,
    turn=st.integers(0, 2**40),
    sequence=st.integers(0, 100),
    time=st.floats(allow_nan=False, allow_infinity=False),
    kind=texts,
    text=texts,
    importance=shares,
    valence=signed,
    vector=st.binary(min_size=4, max_size=4),
    tags=st.frozensets(texts, max_size=4),
    depth=st.integers(0, 9),
    sources=st.lists(st.tuples(st.integers(0, 99), st.integers(0, 9)), max_size=3).map(tuple),
)
states = st.builds(
    lambda held, minds, counters: PersonaState(1, "5" * 64, "ada", "hashing", beliefs_from(held), minds, counters),
    st.dictionaries(texts, st.tuples(signed, shares), max_size=4),
    st.lists(memories, max_size=5, unique_by=lambda m: m.id).map(
        lambda found: tuple(sorted(found, key=lambda m: m.id))
    ),
    st.builds(Counters, *[st.integers(0, 10**9)] * 3, st.floats(0, 1e6)),
)


@given(states)
def test_a_state_comes_back_from_its_bytes_exactly(state: PersonaState) -> None:  # PE-2
    back = read_state(state.to_bytes())
    assert back == state
    assert back.to_bytes() == state.to_bytes()


def test_saving_and_loading_keeps_the_persona(tmp_path: Path) -> None:  # PE-2
    state = arrived(persona("ada"))
    for _ in range(2):
        state = read_state(state.to_bytes())
    assert state.persona == "ada"


def _raw(state: PersonaState) -> list:
    return msgspec.msgpack.decode(state.to_bytes())


def test_an_importance_that_is_text_is_refused_on_reading(tmp_path: Path) -> None:  # PE-2
    _, state = lived(3)
    raw = _raw(state)
    raw[5][1][5] = "0.7"
    first, second = raw[5][1][:2]
    with pytest.raises(Invalid, match=rf"memory {first}:{second}"):
        read_state(canonical(raw))


def test_a_memory_without_a_time_is_refused_by_its_id() -> None:  # PE-2 PE-7
    _, state = lived(3)
    raw = _raw(state)
    raw[5][0][2] = None
    first, second = raw[5][0][:2]
    with pytest.raises(Invalid, match=rf"memory {first}:{second}"):
        read_state(canonical(raw))


@pytest.mark.parametrize(
    "held", [{1: (0.2, 0.5), "1": (0.8, 0.5)}, {None: (0.1, 0.5)}, {True: (0.1, 0.5)}, {"": (0.1, 0.5)}]
)
def test_topics_that_are_not_text_are_refused_where_the_state_is_made(held: dict) -> None:  # PE-2
    with pytest.raises(Invalid):
        beliefs_from(held)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Belief("levy", 1, 0.5),
        lambda: Belief("levy", True, 0.5),
        lambda: Belief("levy", float("nan"), 0.5),
        lambda: Belief("levy", 1.5, 0.5),
        lambda: Counters(turns=True),
        lambda: Counters(turns=1.0),
        lambda: Counters(turns=-1),
        lambda: Counters(importance=1),
        lambda: memory(importance=float("inf")),
        lambda: memory(time=3),
    ],
)
def test_whole_numbers_floats_and_truth_are_three_things(make) -> None:  # PE-2
    with pytest.raises(Invalid):
        make()


def test_a_whole_number_in_a_floats_place_does_not_load() -> None:  # PE-2
    raw = _raw(arrived())
    raw[4][0][1] = 0  # it would come back as 0.0, and be written as other bytes
    with pytest.raises(Invalid, match="canonical"):
        read_state(canonical(raw))


@pytest.mark.parametrize(
    "data",
    [b"", b"\xc1", b"{}", canonical([1, 2]), canonical({"version": 1}), b"\x91" * 100_000, b"\x81" * 100_000],
)
def test_what_is_no_state_is_refused(data: bytes) -> None:  # PE-2 SF-4
    with pytest.raises(Invalid):
        read_state(data)


def test_a_state_that_nests_without_end_is_refused() -> None:  # PE-2 SF-4
    whole = arrived().to_bytes()
    assert whole[:1] == b"\x97"
    with pytest.raises(Invalid):
        read_state(b"\x98" + whole[1:] + b"\x91" * 100_000)


@given(st.data())
def test_a_state_with_any_byte_cut_or_changed_is_refused_or_another(data) -> None:  # PE-2 SF-4
    _, state = lived(3)
    whole = state.to_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    spoiled = data.draw(
        st.sampled_from([whole[:at], whole[:at] + bytes([data.draw(st.integers(0, 255))]) + whole[at + 1 :]])
    )
    with contextlib.suppress(Invalid):
        assert read_state(spoiled).to_bytes() == spoiled


def test_a_broken_memory_in_a_torn_state_is_refused_like_any_other() -> None:  # PE-2 SF-4
    _, state = lived(3)
    raw = _raw(state)
    raw[5][0][5] = "0.7"
    with pytest.raises(Invalid):
        read_state(canonical(raw)[:-40])


def test_an_unknown_version_is_refused() -> None:  # PE-2
    raw = _raw(arrived())
    raw[0] = 2
    with pytest.raises(Invalid, match="version 2"):
        read_state(canonical(raw))


def test_two_runs_from_one_checkpoint_share_nothing() -> None:  # PE-1 PE-2
    _, before = lived(4)
    checkpoint = before.to_bytes()
    first, second = read_state(checkpoint), read_state(checkpoint)
    turn(persona(), shown(5, "The levy again", social_proof=500), first, PLAIN, rules())
    assert first.to_bytes() == second.to_bytes() == checkpoint


TAGGED = """
from agentlab.persona.values import canonical
from tests.persona.making import memory
print(canonical(memory(tags=frozenset({"a", "b", "c", "levy", "council"}))).hex())
"""


def test_the_same_bytes_under_every_hash_seed() -> None:  # PE-2 PE-6
    found = {
        subprocess.run(
            [sys.executable, "-c", TAGGED],
            env={"PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT), "PATH": ""},
            capture_output=True,
            check=True,
        ).stdout
        for seed in range(5)
    }
    assert len(found) == 1


def test_draws_depend_on_their_names_alone_and_spread() -> None:  # PE-5
    drawn = [draw("study", "ada", number) for number in range(2000)]
    assert drawn == [draw("study", "ada", number) for number in range(2000)]
    assert all(0 <= one < 1 for one in drawn)
    assert 0.45 < sum(drawn) / len(drawn) < 0.55
