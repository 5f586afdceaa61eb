"""Tables and their agents, played together: what `manage.py play` does once it knows what is wanted.

Each table is a process of its own. The agents are one process with each other, or, where they shall be seen to come and
go by themselves, one process each.
"""

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agentlab.hosted.agent_process import AgentOrder, AgentProcess
from agentlab.hosted.crew import Crew, CrewReport, end
from agentlab.hosted.table_config import TableConfig
from agentlab.hosted.table_process import Order, TableProcess
from agentlab.hosted.tokens import TokenIssuer

FINISH_SECONDS = {signal.SIGINT: 20.0, signal.SIGTERM: 4.0, signal.SIGHUP: 4.0}
"""How long the hand that is being played may go on after the signal: a person can press Ctrl-C again, whoever sends
another signal (`up`, a service manager) may soon kill."""
ONE_WISH_SECONDS = 0.5
"""Two signals within that time are one wish: `timeout` sends each twice."""


@dataclass(frozen=True)
class Plan:
    """What shall be played. `tables` gives each table's id and how many hands, None for hands without end."""

    agents: list[str]
    tables: dict[str, int | None]
    seed: str | None = None
    model: str = ""
    min_turn_ms: int = 0
    pause_ms: int = 0
    turn_ms: int = 30_000
    apart: bool = False
    """Each agent in a process of its own, started again where it dies."""
    deal: str = ""
    """A PHH file or a folder of them, dealt in place of our own deck."""
    journals: dict[str, str] = field(default_factory=dict)
    """By table id, a file for every frame that the table received."""


@dataclass
class Result:
    """Counts over all tables. `ended_by` is the signal that cut the play short."""

    hands: int = 0
    crew: CrewReport = field(default_factory=CrewReport)
    skipped: dict[str, str] = field(default_factory=dict)
    """Hands of files that could not be dealt, with the reason."""
    ended_by: signal.Signals | None = None
    untold: int = 0
    """Agents' processes that ended without a word: what they counted is in `crew` not counted."""


class Ending:
    """How a play is asked to end: the first signal lets the tables finish their hands, a second one does not."""

    def __init__(self, on_asked: Callable[[float], None]) -> None:
        """`on_asked` is told once, with how many seconds the hands have."""
        self.by: signal.Signals | None = None
        self.now: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._on_asked, self._since = on_asked, 0.0
        self._tables: list[TableProcess] = []
        for number in FINISH_SECONDS:
            asyncio.get_running_loop().add_signal_handler(number, self._signalled, number)

    def watch(self, table: TableProcess) -> None:
        """One more table that is to end with the others."""
        self._tables.append(table)
        if self.by:
            table.end_soon()

    def _signalled(self, number: signal.Signals) -> None:
        loop = asyncio.get_running_loop()
        if self.by is None:
            self.by, self._since = number, loop.time()
            for table in self._tables:
                table.end_soon()
            loop.call_later(FINISH_SECONDS[number], self._at_once)
            self._on_asked(FINISH_SECONDS[number])
        elif loop.time() - self._since > ONE_WISH_SECONDS:
            self._at_once()

    def _at_once(self) -> None:
        if not self.now.done():
            self.now.set_result(None)


async def play(
    plan: Plan,
    *,
    on_hands: Callable[[int, int], None] | None = None,
    on_asked_to_end: Callable[[float], None] = lambda _: None,
) -> Result:
    """Plays until all hands are played or a signal comes; `on_hands(hands, turns)` is told after each hand,
    `on_asked_to_end(seconds)` at the signal, with how long the hand that is being played may still take.

    Raises TableFailed, ValueError for a model that is none, SpoolError.
    """
    result = Result()
    ending = Ending(on_asked_to_end)
    played: dict[str, int] = {}
    key = Ed25519PrivateKey.generate()
    crew = None if plan.apart else Crew(issuer=TokenIssuer(key), model=plan.model, min_turn_ms=plan.min_turn_ms)

    def count(table_id: str, hands: int) -> None:
        played[table_id] = hands
        result.hands = sum(played.values())
        if on_hands:
            on_hands(result.hands, crew.tally.turns if crew else 0)

    games = [
        asyncio.create_task(_play_table(plan, table_id, key, crew, result, ending, partial(count, table_id)))
        for table_id in plan.tables
    ]
    try:
        left = set(games)
        while left and not ending.now.done():
            done, _ = await asyncio.wait({*left, ending.now}, return_when=asyncio.FIRST_COMPLETED)
            for game in done & left:
                game.result()
            left -= done
    finally:
        result.ended_by = ending.by
        await end(games)
        if crew:
            result.crew.add(await crew.close())
    return result


async def _play_table(
    plan: Plan,
    table_id: str,
    key: Ed25519PrivateKey,
    crew: Crew | None,
    result: Result,
    ending: Ending,
    on_hand: Callable[[int], None],
) -> None:
    """One table from its start to its last hand."""
    config = TableConfig(
        table_id=table_id,
        public_key=TokenIssuer(key).public_key,
        wait_for=len(plan.agents),
        turn_ms=plan.turn_ms,
        pause_ms=plan.pause_ms,
        seed=plan.seed,
    )
    order = Order(
        table=config, hands=plan.tables[table_id], deal=plan.deal or None, journal=plan.journals.get(table_id)
    )
    async with TableProcess(order, on_hand=on_hand) as table:
        ending.watch(table)
        if crew:
            await _play_together(plan, table, crew, result)
        else:
            await _play_apart(plan, table, key, result)


async def _play_together(plan: Plan, table: TableProcess, crew: Crew, result: Result) -> None:
    agents = [crew.agent(agent, table.order.table.table_id, table.url) for agent in plan.agents]
    seated = [asyncio.create_task(agent.run()) for agent in agents]
    try:
        result.skipped |= (await table.finished()).skipped
    except asyncio.CancelledError:
        for agent in agents:
            agent.end_with_the_play()
        raise
    finally:
        await end(seated)


async def _play_apart(plan: Plan, table: TableProcess, key: Ed25519PrivateKey, result: Result) -> None:
    orders = [
        AgentOrder(
            agent_ids=[agent],
            table_id=table.order.table.table_id,
            url=table.url,
            private_key=key.private_bytes_raw().hex(),
            model=plan.model,
            min_turn_ms=plan.min_turn_ms,
        )
        for agent in plan.agents
    ]
    processes = [AgentProcess(order) for order in orders]
    running = [asyncio.create_task(process.run()) for process in processes]
    try:
        result.skipped |= (await table.finished()).skipped
    finally:
        await asyncio.gather(*(process.stop(task) for process, task in zip(processes, running, strict=True)))
        for process in processes:
            result.untold += process.untold
            for report in process.reports:
                result.crew.add(msgspec.json.decode(report, type=CrewReport))
