"""The home page: what this is to anybody, what matters now to whoever has signed in."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agentlab.agents.models import Agent, AgentDeployment
from agentlab.agents.services import Draft, publish
from agentlab.persona.models import StudyRun
from capture.pinning import pin
from capture.sources import LocalHands
from factory.models import FactoryRun
from tests.capture.making import TABLE, charge, charge_all, play, take_redis_away, turn
from tests.pages import assert_no_inline_code, assert_valid_html

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("capture_redis")]


@pytest.fixture
def ann() -> User:
    return User.objects.create_user("ann")


@pytest.fixture
def operator() -> User:
    return User.objects.create_user("operator", is_staff=True)


def home(user: User | None = None) -> str:
    client = Client()
    if user:
        client.force_login(user)
    response = client.get("/")
    assert response.status_code == 200
    assert_valid_html(response)
    assert_no_inline_code(response)
    return " ".join(response.content.decode().split())


def agent(owner: User, name: str = "rocky") -> Agent:
    made, _ = Agent.objects.get_or_create(id=name, defaults={"name": name.title(), "owner": owner})
    return made


def run(owner: User | None, state: str = "succeeded", task: str = "Say hello.") -> FactoryRun:
    return FactoryRun.objects.create(
        owner=owner, workflow="ask", provider="rehearsal", state=state, task=task, started_at=timezone.now()
    )


def study(owner: User, name: str = "levy", status: str = "complete") -> StudyRun:
    return StudyRun.objects.create(
        owner=owner,
        name=name,
        study_sha256="0" * 64,
        embedder="e",
        executor="x",
        personas=2,
        turns_each=3,
        status=status,
    )


# ---- nobody


def test_who_is_not_signed_in_reads_what_this_is_and_where_to_sign_in() -> None:  # VW-1
    said = home()
    assert "what the agent knew, the exact prompt it was sent, what it said, and what it really did" in said
    assert said.count('href="/login"') == 2  # above, and where one reads
    assert "/agent-capture" not in said


@pytest.mark.parametrize(("local", "words"), [(True, "--reset-passwords"), (False, "whoever runs this site")])
def test_where_an_account_comes_from_depends_on_the_site(settings, local: bool, words: str) -> None:  # SF-6
    settings.LOCAL = local
    assert words in home()


# ---- operators


def test_an_operator_sees_the_newest_hands_with_their_marks(ann: User, operator: User) -> None:  # VW-1
    agent(ann)
    now = timezone.now()
    play([turn("rocky", index, hand=1) for index in (0, 1)])
    pin(TABLE, 1, agent_id="rocky", actor=None)
    charge_all(
        charge("rocky", 0, hand=2, played_at=now, is_fallback=True),
        charge("nit", 1, hand=3, played_at=now, capture_outcome="dropped", capture_reason="queue full"),
    )
    said = home(operator)
    for words in ("FALLBACK ONLY", "1 LOST", "2 KEPT", "Rocky", f"/agent-capture?table={TABLE}&amp;hand=3"):
        assert words in said
    assert "of 1 turn of the last 24 hours was not recorded" in said


def test_without_losses_there_is_no_word_of_them(operator: User) -> None:  # CAP-10
    charge_all(charge("rocky", 0, played_at=timezone.now()))
    said = home(operator)
    assert ("callout-lost" in said, "0 lost" in said) == (False, False)


@pytest.mark.parametrize(("minutes", "plays"), [(0, True), (1, True), (3, False), (600, False)])
def test_whether_agents_play_now_is_told_by_the_last_turn(
    ann: User, operator: User, minutes: int, plays: bool
) -> None:  # VW-1
    seated(ann)
    charge_all(charge("rocky", 0, played_at=timezone.now() - timedelta(minutes=minutes)))
    said = home(operator)
    assert (">PLAYING<" in said, "Nobody plays now" in said) == (plays, not plays)


def seated(owner: User, table: str = TABLE) -> AgentDeployment:
    version = publish(agent(owner), Draft("b", f"play at {table}", [], "house"))
    return AgentDeployment.objects.create(agent=agent(owner), version=version, table_id=table, model="house")


def test_nobody_plays_where_nobody_sits_however_lately_there_was_a_turn(ann: User, operator: User) -> None:  # VW-1
    charge_all(charge("rocky", 0, played_at=timezone.now()))
    assert "Nobody plays now" in home(operator)
    seated(ann, table="elsewhere")
    assert "Nobody plays now" in home(operator)
    here = seated(ann)
    assert ">PLAYING<" in home(operator)
    here.left_at = timezone.now()
    here.save()
    assert "Nobody plays now" in home(operator)


def test_who_sits_at_another_hosts_table_is_not_asked_here(
    settings: Any, operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:  # RD-5
    charge_all(charge("rocky", 0, played_at=timezone.now()))
    monkeypatch.setattr("agentlab.home.hand_source", LocalHands)
    settings.HOSTED_AGENT_URL = "https://other"
    assert ">PLAYING<" in home(operator)


@pytest.mark.parametrize("local", [True, False])
def test_an_operator_of_an_empty_site_is_told_the_next_step_that_fits_it(
    settings: Any, operator: User, local: bool
) -> None:  # VW-6
    settings.LOCAL = local
    said = home(operator)
    for command in ("manage.py play --hands ", "manage.py factory run", "manage.py study run"):
        assert command in said
    assert ("make run" in said, "python manage.py play --hands 0 --pace watch" in said) == (local, not local)
    assert "Nobody plays now" not in said


def test_where_hands_come_from_another_host_nobody_is_told_to_play_here(  # RD-5
    settings: Any, monkeypatch: pytest.MonkeyPatch, operator: User
) -> None:
    monkeypatch.setattr("agentlab.home.hand_source", LocalHands)
    settings.HOSTED_AGENT_URL = "https://other"
    said = home(operator)
    assert "Hands come from another host" in said
    assert "manage.py play" not in said


def test_an_operator_sees_everybodys_runs_and_studies(ann: User, operator: User) -> None:  # FA-12
    run(ann, "failed")
    run(None)
    study(ann)
    said = home(operator)
    assert (said.count("/factory/runs/"), "FAILED" in said, "no owner" in said, "levy" in said) == (2, True, True, True)


# ---- owners


def test_an_owner_sees_how_the_own_agents_do_and_their_newest_hands(ann: User) -> None:  # VW-7
    publish(agent(ann), Draft("b", "s", [], "house"))
    version = publish(agent(ann), Draft("b", "t", [], "house"))
    AgentDeployment.objects.create(agent=agent(ann), version=version, table_id="main", model="house")
    now = timezone.now()
    charge_all(
        charge("rocky", 0, hand=1, played_at=now, agent_version_id="rocky-v1"),
        charge("rocky", 1, hand=2, played_at=now, agent_version_id="rocky-v2"),
        charge("rocky", 2, hand=2, played_at=now, is_fallback=True, agent_version_id="rocky-v2"),
        charge("rocky", 3, hand=3, played_at=now - timedelta(hours=25)),
    )
    said = home(ann)
    rows = said.split("<tr>")
    (card,) = [row for row in rows if 'href="/agents/rocky"' in row]
    for words in ("Rocky", "/agents/rocky/versions/rocky-v2", "main", ">3<", "1 FALLBACK"):
        assert words in card
    (hand,) = [row for row in rows if f">{TABLE}:2<" in row]
    for words in ("/agents/rocky/versions/rocky-v2", "call, fold"):
        assert words in hand
    assert f'<a href="/agents/rocky/hand?table=T-1&amp;hand=2">{TABLE}:2</a>' in hand
    assert f">{TABLE}:3<" in said


def test_a_hand_of_two_own_agents_leads_to_both_and_to_no_rival(ann: User) -> None:  # VW-7, SF-1
    for name in ("rocky", "nit", "rocky-2"):
        agent(ann, name)
    agent(User.objects.create_user("bob"), "duke")
    play([turn("rocky", 0), turn("nit", 1), turn("duke", 2), turn("rocky-2", 3)])
    play([turn("duke", 0, hand=8)])
    said = home(ann)
    (hand,) = [row for row in said.split("<tr>") if f">{TABLE}:7<" in row]
    for name in ("rocky", "nit", "rocky-2"):
        assert hand.count(f"/agents/{name}/hand?") == 1
        assert hand.count(f"/agents/{name}/versions/{name}-v3") == 1
    assert ("3 turns" in hand, "call" in hand) == (True, False)  # not whose deed was which
    assert ("duke" in said, f"{TABLE}:8" in said) == (False, False)


def test_an_owner_sees_the_own_runs_and_studies_and_which_failed(ann: User) -> None:  # FA-12
    bob = User.objects.create_user("bob")
    run(ann, "failed", "Write a README.")
    run(ann)
    run(bob, task="secret of bob")
    study(ann, status="stopped")
    study(bob, "study of bob")
    said = home(ann)
    assert ("Write a README." in said, said.count(">FAILED<"), "STOPPED" in said) == (True, 1, True)
    assert "of bob" not in said


def test_a_new_owner_is_told_the_next_step_and_after_each_the_next(ann: User) -> None:  # VW-6
    said = home(ann)
    assert "You have no agent yet." in said
    assert 'href="/agents/new"' in said
    assert "manage.py factory run" in said
    assert "--owner ann" in said
    rocky = agent(ann)
    said = home(ann)
    assert 'href="/agents/rocky/versions/new">write the first' in said
    publish(rocky, Draft("b", "s", [], "house"))
    assert "manage.py play --agent rocky --agent ANOTHER" in home(ann)


@pytest.mark.parametrize("staff", [False, True], ids=["owner", "operator"])
def test_home_costs_the_same_for_little_and_for_much(ann: User, operator: User, staff: bool) -> None:  # PF-4
    client = Client()
    client.force_login(operator if staff else ann)
    costs = []
    for size in (1, 20):
        for number in range(size):
            publish(agent(ann, f"a{number}"), Draft("b", f"s{size}", [], "house"))
            play([turn(f"a{number}", 10 * size + index, hand=number) for index in range(3)])
            run(ann)
            study(ann)
        with CaptureQueriesContext(connection) as queries:
            assert client.get("/").status_code == 200
        costs.append(len(queries))
    assert costs[0] == costs[1] <= 14


def test_home_says_at_once_that_nothing_is_being_recorded(settings, ann: User, operator: User) -> None:  # CAP-10, SF-5
    assert not any("does not work right now" in home(user) for user in (ann, operator))
    take_redis_away(settings)
    assert all("The capture Redis does not work right now" in home(user) for user in (ann, operator))


def test_a_host_that_does_not_answer_leaves_the_rest_of_the_page(settings, ann: User, operator: User) -> None:  # RD-5
    agent(ann)
    run(ann)
    settings.HOSTED_AGENT_URL = "http://127.0.0.1:1"
    for user in (ann, operator):
        said = home(user)
        assert ("cannot be reached" in said, "Say hello." in said) == (True, True)
    assert "Rocky" in home(ann)
