"""Which memories come to mind: order, ties, zero vectors, old and future ones."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentlab.persona.adapters import ports
from agentlab.persona.retrieval import rank, recency
from agentlab.persona.turn import turn
from agentlab.persona.values import Invalid
from agentlab.persona.vectors import cosines, quantise

from .making import DATA, PLAIN, arrived, memory, persona, rules, shown

EAST = quantise([1, 0])


def test_the_newest_of_equals_comes_first_and_age_costs_e(tmp_path) -> None:  # PE-7
    minds = [memory(n, time=time) for n, time in enumerate([0.0, 10.0, 20.0])]
    found = rank(minds, EAST, 20.0, 10.0, 3)
    assert [one.memory for one in found] == [(1, 2), (1, 1), (1, 0)]
    assert [one.recency for one in found] == [1.0, math.exp(-1), math.exp(-2)]


def test_weights_fall_with_age_and_stay_in_range_to_any_age() -> None:  # PE-7
    ages = [0.0, 171.0, 172.0, 271.0, 272.0, 1_000_000.0]
    weights = [recency(-age, 0.0, 20.0) for age in ages]
    assert weights == sorted(weights, reverse=True)
    assert len(set(weights)) == len(weights)
    assert all(0 <= one <= 1 for one in weights)


def test_underflow_to_zero_is_a_tie_that_the_newest_wins_then_the_id() -> None:  # PE-7
    minds = [memory(n, time=-1e9 + n // 2) for n in range(4)]
    found = rank(minds, EAST, 0.0, 1.0, 4)
    assert {one.score for one in found} == {0.0}
    assert [one.memory[1] for one in found] == [2, 3, 0, 1]


def test_a_memory_of_the_future_is_as_fresh_as_can_be() -> None:  # PE-7
    assert recency(99.0, 20.0, 10.0) == 1.0


def test_the_factors_are_multiplied_not_added() -> None:  # PE-7
    beside, apart = memory(0, (1, 5), importance=0.1), memory(1, (0, 1), importance=1.0)
    found = rank([beside, apart], EAST, 0.0, 10.0, 2)
    assert [one.memory[1] for one in found] == [0, 1]
    assert found[1].score == 0.0
    best = found[0]
    assert best.score == best.recency * best.importance * best.similarity > 0


def test_a_negative_cosine_scores_zero_and_age_never_raises_a_rank() -> None:  # PE-7
    old = memory(0, (-1, 1), time=0.0, importance=0.1)
    fresh = memory(1, (-1, 1), time=9.0, importance=1.0)
    found = rank([old, fresh], EAST, 10.0, 5.0, 1)
    assert (found[0].memory, found[0].score) == ((1, 1), 0.0)


def test_a_zero_vector_is_kept_and_scores_zero() -> None:  # PE-7
    found = rank([memory(0, (0, 0)), memory(1, (1, 0))], EAST, 0.0, 10.0, 2)
    assert [(one.memory[1], one.score) for one in found] == [(1, 0.5), (0, 0.0)]
    assert rank([memory(0, (1, 0))], quantise([0, 0]), 0.0, 10.0, 1)[0].score == 0.0


@pytest.mark.parametrize("vector", [[math.nan, 1], [math.inf, 1], [[1, 2]], [], [1, -math.inf]])
def test_an_unusable_vector_is_refused_where_it_would_be_written(vector) -> None:  # PE-7
    with pytest.raises(Invalid):
        quantise(vector)


class _Embedder:
    """Answers what a test wants it to."""

    def __init__(self, vector, id: str = PLAIN.embed.id) -> None:
        self.vector, self.id = vector, id

    def embed(self, texts):
        return np.array([self.vector for _ in texts], dtype=float)


def test_a_turn_whose_embedding_is_unusable_fails_as_a_whole() -> None:  # PE-7
    state = arrived()
    before = state.to_bytes()
    with pytest.raises(Invalid, match="NaN or infinity"):
        turn(persona(), shown(), state, type(PLAIN)(_Embedder([math.nan, 1.0])), rules())
    assert state.to_bytes() == before


def test_memories_of_another_embedder_are_never_ranked() -> None:  # PE-7
    with pytest.raises(Invalid, match="another/256"):
        turn(persona(), shown(), arrived(), type(PLAIN)(_Embedder([1.0] * 256, "another/256")), rules())


def test_a_first_turn_has_nothing_to_remember() -> None:  # PE-7
    assert rank([], EAST, 0.0, 10.0, 8) == ()
    assert turn(persona(), shown(), arrived(), PLAIN, rules()).reaction.recalled == ()


def test_what_was_seen_before_comes_back_to_mind() -> None:  # PE-7
    state = turn(
        persona(), shown(1, "A cup of green tea in the garden", social_proof=500), arrived(), PLAIN, rules()
    ).state
    reaction = turn(persona(), shown(2, "Is tea from the garden any good?"), state, PLAIN, rules()).reaction
    assert [one.memory for one in reaction.recalled] == [state.memories[0].id]
    assert reaction.recalled[0].score > 0


def test_each_of_a_thousand_personas_finds_its_own() -> None:  # PE-7
    rng = np.random.default_rng(1)
    near = rng.normal(size=64)
    for _ in range(1000):
        own = [memory(n, near + rng.normal(scale=0.01, size=64)) for n in range(5)]
        assert sorted(one.memory for one in rank(own, quantise(near), 0.0, 10.0, 8)) == [one.id for one in own]


def test_three_different_memories_have_three_different_scores() -> None:  # PE-7
    said = ["The pool leaks", "A levy for the pool", "Bread is dearer at the market"]
    vectors = [quantise(row) for row in PLAIN.embed.embed(said)]
    minds = [memory(n, vector) for n, vector in enumerate(vectors)]
    query = quantise(PLAIN.embed.embed(["The council wants a levy for a pool at the market"])[0])
    assert len({one.score for one in rank(minds, query, 0.0, 10.0, 3)}) == 3


def test_ranking_changes_nothing() -> None:  # PE-1
    minds = tuple(memory(n, time=float(n)) for n in range(5))
    first = rank(minds, EAST, 9.0, 10.0, 3)
    assert rank(minds, EAST, 9.0, 10.0, 3) == first
    assert minds == tuple(memory(n, time=float(n)) for n in range(5))


@given(st.lists(st.tuples(st.integers(-127, 127), st.integers(-127, 127)), min_size=1, max_size=20))
def test_a_cosine_does_not_depend_on_what_it_is_stacked_with(rows) -> None:  # PE-7
    packed = [np.array(row, np.int8).tobytes() for row in rows]
    query = np.array([3, 100], np.int8).tobytes()
    together = cosines(packed, query)
    assert together == [cosines([row], query)[0] for row in packed]
    assert cosines(packed[::-1], query) == together[::-1]


def test_real_vectors_rank_as_their_floats_do() -> None:  # PE-7
    folder = DATA / "smallville" / "maria"
    vectors, keys = np.load(folder / "embeddings.npy"), json.loads((folder / "embedding_keys.json").read_text())
    minds = [
        memory(n, vector, text=key, time=float(n)) for n, (vector, key) in enumerate(zip(vectors, keys, strict=True))
    ]
    for wanted in (0, 7, 21, 40):
        exact = vectors @ vectors[wanted] / np.linalg.norm(vectors, axis=1) / np.linalg.norm(vectors[wanted])
        found = rank(minds, quantise(vectors[wanted]), 100.0, 1e9, 48)
        assert found[0].memory[1] == wanted
        assert found[0].similarity == 1.0
        near = {int(n) for n in np.argsort(-exact)[:8]}
        assert len(near & {one.memory[1] for one in found[:8]}) >= 7
        worst = max(abs(one.similarity - exact[one.memory[1]]) for one in found)
        assert worst < 0.01  # what int8 costs


def test_wordllama_knows_that_a_tax_is_like_a_levy() -> None:  # PE-7
    pytest.importorskip("wordllama")
    embed = ports("wordllama", "").embed
    tax, levy, cat = (quantise(row) for row in embed.embed(["a new tax", "a new levy", "a sleeping cat"]))
    assert cosines([levy], tax) > cosines([cat], tax)
