"""The admin of agents and ledger: operators look and search, and what was recorded stays."""

from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoAssertNumQueries

from agentlab.agents.models import Agent, AgentDeployment, AgentVersion, InferenceCharge, Whisper
from agentlab.agents.services import Draft, publish

pytestmark = pytest.mark.django_db
RECORDED = ("agentversion", "agentdeployment", "whisper", "inferencecharge")


@pytest.fixture
def operator(client: Client, django_user_model: type[User]) -> Client:
    client.force_login(django_user_model.objects.create_superuser("boss"))
    return client


def played(number: int) -> None:
    """An agent with an owner, a version, a seat, a whisper and a row in the ledger."""
    owner = User.objects.create(username=f"owner{number}")
    agent = Agent.objects.create(id=f"rocky-{number}", name="Rocky", owner=owner)
    version = publish(agent, Draft("Play.", "Tight.", [], "house"))
    AgentDeployment.objects.create(
        agent=agent, version=version, table_id="T", base_prompt="Play.", strategy="Tight.", model="house"
    )
    Whisper.objects.create(agent=agent, author=owner, text="Fold more.")
    InferenceCharge.objects.create(
        agent_id=agent.pk,
        table_id="T:1",
        hand_number=number,
        action_index=0,
        played_at=datetime(2026, 7, 1, tzinfo=UTC),
        action="raise",
    )


@pytest.mark.parametrize("page", ["agent", *RECORDED])
def test_a_list_takes_as_many_queries_for_two_rows_as_for_twenty(  # VW-8
    operator: Client, page: str, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(2):
        played(number)
    with CaptureQueriesContext(connection) as few:
        assert operator.get(f"/admin/agents/{page}/").status_code == 200
    for number in range(2, 20):
        played(number)
    with django_assert_num_queries(len(few)):
        assert operator.get(f"/admin/agents/{page}/").status_code == 200


def test_the_ledger_says_an_agents_name_and_the_id_of_one_that_is_gone(operator: Client) -> None:  # VW-8
    played(1)
    assert "Rocky (rocky-1)" in operator.get("/admin/agents/inferencecharge/").content.decode()
    row = InferenceCharge.objects.get()
    InferenceCharge.objects.filter(pk=row.pk).update(agent_id="long-gone")
    assert ">long-gone<" in operator.get("/admin/agents/inferencecharge/").content.decode()


def test_the_admin_calls_things_what_the_pages_call_them(operator: Client) -> None:  # VW-8
    page = operator.get("/admin/").content.decode()
    for name in ("agentlab, for operators", "Kept hands", "Agents, and the ledger of their turns", "favicon"):
        assert name in page


def test_a_fallback_stands_in_the_list_with_its_reason_and_a_decision_with_nothing(operator: Client) -> None:  # VW-8
    played(1)
    assert "icon-no.svg" not in operator.get("/admin/agents/inferencecharge/").content.decode()
    InferenceCharge.objects.update(is_fallback=True, fallback_reason="timed out", capture_outcome="none")
    assert ">fallback: timed out</td>" in operator.get("/admin/agents/inferencecharge/").content.decode()


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"change": "", "note": "", "capture_outcome": "recorded"}, "-"),
        ({"change": None, "note": None, "capture_outcome": "recorded"}, "-"),
        ({"change": "all_in", "note": "log_gap", "capture_outcome": "recorded"}, "all in; log gap"),
        (
            {"change": "clamp", "capture_outcome": "dropped", "capture_reason": "buffer full"},
            "clamp; dropped: buffer full",
        ),
        ({"change": "", "capture_outcome": "pending"}, "pending"),
    ],
)
def test_a_turn_of_the_ledger_says_all_that_is_odd_about_it_in_one_place(  # VW-8, CAP-10
    operator: Client, facts: dict[str, str | None], said: str
) -> None:
    played(1)
    InferenceCharge.objects.update(amount=1_200, **facts)
    listed = operator.get("/admin/agents/inferencecharge/").content.decode()
    assert f'<td class="field-odd">{said}</td>' in listed
    assert '<td class="field-did">raise 1,200</td>' in listed


@pytest.mark.parametrize("page", RECORDED)
def test_what_was_recorded_cannot_be_added_changed_or_deleted(operator: Client, page: str) -> None:  # VW-8, HA-11
    played(1)
    model = {m._meta.model_name: m for m in (AgentVersion, AgentDeployment, Whisper, InferenceCharge)}[page]
    key = model._default_manager.values_list("pk", flat=True)[0]
    assert operator.get(f"/admin/agents/{page}/{key}/change/").status_code == 200
    assert operator.post(f"/admin/agents/{page}/{key}/change/", {}).status_code == 403
    assert operator.post(f"/admin/agents/{page}/{key}/delete/", {"post": "yes"}).status_code == 403
    assert operator.get(f"/admin/agents/{page}/add/").status_code == 403
    assert model._default_manager.count() == 1


def test_an_agent_passes_to_another_owner_and_keeps_its_id(operator: Client) -> None:  # HA-11, VW-8
    played(1)
    heir = User.objects.create(username="heir")
    operator.post("/admin/agents/agent/rocky-1/change/", {"id": "other", "name": "Rocky", "owner": heir.pk})
    assert list(Agent.objects.values_list("id", "owner__username")) == [("rocky-1", "heir")]


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("agent", ["rocky-1", "Rocky", "owner1"]),
        ("agentversion", ["rocky-1-v1", "Rocky", "Tight", "tight Rocky"]),
        ("agentdeployment", ["rocky-1"]),
        ("whisper", ["Fold more", "owner1", "more owner1 Rocky", "'Fold more'"]),
        ("inferencecharge", ["rocky-1", "T:1", "T:1:1"]),
    ],
)
def test_rows_are_found_by_what_a_person_would_type(operator: Client, page: str, words: list[str]) -> None:  # VW-8
    played(1)
    for word in words:
        assert len(operator.get(f"/admin/agents/{page}/", {"q": word}).context["cl"].result_list) == 1
    assert not operator.get(f"/admin/agents/{page}/", {"q": "nobody"}).context["cl"].result_list


@pytest.mark.parametrize("words", ["a " * 3_000, "a\0b"], ids=["very long", "NUL"])
@pytest.mark.parametrize("page", ["agents/agent", "agents/whisper", "auth/user", "auth/group"])
def test_a_search_that_no_database_answers_leads_to_the_whole_list(operator: Client, page: str, words: str) -> None:
    whole = operator.get(f"/admin/{page}/", {"q": words}, follow=True)  # VW-8
    assert whole.redirect_chain == [(f"/admin/{page}/?e=1", 302)]
    assert whole.status_code == 200


@pytest.mark.parametrize(("model", "words"), [(AgentVersion, "Tight nobody"), (Whisper, "'more Fold'")])
def test_a_search_that_finds_nothing_reads_the_rows_once(operator: Client, model: type[Model], words: str) -> None:
    played(1)  # VW-8
    with CaptureQueriesContext(connection) as asked:
        page = operator.get(f"/admin/agents/{model._meta.model_name}/", {"q": words})
    assert not page.context["cl"].result_list
    queries = [one["sql"] for one in asked.captured_queries]
    assert sum(f'FROM "{model._meta.db_table}" WHERE' in sql and "LIKE" in sql for sql in queries) == 1


def test_a_ledger_row_leads_to_its_hand(operator: Client) -> None:  # VW-8
    played(1)
    page = operator.get("/admin/agents/inferencecharge/").content.decode()
    assert '<a href="/agent-capture?table=T%3A1&amp;hand=1">T:1:1</a>' in page


def test_owners_have_no_admin(client: Client) -> None:  # SF-1
    played(1)
    client.force_login(User.objects.get(username="owner1"))
    for page in ("", "agents/inferencecharge/"):
        assert client.get(f"/admin/{page}", follow=True).status_code == 404


@pytest.mark.parametrize(
    "query",
    ["q=%00", "q=%ff", "agent_id=%00", "q=x:99999999999999999999", "p=-1", "p=many", "o=99", "is_fallback__exact=2"],
)
def test_an_odd_query_is_no_fault_of_the_server(operator: Client, query: str) -> None:  # SF-4
    played(1)
    assert operator.get(f"/admin/agents/inferencecharge/?{query}").status_code < 500


@pytest.mark.parametrize("page", ["agent", *RECORDED])
@pytest.mark.parametrize("view", ["change", "history", "delete"])
def test_an_odd_address_of_a_row_is_no_fault_of_the_server(operator: Client, page: str, view: str) -> None:  # SF-4
    for odd in ("a%00b", "a_00b", "99999999999999999999", "x" * 3000, "%F0%9F%82%A1"):
        answer = operator.get(f"/admin/agents/{page}/{odd}/{view}/")
        assert answer.status_code in (302, 403, 404), odd  # 302: to the index, with "does not exist"


@pytest.mark.parametrize("page", ["/admin/agents/inferencecharge/", "/admin/agents/inferencecharge/{}/change/"])
def test_a_time_has_its_seconds_and_its_zone_in_the_admin_too(operator: Client, page: str) -> None:  # VW-8, VW-10
    played(1)
    assert "1 Jul 2026 00:00:00 UTC" in operator.get(page.format(InferenceCharge.objects.get().pk)).content.decode()
