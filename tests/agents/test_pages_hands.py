"""The owner's pages over recorded turns: cards, hands, one hand, kept hands."""

import re
from datetime import timedelta
from decimal import Decimal

import pytest
import redis
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agentlab.agents.models import Agent
from agentlab.agents.services import Draft, publish
from agentlab.common.models import AuditEntry, Deed
from capture import notes
from capture.models import AgentCallRecord
from tests.capture import hands as stories
from tests.capture.making import HAND, TABLE, charge, charge_all, play, result, take_redis_away, turn, write
from tests.pages import assert_no_inline_code, assert_valid_html

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("capture_redis")]
WHERE = {"table": TABLE, "hand": str(HAND)}
HTMX = {"HX-Request": "true"}


@pytest.fixture(autouse=True)
def ann(client: Client) -> User:
    """Owns rocky; nit is somebody else's."""
    user = User.objects.create_user("ann")
    client.force_login(user)
    Agent.objects.create(id="rocky", name="Rocky", owner=user)
    Agent.objects.create(id="nit", name="Nit", owner=User.objects.create_user("bob"))
    return user


def page(client: Client, path: str, status: int = 200, **query: str) -> str:
    response = client.get(path, query)
    assert response.status_code == status
    assert_valid_html(response)
    assert_no_inline_code(response)
    assert response.headers["Cache-Control"] == "private, no-store"
    return response.content.decode()


def test_an_owner_finds_the_hands_in_which_something_went_wrong(client: Client) -> None:  # VW-7
    charge_all(charge("rocky", 0, hand=1, change="clamp"), charge("rocky", 0, hand=2, change=""))
    charge_all(charge("nit", 0, hand=3, change="clamp"))
    said = page(client, "/agents/rocky", only="clamped")
    assert f"{TABLE}:1<" in said
    assert f"{TABLE}:2<" not in said
    assert f"{TABLE}:3<" not in said
    assert said.count(f'href="/agents/rocky/hand?table={TABLE}&amp;hand=1#t0-rocky"') == 2  # the hand and its mark
    assert "none fell back" in page(client, "/agents/rocky", only="fallback")
    page(client, "/agents/rocky", 400, only="odd")


def test_an_owners_list_says_at_once_that_redis_is_silent(client: Client, settings) -> None:  # CAP-10, VW-7
    charge_all(charge("rocky", 0, hand=1))
    assert "does not work right now" not in page(client, "/agents/rocky")
    take_redis_away(settings)
    said = page(client, "/agents/rocky")
    assert "The capture Redis does not work right now: Redis is down." in said
    assert f"{TABLE}:1<" in said


def test_a_card_says_version_seat_turns_fallbacks_cost_and_kept_hands(client: Client) -> None:  # VW-7
    now = timezone.now()
    charge_all(*(charge("rocky", index, played_at=now, cost=Decimal("0.0021"), change="") for index in range(39)))
    charge_all(
        charge("rocky", 50, played_at=now, is_fallback=True), charge("rocky", 51, played_at=now - timedelta(days=2))
    )
    play([turn("rocky", index, hand=hand) for hand in (1, 2) for index in (0, 1)])
    for hand in ("1", "2"):
        client.post("/agents/rocky/keep", {"table": TABLE, "hand": hand})
    publish(Agent.objects.get(pk="rocky"), Draft("b", "s", [], "house"))
    said = page(client, "/agents")
    for words in ("Rocky", "not seated", "Last 24 hours: 40 turns, ", ", 0 clamped, $0.0819", "2 hands kept"):
        assert words in said
    assert '<a class="badge" href="/agents/rocky/versions/rocky-v1">v1</a>' in said
    assert '<a href="/agents/rocky?only=fallback">2 % fallback</a>' in said  # what went wrong is one click away
    assert "only=clamped" not in said
    assert "Nit" not in said


def test_a_card_and_the_home_page_say_what_was_lost(client: Client) -> None:  # CAP-10, VW-7
    now = timezone.now()
    charge_all(charge("rocky", 0, hand=1, played_at=now, change="", capture_outcome="failed"))
    assert '<a href="/agents/rocky?only=lost">1 lost</a>' in page(client, "/agents")
    home = page(client, "/")
    assert 'href="/agents/rocky?only=lost">1 LOST</a>' in home
    assert ">nothing<" not in home


def test_an_agents_hands_are_its_own_with_what_it_did(client: Client) -> None:  # VW-7
    play([turn("rocky", 0, hand=1), turn("nit", 1, hand=1), turn("rocky", 2, hand=1)])
    play([turn("nit", 0, hand=2)])
    charge_all(charge("rocky", 0, hand=3, is_fallback=True))
    said = page(client, "/agents/rocky")
    assert (f"{TABLE}:1" in said, f"{TABLE}:2" in said, f"{TABLE}:3" in said) == (True, False, True)
    assert "call, call" in said
    assert said.count("FALLBACK ONLY") == 1


def test_an_owner_reads_what_each_hand_and_the_day_came_to(client: Client) -> None:  # VW-7, CAP-7
    charge_all(charge("rocky", 0), charge("rocky", 0, hand=8), charge("nit", 1))
    result("rocky", -1_200, ended_at=timezone.now())
    result("nit", 777, ended_at=timezone.now())
    listed = re.findall(r'<td class="number">(.*?)</td>', page(client, "/agents/rocky"))
    assert listed == ["1", '<span class="soft">not known</span>', "1", "−1,200"]  # turns and chips, the newest on top
    assert "<span>−1,200 chips</span>" in page(client, "/agents/rocky/hand", **WHERE)
    assert "chips" not in page(client, "/agents/rocky/hand", table=TABLE, hand="8")
    assert "−1,200 chips in the 1 hand whose result is known<" in page(client, "/agents")
    home = page(client, "/")
    assert '<td class="number">−1,200</td>' in home
    assert "−1,200 chips</span>" in home
    result("rocky", 50, hand=9)  # won without a turn of its own
    assert "<span>Rocky +50 chips, without a turn</span>" in page(client, "/agents/rocky/hand", table=TABLE, hand="9")
    assert "777" not in home + page(client, "/agents/rocky/hand", **WHERE)


def test_one_word_stands_for_keeping_on_every_page(client: Client) -> None:  # VW-5, VW-7
    play([turn("rocky", 0)])
    where = f"/agents/rocky/hand?table={TABLE}&hand={HAND}"
    said = "".join(page(client, path) for path in ("/agents", "/agents/rocky", "/agents/rocky/kept", where))
    assert "flag" not in said.lower()
    assert said.count('aria-label="Keep hand') == said.count(" Keep this hand<") == 1


def test_a_list_of_hands_leads_to_the_version_that_played_each(client: Client) -> None:  # VW-7
    charge_all(
        charge("rocky", 0, hand=1, agent_version_id="rocky-v1"),
        charge("rocky", 2, hand=2, agent_version_id="rocky-v1"),
        charge("rocky", 4, hand=2, agent_version_id="rocky-v12"),
        charge("nit", 5, hand=2, agent_version_id="nit-v7"),
        charge("rocky", 6, hand=3, agent_version_id=None),
    )
    rows = page(client, "/agents/rocky").split("<tr>")[2:]
    assert [row.count("versions/") for row in rows] == [0, 2, 1]
    assert "unknown" in rows[0]
    assert ">v12</a>" in rows[1]
    assert "nit" not in rows[1]


def test_an_agent_that_has_not_played_is_told_how_it_gets_to_a_table(client: Client) -> None:  # VW-6
    said = page(client, "/agents/rocky")
    assert ("as it has no version" in said, 'href="/agents/rocky/versions/new"' in said) == (True, True)
    publish(Agent.objects.get(pk="rocky"), Draft("b", "s", [], "house"))
    said = page(client, "/agents/rocky")
    assert "manage.py play --agent rocky --agent ANOTHER" in said
    assert "as it has no version" not in said


def test_a_hand_leads_to_the_hands_before_and_after_it_that_this_agent_played(client: Client) -> None:  # VW-7
    for index, hand in enumerate((1, 2, 4, 5)):
        play([turn("nit" if hand == 4 else "rocky", index, hand=hand)])
    middle = page(client, "/agents/rocky/hand", table=TABLE, hand="2")
    assert f'href="/agents/rocky/hand?table={TABLE}&amp;hand=1" rel="prev">‹ 1<' in middle
    assert f'href="/agents/rocky/hand?table={TABLE}&amp;hand=5" rel="next">5 ›<' in middle
    assert 'rel="prev"' not in page(client, "/agents/rocky/hand", table=TABLE, hand="1")
    assert 'rel="next"' not in page(client, "/agents/rocky/hand", table=TABLE, hand="5")
    assert "Neighbouring" not in page(client, "/agents/rocky/hand", table=TABLE, hand="4")


def test_hands_are_paged_by_links(client: Client) -> None:  # VW-7, VW-10
    for hand in range(30):
        play([turn("rocky", hand, hand=hand)])
    first = client.get("/agents/rocky").content.decode()
    older = first.split('rel="next"')[0].rsplit('href="', 1)[1].split('"')[0].replace("&amp;", "&")
    second = client.get(older).content.decode()
    assert f"{TABLE}:29" in first
    assert f"{TABLE}:4<" in second
    assert client.get("/agents/rocky?before=junk").status_code == 400


def test_a_hand_shows_the_turns_of_this_agent_alone(client: Client) -> None:  # VW-7, RD-3
    play([turn("rocky", 0), turn("nit", 1), turn("rocky", 2)])
    said = page(client, "/agents/rocky/hand", **WHERE)
    assert said.count("data-turn ") == 2
    assert "nit.T-1" not in said


def test_an_owner_reads_names_of_all_their_agents_and_rivals_ids(client: Client, ann: User) -> None:  # VW-7, SF-1
    Agent.objects.create(id="bluffy", name="Bluffy", owner=ann)
    write(stories.turn("rocky", 0, hand=HAND, table=TABLE))
    said = page(client, "/agents/rocky/hand", **WHERE)
    assert "nit calls 2 → Rocky raises to 8 → Bluffy calls 8" in said
    assert "Nit" not in said


def test_an_owners_page_touches_no_key_of_a_rival(client: Client, capture_redis: redis.Redis) -> None:  # RD-3
    from tests.capture.test_reading import Watched

    play([turn("rocky", 0), turn("nit", 1), turn("rocky", 2, hand=HAND + 1), turn("nit", 3, hand=HAND + 1)])
    with Watched(capture_redis) as watched:
        assert b'rel="next"' in client.get("/agents/rocky/hand", WHERE).content
        client.get("/agents/rocky/hand/part", WHERE | {"turn": "0", "part": "prompt"})
        client.post("/agents/rocky/keep", WHERE)
    assert watched.keys
    assert not [key for key in watched.keys if "nit" in key or key.startswith("agents:")]


def test_parts_and_raw_texts_open_under_the_agents_own_page(client: Client) -> None:  # VW-7
    play([turn("rocky", 0)])
    said = page(client, "/agents/rocky/hand", **WHERE)
    assert "/agents/rocky/hand/raw?" in said
    assert "/agent-capture/" not in said
    raw = client.get("/agents/rocky/hand/raw", WHERE | {"turn": "0", "part": "prompt"})
    assert raw.content == b"envelope of rocky\nremainder rocky.T-1.7.0"
    part = page(client, "/agents/rocky/hand/part", **WHERE, turn="0", part="prompt")
    assert "remainder rocky.T-1.7.0" in part


@pytest.mark.parametrize("path", ["hand", "hand/part", "hand/raw"])
def test_another_agents_turn_is_not_found_by_any_name(client: Client, path: str) -> None:  # SF-1
    play([turn("rocky", 0), turn("nit", 1, response="secret of nit")])
    asked = WHERE | {"part": "response"}
    answers = [
        client.get(f"/agents/rocky/{path}", asked | {"agent": "nit", "turn": "1"}),
        client.get(f"/agents/rocky/{path}", asked | {"turn": "1"}),
        client.get(f"/agents/nit/{path}", asked | {"turn": "1"}),
        client.get(f"/agent-capture/{path.rpartition('/')[2]}", asked | {"agent": "nit", "turn": "1"}),
    ]
    assert all(b"secret of nit" not in answer.content for answer in answers)
    # The hand is one's own to open; nobody else's turn is in it.
    mine = 200 if path == "hand" else 404
    assert [answer.status_code for answer in answers] == [mine, mine, 404, 404]


def test_a_version_leads_to_what_it_said(client: Client) -> None:  # VW-7
    version = publish(Agent.objects.get(pk="rocky"), Draft("b", "the strategy that it had", [], "house"))
    play([turn("rocky", 0, agent_version_id=version.pk)])
    said = page(client, "/agents/rocky/hand", **WHERE)
    assert 'href="/agents/rocky/versions/rocky-v1"' in said
    assert "the strategy that it had" in page(client, "/agents/rocky/versions/rocky-v1")


# ---- the owner's three questions

CHOSE, KNEW = "It chose this.", "It knew something you may not expect."


def asked(**fields: object) -> dict[str, object]:
    """A raise to 200 that was asked for and sent, but for these fields."""
    said = {"asked_action": "raise", "asked_amount": 200, "choice_source": "text", "action": "raise", "amount": 200}
    return said | {"decision": [{"type": "action", "action": "raise", "amount": 200}]} | fields


def test_a_turn_that_went_out_as_asked_was_chosen(client: Client) -> None:  # VW-7
    play([turn("rocky", 0, **asked())])
    said = page(client, "/agents/rocky/hand", **WHERE)
    assert (CHOSE in said, "It asked for" in said, KNEW in said) == (True, False, False)


def test_a_clamped_turn_says_what_was_asked_and_what_was_sent(client: Client) -> None:  # VW-7, VW-3
    play([turn("rocky", 0, **asked(asked_amount=500, change="clamp"))])
    said = page(client, "/agents/rocky/hand", **WHERE)
    assert "It asked for raise 500, and raise 200 was sent." in said
    assert CHOSE not in said


def test_an_all_in_given_as_a_number_was_chosen(client: Client) -> None:  # VW-3
    play([turn("rocky", 0, **asked(asked_amount=176, change="all_in"))])
    said = page(client, "/agents/rocky/hand", **WHERE)
    assert (CHOSE in said, "It asked for raise" in said) == (True, False)


def test_a_renamed_action_was_chosen_too(client: Client) -> None:  # VW-3
    play([turn("rocky", 0, **asked(asked_action="bet", change="rename"))])
    said = page(client, "/agents/rocky/hand", **WHERE)
    assert (CHOSE in said, "It asked for" in said, "CLAMPED" in said) == (True, False, False)


def test_a_turn_whose_answer_could_not_be_read_is_not_said_to_have_chosen(client: Client) -> None:  # VW-3
    play([turn("rocky", 0, choice_source=None, asked_action=None, asked_amount=None)])
    charge_all(charge("rocky", 1, is_fallback=True))
    said = page(client, "/agents/rocky/hand", **WHERE)
    assert (CHOSE in said, "It asked for" in said, KNEW in said) == (False, False, False)


def test_a_note_of_a_room_that_knows_the_game_answers_the_second_question(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:  # VW-9
    monkeypatch.setattr(notes, "_makers", [])

    @notes.register
    def empty_log(turn: object) -> str | None:
        return "Its action log was <b>empty</b>."

    @notes.register
    def broken(turn: object) -> str | None:
        raise RuntimeError("of an older agent")

    play([turn("rocky", 0, **asked())])
    said = page(client, "/agents/rocky/hand", **WHERE)
    assert (KNEW in said, "Its action log was &lt;b&gt;empty&lt;/b&gt;." in said) == (True, True)


def test_a_maker_registers_once_and_speaks_of_recorded_turns_alone(monkeypatch: pytest.MonkeyPatch) -> None:  # VW-9
    from capture.reading import read_hand

    monkeypatch.setattr(notes, "_makers", [])
    heard: list[object] = []
    notes.register(heard.append)
    notes.register(heard.append)
    play([turn("rocky", 0)])
    charge_all(charge("rocky", 1, is_fallback=True))
    for view in read_hand(TABLE, HAND, agent_id="rocky").turns:
        assert notes.notes_on(view) == []
    assert heard == [turn("rocky", 0)]


# ---- keeping


def test_keeping_a_hand_puts_it_into_the_kept_list(client: Client) -> None:  # VW-7, VW-5
    play([turn("rocky", 0), turn("nit", 1), turn("rocky", 2)])
    said = client.post("/agents/rocky/keep", WHERE, follow=True).content.decode()
    assert "Rocky: kept 2 turns" in said
    assert set(AgentCallRecord.objects.values_list("agent_id", flat=True)) == {"rocky"}
    kept = page(client, "/agents/rocky/kept")
    assert (f"{TABLE}:{HAND}" in kept, "Kept until you delete it." in kept) == (True, True)
    delete = re.search(r'<a href="([^"]+)" aria-label="Delete the kept turns', kept)
    assert delete
    assert "Delete 2 kept turns" in client.get(delete[1].replace("&amp;", "&")).content.decode()


def test_an_operator_is_told_that_the_owner_deletes_what_is_kept(client: Client) -> None:  # VW-7
    play([turn("rocky", 0)])
    client.post("/agents/rocky/keep", WHERE)
    client.force_login(User.objects.create_user("operator", is_staff=True))
    for said in (page(client, "/agents/rocky/hand", **WHERE), page(client, "/agents/rocky/kept")):
        assert "until the owner deletes it." in said
        assert "unkeep" not in said


def test_a_hand_that_an_agent_had_no_turn_in_is_not_said_to_be_unknown(client: Client) -> None:  # RD-3, VW-9
    play([turn("nit", 0)])
    said = page(client, "/agents/rocky/hand", **WHERE)
    assert "No turn of Rocky is known in this hand." in said
    assert "No such hand" not in said


def test_who_keeps_a_hand_in_the_list_stays_in_the_list(client: Client) -> None:  # VW-5
    play([turn("rocky", 0)])
    listed = page(client, "/agents/rocky")
    back = re.search(r'name="back" value="([^"]+)"', listed)
    assert back
    response = client.post("/agents/rocky/keep", WHERE | {"back": back[1]}, follow=True)
    assert response.redirect_chain == [("/agents/rocky", 302)]
    assert ("Rocky: kept 1 turn" in response.content.decode(), "1 KEPT" in response.content.decode()) == (True, True)


@pytest.mark.parametrize("elsewhere", ["https://elsewhere.example/", "//elsewhere.example/", "javascript:alert(1)", ""])
def test_nobody_is_led_elsewhere_by_keeping(client: Client, elsewhere: str) -> None:  # SF-1
    play([turn("rocky", 0)])
    response = client.post("/agents/rocky/keep", WHERE | {"back": elsewhere})
    assert response["Location"].startswith("/agents/rocky/hand?")


def test_keeping_through_htmx_answers_in_place(client: Client) -> None:  # VW-5
    play([turn("rocky", 0)])
    response = client.post("/agents/rocky/keep", WHERE, headers=HTMX)
    said = response.content.decode()
    assert_valid_html(response)
    assert "Rocky: kept 1 turn" in said
    assert ("Delete it" in said, "Keep this hand" in said) == (True, False)
    assert 'id="status"' in said


def test_the_header_says_what_is_kept_at_once_and_on_every_visit(client: Client) -> None:  # VW-7, VW-5
    play([turn("rocky", 0), turn("rocky", 1)])
    answer = client.post("/agents/rocky/keep", WHERE, headers=HTMX).content.decode()
    for said in (answer, page(client, "/agents/rocky/hand", **WHERE)):
        assert ("<span>kept 2 of 2 turns</span>" in said, "2 turns of Rocky" in said) == (True, True)
    assert 'id="hand-facts" hx-swap-oob="true"' in answer


def test_what_cannot_be_kept_says_why(client: Client, settings) -> None:  # PIN-2, VW-5
    charge_all(charge("rocky", 0, is_fallback=True))
    assert "made no decision" in client.post("/agents/rocky/keep", WHERE, follow=True).content.decode()
    take_redis_away(settings)
    response = client.post("/agents/rocky/keep", WHERE, headers=HTMX)
    assert (response.status_code, "Redis is down" in response.content.decode()) == (503, True)
    assert AgentCallRecord.objects.count() == 0


def test_letting_go_asks_first_and_tells_the_truth(client: Client) -> None:  # VW-7
    play([turn("rocky", 0)])
    client.post("/agents/rocky/keep", WHERE)
    question = page(client, "/agents/rocky/unkeep", **WHERE)
    assert ("will be deleted" in question, AgentCallRecord.objects.count()) == (True, 1)
    assert "1 turn no longer kept." in client.post("/agents/rocky/unkeep", WHERE, follow=True).content.decode()
    assert AgentCallRecord.objects.count() == 0
    assert "Nothing of it was kept." in client.post("/agents/rocky/unkeep", WHERE, follow=True).content.decode()
    assert "Nothing of this hand is kept." in page(client, "/agents/rocky/unkeep", **WHERE)
    deeds = AuditEntry.objects.order_by("id").values_list("actor_name", "deed")
    assert list(deeds) == [("ann", Deed.KEPT), ("ann", Deed.UNKEPT)]


def test_a_kept_hand_is_read_whole_when_its_day_is_over(client: Client, capture_redis: redis.Redis) -> None:  # VW-7
    play([turn("rocky", 0), turn("rocky", 2, hand=8)])
    client.post("/agents/rocky/keep", WHERE)
    capture_redis.flushdb()
    assert "response rocky.T-1.7.0" in page(client, "/agents/rocky/hand", **WHERE)
    gone = page(client, "/agents/rocky/hand", table=TABLE, hand="8")
    assert ("captures live 24 hours" in gone, "Keep this hand" in gone) == (True, False)


def test_looking_at_ones_own_turns_is_nobodys_business_and_an_operators_look_is_noted(client: Client) -> None:  # VW-7
    play([turn("rocky", 0), turn("nit", 1)])
    client.get("/agents/rocky/hand", WHERE)
    assert AuditEntry.objects.count() == 0
    operator = Client()
    operator.force_login(User.objects.create_user("operator", is_staff=True))
    operator.get("/agents/rocky/hand", WHERE)
    operator.get("/agents/rocky/hand/raw", WHERE | {"turn": "0", "part": "prompt"})
    noted = AuditEntry.objects.get()
    assert (noted.actor_name, noted.deed, noted.agent_id) == ("operator", Deed.OPENED, "rocky")


def test_an_operators_look_at_a_whole_hand_is_noted_for_every_agent_in_it(admin_client: Client) -> None:  # VW-7
    play([turn("rocky", 0), turn("nit", 1)])
    for _ in range(2):
        admin_client.get("/agent-capture", WHERE)
    admin_client.get("/agent-capture/part", WHERE | {"agent": "rocky", "turn": "0", "part": "prompt"})
    admin_client.get("/agent-capture", WHERE | {"hand": "8"})
    noted = AuditEntry.objects.order_by("agent_id").values_list("deed", "agent_id", "table_id", "hand_number")
    assert list(noted) == [(Deed.OPENED, "nit", TABLE, HAND), (Deed.OPENED, "rocky", TABLE, HAND)]


BAD = [{}, {"table": "T"}, {"hand": "1"}, {"table": "a\0", "hand": "1"}, {"table": "T", "hand": "9" * 30}]
BAD += [{"table": "T", "hand": "-1"}, {"table": "x" * 300, "hand": "1"}, {"table": "T", "hand": "1e3"}]


@pytest.mark.parametrize("bad", BAD, ids=range(len(BAD)))
def test_a_question_that_names_no_hand_is_a_readable_400(client: Client, bad: dict[str, str]) -> None:  # SF-4
    for path in ("hand", "unkeep"):
        assert "callout" in page(client, f"/agents/rocky/{path}", 400, **bad)
    for path in ("keep", "unkeep"):
        assert client.post(f"/agents/rocky/{path}", bad).status_code == 400


def test_a_hand_page_costs_the_same_for_two_turns_and_for_two_hundred(client: Client) -> None:  # PF-4
    costs = []
    for hand, turns in ((1, 2), (2, 200)):
        play([turn("rocky", index, hand=hand) for index in range(turns)])
        with CaptureQueriesContext(connection) as queries:
            assert client.get("/agents/rocky/hand", {"table": TABLE, "hand": hand}).status_code == 200
        costs.append(len(queries))
    assert costs[0] == costs[1]


def test_a_list_of_hands_costs_the_same_for_one_hand_and_for_twenty(client: Client) -> None:  # PF-4
    costs = []
    for hands in (range(1), range(1, 20)):
        for hand in hands:
            play([turn("rocky", index, hand=hand) for index in range(4)])
        with CaptureQueriesContext(connection) as queries:
            client.get("/agents/rocky")
        costs.append(len(queries))
    assert costs[0] == costs[1]


HOSTILE = "<script>alert(1)</script> $5 … $10 ![a](http://10.0.0.1/x) \0 \ud83e \u202e"


def test_hostile_text_is_inert_on_the_owners_page_and_exact_in_raw(client: Client) -> None:  # CAP-9, SF-2
    write(
        turn("rocky", 0, response=HOSTILE, reasoning=HOSTILE, decision=[{"t": HOSTILE}], action=HOSTILE, model=HOSTILE)
    )
    said = page(client, "/agents/rocky/hand", **WHERE)
    assert "<script>alert" not in said
    assert "$5 … $10" in said
    raw = client.get("/agents/rocky/hand/raw", WHERE | {"turn": "0", "part": "response"})
    assert raw.content == HOSTILE.encode("utf-8", "surrogatepass")
