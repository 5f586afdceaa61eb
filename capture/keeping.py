"""“Keep this hand”, said honestly: what a pin did, agent by agent, in the page's words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentlab.common.access import User
from capture.buffer import BufferUnavailable
from capture.pinning import Outcome, PinResult, pin

UNAVAILABLE = "The capture Redis does not answer, so nothing was kept. Try again in a moment."


@dataclass(frozen=True)
class Kept:
    """One sentence, and whether the agent's turns are kept now."""

    text: str
    kept: bool


def keep_hand(
    table_id: str, hand_number: int, agent_ids: Sequence[str], names: Mapping[str, str], actor: User
) -> tuple[list[Kept], bool]:
    """Pins the hand for each of these agents. False beside the sentences: the buffer stopped answering on the way,
    and what is said before that sentence holds."""
    said: list[Kept] = []
    for agent_id in agent_ids:
        try:
            result = pin(table_id, hand_number, agent_id=agent_id, actor=actor)
        except BufferUnavailable:
            return [*said, Kept(UNAVAILABLE, False)], False
        said.append(outcome(names.get(agent_id, agent_id), result))
    return said, True


def outcome(name: str, result: PinResult) -> Kept:
    if result.outcome is Outcome.NOTHING_TO_CAPTURE:
        return Kept(f"{name}: nothing to keep: {_why_nothing(result)}", False)
    rest = [f"{n} {word}" for n, word in _unkept(result) if n]
    missing = f"; of its {result.turns} turns {' and '.join(rest)}" if rest else ""
    if result.outcome is Outcome.ALREADY_PINNED:
        return Kept(f"{name}: already kept, {_turns(result.kept)}{missing}", True)
    before = result.kept - result.pinned
    more = f" ({before} more had been kept before)" if before else ""
    return Kept(f"{name}: kept {_turns(result.pinned)}{more}{missing}", True)


def _why_nothing(result: PinResult) -> str:
    if result.turns == 0:
        return "it made no decision in this hand"
    if result.expired == result.turns:
        return "this hand has expired"
    rest = [f"{n} {word}" for n, word in _unkept(result) if n]
    return f"of its {_turns(result.turns)} {' and '.join(rest)}"


def _unkept(result: PinResult) -> list[tuple[int, str]]:
    return [(result.expired, "expired"), (result.lost, "lost"), (result.pending, "not known to be recorded")]


def _turns(count: int) -> str:
    return f"{count} turn{'' if count == 1 else 's'}"
