"""“Keep this hand”, said honestly: what a pin did, agent by agent, in the page's words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentlab.common.access import User
from agentlab.common.numbers import counted
from capture.pinning import Outcome, PinResult
from capture.sources import HandSource, SourceError


@dataclass(frozen=True)
class Kept:
    """One sentence, and whether the agent's turns are kept now."""

    text: str
    kept: bool


def keep_hand(
    source: HandSource,
    table_id: str,
    hand_number: int,
    agent_ids: Sequence[str],
    *,
    names: Mapping[str, str],
    actor: User,
) -> tuple[list[Kept], int]:
    """Pins the hand for each of these agents. The status beside the sentences is not 200 where a store stopped
    answering on the way; what is said before that sentence holds."""
    said: list[Kept] = []
    for agent_id in agent_ids:
        try:
            result = source.pin(table_id, hand_number, agent_id=agent_id, actor=actor)
        except SourceError as error:
            return [*said, Kept(str(error), False)], error.status
        said.append(outcome(names.get(agent_id, agent_id), result))
    return said, 200


def outcome(name: str, result: PinResult) -> Kept:
    if result.outcome is Outcome.NOTHING_TO_CAPTURE:
        return Kept(f"{name}: nothing to keep: {_why_nothing(result)}", False)
    rest = [f"{n} {word}" for n, word in _unkept(result) if n]
    missing = f"; of its {result.turns} turns {' and '.join(rest)}" if rest else ""
    if result.outcome is Outcome.ALREADY_PINNED:
        return Kept(f"{name}: already kept, {counted(result.kept, 'turn')}{missing}", True)
    before = result.kept - result.pinned
    more = f" ({before} more had been kept before)" if before else ""
    return Kept(f"{name}: kept {counted(result.pinned, 'turn')}{more}{missing}", True)


def _why_nothing(result: PinResult) -> str:
    if result.turns == 0:
        return "it made no decision in this hand"
    if result.expired == result.turns:
        return "this hand has expired"
    rest = [f"{n} {word}" for n, word in _unkept(result) if n]
    return f"of its {counted(result.turns, 'turn')} {' and '.join(rest)}"


def _unkept(result: PinResult) -> list[tuple[int, str]]:
    return [
        (result.expired, "expired"),
        (result.damaged, "damaged"),
        (result.lost, "lost"),
        (result.pending, "not known to be recorded"),
    ]


def unkept(removed: int) -> str:
    """What deleting so many kept turns did."""
    return f"{counted(removed, 'turn')} no longer kept." if removed else "Nothing of it was kept."
