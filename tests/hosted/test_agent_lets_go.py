"""What an agent holds on to while it plays for long: the turn that is open, and none that is over."""

import asyncio
import gc

import pytest

from agentlab.hosted.agent import HostedAgent, _OpenTurn
from agentlab.hosted.context import Script
from agentlab.hosted.deciding import Deployment
from agentlab.hosted.frames import encode
from agentlab.hosted.memory import Whispers
from tests.hosted.scenes import game_state, your_turn


class Silent:
    """A model that never answers."""

    name, routing = "silent", ""

    async def complete(self, prompt, *, timeout):
        await asyncio.sleep(60)

    async def close(self): ...


class Desk:
    async def deployment(self, deployment_id):
        return Deployment(1, "rocky-v1", Script("Play poker.", "Play well."), Silent())

    async def whispers(self):
        return Whispers()


class Nobody:
    """Takes what it is given."""

    def charge(self, charge): ...


def open_turns():
    gc.collect()
    return sum(type(held) is _OpenTurn for held in gc.get_objects())


@pytest.mark.parametrize("turns", [30])
def test_turns_that_the_table_gave_up_are_let_go_of(turns):
    # HA-2, HA-10: an agent whose clock is behind the table's is overtaken in every turn
    async def run():
        agent = HostedAgent("rocky", "t-1", "ws://nowhere", desk=Desk(), recorder=Nobody(), ledger=Nobody())
        before = open_turns()
        for index in range(turns):
            for frame in (game_state(action_index=index), your_turn()):
                agent._hear(encode(frame))
            await asyncio.sleep(0.005)
        held = open_turns() - before
        await agent._end_turn()
        return held

    assert asyncio.run(run()) <= 3
