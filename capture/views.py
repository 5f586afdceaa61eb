"""The operators' pages of captured hands: read the request, call one service, render."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_GET, require_POST

from agentlab.agents.models import Agent
from agentlab.common.access import operators_only
from agentlab.common.raw import raw_text
from agentlab.common.text import plain
from capture import losses, turnparts
from capture.asking import Asked, AskedTurn, BadQuestion, asked_hand, asked_turn
from capture.keeping import keep_hand
from capture.links import TurnLinks
from capture.listing import count_news, news_query, present_recent
from capture.notes import notes_on
from capture.presenting import HandPanel, Setting, present_hand
from capture.reading import Hand, read_hand, read_hand_all
from capture.recent import RecentHands, recent_hands

BASE = "/agent-capture"
VERSION_PAGE = "/agents/{agent}/versions/{version}"


def names_of(agent_ids: Iterable[str]) -> dict[str, str]:
    """What people call these agents; one that is not known here goes by its id."""
    return dict(Agent.objects.filter(id__in=set(agent_ids)).values_list("id", "name"))


def setting_for(hand: Hand, links: TurnLinks) -> Setting:
    return Setting(
        links,
        now=datetime.now(UTC),
        ttl=timedelta(seconds=settings.CAPTURE_TTL_SECONDS),
        names=names_of(view.agent_id for view in hand.turns),
        find=links.find,
        notes=notes_on,
    )


@operators_only
@require_GET
def hands(request: HttpRequest) -> HttpResponse:
    """The list, and the hand that was asked for."""
    before, question = request.GET.get("before", ""), ""
    try:
        asked = asked_hand(request.GET.dict())
        recent = recent_hands(before=before or None)
    except ValueError as error:
        asked, before, question = Asked(), "", str(error)
        recent = recent_hands()
    context = _list_context(recent, before, asked) | {"form": _form(request, question)}
    if asked.hand_number is not None:
        context |= _hand_context(asked.table_id, asked.hand_number, asked)
    return render(request, "capture/page.html", context, status=400 if question else 200)


def _form(request: HttpRequest, error: str) -> dict[str, Any]:
    fields = {name: request.GET.get(name, "") for name in ("table", "hand", "agent")}
    return fields | {"error": error, "agents": Agent.objects.only("id", "name")[:200]}


def _list_context(recent: RecentHands, before: str, asked: Asked) -> dict[str, Any]:
    names = names_of(agent_id for hand in recent.hands for agent_id in hand.agent_ids)
    shown = present_recent(recent, TurnLinks(BASE), names, before=before, open_hand=(asked.table_id, asked.hand_number))
    return {
        "recent": shown,
        "paged": bool(before),
        "news_url": f"{BASE}/news?{news_query(recent)}",
        "losses": losses.lately(datetime.now(UTC)),
    }


def _hand_context(table_id: str, number: int, asked: Asked) -> dict[str, Any]:
    one, everybody = asked.agent_id, not asked.agent_id
    hand = read_hand_all(table_id, number) if everybody else read_hand(table_id, number, agent_id=one)
    links = TurnLinks(BASE, VERSION_PAGE, asked.find)
    scope = {"table": table_id, "hand": str(number)} | ({"agent": asked.agent_id} if asked.agent_id else {})
    return {
        "hand": present_hand(hand, setting_for(hand, links)),
        "hand_url": f"{BASE}?{urlencode(scope)}",
        "find_fields": scope.items(),
        "earlier": number - 1,
        "earlier_url": links.hand(table_id, number - 1) if number else "",
        "later": number + 1,
        "later_url": links.hand(table_id, number + 1),
    }


@operators_only
@require_GET
def news(request: HttpRequest) -> HttpResponse:
    """How many hands are newer than the list somebody is looking at. A page of its own it is not."""
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect("captured-hands")
    try:
        since = datetime.fromisoformat(request.GET.get("since", ""))
        count = count_news(recent_hands(), since, set(request.GET.getlist("seen")))
    except (ValueError, TypeError):
        return HttpResponse("The list to compare with cannot be read.", status=400, content_type="text/plain")
    return render(request, "capture/_news.html", {"count": count})


@operators_only
@require_GET
def part(request: HttpRequest) -> HttpResponse:
    """One part of a turn: a page to a browser, its fragment to htmx."""
    try:
        asked = asked_turn(request.GET.dict())
    except BadQuestion as error:
        return _answer(request, "capture/_gone.html", {"absence": str(error), "heading": "No such part"}, 400)
    hand = read_hand(asked.table_id, asked.hand_number, agent_id=asked.agent_id)
    links = TurnLinks(BASE, VERSION_PAGE, request.GET.get("q", ""))
    found = turnparts.find_part(
        hand,
        asked.action_index,
        request.GET.get("part", ""),
        setting_for(hand, links),
        whole=request.GET.get("all") == "1",
    )
    context = found.context | {"heading": found.heading, "tools": found.tools}
    return _answer(request, found.template, context | _way_back(asked, found.anchor), found.status)


def _way_back(asked: AskedTurn, anchor: str) -> dict[str, Any]:
    url = TurnLinks(BASE).hand(asked.table_id, asked.hand_number)
    return {"back_url": f"{url}#{anchor}" if anchor else url, "hand_title": f"{asked.table_id}:{asked.hand_number}"}


def _answer(request: HttpRequest, template: str, context: dict[str, Any], status: int) -> HttpResponse:
    if request.htmx:  # type: ignore[attr-defined]
        response = render(request, template, context, status=status)
    else:
        response = render(request, "capture/part.html", context | {"body_template": template}, status=status)
    patch_vary_headers(response, ["HX-Request"])
    return response


@operators_only
@require_GET
def raw(request: HttpRequest) -> HttpResponse:
    """The exact text of one part."""
    try:
        asked = asked_turn(request.GET.dict())
    except BadQuestion as error:
        return _plain(str(error), 400)
    hand = read_hand(asked.table_id, asked.hand_number, agent_id=asked.agent_id)
    name = request.GET.get("part", "")
    text, refusal = turnparts.raw_part(hand, asked.action_index, name, setting_for(hand, TurnLinks(BASE)))
    if text is None:
        return _plain(refusal, 404)
    return raw_text(text, f"{asked.table_id}-{asked.hand_number}-{asked.agent_id}-{asked.action_index}-{name}")


def _plain(text: str, status: int) -> HttpResponse:
    return raw_text(text, "error", status=status)


@operators_only
@require_POST
def keep(request: HttpRequest) -> HttpResponse:
    """Keep the hand for one agent, or (`agent` empty) for every agent with turns to keep."""
    try:
        asked = asked_hand(request.POST.dict())
        if asked.hand_number is None:
            raise BadQuestion("Which hand?")
    except BadQuestion as error:
        return _plain(str(error), 400)
    table_id, number, links = asked.table_id, asked.hand_number, TurnLinks(BASE)
    before = _panel(table_id, number, links)
    agent_ids = [asked.agent_id] if asked.agent_id else [agent.id for agent in before.keepable]
    outcomes, answered = keep_hand(table_id, number, agent_ids, names_of(agent_ids), request.user)
    if request.htmx:  # type: ignore[attr-defined]
        context = {
            "hand": _panel(table_id, number, links),
            "outcomes": outcomes,
            "status": ". ".join(plain(outcome.text) for outcome in outcomes),
        }
        return render(request, "capture/_kept.html", context, status=200 if answered else 503)
    for outcome in outcomes:
        messages.add_message(request, messages.SUCCESS if outcome.kept else messages.WARNING, plain(outcome.text))
    return redirect(links.hand(table_id, number))


def _panel(table_id: str, hand_number: int, links: TurnLinks) -> HandPanel:
    hand = read_hand_all(table_id, hand_number)
    return present_hand(hand, setting_for(hand, links))
