"""Every route of the resolver, asked for by everybody: nobody, a stranger, the owner, an operator."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from agentlab.agents.models import Agent
from tests.pages import assert_no_inline_code, assert_valid_html
from tests.site import world
from tests.site.routes import GONE, ROUTES, Ask

pytestmark = pytest.mark.django_db
PEOPLE = ("nobody", "stranger", "owner", "operator")


def patterns(resolver: URLResolver, prefix: str = "") -> Iterator[str]:
    for entry in resolver.url_patterns:
        spelt = prefix + str(entry.pattern)
        if isinstance(entry, URLPattern):
            yield spelt
        else:
            yield from patterns(entry, spelt)


ALL = sorted(set(patterns(get_resolver())))
ADMIN = [route for route in ALL if route.startswith("admin/")]


@pytest.fixture
def people() -> dict[str, Client]:
    users = {
        "stranger": User.objects.create_user("stranger"),
        "owner": User.objects.create_user("owner"),
        "operator": User.objects.create_user("operator", is_staff=True, is_superuser=True),
    }
    clients = {name: Client() for name in PEOPLE}
    for name, user in users.items():
        clients[name].force_login(user)
    return clients


@pytest.fixture
def ids(people: dict[str, Client], capture_redis: redis.Redis, settings: Any, tmp_path: Path) -> world.World:
    settings.FACTORY_SNAPSHOT_ROOT = tmp_path
    return world.build(User.objects.get(username="owner"), tmp_path)


def test_every_route_is_known_here() -> None:  # SF-1
    assert set(ALL) - set(ADMIN) == set(ROUTES), "write down in routes.py what a new route answers to whom"


def url_of(one: Ask, ids: world.World) -> str:
    return re.sub(r"\{(\w+)\}", lambda name: str(getattr(ids, name[1])), one.url)


def ask(client: Client, one: Ask, ids: world.World) -> HttpResponse:
    send = client.post if one.method == "post" else client.get
    return send(url_of(one, ids), one.data or None, headers=one.headers)  # type: ignore[return-value]


def is_as_said(response: HttpResponse, wanted: int | str) -> bool:
    if wanted == "login":
        return response.status_code == 302 and response["Location"].startswith("/login?next=")
    if isinstance(wanted, str):
        return response.status_code == 302 and response["Location"] == wanted
    return response.status_code == wanted


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route or "/")
def test_each_answers_everybody_as_written(route: str, people: dict[str, Client], ids: world.World) -> None:  # SF-1
    for one in ROUTES[route]:
        for person in PEOPLE:
            wanted = getattr(one, person)
            if wanted is None:
                continue
            response = ask(people[person], one, ids)
            got = f"{response.status_code} {response.get('Location', '')}"
            assert is_as_said(response, wanted), f"{one.method} {one.url} as {person}: {got}, not {wanted}"
            if person in ("nobody", "stranger"):
                assert world.SECRET.encode() not in response.getvalue(), f"{one.url} tells {person}"


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route or "/")
def test_the_service_key_opens_the_internal_api_and_nothing_else(
    route: str, ids: world.World, settings: Any
) -> None:  # SF-1 RD-4
    settings.AGENT_CAPTURE_SERVICE_KEY = "key of the service"
    service = Client(headers={"x-service-key": "key of the service"})
    for one in ROUTES[route]:
        response = ask(service, one, ids)
        if route.startswith("internal/"):
            assert response.status_code in (200, 415)  # a body is asked for where there is none
        else:
            assert is_as_said(response, one.nobody)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route or "/")
def test_each_carries_the_headers_that_keep_it_private(
    route: str, people: dict[str, Client], ids: world.World
) -> None:  # SF-2
    for one in ROUTES[route]:
        for person in PEOPLE:
            if getattr(one, person) is None:
                continue
            response = ask(people[person], one, ids)
            assert "default-src 'none'" in response["Content-Security-Policy"]
            assert "unsafe" not in response["Content-Security-Policy"]
            assert {"private", "no-store"} <= set(response["Cache-Control"].split(", "))
            assert response["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route or "/")
def test_no_other_method_opens_what_is_closed(route: str, people: dict[str, Client], ids: world.World) -> None:  # SF-1
    for one in ROUTES[route]:
        if one.stranger not in (GONE, 401):
            continue
        for method in ("put", "patch", "delete", "options", "trace"):
            response = getattr(people["stranger"], method)(url_of(one, ids))
            assert response.status_code in (302, 401, 403, 404, 405), f"{method} {one.url}: {response.status_code}"
            assert world.SECRET.encode() not in response.getvalue()


@pytest.mark.parametrize("route", ADMIN)
def test_the_admin_is_closed_to_all_but_operators(route: str, people: dict[str, Client], ids: world.World) -> None:
    # SF-1 VW-8
    url = "/" + re.sub(r"<[^>]+>", "1", route).replace("\\Z", "").replace("^", "").replace("(?P", "")
    if "(" in url:  # a regular expression of Django's own, the catch-all and the per-app index
        url = "/admin/agents/" if "app_label" in route else "/admin/nowhere/"
    for person in ("nobody", "stranger", "owner"):
        response = people[person].get(url)
        assert response.status_code in (302, 403, 404), f"{url} as {person}: {response.status_code}"
        if response.status_code == 302:
            assert response["Location"].startswith(("/login?", "/admin/login/", "/admin/")), response["Location"]
        assert world.SECRET.encode() not in response.content


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route or "/")
def test_each_page_is_valid_and_has_nothing_inline(route: str, people: dict[str, Client], ids: world.World) -> None:
    # SF-2 AI-7
    for one in ROUTES[route]:
        for person in PEOPLE:
            if one.method == "post" or getattr(one, person) is None:
                continue
            response = ask(people[person], one, ids)
            if response["Content-Type"].startswith("text/html") and response.status_code != 302:
                assert_valid_html(response)
                assert_no_inline_code(response)


def test_an_owner_sees_nothing_of_a_rival(people: dict[str, Client], ids: world.World) -> None:  # SF-1 RD-3
    rival = User.objects.get(username="stranger")
    Agent.objects.create(id="nit", name="Nit", owner=rival)
    for path in ("/agents", "/agents/nit", "/agents/nit/hand?table=T-1&hand=7", "/factory"):
        response = people["stranger"].get(path)
        assert response.status_code == 200, path
        assert world.SECRET.encode() not in response.content, path


def test_what_is_not_yours_looks_like_what_is_not_there(people: dict[str, Client], ids: world.World) -> None:  # SF-1
    pairs = [
        ("/agents/rocky", "/agents/nobody-at-all"),
        (f"/factory/runs/{ids.run}", "/factory/runs/999999"),
        (f"/api/collector/inputs/{ids.input}", "/api/collector/inputs/999999"),
        ("/agent-capture?table=T-1&hand=7", "/nowhere"),
    ]
    for there, nowhere in pairs:
        mine, none = people["stranger"].get(there), people["stranger"].get(nowhere)
        assert (mine.status_code, none.status_code) == (404, 404)
        assert _without_paths(mine) == _without_paths(none)


def _without_paths(response: HttpResponse) -> str:
    """The page but for the address in it and the form tokens, which differ from one to the next."""
    text = response.content.decode()
    return re.sub(r'name="(next|csrfmiddlewaretoken)" value="[^"]*"', "", text)
