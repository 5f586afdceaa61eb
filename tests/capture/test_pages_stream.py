"""The page of a hand: who did what, in order, with the four things of each turn, and every absence told apart."""

import html
import re
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
import redis
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agentlab.agents.models import Agent
from capture.frozen import freeze
from capture.prompt import Prompt
from capture.stripes import stripes
from tests.capture import hands
from tests.capture.making import result
from tests.pages import assert_no_inline_code, assert_valid_html

pytestmark = pytest.mark.django_db
HAND = "/agent-capture?table=T-4&hand=184"


@pytest.fixture
def operator(client: Client) -> User:
    user = User.objects.create_user("operator", is_staff=True)
    client.force_login(user)
    return user


@pytest.fixture
def story(capture_redis: redis.Redis, operator: User) -> None:
    Agent.objects.create(id="rocky", name="Rocky", owner=operator)
    hands.store(capture_redis, hands.story())


def turns_of(page: str) -> dict[str, str]:
    """The HTML of each turn by its anchor."""
    found = re.findall(r'<article class="turn[^"]*" id="([^"]+)".*?</article>', page, re.DOTALL)
    bodies = re.findall(r'<article class="turn.*?</article>', page, re.DOTALL)
    return dict(zip(found, bodies, strict=True))


def read(client: Client, path: str = HAND) -> str:
    response = client.get(path)
    assert response.status_code == 200
    assert_valid_html(response)
    assert_no_inline_code(response)
    return response.content.decode()


def show(client: Client, capture_redis: redis.Redis, *played: hands.Played) -> dict[str, str]:
    hands.store(capture_redis, list(played))
    return turns_of(read(client))


def words(html: str) -> str:
    """What a reader reads."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", html)).replace("&quot;", '"').replace("&#x27;", "'")


def test_all_agents_turns_stand_in_action_order_under_their_names(client: Client, story: None) -> None:  # VW-2
    turns = turns_of(read(client))
    assert [int(anchor.split("-")[0][1:]) for anchor in turns] == list(range(1, 12))
    assert "3 · Rocky raises to 200" in words(turns["t3-rocky"])
    assert "1 · nit calls 24" in words(turns["t1-nit"])


def test_a_turn_shows_its_four_things_and_its_facts(client: Client, story: None) -> None:  # VW-2
    turn = words(turns_of(read(client))["t2-bluffy"])
    for part in (
        "v12house-1, local2,104 in / 88 out$0.00311.9 s",
        "Knew what it held",
        "Board7♥︎ T♦︎ 2♣︎",
        "HandA♥︎ K♠︎",
        "Pot64",
        "To call24",
        "May raise to48–200",
        "nit calls 2 → Rocky raises to 8",
        "ada whispered",
        "20 recent hands, 2 notes, 1 whisper",
        "Stop paying off the river.",
        "Prompt what it was told, exactly",
        "I hold top pair with the best kicker",
        "Sent what reached the table",
        '{"type": "action", "handNumber": 184',
    ):
        assert part in turn, part


def test_the_prompt_is_closed_and_the_response_open(client: Client, story: None) -> None:  # VW-2
    turn = turns_of(read(client))["t2-bluffy"]
    assert "You are a no-limit" not in turn
    assert re.search(r"<details open>\s*<summary><h3>Response</h3>", turn)


def test_a_fallback_says_that_nothing_was_decided(client: Client, story: None) -> None:  # CAP-2 VW-2
    turn = turns_of(read(client))["t4-nit"]
    assert "FALLBACK" in turn
    assert "No decision was made: the model did not answer in time" in words(turn)
    assert "Knew" not in turn


def test_a_lost_turn_says_why_and_the_hand_counts_it(client: Client, story: None) -> None:  # CAP-10
    page = read(client)
    assert "its record was lost (dropped: buffer full)" in words(turns_of(page)["t6-rocky"])
    assert "9 of 10 turns recorded, 1 dropped: buffer full" in page


def test_what_was_not_recorded_has_no_panel_but_one_dim_line(client: Client, story: None) -> None:  # VW-4 CAP-7
    turn = turns_of(read(client))["t7-bluffy"]
    assert "What it knew and what it sent were not recorded for this turn." in turn
    assert "<h3>Knew" not in turn
    assert "<h3>Sent" not in turn
    assert "part=knowledge" not in turn
    assert "part=decision" not in turn
    assert "<h3>Response" in turn


def test_captured_and_empty_says_so(client: Client, story: None) -> None:  # VW-4 CAP-7
    turn = turns_of(read(client))["t8-rocky"]
    assert "Captured: nothing was sent to the table." in turn
    assert "Recorded, and empty." in turn
    assert "not recorded" not in turn


def test_an_empty_action_log_is_said_to_be_recorded_and_empty(client: Client, story: None) -> None:  # CAP-7
    assert "no action heard (recorded, and empty)" in turns_of(read(client))["t5-bluffy"]


def test_an_unknown_version_is_said_not_guessed(
    client: Client, capture_redis: redis.Redis, operator: User
) -> None:  # PIN-5
    unknown = hands.captured("rocky", 1, charge={"agent_version_id": None}, agent_version_id=None)
    assert "version unknown" in show(client, capture_redis, unknown)["t1-rocky"]


def test_a_version_leads_to_its_page(client: Client, story: None) -> None:  # VW-2
    assert 'href="/agents/rocky/versions/rocky-v12"' in turns_of(read(client))["t3-rocky"]


def test_a_clamp_has_a_callout_with_both_amounts(client: Client, story: None) -> None:  # VW-3
    turn = turns_of(read(client))["t3-rocky"]
    assert "CLAMPED" in turn
    assert "<strong>500</strong>" in turn
    assert "<strong>200</strong>" in turn
    assert "48–200" in turn


def test_a_note_stands_at_the_head_in_a_word_of_its_own(client: Client, story: None) -> None:  # VW-9
    turn = turns_of(read(client))["t5-bluffy"]
    assert '<span class="badge badge-note">RECONNECTED?</span>' in turn
    assert "it seems to have reconnected in the middle of the hand" in words(turn)
    assert "Its recent hands and its notes are empty too" in words(turn)


def test_a_clamp_is_still_said_when_its_record_is_gone(
    client: Client, capture_redis: redis.Redis, operator: User
) -> None:  # VW-2, HA-10
    gone = hands.captured("rocky", 1, asked_amount=500, change="clamp")
    turn = show(client, capture_redis, replace(gone, turn=None, charge={"change": "clamp"}))["t1-rocky"]
    assert "CLAMPED" in turn
    assert "callout-changed" not in turn  # by how much is not known any more


def stripe(turn: str) -> str:
    return re.search(r'class="turn (agent-\d)', turn)[1]


def test_an_agents_stripe_is_its_own_from_hand_to_hand(
    client: Client, capture_redis: redis.Redis, operator: User
) -> None:  # VW-2
    agents = ("rocky", "bluffy", "nit")
    hands.store(capture_redis, [hands.captured(agent, 1) for agent in agents])
    together = {anchor: stripe(turn) for anchor, turn in turns_of(read(client)).items()}
    assert len(set(together.values())) == 3
    for number, agent in enumerate(agents, start=1):
        hands.store(capture_redis, [hands.captured(agent, 1)], hand=number)
        turns = turns_of(read(client, f"/agent-capture?table=T-4&hand={number}"))
        assert {anchor: stripe(turn) for anchor, turn in turns.items()}.items() <= together.items()


def test_the_head_says_what_the_hand_came_to_for_each_as_far_as_it_is_known(
    client: Client, story: None
) -> None:  # VW-1 CAP-7
    assert "chip" not in words(read(client).partition('<article class="turn')[0])
    for agent, net in (("rocky", 1), ("late", -1_000)):
        result(agent, net, table="T-4", hand=184)
    head = words(read(client).partition('<article class="turn')[0])
    assert "Rocky +1 chip" in head
    assert "late −1,000 chips, without a turn" in head
    assert head.count("chip") == 2
    assert "Bluffy, result not known" in head or "bluffy, result not known" in head


def test_who_sits_at_the_table_without_a_turn_keeps_their_colour_free(
    client: Client, capture_redis: redis.Redis, operator: User
) -> None:  # VW-2
    own = {agent: stripes([agent])[agent] for agent in ["nit", *(f"x{number}" for number in range(99))]}
    alike = next(agent for agent in own if agent != "nit" and own[agent] == own["nit"])
    hands.store(capture_redis, [hands.captured(alike, 1)], hand=1)  # nit has a seat, and no turn
    hands.store(capture_redis, [hands.captured(alike, 1), hands.captured("nit", 2)], hand=2)
    told = [turns_of(read(client, f"/agent-capture?table=T-4&hand={number}"))[f"t1-{alike}"] for number in (1, 2)]
    assert stripe(told[0]) == stripe(told[1]) != f"agent-{own['nit']}"


@pytest.mark.parametrize(
    ("changed", "quiet"),
    [
        ({"asked_amount": 200}, None),
        ({"asked_amount": None}, None),
        ({"asked_amount": "200"}, None),
        ({"asked_amount": "a lot"}, None),
        ({"asked_amount": float("nan")}, None),
        ({"asked_amount": 200.0}, None),
        ({"asked_amount": 176, "change": "all_in"}, "all-in"),
        ({"asked_action": "bet", "change": "rename"}, "bet"),
        ({"asked_amount": 500, "decision": None}, None),
    ],
)
def test_a_clamp_is_never_called_where_it_is_not_known(
    client: Client, capture_redis: redis.Redis, operator: User, changed: dict[str, Any], quiet: str | None
) -> None:  # VW-3
    turn = show(client, capture_redis, hands.captured("rocky", 1, **changed))["t1-rocky"]
    assert "CLAMPED" not in turn
    assert "callout-changed" not in turn
    assert ("callout-note" in turn) == (quiet is not None)
    if quiet:
        assert quiet in turn


def test_two_amounts_that_differ_by_a_hair_are_both_shown_in_full(
    client: Client, capture_redis: redis.Redis, operator: User
) -> None:  # VW-3
    sent = [{"type": "action", "action": "raise", "amount": 1}]
    hair = hands.captured("rocky", 1, asked_amount=0.999, amount=1, decision=sent, change="clamp")
    turn = show(client, capture_redis, hair)["t1-rocky"]
    assert "<strong>0.999</strong>" in turn
    assert "<strong>1</strong>" in turn


def test_an_argument_that_is_new_to_the_page_is_shown_by_its_name(
    client: Client, capture_redis: redis.Redis, operator: User
) -> None:  # CAP-3
    knowledge = freeze(hands.arguments(["Ah", "Ks"], table_talk=[{"who": "nit", "said": "<b>nice hand</b>"}]))
    turn = show(client, capture_redis, hands.captured("rocky", 1, knowledge=knowledge))["t1-rocky"]
    assert "table_talk" in turn
    assert "&lt;b&gt;nice hand&lt;/b&gt;" in turn


def test_arguments_of_any_other_shape_are_all_there(
    client: Client, capture_redis: redis.Redis, operator: User
) -> None:  # CAP-3
    odd = {"state": "gone", "turn": 7, "action_log": {"a": 1}, "notes": [1], "whispers": "psst", "hand_history": None}
    turn = words(show(client, capture_redis, hands.captured("rocky", 1, knowledge=freeze(odd)))["t1-rocky"])
    for name in odd:
        assert name in turn


def test_damaged_knowledge_is_said_to_be_damaged(client: Client, capture_redis: redis.Redis, operator: User) -> None:
    turn = show(client, capture_redis, hands.captured("rocky", 1, knowledge=b"\xc1"))["t1-rocky"]
    assert "damaged and cannot be read" in turn


def test_hostile_text_is_shown_literally(client: Client, capture_redis: redis.Redis, operator: User) -> None:  # SF-2
    said = "call $5, raise $10\n<rules>\n![a](http://10.0.0.1/x) \x1b[2Kok\u202e05\0 \ud83e <script>alert(1)</script>"
    turn = show(client, capture_redis, hands.captured("rocky", 1, response=said))["t1-rocky"]
    assert "call $5, raise $10\n&lt;rules&gt;\n![a](http://10.0.0.1/x)" in turn
    for sign in ("␛", "RLO", "␀", "\\ud83e"):
        assert f">{sign}</span>" in turn
    assert "<script" not in turn
    assert "<img" not in turn


@pytest.mark.parametrize(
    "odd", ["//example.test/a", "../b", "a?c#d", 'a"b<c>', "стол 4", "a:b{c}%", "A.$1 (host) {x}", r"\1 \g<0> .*"]
)
def test_odd_ids_stay_on_this_site_and_are_found_by_what_they_are(
    client: Client, capture_redis: redis.Redis, operator: User, odd: str
) -> None:  # SF-2
    hands.store(capture_redis, [hands.captured(odd, 1)], table=odd)
    here = {"table": odd, "hand": "184"}
    response = client.get("/agent-capture", here)
    assert_valid_html(response)
    page = response.content.decode()
    links = [html.unescape(link) for link in re.findall(r'(?:href|hx-get|action)="([^"]*)"', page)]
    assert not [link for link in links if link.startswith("//") or not link.startswith(("/", "#", "?"))]
    parts = [link for link in links if "part=" in link]
    assert {client.get(link).status_code for link in parts} == {200}
    assert "1 · " + odd + " raises to 200" in html.unescape(words(turns_of(page).popitem()[1]))
    kept = client.post("/agent-capture/keep", here | {"agent": odd}, follow=True)
    assert f"{odd}: kept 1 turn" in html.unescape(words(kept.content.decode()))
    searched = client.get("/agent-capture", here | {"agent": odd, "q": odd}).content.decode()
    assert f"{odd} raises to 200" in html.unescape(words(searched))


def test_what_was_captured_and_empty_is_never_taken_for_not_captured(
    client: Client, capture_redis: redis.Redis, operator: User
) -> None:  # CAP-7
    turns = show(
        client,
        capture_redis,
        hands.captured("rocky", 1, knowledge=freeze({"memory": {}, "seen": [], "said": ""})),
        hands.captured("rocky", 2, knowledge=freeze({})),
    )
    for empty in ("empty object", "empty list", "empty text"):
        assert empty in turns["t1-rocky"]
    assert "<h3>Knew" in turns["t2-rocky"]
    assert not any("not recorded" in turn for turn in turns.values())


def test_zero_is_a_number_and_so_is_one_beyond_32_bits(
    client: Client, capture_redis: redis.Redis, operator: User
) -> None:  # VW-2
    nothing = {"input_tokens": 0, "output_tokens": 0, "cost": Decimal(0)}
    many = {"input_tokens": 3_000_000_000, "output_tokens": 2**40, "cost": Decimal("1e9")}
    turns = show(
        client,
        capture_redis,
        hands.captured("rocky", 1, charge=nothing | {"duration_ms": 0}, **nothing),
        hands.captured("rocky", 2, charge=many, **many),
        hands.captured("rocky", 3, charge=dict.fromkeys(nothing), **dict.fromkeys(nothing)),
    )
    assert "0 in / 0 out$00 ms" in words(turns["t1-rocky"])
    assert "3,000,000,000 in / 1,099,511,627,776 out$1,000,000,000.00" in words(turns["t2-rocky"])
    assert " in / " not in words(turns["t3-rocky"])


def test_a_search_in_any_script_finds_what_is_stored_in_every_part(
    client: Client, capture_redis: redis.Redis, operator: User
) -> None:  # VW-2
    said = "ход игры 🂡"
    turn = hands.captured(
        "rocky",
        1,
        prompt=Prompt("envelope", said),
        response=said,
        reasoning=said,
        knowledge=freeze(hands.arguments(["Ah", "Ks"], plan=said)),
        decision=[{"note": said}],
    )
    hands.store(capture_redis, [turn])
    page = read(client, f"{HAND}&q=ХОД ИГРЫ")
    assert page.count("<mark>ход игры</mark>") == 5
    assert "5 parts with" in words(page)
    assert "\\u0445" not in page


def test_a_message_that_was_text_stands_as_that_text(
    client: Client, capture_redis: redis.Redis, operator: User
) -> None:  # VW-2
    sent = '{"type": "action", "action": "raise", "amount": 200}'
    turn = show(client, capture_redis, hands.captured("rocky", 1, decision=[sent]))["t1-rocky"]
    assert sent in html.unescape(turn)


def test_text_nested_deeper_than_any_renderers_stack_is_plain_text(
    client: Client, capture_redis: redis.Redis, operator: User
) -> None:  # SF-2
    deep: list[object] = []
    for _ in range(450):
        deep = [deep]
    said = ">" * 5000 + " the end"
    turn = show(client, capture_redis, hands.captured("rocky", 1, response=said, knowledge=freeze({"deep": deep})))
    assert html.unescape(turn["t1-rocky"]).count(said) == 1
    assert "<h3>Knew" in turn["t1-rocky"]


def test_agents_that_share_a_name_are_told_apart_by_their_ids(
    client: Client, capture_redis: redis.Redis, operator: User
) -> None:  # VW-2
    for agent in ("rocky", "nit"):
        Agent.objects.create(id=agent, name="Rocky", owner=operator)
    turns = show(client, capture_redis, hands.captured("rocky", 1), hands.captured("nit", 2))
    assert "Rocky (rocky)" in turns["t1-rocky"]
    assert "Rocky (nit)" in turns["t2-nit"]


def test_two_agents_at_one_index_have_anchors_of_their_own(
    client: Client, capture_redis: redis.Redis, operator: User
) -> None:  # VW-2
    turns = show(client, capture_redis, hands.captured("a:b", 1), hands.captured("a-b", 1))
    assert list(turns) == ["t1-a-b", "t1-a-b.2"]


def test_each_turn_and_section_has_an_anchor(client: Client, story: None) -> None:
    page = read(client)
    for anchor in ("t3-rocky", "t3-rocky-knew", "t3-rocky-prompt", "t3-rocky-said", "t3-rocky-sent"):
        assert page.count(f'id="{anchor}"') == 1
    assert 'href="#t3-rocky"' in page


def test_every_id_on_the_page_is_there_once(client: Client, story: None) -> None:
    found = re.findall(r'\sid="([^"]+)"', read(client))
    assert len(found) == len(set(found))


def test_an_agent_alone_can_be_asked_for(client: Client, story: None) -> None:  # VW-2
    turns = turns_of(read(client, f"{HAND}&agent=rocky"))
    assert turns
    assert all(anchor.endswith("-rocky") for anchor in turns)


def test_a_search_opens_and_marks_what_it_finds(client: Client, story: None) -> None:
    page = read(client, f"{HAND}&q=STRATEGY")
    turn = turns_of(page)["t2-bluffy"]
    assert "[<mark>Strategy</mark>]" in turn
    assert re.search(r"<details open>\s*<summary><h3>Prompt", turn)
    assert "9 parts with" in words(page)


def test_a_search_names_the_turns_it_found_something_in_and_leads_to_them(client: Client, story: None) -> None:  # VW-2
    page = read(client, f"{HAND}&q=all+in+the+middle")
    told = re.search(r'<p class="facts" role="status">.*?</p>', page, re.DOTALL)
    assert told
    assert "1 part with" in told[0]
    assert '<a href="#t3-rocky" aria-label="Turn 3 of Rocky">3 · Rocky</a>' in told[0]
    assert told[0].count('href="#') == 1
    nothing = read(client, f"{HAND}&q=nowhere+at+all")
    assert ("Nothing in this hand has" in nothing, "in turn" in nothing) == (True, False)


def test_a_whisper_without_an_author_and_notes_of_an_agent_elsewhere_are_on_the_page(
    client: Client, capture_redis: redis.Redis, operator: User
) -> None:  # VW-2
    known = {"question": "Fold?", "notes": ["Nit raised"], "whispers": [{"text": "Wait."}]}
    turn = show(client, capture_redis, hands.captured("rocky", 1, knowledge=freeze(known)))["t1-rocky"]
    assert "unknown" not in turn
    assert '<span class="soft">whispered:</span> Wait.' in turn
    assert "Nit raised" in turn


def test_a_search_in_what_it_knew_opens_the_record(client: Client, story: None) -> None:
    turn = turns_of(read(client, f"{HAND}&q=deploymentId"))["t2-bluffy"]
    assert '<details class="more" open><summary>Everything as recorded' in turn
    assert "<dt><mark>deploymentId</mark></dt>" in turn


def test_the_prompt_says_what_of_it_repeats(client: Client, story: None) -> None:
    assert "of it as on turn 2" in turns_of(read(client))["t5-bluffy"]


def test_no_page_with_model_text_is_kept_by_a_cache(client: Client, story: None) -> None:  # SF-2
    assert client.get(HAND)["Cache-Control"] == "private, no-store"


def long_hand(count: int, response: str) -> list[hands.Played]:
    """`count` turns of six agents in which everybody has heard everything."""
    heard = [hands.heard("bluffy", "raise", 100 + i, street="turn", actionIndex=i) for i in range(count)]
    names = ("rocky", "bluffy", "nit", "callie", "maverick", "duchess")

    def knew(index: int) -> bytes:
        values = hands.arguments(["Ah", "Ks"], action_log=heard[:index])
        return freeze(values | {"state": values["state"] | {"actionIndex": index}})

    return [hands.captured(names[i % 6], i, knowledge=knew(i), response=response) for i in range(count)]


@pytest.mark.parametrize("said", ["I call.", "I think. " * 55, "I think about this for a while. " * 60])
def test_a_hand_of_forty_turns_weighs_little_before_its_parts_load(
    client: Client, capture_redis: redis.Redis, operator: User, said: str
) -> None:  # PF-4
    hands.store(capture_redis, long_hand(40, said))
    weight = len(client.get(HAND).content)
    assert weight <= 250_000, weight


def test_a_longer_hand_costs_no_more_queries(
    client: Client, capture_redis: redis.Redis, operator: User
) -> None:  # PF-4
    hands.store(capture_redis, long_hand(2, "I call."), hand=1)
    hands.store(capture_redis, long_hand(60, "I call."), hand=2)
    counts = []
    for number in (1, 2):
        with CaptureQueriesContext(connection) as queries:
            client.get(f"/agent-capture?table=T-4&hand={number}")
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_times_say_their_zone(client: Client, capture_redis: redis.Redis, operator: User) -> None:
    at = datetime.now(UTC).replace(microsecond=0)
    hands.store(capture_redis, [hands.captured("rocky", 0)], at=at)
    page = read(client)
    assert f"{at.day} {at:%b %Y %H:%M:%S} UTC" in page
