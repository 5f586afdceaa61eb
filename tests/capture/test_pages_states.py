"""The list of hands, and hands that open to nothing: each says why, and what to do next."""

import html
import re
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
import redis
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agentlab.agents.models import Agent, InferenceCharge
from capture.models import AgentCallRecord
from capture.reading import neighbours_all
from capture.recent import Neighbours
from tests.capture import hands
from tests.capture.making import TABLE, charge, charge_all, take_redis_away, write
from tests.capture.test_buffer import put_another_kind
from tests.capture.test_reading import Watched
from tests.pages import assert_valid_html

pytestmark = pytest.mark.django_db
LIST, HAND = "/agent-capture", "/agent-capture?table=T-4&hand=184"


@pytest.fixture(autouse=True)
def operator(client: Client, capture_redis: redis.Redis) -> User:
    user = User.objects.create_user("operator", is_staff=True)
    client.force_login(user)
    return user


def read(client: Client, path: str, status: int = 200) -> str:
    response = client.get(path)
    assert response.status_code == status
    assert_valid_html(response)
    return response.content.decode()


@pytest.mark.parametrize(("local", "words"), [(True, "make run"), (False, "python manage.py play --hands 0")])
def test_a_new_site_says_how_to_get_a_hand(client: Client, settings: Any, local: bool, words: str) -> None:  # VW-1
    settings.LOCAL = local
    page = read(client, LIST)
    assert "No hand has been played yet." in page
    assert words in page


def test_recent_hands_come_from_the_ledger_newest_first(client: Client, capture_redis: redis.Redis) -> None:  # VW-1
    hands.store(capture_redis, [hands.captured("rocky", 1)], hand=183, at=hands.days_ago(3))
    hands.store(capture_redis, [hands.captured("rocky", 1), hands.fallback("nit", 2)], hand=184)
    page = read(client, LIST)
    assert page.index("T-4:184") < page.index("T-4:183")
    assert 'data-copy="T-4:184"' in page
    assert 'href="/agent-capture?table=T-4&amp;hand=184"' in page
    assert "rocky, nit" in page
    assert "1 FALLBACK<" in page
    assert "FALLBACK ONLY" not in page


def test_a_hand_with_clamped_turns_is_marked_with_how_many(client: Client, capture_redis: redis.Redis) -> None:  # VW-1
    clamp = {"asked_amount": 500, "change": "clamp"}
    hands.store(capture_redis, [hands.captured("rocky", 1, **clamp), hands.captured("nit", 2, **clamp)], hand=184)
    hands.store(capture_redis, [hands.captured("rocky", 1, change="all_in", asked_amount=176)], hand=183)
    old = hands.captured("rocky", 1, charge={"change": None}, **clamp)
    hands.store(capture_redis, [old], hand=182)  # a row from before there was a word for it
    page = read(client, LIST)
    assert page.count("CLAMPED") == 1
    assert re.search(r'<a class="badge badge-clamped" href="[^"]+" title="[^"]+">2 CLAMPED</a>', page)


def test_a_mark_and_a_narrowed_list_lead_to_the_first_such_turn(client: Client, capture_redis: redis.Redis) -> None:
    # VW-1
    clamp = {"asked_amount": 500, "change": "clamp"}
    turns = [hands.captured("nit", 1), hands.captured("rocky", 3, **clamp), hands.captured("nit", 4, **clamp)]
    hands.store(capture_redis, [*turns, hands.fallback("odd one", 2), hands.lost("nit", 5)], hand=184)
    whole = "/agent-capture?table=T-4&amp;hand=184"
    page = read(client, LIST)
    leads = dict(re.findall(r'<a class="badge badge-(\w+)" href="([^"]+)"', page))
    assert leads == {"clamped": f"{whole}#t3-rocky", "fallback": f"{whole}#t2-odd-one", "lost": f"{whole}#t5-nit"}
    assert f'<a class="mono" href="{whole}">' in page  # the hand itself opens at its top
    hand = read(client, HAND)
    assert all(f'id="{url.partition("#")[2]}"' in hand for url in leads.values())
    assert f'<a class="mono" href="{whole}#t3-rocky">' in read(client, f"{LIST}?only=clamped")


def test_the_list_may_be_narrowed_to_hands_with_marks(client: Client, capture_redis: redis.Redis) -> None:  # VW-1
    for number in range(1, 31):
        hands.store(capture_redis, [hands.captured("rocky", 1, change="clamp", asked_amount=500)], hand=number)
    hands.store(capture_redis, [hands.captured("rocky", 1)], hand=184)
    page = read(client, f"{LIST}?only=clamped")
    assert '<a href="/agent-capture?only=clamped" aria-current="true">clamped</a>' in page
    assert "T-4:184" not in page
    older = re.search(r'href="(/agent-capture\?only=clamped&amp;before=[^"]+)"', page)
    assert older
    last = read(client, older[1].replace("&amp;", "&"))
    assert last.count(" CLAMPED<") == 5
    assert 'href="/agent-capture?only=clamped"' in last  # back to the newest of them
    assert "Every turn was decided" in read(client, f"{LIST}?only=fallback")
    assert "not listed by that" in read(client, f"{LIST}?only=odd", 400)


def test_the_list_may_be_of_one_agent_by_its_name_or_id(client: Client) -> None:  # VW-1
    Agent.objects.create(id="rocky", name="Rocky", owner=User.objects.create_user("ann"))
    charge_all(*(charge("rocky", hand=hand, change="clamp") for hand in range(1, 31)), charge("nit", hand=40))
    for asked in ("rocky", "Rocky"):
        page = read(client, f"{LIST}?table=&hand=&agent={asked}")
        assert "Hands of <b>Rocky</b> alone" in page
        assert (f"{TABLE}:40<" in page, f"{TABLE}:30<" in page) == (False, True)
        assert 'href="/agent-capture?agent=rocky&amp;only=clamped"' in page
        assert "agent=rocky" in re.findall(r'hx-get="(/agent-capture/news[^"]+)"', page)[0]
    older = re.search(r'href="(/agent-capture\?agent=rocky&amp;before=[^"]+)"', page)
    assert older
    assert f"{TABLE}:1<" in read(client, older[1].replace("&amp;", "&"))


def test_of_an_agent_without_a_row_nothing_else_is_shown(client: Client) -> None:  # VW-1
    charge_all(charge())
    page = read(client, f"{LIST}?agent=nosuch")
    assert "No turn of nosuch is in the ledger." in page
    assert f"{TABLE}:" not in page
    assert client.get(LIST, {"agent": "a\0b"}).status_code == 400


@pytest.mark.parametrize("only", ["clamped", "reconnected"])
def test_an_empty_list_says_that_old_turns_are_not_known_where_there_are_such(  # VW-1, CAP-7
    client: Client, only: str
) -> None:
    charge_all(charge(index=1, change="", note=""))
    page = read(client, f"{LIST}?only={only}")
    assert ("is known to have" in page, "oldest" in page) == (True, False)
    charge_all(charge(index=0))
    assert "Of the oldest turns it is not known." in read(client, f"{LIST}?only={only}")


def test_news_of_a_narrowed_list_are_of_its_kind(client: Client, capture_redis: redis.Redis) -> None:  # VW-1
    hands.store(capture_redis, [hands.fallback("rocky", 1)], hand=183, at=hands.days_ago(0.1))
    url = re.search(r'data-live hx-get="([^"]+)"', read(client, f"{LIST}?only=fallback"))
    assert url
    ask, htmx = url[1].replace("&amp;", "&"), {"HX-Request": "true"}
    hands.store(capture_redis, [hands.captured("rocky", 1)], hand=184)
    assert client.get(ask, headers=htmx).content.strip() == b""
    hands.store(capture_redis, [hands.fallback("rocky", 1)], hand=185)
    assert b'href="/agent-capture?only=fallback">1 new hand' in client.get(ask, headers=htmx).content


def test_the_list_and_the_hand_count_the_same_turns_as_clamped(client: Client, capture_redis: redis.Redis) -> None:
    # VW-1 VW-2
    played = [
        hands.captured("rocky", 1, asked_amount=500, change="clamp"),
        hands.captured("rocky", 2, asked_amount=None, change="clamp"),  # a raise without an amount that can be read
        hands.captured("nit", 3, asked_amount=500, change="clamp", action="call", amount=24),
        replace(hands.expired("nit", 4), charge={"action": "raise", "amount": 200, "change": "clamp"}),
        hands.captured("nit", 5),
    ]
    hands.store(capture_redis, played)
    assert "4 CLAMPED<" in read(client, LIST)
    assert read(client, HAND).count(">CLAMPED<") == 4


def test_a_longer_list_costs_no_more_queries(client: Client, capture_redis: redis.Redis) -> None:  # PF-4
    costs = []
    for number in (1, 20):
        hands.store(capture_redis, hands.story(), hand=number)
        for hand in range(2, number):
            hands.store(capture_redis, [hands.captured("rocky", 1, change="clamp")], hand=hand)
        with CaptureQueriesContext(connection) as queries:
            client.get(LIST)
        costs.append(len(queries))
    assert costs[0] == costs[1]


def test_an_agent_may_be_asked_for_by_the_name_on_the_page(
    client: Client, operator: User, capture_redis: redis.Redis
) -> None:  # VW-1
    Agent.objects.create(id="rocky-2", name="Rocky", owner=operator)
    hands.store(capture_redis, [hands.captured("rocky-2", 1), hands.captured("nit", 2)], hand=184)
    page = read(client, f"{HAND}&agent=rocky")
    assert 'id="t1-rocky-2"' in page
    assert 'id="t2-nit"' not in page


def test_everybody_an_operator_reads_of_has_their_name_and_a_deleted_agent_its_id(
    client: Client, operator: User, capture_redis: redis.Redis
) -> None:  # VW-2
    for agent in ("rocky", "bluffy"):
        Agent.objects.create(id=agent, name=agent.upper(), owner=operator)
    hands.store(capture_redis, [hands.captured("rocky", 1)])  # bluffy and nit are only heard of
    page = read(client, HAND)
    assert "nit calls 2 → ROCKY raises to 8 → BLUFFY calls 8" in page
    heard = client.get("/agent-capture/part?table=T-4&hand=184&agent=rocky&turn=1&part=knowledge").content.decode()
    assert "ROCKY +20 with Ah Qd, BLUFFY −20" in heard


def test_an_agent_that_is_asked_for_is_called_by_its_name_where_it_has_no_turn(
    client: Client, operator: User, capture_redis: redis.Redis
) -> None:  # VW-6
    Agent.objects.create(id="nit", name="Nit the Tight", owner=operator)
    hands.store(capture_redis, [hands.captured("rocky", 1)])
    assert "No turn of Nit the Tight is known in this hand." in read(client, f"{HAND}&agent=nit")


def test_a_hand_is_not_said_to_be_missing_where_only_the_agent_is(
    client: Client, capture_redis: redis.Redis
) -> None:  # VW-6
    hands.store(capture_redis, [hands.captured("rocky", 1)], hand=184)
    page = read(client, f"{HAND}&agent=nobody")
    assert "No turn of nobody is known in this hand." in page
    assert "No such hand" not in page


def test_a_hand_says_of_which_action_nothing_is_known(client: Client, capture_redis: redis.Redis) -> None:  # VW-6
    hands.store(capture_redis, [hands.captured("rocky", 0), hands.captured("rocky", 2)], hand=184)
    assert "nothing known of action 1" in read(client, HAND)
    assert "nothing known" not in read(client, f"{HAND}&agent=rocky")  # others may have taken it


def test_a_hand_of_fallbacks_alone_is_marked(client: Client, capture_redis: redis.Redis) -> None:  # VW-1
    hands.store(capture_redis, [hands.fallback("nit", 1)])
    assert "FALLBACK ONLY" in read(client, LIST)


def test_older_hands_are_a_page_away(client: Client, capture_redis: redis.Redis) -> None:  # VW-1
    for number in range(30):
        hands.store(
            capture_redis, [hands.fallback("nit", 1)], hand=number, at=hands.days_ago(2) + timedelta(minutes=number)
        )
    first = read(client, LIST)
    older = re.search(r'<a href="([^"]+)" rel="next">', first)
    assert older
    second = read(client, older[1])
    shown = re.findall(r">T-4:(\d+)</a>", first) + re.findall(r">T-4:(\d+)</a>", second)
    assert shown == [str(number) for number in reversed(range(30))]
    assert "data-live" not in second  # an old page has no news


def test_a_page_that_there_cannot_be_is_refused(client: Client) -> None:  # SF-4
    assert "Recent hands" in read(client, f"{LIST}?before=x", 400)


def test_one_damaged_key_costs_one_turn_and_is_said_in_its_place(client: Client, capture_redis: redis.Redis) -> None:
    # CAP-9 VW-6
    hands.store(capture_redis, [hands.captured("rocky", 1), hands.captured("rocky", 2), hands.captured("nit", 3)])
    put_another_kind(capture_redis, "turn:{T-4:184}:rocky:2")
    page = read(client, HAND)
    assert "does not answer" not in page
    assert page.count("I hold top pair") == 2
    assert page.count(">DAMAGED<") == 1
    assert "Its record is there but cannot be rebuilt: its key holds no record." in page
    assert "1 damaged" in page
    kept = client.post("/agent-capture/keep", {"table": "T-4", "hand": "184", "agent": "rocky"}, follow=True)
    assert "rocky: kept 1 turn; of its 2 turns 1 damaged" in kept.content.decode()


def test_a_damaged_list_of_turns_is_said_and_what_is_known_is_shown(client: Client, capture_redis: redis.Redis) -> None:
    # CAP-9 VW-6
    hands.store(capture_redis, [hands.captured("rocky", 1), hands.captured("nit", 3)])
    put_another_kind(capture_redis, "hand:{T-4:184}:rocky")
    page = read(client, HAND)
    assert page.count("I hold top pair") == 2
    assert "A list of turns in the capture Redis is damaged" in page


def test_losses_of_the_day_are_counted_with_their_reasons(client: Client, capture_redis: redis.Redis) -> None:  # CAP-10
    hands.store(
        capture_redis, [hands.captured("rocky", 1), hands.lost("rocky", 2), hands.lost("nit", 3, "failed", "no memory")]
    )
    page = read(client, LIST)
    assert "<strong>2</strong> of 3 turns" in page
    assert "1 dropped: buffer full" in page
    assert "1 failed: no memory" in page
    assert "2 LOST" in page


def test_a_day_without_loss_is_quiet(client: Client, capture_redis: redis.Redis) -> None:  # CAP-10
    hands.store(capture_redis, [hands.captured("rocky", 1)])
    page = read(client, LIST)
    assert "0 lost" in page
    assert "callout-lost" not in page


def test_a_hand_that_never_was_says_so(client: Client) -> None:  # VW-6
    assert "No such hand in the ledger" in read(client, HAND)


def test_a_fallback_only_hand_opens_to_its_reason(client: Client, capture_redis: redis.Redis) -> None:  # VW-6
    hands.store(capture_redis, [hands.fallback("nit", 1), hands.fallback("nit", 2, "")])
    page = read(client, HAND)
    assert "Every turn of this hand was a fallback: no decision was made, so nothing was captured." in page
    assert page.count("FALLBACK<") == 2


def test_an_expired_hand_says_when_it_was_and_how_long_captures_live(
    client: Client, capture_redis: redis.Redis
) -> None:
    # VW-6
    hands.store(capture_redis, [hands.expired("rocky", 1), hands.expired("nit", 2)], at=hands.days_ago(1.1))
    page = read(client, HAND)
    assert "Played 26 h ago and not kept: captures live 24 hours. The ledger still has its 2 turns." in page
    assert page.count("<article") == 2
    assert "data-open-prompts" not in page


def test_a_hand_that_went_before_its_time_is_not_called_expired(client: Client, capture_redis: redis.Redis) -> None:
    # VW-6
    hands.store(capture_redis, [hands.expired("rocky", 1)])
    page = read(client, HAND)
    assert "Nothing of this hand is in the buffer." in page
    assert "live 24 hours" not in page


def test_a_silent_redis_is_named_and_not_taken_for_an_empty_one(client: Client, settings: object) -> None:  # VW-6
    take_redis_away(settings)
    page = read(client, HAND)
    assert "The capture Redis does not answer." in page
    assert "No such hand" not in page


def test_the_list_says_at_once_that_redis_is_silent(client: Client, capture_redis: redis.Redis, settings) -> None:
    # CAP-10, VW-6
    hands.store(capture_redis, [hands.captured("rocky", 1)])
    assert "does not work right now" not in read(client, LIST)
    take_redis_away(settings)
    for path in (LIST, f"{LIST}?only=clamped", f"{LIST}?only=kept"):
        assert "The capture Redis does not work right now: Redis is down." in read(client, path)
    assert "T-4:184" in read(client, LIST)  # the ledger has it all the same


def test_the_list_asks_redis_once_however_many_hands_it_has(client: Client, capture_redis: redis.Redis) -> None:
    # PF-4
    for number in range(1, 25):
        hands.store(capture_redis, [hands.captured("rocky", 1)], hand=number)
    with Watched(capture_redis) as asked:
        read(client, LIST)
    assert (asked.commands.count("PING"), asked.keys) == (1, set())


def test_kept_hands_still_load_when_redis_is_silent(
    client: Client, capture_redis: redis.Redis, settings: object
) -> None:  # RD-2
    hands.store(capture_redis, [hands.captured("rocky", 1), hands.captured("nit", 2)])
    client.post("/agent-capture/keep", {"table": "T-4", "hand": "184", "agent": "rocky"})
    take_redis_away(settings)
    page = read(client, HAND)
    assert "I hold top pair" in page
    assert "only kept turns are shown" in page
    assert "The capture Redis does not answer, so it cannot be told what was recorded here." in page


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("table=T-4", "Which hand?"),
        ("table=T-4&hand=x", "must be a whole number"),
        ("table=T-4&hand=-1", "must be a whole number"),
        ("table=T-4&hand=99999999999999999999", "The hand is too large a number"),
        ("table=T-4&hand=9999999999999999999", "whole number from 0"),
        ("hand=7", "The table must be text"),
        ("table=a%00b&hand=7", "holds a character that no id has"),
        ("table=" + "x" * 300 + "&hand=7", "1 to 200 characters"),
    ],
)
def test_a_look_up_that_makes_no_sense_is_refused_in_words(client: Client, query: str, why: str) -> None:  # SF-4
    assert why in read(client, f"{LIST}?{query}", 400)


def test_a_copied_hand_id_can_be_looked_up_as_it_is(client: Client, capture_redis: redis.Redis) -> None:  # VW-1
    hands.store(capture_redis, [hands.captured("rocky", 1)])
    assert "I hold top pair" in read(client, f"{LIST}?table=T-4%3A184&hand=")


def test_space_around_an_id_belongs_to_it_unless_there_is_no_such_table(
    client: Client, capture_redis: redis.Redis
) -> None:  # CAP-12, VW-1, PIN-2
    for table in ("T-4", " T-4"):
        hands.store(capture_redis, [hands.captured("rocky", 1, response=f"said at {table!r}")], table=table)
    links = re.findall(r'href="(/agent-capture\?table=[^"#]*)"', read(client, LIST))
    told = [set(re.findall(r"said at &#x27;( ?T-4)&#x27;", read(client, html.unescape(link)))) for link in links]
    assert sorted(map(tuple, told)) == [(" T-4",), ("T-4",)]
    client.post("/agent-capture/keep", {"table": " T-4", "hand": "184", "agent": "rocky"})
    assert list(AgentCallRecord.objects.values_list("table_id", flat=True)) == [" T-4"]
    for typed in ("table=T-4%20&hand=184", "table=T-4%20&hand=%20184%20", "table=T-4%3A184%20"):
        assert "said at &#x27;T-4&#x27;" in read(client, f"{LIST}?{typed}")


@pytest.mark.parametrize(("table", "shown"), [("a\u202eb", "a\u202eb"), ('a"b', "a&quot;b"), ("a\x01b", "a␁b")])
def test_the_look_up_can_be_sent_again_as_it_stands(client: Client, table: str, shown: str) -> None:  # CAP-12, SF-2
    page = read(client, f"{LIST}?{urlencode({'table': table, 'hand': 'x'})}", 400)
    assert f'name="table" value="{shown}"' in page


def test_news_are_counted_against_what_is_shown(client: Client, capture_redis: redis.Redis) -> None:  # VW-1
    hands.store(capture_redis, [hands.captured("rocky", 1)], hand=183, at=hands.days_ago(0.1))
    url = re.search(r'data-live hx-get="([^"]+)"', read(client, LIST))
    assert url
    ask = url[1].replace("&amp;", "&")
    htmx = {"HX-Request": "true"}
    assert client.get(ask, headers=htmx).content.strip() == b""
    hands.store(capture_redis, [hands.captured("rocky", 2)], hand=183)  # it goes on: no news
    assert client.get(ask, headers=htmx).content.strip() == b""
    hands.store(capture_redis, [hands.captured("rocky", 1)], hand=184)
    assert b"1 new hand \xc2\xb7 show" in client.get(ask, headers=htmx).content
    assert client.get(ask)["Location"] == LIST  # to a browser it is no page


@pytest.mark.parametrize("query", ["", "?since=x", "?since=2026-01-01"])
def test_news_of_nothing_are_refused(client: Client, capture_redis: redis.Redis, query: str) -> None:  # SF-4
    hands.store(capture_redis, [hands.captured("rocky", 1)])
    assert client.get(f"/agent-capture/news{query}", headers={"HX-Request": "true"}).status_code == 400


def test_the_recent_hands_are_fetched_into_the_page_of_a_hand(client: Client, capture_redis: redis.Redis) -> None:
    # VW-1
    hands.store(capture_redis, [hands.captured("rocky", 1)])
    url = re.search(r'class="recent panel" hx-get="([^"]+)"', read(client, HAND))
    assert url
    fragment = client.get(url[1].replace("&amp;", "&"), headers={"HX-Request": "true"})
    assert_valid_html(fragment)
    assert 'aria-current="page"' in fragment.content.decode()


def neighbours_of(client: Client, hand: int) -> tuple[list[str], list[str]]:
    page = read(client, f"/agent-capture?table=T-4&hand={hand}")
    return tuple(re.findall(rf'hand=(\d+)" rel="{way}"', page) for way in ("prev", "next"))  # type: ignore[return-value]


def test_the_neighbouring_hands_are_links_where_there_are_such(client: Client, capture_redis: redis.Redis) -> None:
    # VW-1
    for number in (180, 184, 190):
        hands.store(capture_redis, [hands.captured("rocky", 1)], hand=number)
    hands.store(capture_redis, [hands.captured("rocky", 1)], table="T-5", hand=185)
    assert neighbours_of(client, 184) == (["180"], ["190"])
    assert neighbours_of(client, 180) == ([], ["184"])
    assert neighbours_of(client, 190) == (["184"], [])
    assert neighbours_of(client, 0) == ([], ["180"])
    assert neighbours_of(client, 2**63 - 1) == (["190"], [])


def test_a_hand_that_the_buffer_or_the_kept_rows_alone_have_is_a_neighbour_too(
    client: Client, capture_redis: redis.Redis, settings: object
) -> None:  # VW-1, RD-2
    hands.store(capture_redis, [hands.captured("rocky", 1)], hand=184)
    write(hands.turn("mine", 0, hand=183), hands.turn("mine", 0, hand=185))  # of an agent without a ledger
    client.post("/agent-capture/keep", {"table": "T-4", "hand": "185", "agent": "mine"})
    assert neighbours_of(client, 184) == (["183"], ["185"])
    take_redis_away(settings)
    assert neighbours_of(client, 184) == ([], ["185"])


def test_neighbours_cost_the_same_at_a_long_table(capture_redis: redis.Redis) -> None:  # PF-4
    for many in (3, 60):
        InferenceCharge.objects.all().delete()
        charge_all(*(charge("rocky", index, hand=hand) for hand in range(many) for index in range(3)))
        with CaptureQueriesContext(connection) as queries:
            assert neighbours_all(TABLE, 1) == Neighbours((TABLE, 0), (TABLE, 2))
        assert len(queries) == 4
