"""Every question that a world is asked: the routes' own, then what is deep, filtered, searched or long, then the admin.

A page has the same name in every world, and its own address there.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import admin
from django.test import Client, RequestFactory

from agentlab.agents.models import InferenceCharge
from agentlab.common.admin_lists import SearchesIds, When
from agentlab.persona.models import StudyRun
from capture.models import AgentCallRecord
from capture.recent import _cursor
from factory.models import FactoryRun
from tests.load.turns import BUSY, QUIET, VETERANS
from tests.load.world import GONE, HOT, KEPT, LONG, MARATHON, World
from tests.site.routes import ROUTES, Ask

FINE = {200, 286}  # 286 ends htmx's asking
HANDS_LEFT = 30  # a last page begins about so many hands before the end
TURNS_A_HAND = 24


@dataclass(frozen=True)
class Page:
    """A name, and a visit, which gives the status; `tidy` is no part of it."""

    name: str
    visit: Callable[[], int]
    tidy: Callable[[], object] = lambda: None


class Visitors:
    """The signed-in clients of a world, and what asks with the service key."""

    def __init__(self, world: World) -> None:
        people = {"operator": world.crowd.operator, "many": world.crowd.many, "few": world.crowd.few}
        self._clients = {"nobody": Client(), "service": Client()} | {name: Client() for name in people}
        for name, user in people.items():
            self._clients[name].force_login(user)

    def page(self, who: str, name: str, url: str, **headers: str) -> Page:
        if who == "service":
            headers["X-Service-Key"] = settings.AGENT_CAPTURE_SERVICE_KEY
        client = self._clients[who]

        def visit() -> int:
            response = client.get(url, headers=headers)
            if response.streaming:
                for _ in response:
                    pass
            return response.status_code

        return Page(f"{who}: {name}", visit)


def all_pages(world: World) -> list[Page]:
    visitors = Visitors(world)
    groups = (_routes, _hands, _owners, _service, _factory, _personas, _admin)
    found = [page for group in groups for page in group(world, visitors)]
    return list({page.name: page for page in found}.values())


def _routes(world: World, visitors: Visitors) -> Iterator[Page]:
    """What `routes.py` writes down, as whoever may see it. The owner of it all is `many`."""
    for route, asks in ROUTES.items():
        for one in asks:
            if one.method == "get":
                yield from _route(world, visitors, route, one)


def _route(world: World, visitors: Visitors, route: str, one: Ask) -> Iterator[Page]:
    url = one.url.format(**asdict(world.named))
    name = f"/{route}{' with a query' if '?' in url else ''}{' (part)' if one.headers else ''}"
    if route.startswith("internal/"):
        yield visitors.page("service", name, url, **one.headers)
    for who, wanted in (("operator", one.operator), ("many", one.owner), ("nobody", one.nobody)):
        if wanted in FINE and not (who == "nobody" and one.operator in FINE):
            yield visitors.page(who, name, url, **one.headers)


# hands -------------------------------------------------------------------------------------------------------


def _cursors(model: Any, **scope: str) -> tuple[str, str]:
    """The middle of a list of hands by time, and a place near its end."""
    when = "pinned_at" if model is AgentCallRecord else "played_at"
    rows = model.objects.filter(**scope).exclude(table_id="T-1")  # the routes' own hand has a date of its own
    per_hand = TURNS_A_HAND if not scope else 5
    oldest = list(rows.order_by(when, "id").values_list(when, "id")[: HANDS_LEFT * per_hand])
    newest = rows.order_by(f"-{when}", "-id").values_list(when, flat=True)[0]
    half = oldest[0][0] + (newest - oldest[0][0]) / 2
    middle = rows.filter(**{f"{when}__lte": half}).order_by(f"-{when}", "-id").values_list(when, "id")[0]
    return _cursor(*middle), _cursor(*oldest[-1])


def _deep(
    visitors: Visitors, who: str, name: str, path: str, cursors: tuple[str, str], **headers: str
) -> Iterator[Page]:
    joint = "&" if "?" in path else "?"
    yield visitors.page(who, f"{name}, first page", path, **headers)
    for place, cursor in zip(("middle", "last page"), cursors, strict=True):
        yield visitors.page(who, f"{name}, {place}", f"{path}{joint}before={cursor}", **headers)


def _hands(world: World, visitors: Visitors) -> Iterator[Page]:
    cursors, news = _cursors(InferenceCharge), urlencode({"since": world.end.isoformat(), "seen": "hot:1"})
    yield from _deep(visitors, "operator", "recent hands", "/agent-capture", cursors)
    yield from _deep(visitors, "operator", "recent hands in place", "/agent-capture/recent", cursors, HX_Request="true")
    past = InferenceCharge.objects.filter(table_id=MARATHON).order_by("-played_at").values_list("played_at", "id")[0]
    cursor = _cursor(past[0] + timedelta(seconds=1), past[1])
    yield visitors.page("operator", "recent hands, with a very long one", f"/agent-capture?before={cursor}")
    yield visitors.page("operator", "news", f"/agent-capture/news?{news}", HX_Request="true")
    for table in (HOT, KEPT, GONE, LONG, MARATHON):
        yield visitors.page("operator", f"hand, {table}", f"/agent-capture?table={table}&hand=1")
    yield visitors.page("operator", "hand, of one agent", f"/agent-capture?table=hot&hand=1&agent={BUSY}")
    yield visitors.page("operator", "hand, search in it", "/agent-capture?table=hot&hand=1&q=pot")
    yield visitors.page("operator", "hand that is not there", "/agent-capture?table=nowhere&hand=1")
    for table in (HOT, KEPT, LONG):
        for kind in ("prompt", "response"):
            turn = f"table={table}&hand=1&agent={BUSY}&turn=0&part={kind}"
            yield visitors.page("operator", f"{kind} of a turn, {table}", f"/agent-capture/part?{turn}")
            yield visitors.page("operator", f"raw {kind} of a turn, {table}", f"/agent-capture/raw?{turn}")


def _owners(world: World, visitors: Visitors) -> Iterator[Page]:
    for who in ("operator", "many"):
        for place, number in (("first page", 1), ("middle", 2), ("last page", 999)):
            yield visitors.page(who, f"agents, {place}", f"/agents?page={number}")
    yield visitors.page("few", "agents", "/agents")
    for who in ("few", "many"):
        yield visitors.page(who, "home", "/")
    busy = _cursors(InferenceCharge, agent_id=BUSY)
    yield from _deep(visitors, "many", "hands of a busy agent", f"/agents/{BUSY}", busy)
    kept = _cursors(AgentCallRecord, agent_id=BUSY)
    yield from _deep(visitors, "many", "kept hands of a busy agent", f"/agents/{BUSY}/kept", kept)
    for name, agent in (("quiet", QUIET), ("retired", VETERANS[0])):
        yield visitors.page("few", f"hands of a {name} agent", f"/agents/{agent}")
        yield visitors.page("few", f"kept hands of a {name} agent", f"/agents/{agent}/kept")
    for table in (HOT, KEPT, GONE, LONG):
        yield visitors.page("many", f"own hand, {table}", f"/agents/{BUSY}/hand?table={table}&hand=1")
    yield visitors.page("many", "let go of a hand?", f"/agents/{BUSY}/unkeep?table=kept&hand=1")
    for place, number in (("first page", 1), ("middle", 2), ("last page", 999)):
        yield visitors.page("many", f"versions, {place}", f"/agents/{BUSY}/versions?page={number}")
        yield visitors.page("many", f"whispers, {place}", f"/agents/{BUSY}/whispers?page={number}")
    yield visitors.page("many", "a version", f"/agents/{BUSY}/versions/{BUSY}-v60")


def _service(world: World, visitors: Visitors) -> Iterator[Page]:
    base = "/internal/agent-capture"
    yield from _deep(visitors, "service", "hands", f"{base}/hands", _cursors(InferenceCharge))
    yield from _deep(visitors, "service", "kept hands", f"{base}/hands?kept=true", _cursors(AgentCallRecord))
    path = f"{base}/hands?agentId={BUSY}"
    yield from _deep(visitors, "service", "hands of an agent", path, _cursors(InferenceCharge, agent_id=BUSY))
    retired = urlencode({"agentId": VETERANS}, doseq=True)
    yield visitors.page("service", "hands of two retired agents", f"{base}/hands?{retired}")
    yield visitors.page("service", "kept hands of two retired agents", f"{base}/hands?kept=true&{retired}")
    yield visitors.page("service", "a hundred hands", f"{base}/hands?limit=100")
    some = urlencode({"agentId": [BUSY, *(f"agent-{number:04}" for number in range(23))]}, doseq=True)
    yield visitors.page("service", "today of 24 agents", f"{base}/today?{some}")
    yield visitors.page("service", "hands of 24 agents", f"{base}/hands?{some}")
    for table in (HOT, KEPT, MARATHON):
        who = "agent-0009" if table == MARATHON else BUSY
        path = f"{base}/neighbours?tableId={table}&handNumber=1&agentId={who}"
        yield visitors.page("service", f"neighbours of a hand, {table}", path)
    for table in (HOT, KEPT, GONE, LONG):
        yield visitors.page("service", f"hand-all, {table}", f"{base}/hand-all?tableId={table}&handNumber=1")
        yield visitors.page("service", f"hand, {table}", f"{base}/hand?tableId={table}&handNumber=1&agentId={BUSY}")


# factory and personas ----------------------------------------------------------------------------------------


def _factory(world: World, visitors: Visitors) -> Iterator[Page]:
    ids = list(FactoryRun.objects.order_by("id").values_list("id", flat=True))
    for who in ("operator", "many"):
        yield visitors.page(who, "runs, first page", "/factory")
        yield visitors.page(who, "runs, middle", f"/factory?before={ids[len(ids) // 2]}")
        yield visitors.page(who, "runs, last page", f"/factory?before={ids[29]}")
        yield visitors.page(who, "runs, newer", f"/factory?after={ids[30]}")
    yield visitors.page("few", "runs", "/factory")
    day = datetime.now(UTC).date()
    searches = {
        "a common word": "q=mend",
        "a rarer word": "q=flaky",
        "no such word": "q=zebra",
        "a model": "model=large",
        "no such model": "model=zebra",
        "a state": "state=failed",
        "no such state": "state=cancelled",
        "days": f"since={day - timedelta(days=2)}&until={day}",
    }
    for name, query in searches.items():
        yield visitors.page("operator", f"runs, search for {name}", f"/factory?{query}")
    for name, path in {
        "run": "",
        "run, live": "/live",
        "attempt": "/attempts/8",
        "tool": "/attempts/8/tools/1",
    }.items():
        yield visitors.page("many", name, f"/factory/runs/{world.run}{path}")
    for kind in ("system", "user", "reply"):
        yield visitors.page("many", f"{kind} text", f"/factory/runs/{world.run}/attempts/8/{kind}")


def _personas(world: World, visitors: Visitors) -> Iterator[Page]:
    pages = -(-StudyRun.objects.count() // 25)
    for who in ("operator", "many"):
        for place, number in (("first page", 1), ("middle", pages // 2), ("last page", 999)):
            yield visitors.page(who, f"studies, {place}", f"/personas?page={number}")
    yield visitors.page("few", "studies", "/personas")
    base = f"/personas/{world.study}"
    paths = {
        "study": "",
        "study, one persona drawn": "?persona=p3",
        "study, search": "?q=p1",
        "study, last page of personas": "?page=9",
        "study, live": "/live",
        "beliefs as CSV": "/beliefs.csv",
        "trace as JSON lines": "/trace.jsonl",
        "persona": "/p/p3",
        "persona, last page of turns": "/p/p3?page=9",
        "turn of a persona": "/p/p3/5",
        "raw text of a turn": "/p/p3/5/shown/raw",
    }
    for name, path in paths.items():
        yield visitors.page("many", name, base + path)
    other = StudyRun.objects.exclude(pk=world.study).filter(owner=world.crowd.many).values_list("pk", flat=True)[0]
    yield visitors.page("many", "studies compared", f"/personas/compare?a={world.study}&b={other}")


# the admin ---------------------------------------------------------------------------------------------------

SEARCHES = {
    "of an agent": BUSY,
    "of an owner": "many",
    "of a table": "T1-0",
    "of a closed table": "old-1-0",
    "of a hand": "hot:1",
    "of a version": f"{VETERANS[0]}-v1",
    "of nothing": "zebra",
}

SEARCHES_OF_OTHERS = {name: SEARCHES[name] for name in ("of an agent", "of nothing")}


def _admin(world: World, visitors: Visitors) -> Iterator[Page]:
    yield visitors.page("operator", "admin", "/admin/")
    yield visitors.page("operator", "admin: choose an owner", _AUTOCOMPLETE + "&term=owner")
    for model, options in admin.site._registry.items():
        base, title = f"/admin/{model._meta.app_label}/{model._meta.model_name}/", model._meta.verbose_name_plural
        for name, query in _admin_queries(options, world, base):
            joint = f"?{query}" if query else ""
            yield visitors.page("operator", f"admin, {title}: {name}", base + joint)
        row = model._default_manager.order_by("-pk").values_list("pk", flat=True)[:1]
        for pk in row:
            yield visitors.page("operator", f"admin, {title}: a row", f"{base}{pk}/change/")
            yield visitors.page("operator", f"admin, {title}: history", f"{base}{pk}/history/")


_AUTOCOMPLETE = "/admin/autocomplete/?app_label=agents&model_name=agent&field_name=owner"


def _admin_queries(options: Any, world: World, base: str) -> Iterator[tuple[str, str]]:
    """Names and queries of a list: its pages, its columns, its filters' choices and some searches."""
    listed = _listed(options, world, base)
    yield from _leafed(listed, "")
    for column, name in enumerate(listed.list_display):
        if listed.get_ordering_field(name):
            yield f"by {name}", f"o={column}"
    for spec in listed.filter_specs:
        if isinstance(spec, When):
            yield "when, a month", f"when={world.end:%Y-%m}"
            yield "when, a day", f"when={world.end:%Y-%m-%d}"
        else:
            for choice in spec.choices(listed):
                yield f"{spec.title} {choice['display']}", choice["query_string"].removeprefix("?")
    if listed.search_fields:
        words = SEARCHES if isinstance(options, SearchesIds) else SEARCHES_OF_OTHERS
        yield from ((f"search {name}", urlencode({"q": word})) for name, word in words.items())
        yield from list(_leafed(_listed(options, world, f"{base}?q={BUSY}"), f"q={BUSY}&"))[1:]


def _listed(options: Any, world: World, url: str) -> Any:
    request = RequestFactory().get(url)
    request.user = world.crowd.operator
    return options.get_changelist_instance(request)


def _leafed(listed: Any, query: str) -> Iterator[tuple[str, str]]:
    """The last page is the last full one: a remainder of one row in one world says nothing about fifty in the other."""
    pages, found = listed.paginator.count // listed.list_per_page or 1, " of a search" if query else ""
    yield f"first page{found}", query
    yield f"middle{found}", f"{query}p={pages // 2 or 1}"
    yield f"last full page{found}", f"{query}p={pages}"
