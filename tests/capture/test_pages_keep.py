"""“Keep this hand” from the page: what is said is what happened."""

import html
import re

import pytest
import redis
from django.contrib.auth.models import User
from django.test import Client

from agentlab.agents.models import Agent
from agentlab.common.models import AuditEntry, Deed
from capture.models import AgentCallRecord
from tests.capture import hands
from tests.capture.making import take_redis_away, write
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
    facts = re.search(r'<p class="facts".*?</p>', said, re.DOTALL)  # which names everybody who played
    assert facts
    assert "ada" not in said.replace(facts[0], "")


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


def test_after_keeping_the_page_says_how_much_is_kept_at_once_and_on_every_visit(
    client: Client, capture_redis: redis.Redis
) -> None:  # VW-5
    hands.store(capture_redis, [hands.captured("rocky", 1), hands.captured("nit", 2), hands.fallback("nit", 3)])
    before = client.get("/agent-capture", HAND).content.decode()
    assert ("<span>expires in 23 h</span>" in before, ">kept " in before) == (True, False)
    for said in (keep(client, "rocky"), client.get("/agent-capture", HAND).content.decode()):
        assert "<span>kept 1 of 2 turns</span><span>the rest expires in 23 h</span>" in said
        assert "1 turn of Rocky, until deleted." in said
    assert 'id="hand-facts" hx-swap-oob="true"' in keep(client, "nit")
    after = client.get("/agent-capture", HAND).content.decode()
    assert ("<span>kept 2 of 2 turns</span>" in after, "expires in" in after) == (True, False)
    assert "hx-swap-oob" not in after


def test_kept_hands_are_a_list_of_their_own_last_kept_first(client: Client, capture_redis: redis.Redis) -> None:
    # VW-1, VW-5
    assert "No hand is kept." in client.get("/agent-capture?only=kept").content.decode()
    for number in (184, 185, 186):
        hands.store(capture_redis, [hands.captured("rocky", 1)], hand=number)
    for number in ("185", "184"):
        client.post("/agent-capture/keep", {"table": "T-4", "hand": number, "agent": "rocky"})
    response = client.get("/agent-capture?only=kept")
    assert_valid_html(response)
    said = response.content.decode()
    assert re.findall(r">T-4:(\d+)</a>", said) == ["184", "185"]
    assert '<a href="/agent-capture?only=kept" aria-current="true">kept</a>' in said
    assert "data-live" not in said  # newly played hands are no news to it


def test_a_kept_hand_without_a_ledger_is_not_said_to_have_no_turns(client: Client, capture_redis: redis.Redis) -> None:
    # CAP-7, VW-1
    write(hands.turn("mine", 1))
    client.post("/agent-capture/keep", HAND | {"agent": "mine"})
    said = client.get("/agent-capture?only=kept").content.decode()
    assert ("not known" in said, "1 KEPT" in said, '<td class="number">0' in said) == (True, True, False)


def test_nobodys_agents_kept_turns_are_let_go_of_by_an_operator_who_is_asked_first(
    client: Client, capture_redis: redis.Redis
) -> None:  # VW-5, SF-1
    hands.store(capture_redis, [hands.captured("rocky", 1), hands.captured("my agent", 2)])
    keep(client, "")
    said = client.get("/agent-capture", HAND).content.decode()
    ways = [html.unescape(url) for url in re.findall(r'href="(/agent-capture/unkeep[^"]*)"', said)]
    assert ways == ["/agent-capture/unkeep?table=T-4&hand=184&agent=my%20agent"]  # Rocky's owner has a page for it
    question = client.get(ways[0])
    assert_valid_html(question)
    assert ("1 turn of my agent" in question.content.decode(), AgentCallRecord.objects.count()) == (True, 2)
    done = client.post("/agent-capture/unkeep", HAND | {"agent": "my agent"}, follow=True)
    assert "1 turn no longer kept." in done.content.decode()
    assert "Nothing of this hand is kept" in client.get(ways[0]).content.decode()
    assert client.post("/agent-capture/unkeep", HAND | {"agent": "rocky"}).status_code == 404
    assert [row.agent_id for row in AgentCallRecord.objects.all()] == ["rocky"]
    deeds = AuditEntry.objects.filter(deed=Deed.UNKEPT).values_list("actor_name", "agent_id")
    assert list(deeds) == [("operator", "my agent")]


@pytest.mark.parametrize("asked", [{}, {"table": "T-4"}, HAND, HAND | {"agent": "a\0"}])
def test_letting_go_of_nothing_in_particular_is_refused(client: Client, asked: dict[str, str]) -> None:  # SF-4
    assert client.get("/agent-capture/unkeep", asked).status_code == 400
    assert client.post("/agent-capture/unkeep", asked).status_code == 400
