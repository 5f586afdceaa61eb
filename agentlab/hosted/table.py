"""A poker table: a WebSocket server on this machine, and the loop that deals hands to whoever sits at it.

The loop asks one seat at a time and waits until its clock runs out; the door judges what comes in. Nothing here blocks:
frames wait in each connection's outbox, hand numbers and deployments are asked for through ports that take their time
elsewhere. One event loop, no locks.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable

from websockets.asyncio.server import serve

from agentlab.hosted.connections import GONE
from agentlab.hosted.deals import Dealt
from agentlab.hosted.door import Door
from agentlab.hosted.floor import Floor
from agentlab.hosted.frames import Cause, Move
from agentlab.hosted.game import LEAST_SEATS, Deal, Hand, deal, next_button, seat_order, shuffled
from agentlab.hosted.seats import Seat, Seats
from agentlab.hosted.table_config import Deployments, HandNumbers, Journal, Report, TableConfig, now_ms

logger = logging.getLogger(__name__)
# The server library logs whole frames, tokens included, at DEBUG, and a stack trace for every visitor that speaks no
# WebSocket.
quiet = logging.getLogger("agentlab.hosted.table.socket")
quiet.setLevel(logging.WARNING)
quiet.addFilter(lambda record: record.msg not in {"opening handshake failed", "parser failed"})

MAX_MESSAGE = 64 * 1024
"""Bytes. A longer message is not even read: the socket is closed with 1009."""
DEPLOYMENTS_SECONDS = 2
CLOSE_SECONDS = 1
"""How long a closing connection may take to say goodbye."""
DRAIN_SECONDS = 2


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
        self.url = ""
        self._numbers = numbers or HandNumbers()
        self._deployments = deployments
        self._on_hand = on_hand
        self._changed = asyncio.Event()
        self._ending = asyncio.Event()
        self._floor = Floor(config, Seats(config.seats))
        self._door = Door(self._floor, journal=journal, wake=self._changed.set)
        self._stack = contextlib.AsyncExitStack()

    @property
    def report(self) -> Report:
        return self._floor.report

    # Serving ----------------------------------------------------------------------------------------------------
    async def __aenter__(self) -> "Table":
        """Raises OSError where the port cannot be had."""
        server = await self._stack.enter_async_context(
            serve(
                self._door.serve,
                self.config.host,
                self.config.port,
                origins=[None],  # a browser always names its origin; agents have none
                max_size=MAX_MESSAGE,
                close_timeout=CLOSE_SECONDS,
                compression=None,
                server_header=None,
                logger=quiet,
            )
        )
        host, port = next(iter(server.sockets)).getsockname()[:2]
        self.url = f"ws://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Lets every agent have what waits for it, then ends its connection and the server."""
        for connection in self._floor.connections:
            connection.close(GONE, "the table has closed")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while self._floor.connections:
                    await self._next_change()
        await self._stack.aclose()

    # Playing ----------------------------------------------------------------------------------------------------
    async def play(self, hands: int | None = None, deals: Iterable[Dealt] | None = None) -> Report:
        """Plays `hands` hands, or without end. Busted seats buy in again, so that all of them are played.

        With `deals` it plays those, once each where `hands` is None, else again and again; hands that cannot be dealt
        are named in the report, and the table goes on. After `end_soon` no further hand is dealt.
        """
        await self._until_ready(self.config.wait_for)
        if deals is None:
            while self._goes_on(hands):
                await self._play_cash_hand()
        else:
            while await self._play_deals(hands, deals) and hands is not None and self._goes_on(hands):
                pass
        return self.report

    def end_soon(self) -> None:
        """The hand that is being played is the last one."""
        self._ending.set()
        self._changed.set()

    def _goes_on(self, hands: int | None) -> bool:
        return not self._ending.is_set() and self.report.hands != hands

    async def _play_cash_hand(self) -> None:
        """A hand from our own deck, for the chips on the table."""
        await self._until_ready(LEAST_SEATS)
        if self._ending.is_set():
            return
        number = await self._numbers.reserve()
        await self._ask_deployments(number)
        seats = self._floor.seats.ready()
        if len(seats) < LEAST_SEATS:
            return  # they left meanwhile; the number is spent
        for seat in seats:
            if seat.stack == 0:
                seat.stack = self.config.buy_in
                self.report.bought_in_again += 1
        order = self._next_order(seats)
        config = self.config
        dealt = deal(
            shuffled(config.seed, number),
            [self._floor.seats.at(seat).stack for seat in order],
            small_blind=config.small_blind,
            big_blind=config.big_blind,
            ante=config.ante,
        )
        await self._play_hand(number, dealt, order)

    async def _play_deals(self, hands: int | None, deals: Iterable[Dealt]) -> bool:
        """Goes through the deals once, or until there are enough hands. False where none could be played."""
        before, remaining = self.report.hands, iter(deals)
        while self._goes_on(hands):
            dealt = await asyncio.to_thread(next, remaining, None)  # it reads files
            if dealt is None:
                break
            refused = dealt.refused if dealt.deal is None else await self._play_deal(dealt.deal)
            if refused:
                self.report.skipped[dealt.source] = refused
        return self.report.hands > before

    async def _play_deal(self, dealt: Deal) -> str:
        """A hand from a file, with the file's chips; says why not where it cannot be dealt here."""
        needed = len(dealt.stacks)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.config.turn_ms / 1000 if needed <= len(self._floor.seats) else 0):
                await self._until_ready(needed)
        if self._ending.is_set():
            return ""
        if len(self._floor.seats.ready()) < needed:
            return f"it has {needed} seats, {len(self._floor.seats.ready())} are ready"
        number = await self._numbers.reserve()
        await self._ask_deployments(number)
        seats = self._floor.seats.ready()
        if len(seats) < needed:
            return f"it has {needed} seats, {len(seats)} are ready"
        await self._play_hand(number, dealt, self._next_order(seats)[-needed:])
        return ""

    def _next_order(self, seats: list[Seat]) -> tuple[int, ...]:
        """Moves the button on and gives the seats in the order of a hand, the button last."""
        numbers = [seat.number for seat in seats]
        self._floor.button = next_button(numbers, self._floor.button)
        return seat_order(numbers, self._floor.button)

    async def _ask_deployments(self, number: int) -> None:
        """Which deployment plays each seat of the coming hand: a version published since takes its seat here."""
        if self._deployments is None:
            return
        agents = [seat.agent_id for seat in self._floor.seats.ready()]
        try:
            async with asyncio.timeout(DEPLOYMENTS_SECONDS):
                playing = await self._deployments(number, agents)
        except Exception as error:  # whatever is wrong there must not end the game
            name = type(error).__name__
            logger.warning("table %s: deployments not known (%s); seats keep theirs", self.config.table_id, name)
            return
        for agent_id, deployment_id in playing.items():
            if seat := self._floor.seats.of(agent_id):
                seat.deployment_id = deployment_id

    # One hand ---------------------------------------------------------------------------------------------------
    async def _play_hand(self, number: int, dealt: Deal, order: tuple[int, ...]) -> None:
        floor, report = self._floor, self.report
        floor.turns.begin(number)
        floor.dealt_in = {seat: floor.seats.at(seat).agent_id for seat in order}
        floor.hand = hand = Hand(dealt, order)
        report.last_hand_number = number
        floor.show()
        while (seat := hand.to_act) is not None:
            move, amount, cause = await self._ask(floor.seats.at(seat))
            index = floor.turns.close()
            done = hand.act(move, amount)
            report.turns += 1
            if cause != "chosen":
                report.forced[cause] = report.forced.get(cause, 0) + 1
            floor.tell_action(done, index, cause)
            floor.show()
        for seat, outcome in hand.settlement().outcomes.items():
            floor.seats.at(seat).stack = outcome.stack
        floor.tell_result()
        report.hands += 1
        if self._on_hand:
            self._on_hand(report.hands)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.config.pause_ms / 1000):
                await self._ending.wait()

    async def _ask(self, seat: Seat) -> tuple[Move, int | None, Cause]:
        """The seat's decision, or the safe one for it where it left, is silent, or is gone when its time is over."""
        assert self._floor.hand is not None
        turn = self._floor.turns.ask(seat.number, now_ms() + self.config.turn_ms)
        safe = self._floor.hand.safe_move()
        if not seat.sitting:
            return safe, None, "left"
        if seat.connection:
            seat.connection.send(self._floor.your_turn())
        try:
            async with asyncio.timeout(self.config.turn_ms / 1000):
                action = await turn.answer
        except TimeoutError:
            return safe, None, "timeout" if seat.connection else "disconnected"
        return (action.action, action.amount, "chosen") if action else (safe, None, "left")

    # Waiting ----------------------------------------------------------------------------------------------------
    async def _until_ready(self, needed: int) -> None:
        while len(self._floor.seats.ready()) < needed and not self._ending.is_set():
            await self._next_change()

    async def _next_change(self) -> None:
        """Returns when somebody came, left, sat or stood."""
        self._changed.clear()
        await self._changed.wait()
