"""The operators' pages of captured hands: read the request, call one service, render."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agentlab.agents.models import Agent
from agentlab.common.access import User, is_operator, operators_only
from agentlab.common.raw import raw_text
from agentlab.common.text import plain
from capture import losses, turnparts
from capture.asking import Asked, AskedTurn, BadQuestion, asked_agent, asked_hand, asked_turn
from capture.company import company, names_of
from capture.keeping import keep_hand, unkept
from capture.links import OPERATORS_PAGE, VERSION_PAGE, TurnLinks
from capture.listing import KEPT, Shown, ask_for, count_news, list_url, news_query, present_recent
from capture.notes import notes_on
from capture.opening import audit_opened
from capture.parts import Setting
from capture.presenting import HandPanel, present_hand
from capture.reading import Hand
from capture.recent import RecentHands
from capture.sources import HandSource, SourceError, hand_source
from capture.wording import unknown_actions

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def agent_named(text: str) -> str:
    """The id that somebody means who may have typed a name, as the pages show it; else what was typed."""
    if not text or Agent.objects.filter(id=text).exists():
        return text
    typed = text.strip()
    found = Agent.objects.filter(Q(id=typed) | Q(name__iexact=typed)).values_list("id", flat=True)[:2]
    return found[0] if len(found) == 1 else text


def setting_for(hand: Hand, links: TurnLinks, user: User) -> Setting:
    """An operator is told everybody's name, an owner those of the own agents: rivals go by their ids, as the table
    tells them."""
    spoken_of = company(hand)
    return Setting(
        links,
        now=datetime.now(UTC),
        ttl=_lifetime(),
        names=names_of(spoken_of.named, owner=None if is_operator(user) else user),
        seated=spoken_of.seated,
        find=links.find,
        notes=notes_on,
    )


def _lifetime() -> timedelta:
    return timedelta(seconds=settings.CAPTURE_TTL_SECONDS)


@operators_only
@require_GET
def hands(request: HttpRequest) -> HttpResponse:
    """The hand that was asked for, or the list."""
    context: dict[str, Any] = {"form": _form(request)}
    status = 200
    try:
        asked = asked_hand(request.GET.dict())
        if asked.hand_number is not None:
            context |= _hand_context(request.user, asked.table_id, asked.hand_number, asked)
        else:
            context |= _list_context(_shown(request))
            context["silence"] = hand_source().silence()
    except SourceError as error:
        context["trouble"], status = str(error), error.status
    except ValueError as error:
        context["form"]["error"], status = str(error), 400
    return render(request, "capture/page.html", context, status=status)


def _shown(request: HttpRequest) -> Shown:
    before, only = (request.GET.get(name, "").strip() for name in ("before", "only"))
    return Shown(before, only, agent_named(asked_agent(request.GET.dict())))


def _form(request: HttpRequest) -> dict[str, Any]:
    given = {name: request.GET.get(name, "") for name in ("table", "hand", "agent")}
    # As they are, since the form sends them again; but a control character can stand in no field.
    fields = {name: plain(text) if CONTROL.search(text) else text for name, text in given.items()}
    return fields | {"agents": Agent.objects.only("id", "name")[:200]}


def _list_context(shown: Shown, open_hand: tuple[str, int] | None = None) -> dict[str, Any]:
    recent = ask_for(hand_source(), shown)
    seen = (agent_id for hand in recent.hands for agent_id in hand.agent_ids)
    names = names_of([*seen, shown.agent_id] if shown.agent_id else seen)
    return {
        "recent": present_recent(recent, TurnLinks(OPERATORS_PAGE), names, shown, open_hand=open_hand),
        "shown": shown,
        "news_url": "" if shown.only == KEPT else f"{OPERATORS_PAGE}/news?{news_query(recent, shown)}",
        # The ledger of another host is not ours to count.
        "losses": None if settings.HOSTED_AGENT_URL else losses.lately(datetime.now(UTC)),
    }


def _hand_context(user: User, table_id: str, number: int, asked: Asked) -> dict[str, Any]:
    source, agent_id = hand_source(), agent_named(asked.agent_id)
    hand = _read(source, table_id, number, agent_id)
    nothing = not hand.turns and hand.buffer_answered
    if nothing and (typed := table_id.strip()) not in ("", table_id):  # the space was none of the table's id
        table_id, hand = typed, _read(source, typed, number, agent_id)
    audit_opened(user, hand)
    links = TurnLinks(OPERATORS_PAGE, VERSION_PAGE, asked.find)
    scope = {"table": table_id, "hand": str(number)} | ({"agent": agent_id} if agent_id else {})
    shown = present_hand(hand, setting_for(hand, links, user))
    if agent_id and not hand.turns and hand.buffer_answered:  # the hand itself may well be there
        name = names_of([agent_id])[agent_id]
        shown = replace(shown, empty=f"No turn of {name} is known in this hand. Without an agent, all are shown.")
    if not agent_id and (unknown := unknown_actions(hand.turns)):
        shown = replace(shown, counts=[*shown.counts, unknown])
    return {
        "hand": shown,
        **_kept_context(shown),
        "hand_url": f"{OPERATORS_PAGE}?{urlencode(scope)}",
        "recent_url": f"{OPERATORS_PAGE}/recent?{urlencode({'table': table_id, 'hand': number})}",
        "find_fields": scope.items(),
        **_neighbours(source, table_id, number),
    }


def _read(source: HandSource, table_id: str, number: int, agent_id: str) -> Hand:
    """Of one agent alone, where one is named."""
    return source.read_hand(table_id, number, agent_id=agent_id) if agent_id else source.read_hand_all(table_id, number)


def _neighbours(source: HandSource, table_id: str, number: int) -> dict[str, Any]:
    """Links to the hands of that table that there are. None where the host that knows does not say: the hand itself can
    be read without."""
    try:
        found = source.neighbours_all(table_id, number)
    except SourceError:
        return {}
    links = TurnLinks(OPERATORS_PAGE)
    places = {"earlier": found.older, "later": found.newer}
    return {name: {"title": place[1], "url": links.hand(*place)} for name, place in places.items() if place}


def _kept_context(hand: HandPanel) -> dict[str, Any]:
    """Whose kept turns an operator may delete: nobody else can. What has an owner is the owner's to delete."""
    ids = [agent.id for agent in hand.keepers]
    owned = set(Agent.objects.filter(id__in=ids).values_list("id", flat=True)) if ids else set()
    return {
        "unowned": set(ids) - owned,
        "scope_of_hand": urlencode({"table": hand.table_id, "hand": hand.hand_number}),
    }


@operators_only
@require_GET
def recent(request: HttpRequest) -> HttpResponse:
    """The recent hands for the page of a hand, where they are fetched on opening. Their own page is the list."""
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect("captured-hands")
    try:
        asked = asked_hand(request.GET.dict())
        open_hand = (asked.table_id, asked.hand_number) if asked.hand_number is not None else None
        return render(request, "capture/_recent_list.html", _list_context(Shown(), open_hand))
    except SourceError as error:
        return render(request, "capture/_gone.html", {"absence": str(error)}, status=error.status)
    except ValueError as error:
        return _plain(str(error), 400)


@operators_only
@require_GET
def news(request: HttpRequest) -> HttpResponse:
    """How many hands are newer than the list somebody is looking at. A page of its own it is not."""
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect("captured-hands")
    try:
        shown = _shown(request)
        count = _count_news(ask_for(hand_source(), shown), request)
    except SourceError as error:
        return _plain(str(error), error.status)
    except (ValueError, TypeError):
        return _plain("The list to compare with cannot be read.", 400)
    return render(request, "capture/_news.html", {"count": count, "list_url": list_url(OPERATORS_PAGE, shown)})


def _count_news(newest: RecentHands, request: HttpRequest) -> int:
    since = datetime.fromisoformat(request.GET.get("since", ""))
    return count_news(newest, since, set(request.GET.getlist("seen")))


@operators_only
@require_GET
def part(request: HttpRequest) -> HttpResponse:
    return show_part(request, request.GET.dict(), TurnLinks(OPERATORS_PAGE, VERSION_PAGE, request.GET.get("q", "")))


def show_part(request: HttpRequest, query: Mapping[str, str], links: TurnLinks) -> HttpResponse:
    """One part of a turn: a page to a browser, its fragment to htmx."""
    try:
        asked = asked_turn(query)
        hand = hand_source().read_hand(asked.table_id, asked.hand_number, agent_id=asked.agent_id)
    except SourceError as error:
        return _answer(request, "capture/_gone.html", {"absence": str(error), "heading": "No answer"}, error.status)
    except BadQuestion as error:
        return _answer(request, "capture/_gone.html", {"absence": str(error), "heading": "No such part"}, 400)
    audit_opened(request.user, hand)
    setting = setting_for(hand, links, request.user)
    name, whole = query.get("part", ""), query.get("all") == "1"
    found = turnparts.find_part(hand, asked.action_index, name, setting, whole=whole)
    context = {**found.context, "heading": found.heading, "tools": found.tools, **_way_back(asked, found.anchor, links)}
    return _answer(request, found.template, context, found.status)


def _way_back(asked: AskedTurn, anchor: str, links: TurnLinks) -> dict[str, Any]:
    url = links.hand(asked.table_id, asked.hand_number)
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
    return show_raw(request, request.GET.dict())


def show_raw(request: HttpRequest, query: Mapping[str, str]) -> HttpResponse:
    """The exact text of one part."""
    try:
        asked = asked_turn(query)
        hand = hand_source().read_hand(asked.table_id, asked.hand_number, agent_id=asked.agent_id)
    except SourceError as error:
        return _plain(str(error), error.status)
    except BadQuestion as error:
        return _plain(str(error), 400)
    audit_opened(request.user, hand)
    name = query.get("part", "")
    found = turnparts.raw_part(hand, asked.action_index, name, now=datetime.now(UTC), ttl=_lifetime())
    if isinstance(found, turnparts.Absent):
        return _plain(found.sentence, found.status)
    return raw_text(found, f"{asked.table_id}-{asked.hand_number}-{asked.agent_id}-{asked.action_index}-{name}")


def _plain(text: str, status: int) -> HttpResponse:
    return raw_text(text, "error", status=status)


@operators_only
@require_POST
def keep(request: HttpRequest) -> HttpResponse:
    """Keep the hand for one agent, or (`agent` empty) for every agent with turns to keep."""
    source, links = hand_source(), TurnLinks(OPERATORS_PAGE)
    try:
        asked = asked_hand(request.POST.dict())
        if asked.hand_number is None:
            raise BadQuestion("Which hand?")
        place = (asked.table_id, asked.hand_number)
        agent_ids = [asked.agent_id] if asked.agent_id else _all_keepable(request.user, source, *place, links)
        outcomes, status = keep_hand(source, *place, agent_ids, names=names_of(agent_ids), actor=request.user)
        panel = _panel(request.user, source, *place, links)
    except SourceError as error:
        return _plain(str(error), error.status)
    except BadQuestion as error:
        return _plain(str(error), 400)
    if request.htmx:  # type: ignore[attr-defined]
        said = ". ".join(plain(outcome.text) for outcome in outcomes)
        context = {"hand": panel, "outcomes": outcomes, "status": said} | _kept_context(panel)
        return render(request, "capture/_kept.html", context, status=status)
    for outcome in outcomes:
        messages.add_message(request, messages.SUCCESS if outcome.kept else messages.WARNING, plain(outcome.text))
    return redirect(links.hand(*place))


def _panel(user: User, source: HandSource, table_id: str, hand_number: int, links: TurnLinks) -> HandPanel:
    hand = source.read_hand_all(table_id, hand_number)
    return present_hand(hand, setting_for(hand, links, user))


def _all_keepable(user: User, source: HandSource, table_id: str, hand_number: int, links: TurnLinks) -> list[str]:
    return [agent.id for agent in _panel(user, source, table_id, hand_number, links).keepable]


@operators_only
@require_http_methods(["GET", "HEAD", "POST"])
def unkeep(request: HttpRequest) -> HttpResponse:
    """Asks once, then deletes the kept turns of an agent that is nobody's here: no owner's page could."""
    try:
        asked = asked_hand((request.POST if request.method == "POST" else request.GET).dict())
        if asked.hand_number is None or not asked.agent_id:
            raise BadQuestion("Which hand, and of which agent?")
        if Agent.objects.filter(id=asked.agent_id).exists():
            raise Http404
        return _unkeep(request, asked.table_id, asked.hand_number, asked.agent_id)
    except SourceError as error:
        return _plain(str(error), error.status)
    except BadQuestion as error:
        return _plain(str(error), 400)


def _unkeep(request: HttpRequest, table_id: str, hand_number: int, agent_id: str) -> HttpResponse:
    hand_url = TurnLinks(OPERATORS_PAGE).hand(table_id, hand_number)
    if request.method == "POST":
        removed = hand_source().unpin(table_id, hand_number, agent_id=agent_id, actor=request.user)
        messages.add_message(request, messages.SUCCESS if removed else messages.WARNING, unkept(removed))
        return redirect(hand_url)
    found = hand_source().read_hand(table_id, hand_number, agent_id=agent_id)
    context = {"table_id": table_id, "hand_number": hand_number, "agent_id": agent_id, "hand_url": hand_url}
    return render(request, "capture/unkeep.html", context | {"turns": sum(view.kept for view in found.turns)})
