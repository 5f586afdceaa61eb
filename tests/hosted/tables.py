"""A table at the other end of a real socket that says what a test tells it to say, and an agent sitting at it."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.db import connections
from websockets.asyncio.server import ServerConnection, serve

from agentlab.agents.models import Agent, AgentVersion, InferenceCharge
from agentlab.hosted.agent import HostedAgent
from agentlab.hosted.crew import Crew, CrewReport, end
from agentlab.hosted.frames import Action, encode, read_to_table
from agentlab.hosted.tokens import TokenIssuer
from capture.buffer import TurnBuffer
from tests.hosted.scenes import game_state, your_turn

TABLE = "t-1"
CALL = 'I call.\n{"action": "call"}'  # what a model says
FOLD = '{"action": "fold"}'


def publish(agent_id: str = "rocky", *, strategy: str = "Play well.", model: str = "house", owner: str = "ada") -> str:
    """A new version of the agent, made with its owner where they are not there; the version's id."""
    user, _ = get_user_model().objects.get_or_create(username=owner)
    agent, _ = Agent.objects.get_or_create(id=agent_id, defaults={"name": agent_id.title(), "owner": user})
    number = agent.versions.count() + 1
    version = AgentVersion.objects.create(
        id=f"{agent_id}-v{number}",
        agent=agent,
        number=number,
        base_prompt="Play poker.",
        strategy=strategy,
        skills=[{"name": "Odds", "text": "Count."}],
        model=model,
    )
    return version.pk


def answers(path: Any, *texts: str) -> str:
    """A model that says these, one after the other."""
    path.write_text("\n".join(json.dumps({"text": text}) for text in texts))
    return f"answers:{path}"


class ScriptedTable:
    """Serves any number of connections in turn; `tell` and `heard` speak with the latest."""

    def __init__(self) -> None:
        self.url = ""
        self.connections: asyncio.Queue[ServerConnection] = asyncio.Queue()
        self.socket: ServerConnection | None = None

    async def __aenter__(self) -> "ScriptedTable":
        async def handler(socket: ServerConnection) -> None:
            self.connections.put_nowait(socket)
            await socket.wait_closed()

        self._server = await serve(handler, "127.0.0.1", 0, compression=None)
        self.url = f"ws://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def seated(self) -> list[Any]:
        """Waits for the next connection; its first three frames."""
        async with asyncio.timeout(10):
            self.socket = await self.connections.get()
        return [await self.heard() for _ in range(3)]

    async def tell(self, *frames: Any) -> None:
        for frame in frames:
            await self.socket.send(frame if isinstance(frame, str) else encode(frame))

    async def heard(self) -> Any:
        async with asyncio.timeout(10):
            return read_to_table(await self.socket.recv())

    async def is_silent(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.socket.recv()
                return False
        return True


@dataclass
class Seated:
    table: ScriptedTable
    agent: HostedAgent
    crew: Crew
    opening: list[Any]
    report: CrewReport | None = None


@asynccontextmanager
async def seated(**options: Any) -> AsyncIterator[Seated]:
    """rocky at a scripted table. When the block ends, everything that was recorded has been written."""
    crew = Crew(issuer=TokenIssuer(), **options)
    async with ScriptedTable() as table:
        agent = crew.agent("rocky", TABLE, table.url)
        running = asyncio.create_task(agent.run())
        play = Seated(table, agent, crew, await table.seated())
        try:
            yield play
        finally:
            await end([running])
            play.report = await crew.close()


def soon(seconds: float = 20) -> int:
    """A `turnEndsAt` that many seconds from now."""
    return round((time.time() + seconds) * 1000)


def echo(said: Action, agent: str = "rocky") -> Any:
    """How the table tells everyone of an action."""
    from tests.hosted.scenes import player_action

    return player_action(said.action_index, agent, said.action, said.amount, hand_number=said.hand_number)


async def until(holds: Callable[[], object], seconds: float = 10) -> None:
    """Returns as soon as `holds()` does; fails after `seconds`."""
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.005)


def recorded(client, hand=7):
    return TurnBuffer(client).hand_turns(TABLE, hand, agent_id="rocky")


def charges():
    return list(InferenceCharge.objects.order_by("hand_number", "action_index"))


async def one_turn(play, *, answer=True, **state):
    """Asks once and, like a table, echoes what is said; the action."""
    await play.table.tell(game_state(**state), your_turn(turn_ends_at=soon()))
    said = await play.table.heard()
    if answer:
        await play.table.tell(echo(said))
        await until(lambda: heard_last(play) == (said.hand_number, said.action_index))
    return said


async def beside(work: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Done on a thread of its own, whose connection goes back to the database's pool: each that does not is missing
    there for all tests that follow."""

    def done() -> Any:
        try:
            return work(*arguments, **named)
        finally:
            connections.close_all()

    return await asyncio.to_thread(done)


def heard_last(play):
    """Hand and index of the last action that the agent remembers."""
    log = play.agent.memory.action_log
    return (log[-1]["handNumber"], log[-1]["actionIndex"]) if log else None
