"""Which memories come to mind: exp(-Δt/τ) · importance · cos(memory, stimulus), over one persona's own memories.

The three factors are those of Park et al., "Generative Agents" (UIST 2023, section 4.1), which adds them; here they are
multiplied, so that a memory must be recent, weighty *and* about the matter. A cosine that is not positive counts as 0:
with a negative one the product would rank a memory lower for being fresh. Ranking reads and changes nothing.
"""

from collections.abc import Sequence
from math import exp

from agentlab.persona.events import Recalled
from agentlab.persona.state import MemoryEvent
from agentlab.persona.vectors import cosines


def recency(time: float, now: float, tau: float) -> float:
    """exp(-Δt/τ) in [0, 1]; Δt is 0 for a memory from the future. `math.exp`, as numpy's differs by processor."""
    return exp((time - now) / tau) if time < now else 1.0


def rank(memories: Sequence[MemoryEvent], stimulus: bytes, now: float, tau: float, k: int) -> tuple[Recalled, ...]:
    """The k memories of the highest score, best first; equal scores by newest, then by id. Empty for no memories.

    A zero vector has similarity 0. `stimulus` is int8, as long as the memories' vectors; `tau` is above 0.
    """
    ranked = []
    for place, cosine in enumerate(cosines([memory.vector for memory in memories], stimulus)):
        memory = memories[place]
        fresh = recency(memory.time, now, tau)
        similarity = cosine if cosine > 0 else 0.0
        score = fresh * memory.importance * similarity
        ranked.append((-score, -memory.time, memory.turn, memory.sequence, place, fresh, similarity))
    ranked.sort()
    return tuple(
        Recalled((turn, sequence), fresh, memories[place].importance, similarity, -score)
        for score, _, turn, sequence, place, fresh, similarity in ranked[:k]
    )
