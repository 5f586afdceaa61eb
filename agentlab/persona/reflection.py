"""Consolidation: several older memories give way to one summary that names them, so that a state stays bounded.

Which ones: the oldest batch of the lowest depth that has a whole batch, as a log-structured merge does (O'Neil et al.,
1996). Originals are summarised first, summaries only with their like, so a lineage grows with the logarithm of what was
lived and no summary swallows its predecessor each time. Where no depth has a whole batch, the shallowest are taken.
"""

from collections.abc import Sequence
from itertools import groupby

from agentlab.persona.rules import Rules
from agentlab.persona.state import MEMORY_TEXT, Counters, MemoryEvent
from agentlab.persona.values import clip, cut
from agentlab.persona.vectors import centre

GAIN = 0.1  # a summary closes a tenth of the way from its weightiest source to 1
QUOTED = 3


def due(memories: Sequence[MemoryEvent], counters: Counters, rules: Rules) -> bool:
    """Over the cap, or enough importance gathered and something older to consolidate beside what is fresh."""
    if len(memories) > rules.cap:
        return True
    return counters.importance >= rules.reflect_at and len(memories) >= 2 * rules.batch


def sources(memories: Sequence[MemoryEvent], rules: Rules) -> list[MemoryEvent]:
    """The memories to consolidate: a batch, or as many more as bring the rest under the cap.

    Empty where there are fewer than two: one memory is no summary of anything.
    """
    wanted = max(rules.batch, len(memories) - rules.cap + 1)
    ordered = sorted(memories, key=lambda memory: (memory.depth, memory.time, memory.id))
    if len(ordered) < 2:
        return []
    for _, level in groupby(ordered, key=lambda memory: memory.depth):
        alike = list(level)
        if len(alike) >= wanted:
            return alike[:wanted]
    return ordered[:wanted]


def summarise(parts: Sequence[MemoryEvent], turn: int, sequence: int, time: float) -> MemoryEvent:
    """One memory in place of `parts` (at least two): what its weightiest sources said, pointing where all of them
    point.

    It is as fresh as the reflection that made it, as in Park et al.; its importance is above that of every source.
    """
    weighty = sorted(parts, key=lambda memory: (-memory.importance, -memory.time, memory.id))
    most = weighty[0].importance
    share = MEMORY_TEXT // min(QUOTED, len(parts)) - 2
    weight = sum(memory.importance for memory in parts)
    valence = sum(m.importance * m.valence for m in parts) / weight if weight else 0.0
    return MemoryEvent(
        turn=turn,
        sequence=sequence,
        time=time,
        kind="summary",
        text=cut("; ".join(cut(memory.text, share) for memory in weighty[:QUOTED]), MEMORY_TEXT),
        importance=most + GAIN * (1.0 - most),
        valence=clip(valence, -1.0, 1.0),
        vector=centre([memory.vector for memory in parts]),
        tags=frozenset().union(*(memory.tags for memory in parts)),
        depth=1 + max(memory.depth for memory in parts),
        sources=tuple(memory.id for memory in parts),
    )
