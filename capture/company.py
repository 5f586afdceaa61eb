"""Who is spoken of in a hand, and what people call them. A turn's record names agents that have no turn in view: they
were acted for, or sat at the table in an earlier hand."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agentlab.agents.models import Agent
from agentlab.common.access import User, owned
from capture.parts import arguments_of
from capture.reading import Hand

AN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")  # as an agent's own key is; what a record says may be any text


@dataclass(frozen=True)
class Company:
    """Ids of agents. `seated`: who has a turn of the hand, was dealt in, or has a seat at its table; `named`: these,
    and all others whom its records name."""

    seated: frozenset[str]
    named: frozenset[str]


def company(hand: Hand) -> Company:
    """As far as the records have the shape of the table's frames; from another shape nothing is taken."""
    known = [arguments_of(view.turn.knowledge) for view in hand.turns if view.turn and view.turn.knowledge is not None]
    records = [arguments for arguments in known if isinstance(arguments, Mapping)]
    seated = {view.agent_id for view in hand.turns} | hand.net.keys()
    seated.update(*(_agents_in([record.get("state")]) for record in records))
    heard = (record.get(part) for record in records for part in ("action_log", "hand_history"))
    named = seated.union(*(_agents_in(frames) for frames in heard))
    return Company(frozenset(seated), frozenset(named))


def _agents_in(frames: Any) -> Iterator[str]:
    """The `agentId` of each frame and of each of its seats."""
    for frame in _mappings(frames):
        for place in (frame, *_mappings(frame.get("seats"))):
            if isinstance(agent_id := place.get("agentId"), str) and AN_ID.fullmatch(agent_id):
                yield agent_id


def _mappings(value: Any) -> list[Mapping[Any, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def names_of(agent_ids: Iterable[str], owner: User | None = None) -> dict[str, str]:
    """What people call these agents, with the id as well where two share a name; one that is not known here goes by
    its id, and with `owner` everybody else's does too. One query."""
    ids = set(agent_ids)
    agents = Agent.objects.filter(id__in=ids)
    known = dict((agents if owner is None else owned(agents, owner)).values_list("id", "name"))
    shown = {agent_id: known.get(agent_id, agent_id) for agent_id in ids}
    often = Counter(shown.values())
    return {
        agent_id: name if often[name] == 1 or name == agent_id else f"{name} ({agent_id})"
        for agent_id, name in shown.items()
    }
