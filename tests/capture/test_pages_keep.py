"""“Keep this hand” from the page: what is said is what happened."""

import html
import re

import pytest
import redis
from django.contrib.auth.models import User
from django.test import Client

from agentlab.agents.models import Agent
from capture.models import AgentCallRecord
from tests.capture import hands
from tests.capture.making import take_redis_away
from tests.pages import assert_valid_html

pytestmark = pytest.mark.django_db
HAND = {"table": "T-4", "hand": "184"}
HTMX = {"HX-Request": "true"}


@pytest.fixture(autouse=True)
def operator(client: Client, capture_redis: redis.Redis) -> User:
    user = User.objects.create_user("operator", is_staff=True)
    client.force_login(user)
    Agent.objects.create(id="rocky", name="Rocky", owner=user)
    return user


def keep(client: Client, agent: str, status: int = 200) -> str:
    response = client.post("/agent-capture/keep", HAND | {"agent": agent}, headers=HTMX)
    assert response.status_code == status
    assert_valid_html(response)
    return response.content.decode()


def test_one_agents_turns_are_kept_and_nobody_elses(client: Client, capture_redis: redis.Redis) -> None:  # VW-5 PIN-1
    hands.store(capture_redis, [hands.captured("rocky", 1), hands.captured("nit", 2), hands.captured("rocky", 3)])
    said = keep(client, "rocky")
    assert "Rocky: kept 2 turns" in said
    assert {row.agent_id for row in AgentCallRecord.objects.all()} == {"rocky"}
    assert 'value="rocky"' not in said  # nothing is left to keep of it
    assert 'value="nit"' in said


def test_the_outcome_is_announced(client: Client, capture_redis: redis.Redis) -> None:  # VW-5
    hands.store(capture_redis, [hands.captured("rocky", 1)])
    said = keep(client, "rocky")
    assert re.search(r'<p id="status"[^>]*hx-swap-oob="innerHTML">Rocky: kept 1 turn</p>', said)


def test_all_agents_are_kept_at_once_each_with_its_own_outcome(client: Client, capture_redis: redis.Redis) -> None:
    # VW-5
    hands.store(capture_redis, [hands.captured("rocky", 1), hands.captured("nit", 2), hands.fallback("ada", 3)])
    said = keep(client, "")
    assert "Rocky: kept 1 turn" in said
    assert "nit: kept 1 turn" in said
    assert "ada" not in said


def test_keeping_again_says_that_it_was_kept(client: Client, capture_redis: redis.Redis) -> None:  # VW-5 PIN-3
    hands.store(capture_redis, [hands.captured("rocky", 1)])
    keep(client, "rocky")
    assert "Rocky: already kept, 1 turn" in keep(client, "rocky")


def test_what_could_not_be_kept_is_counted(client: Client, capture_redis: redis.Redis) -> None:  # VW-5 PIN-2
    hands.store(capture_redis, [hands.captured("rocky", 1), hands.expired("rocky", 2), hands.lost("rocky", 3)])
    assert "Rocky: kept 1 turn; of its 3 turns 1 expired and 1 lost" in keep(client, "rocky")


@pytest.mark.parametrize(
    ("played", "why"),
    [
        ([hands.fallback("rocky", 1)], "it made no decision in this hand"),
        ([hands.expired("rocky", 1)], "this hand has expired"),
        ([hands.lost("rocky", 1)], "of its 1 turn 1 lost"),
        ([], "it made no decision in this hand"),
    ],
)
def test_nothing_to_keep_is_never_a_success(
    client: Client, capture_redis: redis.Redis, played: list[hands.Played], why: str
) -> None:  # VW-5 PIN-2
    hands.store(capture_redis, played)
    said = keep(client, "rocky")
    assert f"Rocky: nothing to keep: {why}" in said
    assert 'class="kept"' not in said
    assert not AgentCallRecord.objects.exists()


def test_a_silent_redis_keeps_nothing_and_says_so(client: Client, settings: object) -> None:  # VW-5 PIN-2
    take_redis_away(settings)
    said = keep(client, "rocky", 503)
    assert "Nothing could be kept" in said
    assert 'class="kept"' not in said


def test_without_script_the_hand_comes_back_with_the_outcome(client: Client, capture_redis: redis.Redis) -> None:
    # VW-5 VW-10
    hands.store(capture_redis, [hands.captured("rocky", 1)])
    response = client.post("/agent-capture/keep", HAND | {"agent": "rocky"}, follow=True)
    assert response.redirect_chain == [("/agent-capture?table=T-4&hand=184", 302)]
    assert "Rocky: kept 1 turn" in response.content.decode()


def test_kept_turns_are_marked_in_list_and_stream(client: Client, capture_redis: redis.Redis) -> None:  # VW-1 VW-5
    hands.store(capture_redis, [hands.captured("rocky", 1)])
    keep(client, "rocky")
    assert "1 KEPT" in client.get("/agent-capture").content.decode()
    assert "KEPT</span>" in client.get("/agent-capture", HAND).content.decode()


def test_another_site_cannot_keep_for_an_operator(operator: User, capture_redis: redis.Redis) -> None:  # SF-1
    hands.store(capture_redis, [hands.captured("rocky", 1)])
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(operator)
    assert strict.post("/agent-capture/keep", HAND | {"agent": "rocky"}).status_code == 403
    assert not AgentCallRecord.objects.exists()


@pytest.mark.parametrize("sent", [{}, {"table": "T-4"}, {"table": "T-4", "hand": "x"}, {"table": "a\0", "hand": "1"}])
def test_a_form_that_makes_no_sense_is_refused(client: Client, sent: dict[str, str]) -> None:  # SF-4
    assert client.post("/agent-capture/keep", sent).status_code == 400


def test_looking_keeps_nothing(client: Client, capture_redis: redis.Redis) -> None:  # PIN-4
    hands.store(capture_redis, [hands.captured("rocky", 1)])
    assert client.get("/agent-capture/keep", HAND | {"agent": "rocky"}).status_code == 405
    assert not AgentCallRecord.objects.exists()


def test_an_odd_id_goes_through_the_form_exactly(client: Client, capture_redis: redis.Redis) -> None:  # VW-5
    hands.store(capture_redis, [hands.captured("a\u202eb", 1)], table='t\u200b&"')
    page = client.get("/agent-capture", {"table": 't\u200b&"', "hand": "184"}).content.decode()
    fields = dict(re.findall(r'<(?:input type="hidden"|button) name="(table|hand|agent)" value="([^"]*)"', page))
    sent = {name: html.unescape(value) for name, value in fields.items()}
    assert "kept 1 turn" in client.post("/agent-capture/keep", sent, headers=HTMX).content.decode()
