"""The walk: every route of the site, as nobody, a stranger, the owner, an operator and the service.

A route that is not in the list below fails the test: whoever adds one says here who may have it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from agentlab.agents.models import Agent
from agentlab.agents.services import Draft, publish, whisper
from capture.pinning import pin
from factory.models import AgentAttempt, AgentAttemptInput, AgentToolCall, FactoryRun
from tests.capture.making import HAND, TABLE, play, turn

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("capture_redis")]
KEY = "test-service-key"
PEOPLE = ("nobody", "stranger", "owner", "operator", "service")

# What each of them gets, in the order of PEOPLE. 302 for nobody and the service is the way to the log-in.
OPEN = (200, 200, 200, 200, 200)
SIGNED_IN = (302, 200, 200, 200, 302)
OWNED = (302, 404, 200, 200, 302)
OWNER_ALONE = (302, 404, 200, 404, 302)
OPERATORS = (302, 404, 404, 200, 302)
PROXIED = (403, 404, 404, 200, 403)
SERVICE = (401, 401, 401, 401, 200)


@dataclass(frozen=True)
class Route:
    """How to ask for it, and what each of PEOPLE gets."""

    answers: tuple[int, ...]
    path: str
    query: dict[str, Any] = field(default_factory=dict)
    method: str = "get"
    json: bool = False


WHERE = {"table": TABLE, "hand": HAND}
TURN = WHERE | {"agent": "rocky", "turn": 0, "part": "prompt"}
API = {"tableId": TABLE, "handNumber": HAND}
API_ONE = API | {"agentId": "rocky"}
ROCKY, RUN, ATTEMPT = "agents/<slug:agent_id>", "factory/runs/<int:run_id>", "/factory/runs/1/attempts/1"


def posting(answers: tuple[int, ...], path: str, body: dict[str, Any], json: bool = False) -> Route:
    return Route(answers, path, body, "post", json)


ROUTES = {
    "": Route(OPEN, "/"),
    "healthz": Route(OPEN, "/healthz"),
    "login": Route((200, 302, 302, 302, 200), "/login"),
    "logout": posting((302, 302, 302, 302, 302), "/logout", {}),
    "theme": posting((302, 302, 302, 302, 302), "/theme", {"theme": "dark"}),
    "admin/login/": Route((302, 404, 404, 302, 302), "/admin/login/"),
    "agent-capture": Route(OPERATORS, "/agent-capture", WHERE),
    "agent-capture/recent": Route((302, 404, 404, 302, 302), "/agent-capture/recent", WHERE),
    "agent-capture/news": Route((302, 404, 404, 302, 302), "/agent-capture/news"),
    "agent-capture/part": Route(OPERATORS, "/agent-capture/part", TURN),
    "agent-capture/raw": Route(OPERATORS, "/agent-capture/raw", TURN),
    "agent-capture/keep": posting((302, 404, 404, 302, 302), "/agent-capture/keep", WHERE | {"agent": "rocky"}),
    "internal/schema": Route(SERVICE, "/internal/schema"),
    "internal/agent-capture/hand": Route(SERVICE, "/internal/agent-capture/hand", API_ONE),
    "internal/agent-capture/hand-all": Route(SERVICE, "/internal/agent-capture/hand-all", API),
    "internal/agent-capture/hands": Route(SERVICE, "/internal/agent-capture/hands"),
    "internal/agent-capture/today": Route(SERVICE, "/internal/agent-capture/today", {"agentId": "rocky"}),
    "internal/agent-capture/promote": posting(SERVICE, "/internal/agent-capture/promote", API_ONE, json=True),
    "internal/agent-capture/unpin": posting(SERVICE, "/internal/agent-capture/unpin", API_ONE, json=True),
    "api/hosted-agent/hand": Route(PROXIED, "/api/hosted-agent/hand", API_ONE),
    "api/hosted-agent/hand-all": Route(PROXIED, "/api/hosted-agent/hand-all", API),
    "api/hosted-agent/hands": Route(PROXIED, "/api/hosted-agent/hands"),
    "api/hosted-agent/promote": posting(PROXIED, "/api/hosted-agent/promote", API_ONE, json=True),
    "api/hosted-agent/unpin": posting(PROXIED, "/api/hosted-agent/unpin", API_ONE, json=True),
    "agents": Route(SIGNED_IN, "/agents"),
    "agents/new": Route(SIGNED_IN, "/agents/new"),
    ROCKY: Route(OWNED, "/agents/rocky"),
    f"{ROCKY}/kept": Route(OWNED, "/agents/rocky/kept"),
    f"{ROCKY}/hand": Route(OWNED, "/agents/rocky/hand", WHERE),
    f"{ROCKY}/hand/part": Route(OWNED, "/agents/rocky/hand/part", TURN),
    f"{ROCKY}/hand/raw": Route(OWNED, "/agents/rocky/hand/raw", TURN),
    f"{ROCKY}/keep": posting((302, 404, 302, 404, 302), "/agents/rocky/keep", WHERE),
    f"{ROCKY}/unkeep": Route(OWNER_ALONE, "/agents/rocky/unkeep", WHERE),
    f"{ROCKY}/versions": Route(OWNED, "/agents/rocky/versions"),
    f"{ROCKY}/versions/new": Route(OWNER_ALONE, "/agents/rocky/versions/new"),
    f"{ROCKY}/versions/<slug:version_id>": Route(OWNED, "/agents/rocky/versions/rocky-v1"),
    f"{ROCKY}/whispers": Route(OWNED, "/agents/rocky/whispers"),
    "factory": Route(SIGNED_IN, "/factory"),
    RUN: Route(OWNED, "/factory/runs/1"),
    f"{RUN}/live": Route(OWNED, "/factory/runs/1/live"),
    f"{RUN}/attempts/<int:number>": Route(OWNED, ATTEMPT),
    f"{RUN}/attempts/<int:number>/<slug:name>": Route(OWNED, f"{ATTEMPT}/user"),
    f"{RUN}/attempts/<int:number>/<slug:name>/raw": Route(OWNED, f"{ATTEMPT}/user/raw"),
    f"{RUN}/attempts/<int:number>/tools/<int:seq>": Route(OWNED, f"{ATTEMPT}/tools/1"),
    f"{RUN}/attempts/<int:number>/tools/<int:seq>/raw": Route(OWNED, f"{ATTEMPT}/tools/1/raw"),
    "factory/inputs/<int:input_id>": Route((302, 404, 404, 404, 302), "/factory/inputs/1"),
    "api/collector/attempts/<slug:attempt_id>": Route(OWNED, f"/api/collector/attempts/{'a' * 32}"),
    "api/collector/inputs/<int:input_id>": Route((302, 404, 404, 404, 302), "/api/collector/inputs/1"),
}


def all_routes(patterns: list[Any] | None = None, prefix: str = "") -> Iterator[str]:
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from all_routes(pattern.url_patterns, route)
        elif isinstance(pattern, URLPattern):
            yield route


@pytest.fixture
def people(settings: Any) -> dict[str, Client]:
    settings.AGENT_CAPTURE_SERVICE_KEY = KEY
    clients = {name: Client() for name in PEOPLE}
    clients["service"] = Client(headers={"x-service-key": KEY})
    for name in ("stranger", "owner", "operator"):
        user = User.objects.create_user(name, is_staff=name == "operator", is_superuser=name == "operator")
        clients[name].force_login(user)
        Agent.objects.create(id={"owner": "rocky", "stranger": "nit"}.get(name, name), name=name, owner=user)
    return clients


@pytest.fixture
def things(people: dict[str, Client]) -> None:
    """One of everything that a route can name, all of it the owner's."""
    owner, rocky = User.objects.get(username="owner"), Agent.objects.get(pk="rocky")
    publish(rocky, Draft("base", "strategy of rocky", [], "house"))
    whisper(rocky, author=owner, text="psst")
    play([turn("rocky", 0), turn("nit", 1)])
    pin(TABLE, HAND, agent_id="rocky", actor=owner)
    run = FactoryRun.objects.create(pk=1, owner=owner, workflow="ask", provider="rehearsal", started_at=timezone.now())
    attempt = AgentAttempt.objects.create(
        attempt_id="a" * 32, run=run, number=1, phase="ask", provider="rehearsal", user_prompt="the owner's message"
    )
    AgentToolCall.objects.create(attempt=attempt, seq=1, name="read", arguments="{}", output="the owner's file")
    AgentAttemptInput.objects.create(
        pk=1, attempt=attempt, seq=1, source_kind="context_file", delivery_mode="available_by_path", label="notes.md",
        capture_status="captured", artifact_status="never_captured",
    )  # fmt: skip


def ask(client: Client, route: Route) -> Any:
    if route.method == "get":
        return client.get(route.path, route.query)
    kind = {"content_type": "application/json"} if route.json else {}
    return client.post(route.path, route.query, **kind)


def test_the_list_has_every_route_and_no_other() -> None:  # SF-1
    admin = {route for route in all_routes() if route.startswith("admin/") and route != "admin/login/"}
    assert set(all_routes()) - admin == set(ROUTES)


@pytest.mark.parametrize("name", ROUTES, ids=lambda name: name or "/")
def test_a_route_gives_each_of_them_what_is_theirs(things: None, people: dict[str, Client], name: str) -> None:  # SF-1
    route = ROUTES[name]
    answers = {who: ask(people[who], route) for who in PEOPLE}
    assert {who: answer.status_code for who, answer in answers.items()} == dict(zip(PEOPLE, route.answers, strict=True))
    for who in ("nobody", "service"):
        if answers[who].status_code == 302 and name not in ("logout", "theme"):
            assert answers[who].headers["Location"].startswith("/login?")


@pytest.mark.parametrize("name", ROUTES, ids=lambda name: name or "/")
def test_what_is_not_theirs_looks_as_if_it_were_not_there(things: None, people: dict[str, Client], name: str) -> None:
    # SF-1
    answer = ask(people["stranger"], ROUTES[name])
    if answer.status_code == 404:
        for secret in (b"strategy of", b"psst", b"the owner's", b"notes.md", b"rocky.T-1", KEY.encode()):
            assert secret not in answer.content


def test_admin_is_the_operators_alone(people: dict[str, Client]) -> None:  # SF-1
    from django.contrib import admin

    models = [model._meta for model in admin.site._registry]
    for path in ["/admin/", *(f"/admin/{meta.app_label}/{meta.model_name}/" for meta in models)]:
        assert people["operator"].get(path).status_code == 200
        for who, ending in [("nobody", 200), ("service", 200), ("stranger", 404), ("owner", 404)]:
            answer = people[who].get(path, follow=True)
            assert answer.status_code == ending
            assert b"Site administration" not in answer.content
            assert (ending == 404) or answer.request["PATH_INFO"] == "/login"


def test_a_hash_or_an_id_is_no_permission(things: None, people: dict[str, Client]) -> None:  # SF-1
    envelope = turn("rocky").prompt.envelope_hash
    where = f"table={TABLE}&hand={HAND}&turn=0"
    for guess in (f"hand/raw?{where}&part={envelope}", f"hand/raw?{where}&part=prompt", "versions/rocky-v1"):
        answer = people["stranger"].get(f"/agents/nit/{guess}")
        assert (answer.status_code, b"envelope of rocky" in answer.content) == (404, False)
