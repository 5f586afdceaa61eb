"""Who plays a seat: an agent's deployment, the snapshot of its newest published version.

ORM calls, for a thread that may wait; never for an event loop.
"""

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from agentlab.agents.models import Agent, AgentDeployment, AgentVersion, Whisper
from agentlab.hosted.memory import Whispers


class NoSeat(Exception):
    """The agent is not there, or nothing of it is published; says so in one line."""


@transaction.atomic
def seat(agent_id: str, table_id: str, *, model: str = "") -> AgentDeployment:
    """The agent's open deployment at the table: the one there is while it is of the newest version, else a new one.

    `model` plays in place of the version's own. Raises NoSeat.
    """
    # The agent's row is the lock: two processes that seat it at once make one deployment.
    if not Agent.objects.select_for_update().filter(pk=agent_id).exists():
        raise NoSeat(f"no such agent: {agent_id}")
    version = AgentVersion.objects.filter(agent_id=agent_id).order_by("-number").first()
    if version is None:
        raise NoSeat(f"{agent_id} has no published version")
    open_ = AgentDeployment.objects.filter(agent_id=agent_id, table_id=table_id, left_at=None)
    plays = model or version.model
    current = open_.filter(version=version, model=plays).first()
    if current is None:
        open_.update(left_at=timezone.now())
        current = AgentDeployment.objects.create(
            agent_id=agent_id,
            version=version,
            table_id=table_id,
            base_prompt=version.base_prompt,
            strategy=version.strategy,
            skills=version.skills,
            model=plays,
        )
    return current


def seat_newest(table_id: str, agent_ids: list[str]) -> dict[str, int]:
    """The deployment that plays each agent's next hand: a version published meanwhile takes its seat now. A model that
    was put in a version's place at this table stays in it. Agents without a deployment here are left out."""
    open_ = AgentDeployment.objects.filter(table_id=table_id, agent_id__in=agent_ids, left_at=None)
    seated = {row.agent_id: row for row in open_.select_related("version").order_by("seated_at", "id")}
    numbers = AgentVersion.objects.filter(agent_id__in=seated).values_list("agent_id").annotate(Max("number"))
    for agent_id, newest in numbers:
        row = seated[agent_id]
        if row.version.number != newest:
            seated[agent_id] = seat(agent_id, table_id, model=row.model if row.model != row.version.model else "")
    return {agent_id: row.pk for agent_id, row in seated.items()}


def leave(table_id: str) -> None:
    """Everybody at the table has left it."""
    AgentDeployment.objects.filter(table_id=table_id, left_at=None).update(left_at=timezone.now())


def heard_whispers(agent_id: str) -> Whispers:
    """The newest whispers that are not withdrawn. One query."""
    latest = Whisper.objects.filter(agent_id=agent_id, withdrawn_at=None).order_by("-created_at", "-id")
    columns = ("id", "author__username", "created_at", "text", "heard_at")
    rows = list(reversed(latest.values_list(*columns)[: Whisper.IN_MEMORY]))
    said = [{"author": author, "at": f"{at:%Y-%m-%d %H:%M}", "text": text} for _, author, at, text, _ in rows]
    return Whispers(said, tuple(row[0] for row in rows if row[-1] is None))
