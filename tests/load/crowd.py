"""Owners and their agents, what was published, seated and whispered, and the audit."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User

from agentlab.agents.models import Agent, AgentDeployment, AgentVersion, Whisper
from agentlab.common.models import AuditEntry
from tests.load.loading import Say, load
from tests.load.sizes import Size
from tests.load.turns import BUSY, BUSY_VERSIONS, QUIET, VETERANS

MANY_AGENTS = 70  # of the one owner: three pages of cards, in a world of any size
STRATEGY = "Play few hands and play them hard. Fold what is dominated. Raise when you would call. " * 12
BASE = "You are a no-limit hold'em player. Answer with a short thought and one JSON object. " * 20
DEEDS = ("opened", "opened", "opened", "kept", "whispered", "unkept")


@dataclass(frozen=True)
class Crowd:
    operator: User
    many: User  # owns BUSY and MANY_AGENTS others
    few: User  # owns QUIET and the veterans
    agents: list[str]  # the ordinary ones


def gather(size: Size, begin: datetime, end: datetime, say: Say) -> Crowd:
    User.objects.bulk_create(User(username=f"owner-{number}") for number in range(size.owners))
    crowd = Crowd(
        User.objects.create(username="operator", is_staff=True, is_superuser=True),
        User.objects.create(username="many"),
        User.objects.create(username="few"),
        [f"agent-{number:04}" for number in range(size.agents)],
    )
    owners = list(User.objects.filter(username__startswith="owner-"))
    load(Agent, ("id", "name", "owner", "created_at"), _agents(crowd, owners, begin))
    load(AgentVersion, _VERSION, _versions(crowd.agents, begin, end))
    load(AgentDeployment, _DEPLOYMENT, _deployments(crowd.agents, size, begin, end))
    murmur(crowd, size.whispers, begin, end, say)
    watch(crowd, size, begin, end, say)
    return crowd


def _agents(crowd: Crowd, owners: Sequence[User], begin: datetime) -> Iterator[tuple[Any, ...]]:
    yield (BUSY, "Busy", crowd.many.pk, begin)
    for name in (QUIET, *VETERANS):
        yield (name, name.title(), crowd.few.pk, begin)
    for number, agent in enumerate(crowd.agents):
        owner = crowd.many if number < MANY_AGENTS else owners[number % len(owners)]
        yield (agent, f"Agent {number}", owner.pk, begin + timedelta(minutes=number))


_VERSION = ("id", "agent", "number", "base_prompt", "strategy", "skills", "model", "published_at")
_SKILLS = [{"name": "pot odds", "text": STRATEGY}, {"name": "position", "text": STRATEGY}]


def _versions(agents: Sequence[str], begin: datetime, end: datetime) -> Iterator[tuple[Any, ...]]:
    for agent in (BUSY, QUIET, *VETERANS, *agents):
        count = BUSY_VERSIONS if agent == BUSY else 2
        for number in range(1, count + 1):
            at = begin + (end - begin) * (number - 1) / count
            yield (f"{agent}-v{number}", agent, number, BASE, STRATEGY + str(number), _SKILLS, "house", at)


_DEPLOYMENT = ("agent", "version", "table_id", "base_prompt", "strategy", "skills", "model", "seated_at", "left_at")


def _deployments(agents: Sequence[str], size: Size, begin: datetime, end: datetime) -> Iterator[tuple[Any, ...]]:
    for place, agent in enumerate((BUSY, QUIET, *VETERANS, *agents)):
        for number in (1, 2):
            left = begin + (end - begin) / 2 if number == 1 else None
            seated = begin if number == 1 else begin + (end - begin) / 2
            table = f"T1-{place % size.tables}"
            yield (agent, f"{agent}-v{number}", table, BASE, STRATEGY, _SKILLS, "house", seated, left)


def murmur(crowd: Crowd, count: int, begin: datetime, end: datetime, say: Say) -> None:
    """Whispers; two in five are to the busy one."""

    def rows() -> Iterator[tuple[Any, ...]]:
        for number in range(count):
            agent = BUSY if number % 5 < 2 else crowd.agents[number % len(crowd.agents)]
            at = begin + (end - begin) * number / count
            yield (agent, crowd.many.pk, f"Fold more against raises, said for the {number}th time", at)

    load(Whisper, ("agent", "author", "text", "created_at"), rows(), say)


def watch(crowd: Crowd, size: Size, begin: datetime, end: datetime, say: Say) -> None:
    """The audit: mostly the operator's looks."""
    chance = random.Random(3)

    def rows() -> Iterator[tuple[Any, ...]]:
        for number in range(size.audits):
            deed = DEEDS[number % len(DEEDS)]
            who = crowd.operator if deed == "opened" else crowd.many
            agent = BUSY if number % 7 == 0 else chance.choice(crowd.agents)
            table, hand = f"T1-{number % size.tables}", number // size.tables + 1
            yield (who.pk, who.username, deed, agent, table, hand, "", begin + (end - begin) * number / size.audits)

    names = ("actor", "actor_name", "deed", "agent_id", "table_id", "hand_number", "detail", "at")
    load(AuditEntry, names, rows(), say)
