import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import OperationalError

from agentlab.agents.models import Agent, AgentDeployment, Whisper
from agentlab.agents.services import whisper
from agentlab.hosted import desk as desks
from agentlab.hosted.deployments import NoSeat, heard_whispers, leave, seat, seat_newest
from agentlab.hosted.desk import Desk
from agentlab.hosted.model_adapters import Models
from agentlab.hosted.tokens import TokenChecker, TokenIssuer
from tests.hosted.tables import publish

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_seat_is_a_snapshot_of_the_newest_version():
    # HA-11
    publish(strategy="One.")
    second = publish(strategy="Two.")
    deployment = seat("rocky", "t-1")
    assert (deployment.version_id, deployment.strategy, deployment.model) == (second, "Two.", "house")
    assert deployment.skills == [{"name": "Odds", "text": "Count."}]


def test_the_same_version_keeps_its_seat_and_a_new_one_takes_it():
    # HA-11
    publish()
    first = seat("rocky", "t-1")
    assert seat("rocky", "t-1") == first
    assert seat("rocky", "t-2") != first
    publish(strategy="Otherwise.")
    second = seat("rocky", "t-1")
    first.refresh_from_db()
    assert first.left_at is not None
    assert second.left_at is None


def test_the_table_seats_what_was_published_meanwhile_and_nobody_who_has_no_seat():
    # HA-11
    publish("rocky")
    publish("nit")
    rocky, _ = seat("rocky", "t-1"), seat("nit", "t-2")
    assert seat_newest("t-1", ["rocky", "nit"]) == {"rocky": rocky.pk}
    newer = publish("rocky", strategy="Otherwise.")
    assert AgentDeployment.objects.get(pk=seat_newest("t-1", ["rocky"])["rocky"]).version_id == newer


def test_a_model_put_in_the_versions_place_stays_in_it():
    # HA-11
    publish()
    assert seat("rocky", "t-1", model="openai:other").model == "openai:other"
    publish(strategy="Otherwise.")
    assert AgentDeployment.objects.get(pk=seat_newest("t-1", ["rocky"])["rocky"]).model == "openai:other"


def test_leaving_a_table_closes_its_seats_alone():
    # HA-11
    publish()
    here, there = seat("rocky", "t-1"), seat("rocky", "t-2")
    leave("t-1")
    here.refresh_from_db()
    there.refresh_from_db()
    assert (here.left_at is None, there.left_at is None) == (False, True)


def test_nobody_and_an_agent_with_nothing_published_have_no_seat():
    # HA-11, SF-4
    publish()
    Agent.objects.create(id="blank", name="Blank", owner=Agent.objects.get().owner)
    for agent in ("nobody", "blank"):
        with pytest.raises(NoSeat):
            seat(agent, "t-1")


def test_the_latest_whispers_of_this_agent_are_heard_oldest_first():
    # HA-12
    publish("rocky")
    publish("nit")
    rocky, nit = Agent.objects.get(pk="rocky"), Agent.objects.get(pk="nit")
    whisper(nit, author=nit.owner, text="not yours")
    for number in range(Whisper.IN_MEMORY + 5):
        whisper(rocky, author=rocky.owner, text=f"number {number}")
    heard = heard_whispers("rocky").said
    assert [one["text"] for one in heard] == [f"number {number}" for number in range(5, Whisper.IN_MEMORY + 5)]
    assert {one["author"] for one in heard} == {"ada"}


def at_the_desk(ask):
    """`ask(desk)` with a real database thread; its answer."""
    thread = ThreadPoolExecutor(1)
    desk = Desk("rocky", "t-1", issuer=TokenIssuer(), models=Models(), thread=thread)
    try:
        return asyncio.run(ask(desk))
    finally:
        from django.db import connections

        thread.submit(connections.close_all)
        thread.shutdown()


def test_a_token_is_for_this_agent_this_table_and_its_deployment():
    # HA-9
    publish()
    issuer = TokenIssuer()
    checker = TokenChecker(issuer.public_key, "t-1", lambda: round(time.time() * 1000))

    async def ask(desk):
        desk._issuer = issuer
        return await desk.token(), (await desk.deployment(None)).id

    token, deployment_id = at_the_desk(ask)
    claims = checker.spend(token)
    assert (claims.agent_id, claims.deployment_id) == ("rocky", deployment_id)


def test_another_agents_deployment_is_never_played():
    # HA-11
    publish("rocky")
    publish("nit", strategy="Secret of nit.")
    foreign = seat("nit", "t-1")

    async def ask(desk):
        await desk.token()
        return await desk.deployment(foreign.pk)

    assert at_the_desk(ask).version_id == "rocky-v1"


def test_a_database_that_hangs_costs_a_turn_a_moment_and_nothing_that_was_known(monkeypatch):
    # HA-12, SF-5
    publish()
    rocky = Agent.objects.select_related("owner").get()
    whisper(rocky, author=rocky.owner, text="known")
    goes_on = threading.Event()

    async def ask(desk):
        await desk.token()
        first = await desk.whispers()
        monkeypatch.setattr(desks, "heard_whispers", lambda _: goes_on.wait(20))
        began = time.monotonic()
        second = await desk.whispers()
        waited = time.monotonic() - began
        goes_on.set()
        return first, second, waited

    first, second, waited = at_the_desk(ask)
    assert [one["text"] for one in first.said] == ["known"]
    assert second == first
    assert waited < 5


def test_a_database_that_fails_leaves_the_agent_its_seat_and_its_token(monkeypatch):
    # SF-5
    publish()

    async def ask(desk):
        first = await desk.token()

        def broken(*_, **__):
            raise OperationalError("gone")

        monkeypatch.setattr(desks, "seat", broken)
        monkeypatch.setattr(desks, "heard_whispers", broken)
        return first, await desk.token(), await desk.whispers(), await desk.deployment(12345)

    first, second, whispers, deployment = at_the_desk(ask)
    assert first != second
    assert whispers.said == []
    assert deployment.version_id == "rocky-v1"


def test_an_agent_that_is_nowhere_cannot_connect():
    # SF-4
    async def ask(desk):
        with pytest.raises(ConnectionError, match="no such agent"):
            await desk.token()

    at_the_desk(ask)
