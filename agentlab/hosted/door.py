"""The table's door: connections, who they are, and the judgement of every frame that comes in.

Whatever is wrong with a frame costs its sender alone: a `rejected` with the reason, a count in the report, and some of
the connection's patience. When that has run out the connection is closed; the agent's seat stays its own.
"""

import asyncio
from collections.abc import Callable

import msgspec
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from agentlab.hosted.connections import BUSY, POLICY, REPLACED, Connection
from agentlab.hosted.floor import Floor
from agentlab.hosted.frames import Action, Enter, FrameError, PostBlind, Sit, Stand, ToTable, read_to_table
from agentlab.hosted.game import IllegalMove
from agentlab.hosted.seats import TableFull
from agentlab.hosted.table_config import Journal, now_ms
from agentlab.hosted.tokens import TokenChecker, TokenRefused

MAX_CONNECTIONS = 64
ENTER_SECONDS = 10


class Door:
    """Takes frames and changes seats and turns; `wake` is called whenever somebody came, left, sat or stood."""

    def __init__(self, floor: Floor, *, journal: Journal | None, wake: Callable[[], None]) -> None:
        self._floor = floor
        self._tokens = TokenChecker(floor.config.public_key, floor.config.table_id, now_ms)
        self._journal = journal
        self._wake = wake

    async def serve(self, socket: ServerConnection) -> None:
        """One connection from its first frame to its end."""
        if not self._has_room():
            await socket.close(BUSY, "too many connections")
            return
        connection = Connection(socket)
        self._floor.connections.add(connection)
        writer = asyncio.create_task(connection.write())
        try:
            await self._read(connection, socket)
        except ConnectionClosed:
            pass
        finally:
            self._leave(connection)
            writer.cancel()

    def _has_room(self) -> bool:
        """At a full table whoever has been silent longest makes room: an agent enters at once, so that strangers who
        say nothing cannot keep it out."""
        connections = self._floor.connections
        silent = [connection for connection in connections if connection.is_nobody]
        if len(connections) >= MAX_CONNECTIONS and silent:
            longest = min(silent, key=lambda connection: connection.since)
            longest.cut()
            connections.discard(longest)
        return len(connections) < MAX_CONNECTIONS

    async def _read(self, connection: Connection, socket: ServerConnection) -> None:
        try:
            async with asyncio.timeout(ENTER_SECONDS):
                self._enter(connection, await socket.recv())
        except TimeoutError:
            connection.close(POLICY, "no enter frame in time")
        while connection.is_heard:
            self._take(connection, await socket.recv())
        await socket.wait_closed()

    def _leave(self, connection: Connection) -> None:
        self._floor.connections.discard(connection)
        seat = self._floor.seats.of(connection.agent_id)
        if seat and seat.connection is connection:
            seat.connection = None
            self._floor.show()
        self._wake()

    # Entering ---------------------------------------------------------------------------------------------------
    def _enter(self, connection: Connection, message: str | bytes) -> None:
        """The first frame of a connection, which must say who this is; anything else ends it."""
        try:
            frame = read_to_table(message)
            if not isinstance(frame, Enter):
                raise FrameError("not_entered", "the first frame must be `enter`")
            claims = self._tokens.spend(frame.agent_token)
        except (FrameError, TokenRefused) as error:
            code = error.code if isinstance(error, FrameError) else "bad_token"
            self._count(None, code)
            connection.reject(str(error) if isinstance(error, FrameError) else f"bad_token: {error}")
            connection.close(POLICY, code)
            return
        connection.admit(claims.agent_id, claims.deployment_id)
        self._note(connection, frame)
        self._replace(connection)
        self._floor.show()
        self._ask_again(connection)
        self._wake()

    def _replace(self, connection: Connection) -> None:
        """The newest connection of an agent is the agent: older ones end, and its seat is this one's."""
        for other in self._floor.viewers():
            if other is not connection and other.agent_id == connection.agent_id:
                other.close(REPLACED, "another connection of this agent took over")
        if seat := self._floor.seats.of(connection.agent_id):
            seat.connection = connection

    def _ask_again(self, connection: Connection) -> None:
        """An agent that comes back while it is asked is asked again, with the same clock."""
        turn = self._floor.turns.open
        if turn and not turn.answer.done() and turn.seat == self._floor.seats.number_of(connection.agent_id):
            connection.send(self._floor.your_turn())

    # Later frames -----------------------------------------------------------------------------------------------
    def _take(self, connection: Connection, message: str | bytes) -> None:
        """Any frame after `enter`. All but an accepted answer cost patience: nobody needs many of them."""
        try:
            frame = read_to_table(message)
        except FrameError as error:
            self._refuse(connection, str(error))
            return
        self._note(connection, frame)
        if isinstance(frame, Action):
            self._answer(connection, frame)
        elif isinstance(frame, Enter):
            self._refuse(connection, "entered: this connection has entered already")
        elif refusal := self._move_in_or_out(connection, frame):
            self._refuse(connection, refusal)
        else:
            self._floor.show()
            self._wake()
            self._charge(connection)

    def _move_in_or_out(self, connection: Connection, frame: Sit | Stand | PostBlind) -> str | None:
        """Takes a frame about a seat; says why not where it does not."""
        seats, seat = self._floor.seats, self._floor.seats.of(connection.agent_id)
        if isinstance(frame, Sit):
            try:
                seats.sit(connection, stack=self._floor.config.buy_in)
            except TableFull:
                return "full: every seat is taken"
        elif seat is None:
            return "no_seat: sit down first"
        elif isinstance(frame, PostBlind):
            seat.pays_blinds = True
        else:
            seat.sitting = seat.pays_blinds = False
            self._floor.turns.leave(seat.number)
        return None

    def _answer(self, connection: Connection, action: Action) -> None:
        refusal = self._floor.turns.refusal(self._floor.seats.number_of(connection.agent_id), action)
        if refusal is None:
            assert self._floor.hand is not None
            try:
                self._floor.hand.verify(action.action, action.amount)
            except IllegalMove as error:
                refusal = f"illegal: {error}"
        if refusal is None:
            self._floor.turns.accept(action)
        else:
            self._refuse(connection, refusal, action)

    # Refusing ---------------------------------------------------------------------------------------------------
    def _refuse(self, connection: Connection, reason: str, action: Action | None = None) -> None:
        self._count(connection.agent_id, reason.partition(":")[0])
        named = (action.hand_number, action.action_index) if action else (None, None)
        connection.reject(reason, *named)
        self._charge(connection)

    def _charge(self, connection: Connection) -> None:
        if not connection.charge():
            self._count(connection.agent_id, "flooding")
            connection.reject("flooding: too many frames that move nothing")
            connection.shun("flooding")

    def _count(self, agent_id: str | None, code: str) -> None:
        report = self._floor.report
        report.refused[code] = report.refused.get(code, 0) + 1
        if agent_id:
            report.refused_by[agent_id] = report.refused_by.get(agent_id, 0) + 1

    def _note(self, connection: Connection, frame: ToTable) -> None:
        if self._journal and connection.agent_id:
            said = msgspec.to_builtins(frame)
            said.pop("agentToken", None)
            self._journal(connection.agent_id, said)
