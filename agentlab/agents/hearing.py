"""What became of a whisper, as far as it is known: for its page."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.urls import reverse

from agentlab.agents.models import Agent, AgentDeployment, Whisper

State = Literal["waiting", "heard", "withdrawn", "crowded out", "not known"]


@dataclass(frozen=True)
class Heard:
    """The earliest turn that is known to have decided with it."""

    at: datetime
    hand: str
    turn: int
    url: str


@dataclass(frozen=True)
class Told:
    """A whisper and what is known of it. `in_memory`: it will be in what the agent knows at its next turn."""

    whisper: Whisper
    state: State
    in_memory: bool
    heard: Heard | None

    @property
    def since_noting(self) -> bool:
        """Whether every turn that could have heard it would have been noted."""
        return self.whisper.hearing_noted


def newest_first(agent: Agent) -> QuerySet[Whisper]:
    return agent.whispers.select_related("author").order_by("-created_at", "-id")


def told(agent: Agent, whispers: Iterable[Whisper]) -> list[Told]:
    """What became of each of these whispers to the agent. One query."""
    current = agent.whispers.filter(withdrawn_at=None).order_by("-created_at", "-id")
    memory = set(current.values_list("id", flat=True)[: Whisper.IN_MEMORY])
    return [Told(one, _state(one, memory), one.pk in memory, _heard(one)) for one in whispers]


def is_seated(agent: Agent) -> bool:
    return AgentDeployment.objects.filter(agent=agent, left_at=None).exists()


def _state(whisper: Whisper, memory: set[int]) -> State:
    if whisper.withdrawn_at is not None:
        return "withdrawn"
    if whisper.heard_at is not None:
        return "heard"
    if not whisper.hearing_noted:
        return "not known"
    return "waiting" if whisper.pk in memory else "crowded out"


def _heard(whisper: Whisper) -> Heard | None:
    """With the address of the turn on the owner's page of that hand."""
    at, table = whisper.heard_at, whisper.heard_table_id
    hand, index = whisper.heard_hand_number, whisper.heard_action_index
    if at is None or table is None or hand is None or index is None:
        return None
    page = f"{reverse('agent-hand', args=[whisper.agent_id])}?{urlencode({'table': table, 'hand': hand})}"
    return Heard(at, f"{table}:{hand}", index, f"{page}#t{index}-{whisper.agent_id}")
