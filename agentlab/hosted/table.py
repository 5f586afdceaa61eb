"""A poker table: a WebSocket server on this machine, and the loop that deals hands to whoever sits at it.

The loop asks one seat at a time and waits until its clock runs out; readers judge what comes in. Nothing here blocks:
frames wait in each connection's outbox, hand numbers and deployments are asked for through ports that take their time
elsewhere. One event loop, no threads, no locks.
"""

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import msgspec
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from agentlab.hosted import reveal
from agentlab.hosted.connections import GONE, POLICY, REPLACED, Connection
from agentlab.hosted.frames import (
    Action,
    Cause,
    ChipRange,
    Enter,
    FrameError,
    Move,
    PlayerAction,
    PostBlind,
    Sit,
    Stand,
    ToTable,
    YourTurn,
    read_to_table,
)
from agentlab.hosted.game import (
    LEAST_SEATS,
    MOST_SEATS,
    Deal,
    Done,
    Hand,
    IllegalMove,
    deal,
    next_button,
    seat_order,
    shuffled,
)
from agentlab.hosted.seats import Seat, Seats, TableFull
from agentlab.hosted.tokens import TokenChecker, TokenRefused
from agentlab.hosted.turns import Turns

logger = logging.getLogger(__name__)

MAX_MESSAGE = 64 * 1024
"""Bytes. A longer message is not even read: the socket is closed with 1009."""
MAX_CONNECTIONS = 64
ENTER_SECONDS = 10
DEPLOYMENTS_SECONDS = 2
DRAIN_SECONDS = 2


def now_ms() -> int:
    """Milliseconds since 1970-01-01 UTC, the time of `turnEndsAt` and of tokens."""
    return time.time_ns() // 1_000_000


class TableConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What a table is. Chips are integers, times milliseconds."""

    table_id: str
    public_key: str
    """Of the issuer whose tokens open this table: hex."""
    wait_for: int = 2
    """Seats that must be ready before the first hand."""
    seats: int = MOST_SEATS
    small_blind: int = 50
    big_blind: int = 100
    ante: int = 0
    buy_in: int = 10_000
    turn_ms: int = 30_000
    pause_ms: int = 0
    """Between two hands."""
    seed: str | int | None = None
    """None: cards that nobody can foretell."""
    host: str = "127.0.0.1"
    port: int = 0


class HandNumbers:
    """The port that reserves hand numbers; this one counts in memory. `reserve` returns only once the number is kept
    for ever, so that a (table, hand) pair is never used twice."""

    def __init__(self) -> None:
        self._next = count(1)

    async def reserve(self) -> int:
        return next(self._next)


Deployments = Callable[[int, list[str]], Awaitable[Mapping[str, int]]]
"""Asked before a hand (hand number, agents dealt in): which deployment plays each. Agents left out keep theirs."""
Journal = Callable[[str, dict[str, Any]], None]
"""Told every frame that an agent sent and the table could read: agent id, frame. `agentToken` is left out."""


@dataclass
class Report:
    """What happened at a table, in counts."""

    hands: int = 0
    last_hand_number: int = 0
    turns: int = 0
    forced: dict[str, int] = field(default_factory=Counter)
    """Safe actions taken for a seat, by cause."""
    refused: dict[str, int] = field(default_factory=Counter)
    """Frames not taken, by the code in their reason."""
    refused_by: dict[str, int] = field(default_factory=Counter)
    """The same by agent id."""
    bought_in_again: int = 0
    skipped: list[str] = field(default_factory=list)
    """Hands that could not be dealt, each with the reason."""


class Table:
    """`async with table:` serves; `await table.play(hands)` deals. `url` is where agents connect."""

    def __init__(
        self,
        config: TableConfig,
        *,
        numbers: HandNumbers | None = None,
        deployments: Deployments | None = None,
        journal: Journal | None = None,
        on_hand: Callable[[int], None] | None = None,
    ) -> None:
        """`on_hand` is told how many hands have ended, after each."""
        self.config = config
        self.report = Report()
        self.url = ""
        self._numbers = numbers or HandNumbers()
        self._deployments = deployments
        self._journal = journal
        self._on_hand = on_hand
        self._tokens = TokenChecker(config.public_key, config.table_id, now_ms)
        self._seats = Seats(config.seats)
        self._connections: set[Connection] = set()
        self._changed = asyncio.Event()
        self._turns = Turns()
        self._hand: Hand | None = None
        self._dealt_in: dict[int, str] = {}
        self._button: int | None = None
        self._stack = contextlib.AsyncExitStack()

    # Serving ----------------------------------------------------------------------------------------------------
    async def __aenter__(self) -> "Table":
        server = await self._stack.enter_async_context(
            serve(
                self._serve,
                self.config.host,
                self.config.port,
                origins=[None],  # a browser always names its origin; agents have none
                max_size=MAX_MESSAGE,
                compression=None,
                server_header=None,
            )
        )
        host, port = next(iter(server.sockets)).getsockname()[:2]
        self.url = f"ws://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        """Lets every agent have what waits for it, then closes."""
        for connection in list(self._connections):
            connection.close(GONE, "the table has closed")
        deadline = asyncio.get_running_loop().time() + DRAIN_SECONDS
        while self._connections and asyncio.get_running_loop().time() < deadline:
            await self._next_change(timeout=0.1)
        await self._stack.aclose()

    async def _serve(self, socket: ServerConnection) -> None:
        connection = Connection(socket)
        if len(self._connections) >= MAX_CONNECTIONS:
            await socket.close(1013, "too many connections")
            return
        self._connections.add(connection)
        writer = asyncio.create_task(connection.write())
        try:
            await self._read(connection, socket)
        except ConnectionClosed:
            pass
        finally:
            self._leave(connection)
            writer.cancel()

    async def _read(self, connection: Connection, socket: ServerConnection) -> None:
        try:
            async with asyncio.timeout(ENTER_SECONDS):
                self._enter(connection, await socket.recv())
        except TimeoutError:
            connection.close(POLICY, "no enter frame in time")
        while True:
            self._take(connection, await socket.recv())

    def _leave(self, connection: Connection) -> None:
        self._connections.discard(connection)
        seat = self._seats.of(connection.agent_id)
        if seat and seat.connection is connection:
            seat.connection = None
            self._show_everyone()
        self._wake()

    # What comes in ----------------------------------------------------------------------------------------------
    def _enter(self, connection: Connection, message: str | bytes) -> None:
        """The first frame of a connection, which must say who this is; anything else ends it."""
        try:
            frame = read_to_table(message)
            if not isinstance(frame, Enter):
                raise FrameError("not_entered", "the first frame must be `enter`")
            claims = self._tokens.spend(frame.agent_token)
        except (FrameError, TokenRefused) as error:
            code = error.code if isinstance(error, FrameError) else "bad_token"
            text = str(error) if isinstance(error, FrameError) else f"bad_token: {error}"
            self._count_refusal(None, code)
            connection.reject(text)
            connection.close(POLICY, code)
            return
        connection.agent_id = claims.agent_id
        self._note(connection, frame)
        for other in list(self._connections):
            if other is not connection and other.agent_id == claims.agent_id:
                other.replaced = True
                other.close(REPLACED, "another connection of this agent took over")
        if seat := self._seats.of(claims.agent_id):
            seat.connection = connection
            seat.deployment_id = claims.deployment_id
        connection.deployment_id = claims.deployment_id
        self._show_everyone()
        self._repeat_turn(connection)
        self._wake()

    def _take(self, connection: Connection, message: str | bytes) -> None:
        """Any later frame. What is refused, or moves nothing, costs the sender patience."""
        if connection.agent_id is None or connection.replaced:
            return
        try:
            frame = read_to_table(message)
        except FrameError as error:
            self._refuse(connection, str(error))
            return
        self._note(connection, frame)
        if isinstance(frame, Action):
            self._answer(connection, frame)
            return
        if isinstance(frame, Enter):
            self._refuse(connection, "entered: this connection has entered already")
        elif refusal := self._move_in_or_out(connection, frame):
            self._refuse(connection, refusal)
        else:
            self._charge(connection)
            self._show_everyone()
            self._wake()

    def _move_in_or_out(self, connection: Connection, frame: Sit | Stand | PostBlind) -> str | None:
        """Takes a frame about a seat; says why not where it does not."""
        assert connection.agent_id is not None
        seat = self._seats.of(connection.agent_id)
        if isinstance(frame, Sit):
            try:
                self._seats.sit(
                    connection.agent_id,
                    stack=self.config.buy_in,
                    deployment_id=connection.deployment_id,
                    connection=connection,
                )
            except TableFull:
                return "full: every seat is taken"
        elif seat is None:
            return "no_seat: sit down first"
        elif isinstance(frame, PostBlind):
            seat.pays_blinds = True
        else:
            seat.sitting = seat.pays_blinds = False
            self._turns.leave(seat.number)
        return None

    def _answer(self, connection: Connection, action: Action) -> None:
        number = self._seats.number_of(connection.agent_id)
        refusal = self._turns.refusal(number, action)
        if refusal is None:
            assert self._hand is not None
            try:
                self._hand.verify(action.action, action.amount)
            except IllegalMove as error:
                refusal = f"illegal: {error}"
        if refusal is None:
            self._turns.accept(action)
        else:
            self._refuse(connection, refusal, action)

    def _refuse(self, connection: Connection, reason: str, action: Action | None = None) -> None:
        self._count_refusal(connection.agent_id, reason.partition(":")[0])
        if action:
            connection.reject(reason, action.hand_number, action.action_index)
        else:
            connection.reject(reason)
        self._charge(connection)

    def _charge(self, connection: Connection) -> None:
        if not connection.charge():
            self._count_refusal(connection.agent_id, "flooding")
            connection.reject("flooding: too many frames that move nothing")
            connection.close(POLICY, "flooding")
            connection.replaced = True

    def _count_refusal(self, agent_id: str | None, code: str) -> None:
        self.report.refused[code] += 1
        if agent_id:
            self.report.refused_by[agent_id] += 1

    def _note(self, connection: Connection, frame: ToTable) -> None:
        if self._journal and connection.agent_id:
            said = msgspec.to_builtins(frame)
            said.pop("agentToken", None)
            self._journal(connection.agent_id, said)

    # Playing ----------------------------------------------------------------------------------------------------
    async def play(self, hands: int | None = None) -> Report:
        """Deals `hands` hands, or hands without end. Busted seats buy in again, so that all of them are played."""
        await self._until_ready(self.config.wait_for)
        played = 0
        while hands is None or played < hands:
            await self._until_ready(LEAST_SEATS)
            await self._play_hand()
            played += 1
            await asyncio.sleep(self.config.pause_ms / 1000)
        return self.report

    async def _until_ready(self, needed: int) -> None:
        while len(self._seats.ready()) < needed:
            await self._next_change()

    async def _play_hand(self) -> None:
        number = await self._numbers.reserve()
        await self._ask_deployments(number)
        seats = self._seats.ready()
        if len(seats) < LEAST_SEATS:
            return
        for seat in seats:
            if seat.stack == 0:
                seat.stack = self.config.buy_in
                self.report.bought_in_again += 1
        self._button = next_button([seat.number for seat in seats], self._button)
        order = seat_order([seat.number for seat in seats], self._button)
        self._begin(number, self._deal(number, order), order)
        await self._play_out()
        self._end()

    def _deal(self, number: int, order: tuple[int, ...]) -> Deal:
        config = self.config
        return deal(
            shuffled(config.seed, number),
            [self._seats.at(seat).stack for seat in order],
            small_blind=config.small_blind,
            big_blind=config.big_blind,
            ante=config.ante,
        )

    async def _ask_deployments(self, number: int) -> None:
        if self._deployments is None:
            return
        agents = [seat.agent_id for seat in self._seats.ready()]
        try:
            async with asyncio.timeout(DEPLOYMENTS_SECONDS):
                playing = await self._deployments(number, agents)
        except Exception as error:
            logger.warning(
                "table %s: deployments not known (%s); seats keep theirs", self.config.table_id, type(error).__name__
            )
            return
        for agent_id, deployment_id in playing.items():
            if seat := self._seats.of(agent_id):
                seat.deployment_id = deployment_id

    def _begin(self, number: int, dealt: Deal, order: tuple[int, ...]) -> None:
        self._turns.begin(number)
        self._dealt_in = {seat: self._seats.at(seat).agent_id for seat in order}
        self._hand = Hand(dealt, order)
        self.report.last_hand_number = number
        self._show_everyone()

    async def _play_out(self) -> None:
        assert self._hand is not None
        while (seat := self._hand.to_act) is not None:
            move, amount, cause = await self._ask(self._seats.at(seat))
            index = self._turns.action_index
            self._turns.close()
            done = self._hand.act(move, amount)
            self.report.turns += 1
            if cause != "chosen":
                self.report.forced[cause] += 1
            self._tell_action(done, index, cause)
            self._show_everyone()

    async def _ask(self, seat: Seat) -> tuple[Move, int | None, Cause]:
        """The seat's decision, or the safe one for it where it left, is silent, or is gone when its time is over."""
        assert self._hand is not None
        turn = self._turns.ask(seat.number, now_ms() + self.config.turn_ms)
        safe = self._hand.safe_move()
        if not seat.sitting:
            return safe, None, "left"
        if seat.connection:
            seat.connection.send(self._your_turn())
        try:
            async with asyncio.timeout(self.config.turn_ms / 1000):
                action = await turn.answer
        except TimeoutError:
            return safe, None, "timeout" if seat.connection else "disconnected"
        return (action.action, action.amount, "chosen") if action else (safe, None, "left")

    def _end(self) -> None:
        assert self._hand is not None
        for seat, outcome in self._hand.settlement().outcomes.items():
            self._seats.at(seat).stack = outcome.stack
        result = reveal.hand_result(self._facts(), self._hand, self._dealt_in)
        for connection in self._viewers():
            connection.send(result)
        self.report.hands += 1
        if self._on_hand:
            self._on_hand(self.report.hands)

    # What goes out ----------------------------------------------------------------------------------------------
    def _viewers(self) -> Iterable[Connection]:
        return [connection for connection in self._connections if connection.agent_id and not connection.replaced]

    def _facts(self) -> reveal.TableFacts:
        config = self.config
        return reveal.TableFacts(
            config.table_id,
            self._turns.hand_number,
            self._turns.action_index,
            self._button,
            config.small_blind,
            config.big_blind,
            config.ante,
            self._seats.facts(),
        )

    def _show_everyone(self) -> None:
        facts, view = self._facts(), self._hand.view() if self._hand else None
        for connection in self._viewers():
            connection.send(reveal.game_state(facts, view, self._seats.number_of(connection.agent_id)))

    def _your_turn(self) -> YourTurn:
        assert self._hand is not None and self._turns.open is not None
        legal = self._hand.legal()
        chips = None if legal.least is None or legal.most is None else ChipRange(min=legal.least, max=legal.most)
        return YourTurn(legal_actions=list(legal.moves), chip_range=chips, turn_ends_at=self._turns.open.ends_at_ms)

    def _repeat_turn(self, connection: Connection) -> None:
        """An agent that comes back while it is asked is asked again, with the same clock."""
        turn = self._turns.open
        if turn and not turn.answer.done() and turn.seat == self._seats.number_of(connection.agent_id):
            connection.send(self._your_turn())

    def _tell_action(self, done: Done, index: int, cause: Cause) -> None:
        frame = PlayerAction(
            hand_number=self._turns.hand_number,
            action_index=index,
            seat=done.seat,
            agent_id=self._dealt_in[done.seat],
            street=done.street,
            action=done.move,
            amount=done.amount,
            all_in=done.all_in,
            cause=cause,
        )
        for connection in self._viewers():
            connection.send(frame)

    # Waiting ----------------------------------------------------------------------------------------------------
    def _wake(self) -> None:
        self._changed.set()

    async def _next_change(self, timeout: float | None = None) -> None:
        """Returns when somebody came, left, sat or stood, or after `timeout` seconds."""
        self._changed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._changed.wait()
