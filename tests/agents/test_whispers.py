"""What becomes of a whisper: heard at a turn, withdrawn, crowded out, and what its page says of it."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agentlab.agents.charge import Charge, fit
from agentlab.agents.ledger_rows import write
from agentlab.agents.models import Agent, AgentDeployment, AgentVersion, InferenceCharge, Whisper
from agentlab.agents.services import whisper, withdraw
from agentlab.agents.spool import Batch, Spool
from agentlab.common.models import AuditEntry, Deed
from agentlab.hosted.deployments import heard_whispers
from tests.pages import assert_no_inline_code, assert_valid_html

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("capture_redis")]
NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
HTMX = {"HX-Request": "true"}


@pytest.fixture
def ann(client: Client) -> User:
    user = User.objects.create_user("ann")
    client.force_login(user)
    return user


@pytest.fixture
def rocky(ann: User) -> Agent:
    agent = Agent.objects.create(id="rocky", name="Rocky", owner=ann)
    version = AgentVersion.objects.create(id="rocky-v1", agent=agent, number=1, base_prompt="b", strategy="s")
    AgentDeployment.objects.create(agent=agent, version=version, table_id="main", model="house")
    return agent


@pytest.fixture
def psst(rocky: Agent, ann: User) -> Whisper:
    return whisper(rocky, author=ann, text="Fold more.")


def turn(*heard: int, index: int = 3, agent: str = "rocky", minutes: int = 0, **facts: object) -> Charge:
    """A turn of hand main:12 as its agent charges it."""
    return Charge(agent, "main", 12, index, NOON + timedelta(minutes=minutes), action="call", heard=heard, **facts)  # type: ignore[arg-type]


def noted(*charges: Charge) -> None:
    write(Batch({charge.key: charge for charge in charges}))


def page(client: Client, path: str = "/agents/rocky/whispers", **query: str) -> str:
    response = client.get(path, query)
    assert response.status_code == 200
    assert_valid_html(response)
    assert_no_inline_code(response)
    return " ".join(response.content.decode().split())


def place(of: Whisper) -> tuple[object, ...]:
    of.refresh_from_db()
    return (of.heard_at, of.heard_table_id, of.heard_hand_number, of.heard_action_index)


NOWHERE = (None, None, None, None)
TURN = "/agents/rocky/hand?table=main&amp;hand=12#t3-rocky"


# ---- which turn heard it


def test_a_whisper_waits_until_a_turn_is_charged_that_knew_it(client: Client, psst: Whisper) -> None:  # HA-12
    said = page(client)
    assert ("WAITING" in said, "HEARD" in said) == (True, False)
    noted(turn(psst.pk))
    said = page(client)
    assert ("WAITING" in said, "HEARD" in said, f'href="{TURN}"' in said) == (False, True, True)
    assert "turn 3 of hand" in said
    assert "29 Nov 2026 12:00:00 UTC" in said


def test_the_earliest_turn_counts_in_whatever_order_turns_come(psst: Whisper) -> None:  # HA-12
    noted(turn(psst.pk, index=5, minutes=2))
    noted(turn(psst.pk, index=4, minutes=1), turn(psst.pk, index=6, minutes=3))
    noted(turn(psst.pk, index=6, minutes=3))
    assert place(psst) == (NOON + timedelta(minutes=1), "main", 12, 4)


def test_a_turn_that_decided_nothing_has_heard_nothing(psst: Whisper) -> None:  # HA-12
    noted(turn(psst.pk, is_fallback=True, capture_outcome="none"))
    assert place(psst) == NOWHERE


def test_a_turn_of_another_agent_never_marks_it(psst: Whisper, rocky: Agent) -> None:  # HA-12, SF-1
    noted(turn(psst.pk, agent="nit"))
    assert place(psst) == NOWHERE


def test_what_was_heard_waits_in_the_spool_with_its_turn(psst: Whisper, tmp_path: Path) -> None:  # HA-12, SF-5
    spool = Spool(tmp_path / "spool")
    spool.append([turn(psst.pk), turn(index=4)])
    spool.close()
    write(Spool(tmp_path / "spool").next(10))
    assert place(psst) == (NOON, "main", 12, 3)
    assert InferenceCharge.objects.count() == 2


@pytest.mark.parametrize("odd", [None, 5, "12", ["x", 2**70, -1, None], [0], (10**12,)])
def test_what_is_no_whisper_costs_a_turn_nothing(psst: Whisper, odd: object) -> None:  # SF-4
    fitted, _ = fit(Charge("rocky", "main", 12, 3, NOON, action="call", heard=odd))  # type: ignore[arg-type]
    noted(fitted)
    assert (place(psst), InferenceCharge.objects.count()) == (NOWHERE, 1)


def test_a_row_is_heard_whole_or_not_at_all(psst: Whisper) -> None:  # HA-12
    with pytest.raises(IntegrityError):
        Whisper.objects.filter(pk=psst.pk).update(heard_at=NOON)


def test_of_a_whisper_from_before_this_was_noted_the_page_says_that_it_is_not_known(
    client: Client, psst: Whisper
) -> None:  # HA-12
    Whisper.objects.filter(pk=psst.pk).update(hearing_noted=False)
    said = page(client)
    assert ("NOT KNOWN" in said, "WAITING" in said) == (True, False)
    noted(turn(psst.pk))
    said = page(client)
    assert ("HEARD" in said, "of turns before that one it is not known" in said) == (True, True)


def test_a_row_that_older_code_writes_claims_nothing(rocky: Agent, ann: User) -> None:  # HA-12
    columns = "agent_id, author_id, text, created_at"
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO agent_whispers ({columns}) VALUES (%s, %s, %s, %s)",
            ["rocky", ann.pk, "psst", NOON],
        )
    old = Whisper.objects.get()
    assert (old.hearing_noted, old.heard_at, old.withdrawn_at) == (False, None, None)


# ---- what is remembered


def test_an_agent_remembers_the_newest_and_reports_what_is_new_to_it(rocky: Agent, ann: User) -> None:  # HA-12
    first, second = (whisper(rocky, author=ann, text=text) for text in ("one", "two"))
    noted(turn(first.pk))
    with CaptureQueriesContext(connection) as queries:
        heard = heard_whispers("rocky")
    assert len(queries) == 1
    assert ([one["text"] for one in heard.said], heard.fresh) == (["one", "two"], (second.pk,))
    assert all(set(one) == {"author", "at", "text"} for one in heard.said)


def test_of_five_hundred_whispers_the_page_tells_apart_what_is_remembered(
    client: Client, rocky: Agent, ann: User
) -> None:  # HA-12
    many = [whisper(rocky, author=ann, text=f"number {number}") for number in range(500)]
    noted(turn(*(one.pk for one in many[-25:-20])))
    heard = heard_whispers("rocky")
    assert [one["text"] for one in heard.said] == [f"number {number}" for number in range(480, 500)]
    said = page(client)
    counts = [said.count(f">{word}<") for word in ("WAITING", "HEARD", "NOT HEARD")]
    assert counts == [20, 5, 25]
    assert said.count("is no longer one of them") == 5
    assert said.count(">Withdraw<") == 50
    assert "number 0" in page(client, page="10")


def test_one_that_was_crowded_out_waits_again_when_newer_ones_are_withdrawn(
    client: Client, rocky: Agent, ann: User
) -> None:  # HA-12
    many = [whisper(rocky, author=ann, text=f"number {number}") for number in range(Whisper.IN_MEMORY + 1)]
    assert ">NOT HEARD<" in page(client)
    withdraw(many[-1], actor=ann)
    assert ">NOT HEARD<" not in page(client)
    assert heard_whispers("rocky").said[0]["text"] == "number 0"


# ---- withdrawing


def ask(psst: Whisper, agent: str = "rocky") -> str:
    return f"/agents/{agent}/whispers/{psst.pk}/withdraw"


def test_withdrawing_asks_first_and_is_noted_in_the_audit(client: Client, psst: Whisper) -> None:  # HA-12
    assert f'href="{ask(psst)}"' in page(client)
    question = page(client, ask(psst))
    assert ("Withdraw this whisper?" in question, "Fold more." in question) == (True, True)
    assert place(psst) == NOWHERE
    assert psst.withdrawn_at is None
    response = client.post(ask(psst))
    assert (response.status_code, response.headers["Location"]) == (302, "/agents/rocky/whispers")
    psst.refresh_from_db()
    assert psst.withdrawn_at is not None
    entry = AuditEntry.objects.latest("id")
    assert (entry.deed, entry.actor_name, entry.agent_id) == (Deed.WITHDREW, "ann", "rocky")
    assert "Fold" not in entry.detail


def test_a_withdrawn_whisper_is_never_heard(client: Client, psst: Whisper) -> None:  # HA-12
    client.post(ask(psst))
    assert heard_whispers("rocky").said == []
    said = page(client)
    assert ("WITHDRAWN" in said, "WAITING" in said) == (True, False)
    assert "No turn is known to have heard it; none that began later will." in said
    assert ">Withdraw<" not in said


def test_of_one_that_was_heard_the_page_says_that_past_turns_knew_it(client: Client, psst: Whisper) -> None:  # HA-12
    noted(turn(psst.pk))
    client.post(ask(psst))
    assert heard_whispers("rocky").said == []
    said = page(client)
    assert ("WITHDRAWN" in said, f'href="{TURN}"' in said) == (True, True)
    assert "Turns that began before it was withdrawn knew it, and go on saying so" in said


def test_one_that_is_withdrawn_while_a_turn_runs_was_heard_by_that_turn(client: Client, psst: Whisper) -> None:
    # HA-12
    fetched = heard_whispers("rocky")
    client.post(ask(psst))
    noted(turn(*fetched.fresh))
    assert place(psst) == (NOON, "main", 12, 3)
    assert f'href="{TURN}"' in page(client)


def test_withdrawing_twice_says_so_and_is_noted_once(client: Client, psst: Whisper) -> None:  # HA-12
    client.post(ask(psst))
    psst.refresh_from_db()
    when = psst.withdrawn_at
    said = client.post(ask(psst), follow=True).content.decode()
    psst.refresh_from_db()
    assert ("It had been withdrawn already." in said, psst.withdrawn_at) == (True, when)
    assert AuditEntry.objects.filter(deed=Deed.WITHDREW).count() == 1
    assert "It is withdrawn already." in page(client, ask(psst))


def test_a_whisper_of_a_rival_is_not_found_under_ones_own_agent(client: Client, rocky: Agent) -> None:  # SF-1
    bob = User.objects.create_user("bob")
    theirs = whisper(Agent.objects.create(id="nit", name="Nit", owner=bob), author=bob, text="secret")
    paths = [ask(theirs), ask(theirs, "nit"), f"/agents/rocky/whispers/{2**70}/withdraw"]
    for path in paths:
        assert [client.get(path).status_code, client.post(path).status_code] == [404, 404]
    theirs.refresh_from_db()
    assert theirs.withdrawn_at is None


def test_an_operator_sees_what_became_of_it_and_withdraws_nothing(psst: Whisper) -> None:  # SF-1
    operator = Client()
    operator.force_login(User.objects.create_user("operator", is_staff=True))
    said = page(operator)
    assert ("WAITING" in said, ">Withdraw<" in said) == (True, False)
    assert operator.post(ask(psst)).status_code == 404


# ---- the page


def test_an_agent_that_sits_nowhere_is_said_to_hear_nothing_yet(client: Client, psst: Whisper) -> None:  # HA-12
    assert "sits at no table now" not in page(client)
    AgentDeployment.objects.update(left_at=NOON)
    assert "Rocky sits at no table now" in page(client)


def test_an_agent_that_is_played_elsewhere_is_not_said_to_hear_anything(client: Client, ann: User) -> None:  # HA-12
    Agent.objects.create(id="mine", name="Mine", owner=ann)
    whisper(Agent.objects.get(pk="mine"), author=ann, text="Fold more.")
    said = page(client, "/agents/mine/whispers")
    assert "nobody hears what is whispered to it" in said
    assert ("hears it at its next turn" in said, "waits until it plays" in said) == (False, False)


def test_the_page_looks_again_while_something_waits_and_stops_then(client: Client, psst: Whisper) -> None:  # VW-10
    assert "hx-trigger" in page(client)
    response = client.get("/agents/rocky/whispers", headers=HTMX)
    assert (response.status_code, b"<!doctype" in response.content) == (200, False)
    assert "HX-Request" in response.headers["Vary"]
    assert_valid_html(response)
    noted(turn(psst.pk))
    response = client.get("/agents/rocky/whispers", headers=HTMX)
    assert (response.status_code, b"hx-trigger" in response.content) == (286, False)
    assert "hx-trigger" not in page(client)


def test_hostile_words_are_inert_and_a_whispers_fate_is_told_beside_them(client: Client, rocky: Agent) -> None:
    # SF-2
    odd = whisper(rocky, author=rocky.owner, text="<script>alert(1)</script> \u202e“HEARD”")
    said = page(client)
    assert ("<script>alert" in said, "WAITING" in said) == (False, True)
    assert "<script>alert" not in page(client, ask(odd))
