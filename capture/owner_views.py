"""The owner's pages that need recorded turns: the cards, an agent's hands, one hand, what is kept.

They are here and not in the room of agents because that room knows nothing of capture. Every read names the one agent
whose page it is; an operator may read along, and only the owner keeps and deletes.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agentlab.agents.models import Agent
from agentlab.common.access import is_operator, owned, visible
from agentlab.common.paging import numbered, page_number
from agentlab.common.text import plain
from capture.agent_cards import cards, hand_rows
from capture.asking import BadQuestion, asked_hand
from capture.keeping import keep_hand, unkept
from capture.links import VERSION_PAGE, TurnLinks
from capture.listing import Shown, choices_of, none_such, pager_of
from capture.opening import audit_opened
from capture.presenting import present_hand
from capture.sources import SourceError, hand_source
from capture.views import setting_for, show_part, show_raw

CARDS = 24  # agents a page


def agent_page(scope: Callable[..., Any]) -> Callable[..., Callable[..., HttpResponse]]:
    """The view gets the agent where `scope` (`visible` or `owned`) gives it to this user, else 404. A source that does
    not answer and a question that cannot be answered become a readable page."""

    def decorate(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        @wraps(view)
        def guarded(request: HttpRequest, agent_id: str) -> HttpResponse:
            agent = get_object_or_404(scope(Agent.objects.select_related("owner"), request.user), pk=agent_id)
            try:
                return view(request, agent)
            except SourceError as error:
                return _page(request, agent, "trouble", {"trouble": str(error)}, error.status)
            except ValueError as error:
                return _page(request, agent, "trouble", {"trouble": str(error)}, 400)

        return guarded

    return decorate


def _page(request: HttpRequest, agent: Agent, name: str, context: dict[str, Any], status: int = 200) -> HttpResponse:
    shared = {"agent": agent, "is_owner": agent.owner_id == request.user.pk, "tab": "hands"}
    return render(request, f"agents/{name}.html", shared | context, status=status)


@require_GET
def agents(request: HttpRequest) -> HttpResponse:
    """A card for each agent that this user may see."""
    everyone = visible(Agent.objects.all(), request.user)
    pages = max(1, -(-everyone.count() // CARDS))
    number = page_number(request.GET.get("page"), pages)
    rows = everyone.select_related("owner").order_by("name", "id")
    shown = list(rows[(number - 1) * CARDS : number * CARDS])
    days, trouble = {}, ""
    try:
        days = hand_source().last_day([agent.pk for agent in shown])
    except SourceError as error:
        trouble = str(error)
    context = {"cards": cards(shown, days), "trouble": trouble, "pager": numbered(request.path, number, pages)}
    return render(request, "agents/agents.html", context | {"everybody": is_operator(request.user)})


@require_GET
@agent_page(visible)
def hands(request: HttpRequest, agent: Agent) -> HttpResponse:
    """The agent's recent hands."""
    return _list_page(request, agent, kept=False)


@require_GET
@agent_page(visible)
def kept(request: HttpRequest, agent: Agent) -> HttpResponse:
    """The agent's kept hands, last kept first."""
    return _list_page(request, agent, kept=True)


def _list_page(request: HttpRequest, agent: Agent, *, kept: bool) -> HttpResponse:
    shown = Shown(request.GET.get("before", ""), "" if kept else request.GET.get("only", ""))
    found = hand_source().recent_hands(shown.before or None, agent_ids=[agent.pk], kept=kept, only=shown.only)
    rows = hand_rows(found.hands, {agent.pk: agent.name}, shown.only)
    context: dict[str, Any] = {"rows": rows, "pager": pager_of(request.path, found, shown), "only": shown.only}
    context |= {"choices": [] if kept else choices_of(request.path, shown)}
    context |= {"none": none_such(shown.only) if not rows else ""}
    context |= {"unpublished": not rows and not agent.versions.exists(), "silence": hand_source().silence()}
    return _page(request, agent, "hands", context | {"tab": "kept" if kept else "hands"})


def _links(agent: Agent, find: str = "") -> TurnLinks:
    return TurnLinks(reverse("agent-hand", args=[agent.pk]), VERSION_PAGE, find)


@require_GET
@agent_page(visible)
def hand(request: HttpRequest, agent: Agent) -> HttpResponse:
    """The turns of this agent alone in one hand."""
    asked = _asked(request.GET.dict())
    return _page(request, agent, "hand", _hand_context(request, agent, asked) | _neighbours(agent, *asked[:2]))


def _neighbours(agent: Agent, table_id: str, hand_number: int) -> dict[str, Any]:
    """Links to the hands that this agent played before and after. None where the host that knows them does not say:
    the hand itself can be read without."""
    try:
        found = hand_source().neighbours(table_id, hand_number, agent_id=agent.pk)
    except SourceError:
        return {}
    places = {"earlier": found.older, "later": found.newer}
    return {name: _neighbour(agent, table_id, *place) for name, place in places.items() if place}


def _neighbour(agent: Agent, here: str, table_id: str, hand_number: int) -> dict[str, str]:
    """By its number alone where it was played at the same table."""
    title = str(hand_number) if table_id == here else f"{table_id}:{hand_number}"
    return {"title": title, "url": _links(agent).hand(table_id, hand_number)}


def _asked(query: dict[str, str]) -> tuple[str, int, str]:
    """Table, hand and search; which agent is in the path, and nothing else may say it."""
    asked = asked_hand(query | {"agent": ""})
    if asked.hand_number is None:
        raise BadQuestion("Which hand? Give a table and a hand number.")
    return asked.table_id, asked.hand_number, asked.find


def _hand_context(request: HttpRequest, agent: Agent, asked: tuple[str, int, str]) -> dict[str, Any]:
    table_id, hand_number, find = asked
    found = hand_source().read_hand(table_id, hand_number, agent_id=agent.pk)
    audit_opened(request.user, found)
    panel = present_hand(found, setting_for(found, _links(agent, find), request.user))
    if not found.turns and found.buffer_answered and found.lists_whole:  # the hand itself may well be there
        panel = replace(panel, empty=f"No turn of {agent.name} is known in this hand.")
    scope = {"table": table_id, "hand": str(hand_number)}
    kept_turns = sum(view.kept for view in found.turns)
    to_keep = sum(view.turn is not None and not view.kept for view in found.turns)
    return {
        "hand": panel,
        "own": True,
        "inside": True,
        "kept_turns": kept_turns,
        "to_keep": to_keep,
        "hand_url": _links(agent).hand(table_id, hand_number),
        "find_fields": scope.items(),
        "scope": urlencode(scope),
    }


@require_GET
@agent_page(visible)
def part(request: HttpRequest, agent: Agent) -> HttpResponse:
    return show_part(request, _own_query(request, agent), _links(agent, request.GET.get("q", "")))


@require_GET
@agent_page(visible)
def raw(request: HttpRequest, agent: Agent) -> HttpResponse:
    return show_raw(request, _own_query(request, agent))


def _own_query(request: HttpRequest, agent: Agent) -> dict[str, str]:
    """The query, of this page's agent alone: another's turn is not here."""
    if request.GET.get("agent", agent.pk) != agent.pk:
        raise Http404
    return request.GET.dict() | {"agent": agent.pk}


@require_POST
@agent_page(owned)
def keep(request: HttpRequest, agent: Agent) -> HttpResponse:
    """Keep this agent's turns of a hand."""
    asked = _asked(request.POST.dict())
    said, status = keep_hand(
        hand_source(), asked[0], asked[1], [agent.pk], names={agent.pk: agent.name}, actor=request.user
    )
    if request.htmx:  # type: ignore[attr-defined]
        context = _hand_context(request, agent, asked) if status == 200 else {}
        context |= {"agent": agent, "is_owner": True, "outcomes": said, "status": plain(said[-1].text)}
        return render(request, "agents/_kept.html", context, status=status)
    for outcome in said:
        messages.add_message(request, messages.SUCCESS if outcome.kept else messages.WARNING, plain(outcome.text))
    back = request.POST.get("back", "")  # the list that it was kept from
    inside = url_has_allowed_host_and_scheme(back, allowed_hosts=None)
    return redirect(back if inside else _links(agent).hand(asked[0], asked[1]))


@require_http_methods(["GET", "HEAD", "POST"])
@agent_page(owned)
def unkeep(request: HttpRequest, agent: Agent) -> HttpResponse:
    """Asks once, then deletes: what has left the buffer is then gone for good."""
    table_id, hand_number, _ = _asked((request.POST if request.method == "POST" else request.GET).dict())
    if request.method == "POST":
        removed = hand_source().unpin(table_id, hand_number, agent_id=agent.pk, actor=request.user)
        messages.add_message(request, messages.SUCCESS if removed else messages.WARNING, unkept(removed))
        return redirect("kept-hands", agent.pk)
    found = hand_source().read_hand(table_id, hand_number, agent_id=agent.pk)
    turns = sum(view.kept for view in found.turns)
    context = {"table_id": table_id, "hand_number": hand_number, "turns": turns, "tab": "kept", "inside": True}
    return _page(request, agent, "unkeep", context | {"hand_url": _links(agent).hand(table_id, hand_number)})
