"""Players over real sockets, for tests of the table: they do what the test says and nothing by themselves."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, TypeVar

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from agentlab.hosted.frames import (
    Action,
    Enter,
    GameState,
    Move,
    PostBlind,
    Rejected,
    Sit,
    ToAgent,
    ToTable,
    YourTurn,
    encode,
    read_to_agent,
)
from agentlab.hosted.table import Table
from agentlab.hosted.table_config import TableConfig, now_ms
from agentlab.hosted.tokens import TokenIssuer

PATIENCE = 20.0
"""Seconds until a test gives up waiting for a frame: a failure, never a measure."""
F = TypeVar("F", bound=ToAgent)


class Player:
    """One connection of an agent. `frames` is all it has read; what it has not yet looked at comes from `next`."""

    def __init__(self, socket: ClientConnection, agent_id: str) -> None:
        self.agent_id = agent_id
        self.frames: list[ToAgent] = []
        self._socket = socket

    async def send(self, frame: ToTable) -> None:
        await self._socket.send(encode(frame))

    async def say(self, message: str | bytes) -> None:
        await self._socket.send(message)

    async def next(self, kind: type[F], such: Callable[[F], bool] = lambda _: True) -> F:
        """Reads on until a frame of this kind comes."""
        async with asyncio.timeout(PATIENCE):
            while True:
                frame = read_to_agent(await self._socket.recv())
                self.frames.append(frame)
                if isinstance(frame, kind) and such(frame):
                    return frame

    async def sees(self, such: Callable[[GameState], bool]) -> GameState:
        """The latest state, or the next that is such."""
        return self.state if such(self.state) else await self.next(GameState, such)

    async def rejected(self) -> Rejected:
        return await self.next(Rejected)

    @property
    def state(self) -> GameState:
        return next(frame for frame in reversed(self.frames) if isinstance(frame, GameState))

    async def act(self, move: Move, amount: int | None = None, **other: int) -> None:
        """Answers the turn that the latest state is about."""
        named = {"hand_number": self.state.hand_number, "action_index": self.state.action_index, **other}
        await self.send(Action(action=move, amount=amount, **named))

    async def closed(self) -> int | None:
        """Reads to the connection's end; its close code."""
        with contextlib.suppress(ConnectionClosed):
            while True:
                await self.next(ToAgent)  # type: ignore[arg-type]
        return self._socket.close_code

    async def drop(self) -> None:
        """The connection is gone without a word."""
        self._socket.transport.abort()
        await self._socket.wait_closed()


class Room:
    """A table under test, its issuer, and its players by agent id."""

    def __init__(self, **config: Any) -> None:
        self.issuer = TokenIssuer()
        settings = {"table_id": "t1", "seed": 1, "turn_ms": 60_000, **config}
        self.config = TableConfig(public_key=self.issuer.public_key, **settings)
        self.heard: list[tuple[str, dict[str, Any]]] = []
        self.table = Table(self.config, journal=lambda agent, frame: self.heard.append((agent, frame)))
        self._sockets = contextlib.AsyncExitStack()

    async def play(self, hands: int) -> None:
        """As a table's process does: plays, then closes."""
        await self.table.play(hands)
        await self.table.close()

    def token(self, agent_id: str, **other: Any) -> str:
        claims = {
            "agent_id": agent_id,
            "deployment_id": 1,
            "table_id": self.config.table_id,
            "now_ms": now_ms(),
            **other,
        }
        return self.issuer.issue(**claims)

    async def connect(self, agent_id: str = "", **options: Any) -> Player:
        """A connection that has said nothing yet."""
        socket = await self._sockets.enter_async_context(
            connect(self.table.url, **{"compression": None, "proxy": None, "close_timeout": 1, **options})
        )
        return Player(socket, agent_id)

    async def enter(self, agent_id: str, **claims: Any) -> Player:
        """A connection that has entered, and has seen the table."""
        player = await self.connect(agent_id)
        await player.send(Enter(agent_token=self.token(agent_id, **claims)))
        await player.next(GameState)
        return player

    async def sit(self, agent_id: str) -> Player:
        """A player who will be dealt in."""
        player = await self.enter(agent_id)
        await player.send(Sit())
        await player.send(PostBlind())
        await player.next(GameState, lambda state: state.your_seat is not None)
        await player.next(GameState)
        return player


@contextlib.asynccontextmanager
async def room(count: int = 0, *, hands: int | None = None, **config: Any) -> AsyncIterator[tuple[Room, list[Player]]]:
    """A serving table with `count` seated players in the order of their seats; it plays `hands` hands, if told to, and
    then closes."""
    here = Room(**{"wait_for": max(count, 2), **config})
    async with here.table, here._sockets:
        players = [await here.sit(f"agent-{number}") for number in range(count)]
        playing = asyncio.create_task(here.play(hands)) if hands else None
        yield here, players
        if playing and playing.done():
            playing.result()
        elif playing:
            playing.cancel()


async def whose_turn(players: Sequence[Player]) -> tuple[Player, YourTurn]:
    """The player who is asked next, everyone having read up to that state."""
    waiting = {asyncio.ensure_future(player.next(YourTurn)): player for player in players}
    done, left = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    task = done.pop()
    return waiting[task], task.result()


async def plays_safely(player: Player) -> None:
    """Checks, or calls, whenever it is asked, to the connection's end."""
    with contextlib.suppress(ConnectionClosed):
        while True:
            turn = await player.next(YourTurn)
            await player.act("check" if "check" in turn.legal_actions else "call")


async def plays_everything(player: Player) -> None:
    """Goes all-in, or calls, whenever it is asked, to the connection's end."""
    with contextlib.suppress(ConnectionClosed):
        while True:
            turn = await player.next(YourTurn)
            await (player.act("raise", turn.chip_range.max) if turn.chip_range else player.act("call"))


def run(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """The test's coroutine, in an event loop of its own."""

    @functools.wraps(test)
    def runs(*arguments: Any, **named: Any) -> None:
        asyncio.run(test(*arguments, **named))  # type: ignore[arg-type]

    return runs
