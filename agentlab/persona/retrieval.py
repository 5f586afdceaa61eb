"""Which memories come to mind: exp(-Δt/τ) · importance · cos(memory, stimulus), over one persona's own memories.

The three factors are those of Park et al., "Generative Agents" (UIST 2023, section 4.1), which adds them; here they are
multiplied, so that a memory must be recent, weighty *and* about the matter. A cosine that is not positive counts as 0:
with a negative one the product would rank a memory lower for being fresh. Ranking reads and changes nothing.
"""

import math
from collections.abc import Sequence

from agentlab.persona.events import Recalled
from agentlab.persona.state import MemoryEvent
from agentlab.persona.vectors import cosines


def recency(time: float, now: float, tau: float) -> float:
    """exp(-Δt/τ) in [0, 1]; Δt is 0 for a memory from the future. `math.exp`, as numpy's differs by processor."""
    return math.exp(-max(0.0, now - time) / tau)


def rank(memories: Sequence[MemoryEvent], stimulus: bytes, now: float, tau: float, k: int) -> tuple[Recalled, ...]:
    """The k memories of the highest score, best first; equal scores by newest, then by id. Empty for no memories.

    A zero vector has similarity 0. `stimulus` is int8, as long as the memories' vectors; `tau` is above 0.
    """
    ranked = []
    for memory, cosine in zip(memories, cosines([m.vector for m in memories], stimulus), strict=True):
        fresh = recency(memory.time, now, tau)
        similarity = min(cosine, 1.0) if cosine > 0 else 0.0
        ranked.append((-(fresh * memory.importance * similarity), -memory.time, memory.id, fresh, memory, similarity))
    ranked.sort(key=lambda entry: entry[:3])
    return tuple(Recalled(id, fresh, m.importance, cos, -score) for score, _, id, fresh, m, cos in ranked[:k])
