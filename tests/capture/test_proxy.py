"""The browser's way to the API: operators alone, our own origin, and no key in sight."""

import json

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import get_resolver

from agentlab.agents.models import Agent
from agentlab.common.models import AuditEntry, Deed
from capture.models import AgentCallRecord
from tests.capture.making import HAND, TABLE, play, take_redis_away, turn

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("capture_redis")]
PROXY = "/api/hosted-agent/"
HAND_SCOPE = {"tableId": TABLE, "handNumber": HAND}
SCOPE = HAND_SCOPE | {"agentId": "rocky"}
PAIRS = [("get", "hand"), ("get", "hand-all"), ("get", "hands"), ("post", "promote"), ("post", "unpin")]


@pytest.fixture
def operator() -> Client:
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.create_user("operator", is_staff=True))
    return client


def ask(client: Client, method: str, path: str, **headers: str) -> object:
    if method == "get":
        return client.get(PROXY + path, SCOPE, headers=headers)
    return client.post(PROXY + path, json.dumps(SCOPE), content_type="application/json", headers=headers)


def with_token(client: Client) -> dict[str, str]:
    client.get("/agent-capture")
    return {"X-CSRFToken": client.cookies["csrftoken"].value}


def test_the_proxy_is_these_paths_and_nothing_else() -> None:  # RD-5
    lists = [getattr(group, "url_patterns", []) for group in get_resolver().url_patterns]
    routes = sorted(str(pattern.pattern) for patterns in lists for pattern in patterns)
    proxied = [route for route in routes if route.startswith("api/hosted-agent/")]
    assert proxied == sorted(f"api/hosted-agent/{path}" for _, path in PAIRS)


def test_an_operator_reads_what_the_api_says(operator: Client) -> None:  # RD-5
    play([turn("rocky", 0), turn("nit", 1)])
    assert [one["agentId"] for one in operator.get(f"{PROXY}hand", SCOPE).json()["turns"]] == ["rocky"]
    assert [one["agentId"] for one in operator.get(f"{PROXY}hand-all", HAND_SCOPE).json()["turns"]] == ["rocky", "nit"]
    assert operator.get(f"{PROXY}hands").json()["hands"][0]["handNumber"] == HAND


def test_an_operator_keeps_and_lets_go_with_the_csrf_token_alone(operator: Client) -> None:  # RD-5
    play([turn("rocky", 0)])
    for path in ("promote", "unpin"):
        assert ask(operator, "post", path).status_code == 403
    assert AgentCallRecord.objects.count() == 0
    assert ask(operator, "post", "promote", **with_token(operator)).json()["outcome"] == "pinned"
    assert AuditEntry.objects.get().actor_name == "operator"
    assert ask(operator, "post", "unpin", **with_token(operator)).json() == {"removed": 1}


@pytest.mark.parametrize(("method", "path"), PAIRS)
def test_nobody_gets_nothing_and_an_owner_finds_nothing(method: str, path: str) -> None:  # RD-5, SF-1
    play([turn("rocky", 0)])
    owner = Client()
    owner.force_login(ann := User.objects.create_user("ann"))
    Agent.objects.create(id="rocky", name="Rocky", owner=ann)
    answers = [ask(Client(), method, path), ask(owner, method, path)]
    assert [answer.status_code for answer in answers] == [403, 404]
    assert all(set(answer.json()) == {"error"} for answer in answers)
    assert AgentCallRecord.objects.count() == 0


@pytest.mark.parametrize(("method", "path"), PAIRS)
def test_the_service_key_opens_no_proxy(settings, method: str, path: str) -> None:  # RD-4, RD-5
    settings.AGENT_CAPTURE_SERVICE_KEY = "key"
    assert ask(Client(), method, path, **{"x-service-key": "key"}).status_code == 403


def test_other_methods_are_refused(operator: Client) -> None:  # RD-5
    token = with_token(operator)
    for wrong in ("POST hand", "DELETE hand", "PUT promote", "GET promote", "OPTIONS hand"):
        method, path = wrong.split()
        answer = operator.generic(method, PROXY + path, content_type="application/json", headers=token)
        assert (answer.status_code, set(answer.json())) == (405, {"error"})
    for path in ("", "today", "hand/", "../internal/agent-capture/hand", "http://other/hand"):
        assert operator.get(PROXY + path).status_code in (301, 404)


def test_which_operator_opened_whose_hand_is_noted_once_a_look(operator: Client) -> None:  # RD-5
    play([turn("rocky", 0), turn("nit", 1)])
    for _ in range(3):
        operator.get(f"{PROXY}hand-all", HAND_SCOPE)
    noted = AuditEntry.objects.order_by("agent_id").values_list("actor_name", "deed", "agent_id", "hand_number")
    assert list(noted) == [("operator", Deed.OPENED, "nit", HAND), ("operator", Deed.OPENED, "rocky", HAND)]


def test_a_silent_redis_is_503_here_too(settings, operator: Client) -> None:  # PIN-2
    play([turn("rocky", 0)])
    token = with_token(operator)
    take_redis_away(settings)
    answer = ask(operator, "post", "promote", **token)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "service_unavailable")
