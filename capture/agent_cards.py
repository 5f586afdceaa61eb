"""An owner's agents at a glance, and their hands in a line each: for the owner's lists and for the home page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from django.db.models import Max
from django.urls import reverse

from agentlab.agents.models import Agent, AgentDeployment
from capture.links import VERSION_PAGE, TurnLinks
from capture.listing import Mark, hand_url, marks_of
from capture.recent import AgentDay, RecentHand


@dataclass(frozen=True)
class Card:
    """An agent at a glance. `version` is the newest published one, `table_id` where it sits now; "" is none."""

    agent: Agent
    version: str
    table_id: str
    day: AgentDay | None  # None: not known

    @property
    def version_id(self) -> str:
        return f"{self.agent.pk}-{self.version}"

    @property
    def fallback_percent(self) -> str:
        if not self.day or not self.day.turns:
            return ""
        share = 100 * self.day.fallbacks / self.day.turns
        return "under 1 %" if 0 < share < 1 else f"{share:.0f} %"


@dataclass(frozen=True)
class Version:
    """`url` is "" where the version is none of the agent's."""

    label: str
    url: str


@dataclass(frozen=True)
class Player:
    """An agent in a hand: its turns on its owner's page, the versions that played them, and the chips that it won or
    lost (None: not known)."""

    name: str
    url: str
    versions: list[Version]
    net: int | None


@dataclass(frozen=True)
class HandRow:
    """A hand in a line, with the agents that the reader may see."""

    hand: RecentHand
    players: list[Player]
    marks: list[Mark]


def cards(agents: Sequence[Agent], days: Mapping[str, AgentDay]) -> list[Card]:
    """In two queries. `days` may lack an agent: then its day is not known."""
    seated = AgentDeployment.objects.filter(agent__in=agents, left_at=None).order_by("seated_at", "id")
    tables = dict(seated.values_list("agent_id", "table_id"))
    published = Agent.objects.filter(pk__in=[agent.pk for agent in agents]).values_list("pk")
    newest = dict(published.annotate(newest=Max("versions__number")).order_by())
    return [
        Card(agent, f"v{newest[agent.pk]}" if newest[agent.pk] else "", tables.get(agent.pk, ""), days.get(agent.pk))
        for agent in agents
    ]


def hand_rows(hands: Sequence[RecentHand], names: Mapping[str, str], only: str = "") -> list[HandRow]:
    """`names` are those of the agents whose pages the rows lead to, by id; `only` is what their list is narrowed to."""
    rows = []
    for hand in hands:
        # What another host says of others' turns leads nowhere: they have no page here for this reader.
        known = replace(hand, first={kind: place for kind, place in hand.first.items() if place[1] in names})
        players = [_player(known, agent_id, names[agent_id], only) for agent_id in hand.agent_ids if agent_id in names]
        rows.append(HandRow(hand, players, marks_of(known, _links)))
    return rows


def _links(agent_id: str) -> TurnLinks:
    return TurnLinks(reverse("agent-hand", args=[agent_id]))


def _player(hand: RecentHand, agent_id: str, name: str, only: str) -> Player:
    """A version that is not known by its id to be another's is this agent's, where it was alone."""
    alone = hand.agent_ids == [agent_id]
    own = [one for one in hand.agent_version_ids if alone or one.rpartition("-v")[0] == agent_id]
    versions = [_version(agent_id, version_id) for version_id in own]
    return Player(name, hand_url(hand, _links(agent_id), only), versions, hand.net.get(agent_id))


def _version(agent_id: str, version_id: str) -> Version:
    label = version_id.removeprefix(f"{agent_id}-")
    return Version(label, TurnLinks("", VERSION_PAGE).version(agent_id, version_id) if label != version_id else "")
