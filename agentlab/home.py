"""The home page: what this is, to somebody who is not signed in; what matters now, to somebody who is.

It looks into every room, so it belongs to none. Its number of queries is the same however much there is.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from agentlab.agents.models import Agent, AgentDeployment
from agentlab.common.access import User, is_operator, owned, visible
from agentlab.persona.models import StudyRun
from capture import losses
from capture.agent_cards import cards, hand_rows
from capture.company import names_of
from capture.links import OPERATORS_PAGE, TurnLinks
from capture.listing import Shown, present_recent
from capture.recent import RecentHand
from capture.sources import SourceError, hand_source
from factory.reading import newest_runs

NEWEST = 6  # of each kind
AGENTS = 12
PLAYING = timedelta(minutes=2)  # a turn is asked for every few seconds, and a slow model gets a minute


@login_not_required
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    if not request.user.is_authenticated:
        return render(request, "home/anonymous.html", {"local": settings.LOCAL})
    now = datetime.now(UTC)
    context = _at_the_tables(now) if is_operator(request.user) else _own_agents(request.user)
    context["silence"] = hand_source().silence()
    context |= {"runs": newest_runs(request.user, NEWEST), "studies": _newest_studies(request.user)}
    return render(request, "home/home.html", context)


def _newest_studies(user: User) -> list[StudyRun]:
    return list(visible(StudyRun.objects.select_related("owner"), user).order_by("-pk")[:NEWEST])


def _at_the_tables(now: datetime) -> dict[str, Any]:
    """For operators: the newest hands, whoever played them, and what capture lost."""
    try:
        recent = hand_source().recent_hands(limit=NEWEST)
    except SourceError as error:
        return {"everybody": True, "trouble": str(error)}
    names = names_of(agent_id for hand in recent.hands for agent_id in hand.agent_ids)
    last = max((hand.last_played_at for hand in recent.hands), default=None)
    return {
        "everybody": True,
        "recent": present_recent(recent, TurnLinks(OPERATORS_PAGE), names, Shown(), open_hand=None),
        "last": last,
        "playing": _is_playing(recent.hands, now),
        # The ledger of another host is not ours to count.
        "losses": None if settings.HOSTED_AGENT_URL else losses.lately(now),
    }


def _is_playing(hands: Sequence[RecentHand], now: datetime) -> bool:
    """A turn was played just now, at a table where somebody still sits. Who sits elsewhere is not known here."""
    tables = {hand.table_id for hand in hands if now - hand.last_played_at < PLAYING}
    if settings.HOSTED_AGENT_URL:
        return bool(tables)
    return AgentDeployment.objects.filter(table_id__in=tables, left_at=None).exists()


def _own_agents(user: User) -> dict[str, Any]:
    """For an owner: how the own agents do, and their newest hands."""
    mine = list(owned(Agent.objects.all(), user).order_by("name", "id")[: AGENTS + 1])
    more, mine = len(mine) > AGENTS, mine[:AGENTS]
    ids = [agent.pk for agent in mine]
    names = {agent.pk: agent.name for agent in mine}
    try:
        days = hand_source().last_day(ids)
        hands = hand_source().recent_hands(limit=NEWEST, agent_ids=ids).hands
    except SourceError as error:
        return {"cards": cards(mine, {}), "more": more, "trouble": str(error)}
    return {"cards": cards(mine, days), "more": more, "hands": hand_rows(hands, names)}
