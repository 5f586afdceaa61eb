"""What an agent plays with: whispers, notes of its own, the version that was seated."""

import asyncio

import pytest

from agentlab.agents.models import Agent, Whisper
from agentlab.agents.services import whisper, withdraw
from agentlab.hosted.deployments import seat
from capture.knowledge import read_knowledge
from tests.hosted.scenes import game_state, your_turn
from tests.hosted.tables import (
    CALL,
    FOLD,
    TABLE,
    answers,
    beside,
    charges,
    echo,
    one_turn,
    publish,
    recorded,
    seated,
    soon,
    until,
)

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_whisper_reaches_the_agent_at_its_next_turn_and_stands_in_what_it_knew(capture_redis, tmp_path):
    # HA-12
    publish(model=answers(tmp_path / "a", CALL))
    agent = Agent.objects.select_related("owner").get()

    async def run():
        async with seated() as play:
            await one_turn(play)
            await beside(whisper, agent, author=agent.owner, text="Fold to raises.")
            await one_turn(play, action_index=3)

    asyncio.run(run())
    before, after = recorded(capture_redis)
    assert read_knowledge(before.knowledge)["whispers"] == []
    (heard,) = read_knowledge(after.knowledge)["whispers"]
    assert (heard["author"], heard["text"]) == ("ada", "Fold to raises.")
    assert "Fold to raises." in after.prompt.remainder
    assert "Fold to raises." not in after.prompt.envelope


def whispers_known(turn):
    return [one["text"] for one in read_knowledge(turn.knowledge)["whispers"]]


def heard_at(text):
    """Hand and action index of the turn that is noted to have heard it."""
    said = Whisper.objects.get(text=text)
    return (said.heard_hand_number, said.heard_action_index)


def test_the_turn_that_is_noted_to_have_heard_a_whisper_is_the_first_that_knew_it(capture_redis, tmp_path):
    # HA-12
    publish(model=answers(tmp_path / "a", CALL))
    agent = Agent.objects.select_related("owner").get()

    async def run():
        async with seated() as play:
            await one_turn(play)
            await beside(whisper, agent, author=agent.owner, text="one")
            for index in (3, 6):
                await one_turn(play, action_index=index)
        async with seated() as play:  # the agent comes back with an empty head
            await beside(whisper, agent, author=agent.owner, text="two")
            await one_turn(play, action_index=9)

    asyncio.run(run())
    assert [whispers_known(turn) for turn in recorded(capture_redis)] == [[], ["one"], ["one"], ["one", "two"]]
    assert (heard_at("one"), heard_at("two")) == ((7, 3), (7, 9))


def test_a_whisper_that_is_withdrawn_in_a_turn_is_known_to_that_turn_and_to_none_after(capture_redis, tmp_path):
    # HA-12
    publish(model=answers(tmp_path / "a", CALL))
    agent = Agent.objects.select_related("owner").get()
    heard, unheard = (whisper(agent, author=agent.owner, text=text) for text in ("heard", "unheard"))
    withdraw(unheard, actor=agent.owner)

    async def run():
        async with seated(min_turn_ms=600) as play:
            await play.table.tell(game_state(action_index=1), your_turn(turn_ends_at=soon()))
            await until(lambda: play.agent.memory.whispers)
            await beside(withdraw, heard, actor=agent.owner)
            await play.table.tell(echo(await play.table.heard()))
            await one_turn(play, action_index=4)

    asyncio.run(run())
    assert [whispers_known(turn) for turn in recorded(capture_redis)] == [["heard"], []]
    assert (heard_at("heard"), heard_at("unheard")) == ((7, 1), (None, None))


def test_a_turn_without_a_decision_has_heard_nothing(capture_redis, tmp_path):
    # HA-12
    publish(model=answers(tmp_path / "a", "no choice is in this", CALL))
    agent = Agent.objects.select_related("owner").get()
    whisper(agent, author=agent.owner, text="one")

    async def run():
        async with seated() as play:
            for index in (0, 3):
                await one_turn(play, action_index=index)

    asyncio.run(run())
    assert [charge.is_fallback for charge in charges()] == [True, False]
    assert heard_at("one") == (7, 3)


def test_its_own_note_is_known_at_the_next_turn(capture_redis, tmp_path):
    # HA-2
    publish(model=answers(tmp_path / "a", '{"action": "call", "note": "nit folds to raises"}'))

    async def run():
        async with seated() as play:
            await one_turn(play)
            await one_turn(play, action_index=3)

    asyncio.run(run())
    assert [read_knowledge(turn.knowledge)["notes"] for turn in recorded(capture_redis)] == [
        [],
        ["nit folds to raises"],
    ]


def test_the_version_that_the_table_seats_is_the_one_that_plays(capture_redis, tmp_path):
    # HA-11
    first = publish(model=answers(tmp_path / "a", CALL))
    deployment = seat("rocky", TABLE)

    async def run():
        async with seated() as play:
            await one_turn(play, deployment_id=deployment.pk)
            second = await beside(publish, strategy="Play otherwise.", model=answers(tmp_path / "b", FOLD))
            renewed = await beside(seat, "rocky", TABLE)
            await one_turn(play, deployment_id=deployment.pk, action_index=3)
            await one_turn(play, deployment_id=renewed.pk, hand_number=8)
            return second

    second = asyncio.run(run())
    assert [turn.agent_version_id for turn in recorded(capture_redis)] == [first, first]
    (turn,) = recorded(capture_redis, 8)
    assert turn.agent_version_id == second
    assert "Play otherwise." in turn.prompt.envelope
    assert turn.action == "fold"
