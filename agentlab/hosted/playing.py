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


async def play(plan: Plan, *, on_hands: Callable[[int, int], None] | None = None) -> Result:
    """Plays until all hands are played or a signal comes; `on_hands(hands, turns)` is told after each.

    Raises TableFailed, ValueError for a model that is none, SpoolError.
    """
    result = Result()
    asked_to_end = _signals(result)
    played: dict[str, int] = {}
    key = Ed25519PrivateKey.generate()
    crew = None if plan.apart else Crew(issuer=TokenIssuer(key), model=plan.model, min_turn_ms=plan.min_turn_ms)

    def count(table_id: str, hands: int) -> None:
        played[table_id] = hands
        result.hands = sum(played.values())
        if on_hands:
            on_hands(result.hands, crew.tally.turns if crew else 0)

    games = [
        asyncio.create_task(_play_table(plan, table_id, key, crew, result, partial(count, table_id)))
        for table_id in plan.tables
    ]
    try:
        left = set(games)
        while left and not asked_to_end.done():
            done, _ = await asyncio.wait({*left, asked_to_end}, return_when=asyncio.FIRST_COMPLETED)
            for game in done & left:
                game.result()
            left -= done
    finally:
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
        if crew:
            seated = [asyncio.create_task(crew.agent(agent, table_id, table.url).run()) for agent in plan.agents]
            try:
                result.skipped |= (await table.finished()).skipped
            finally:
                await end(seated)
        else:
            await _play_apart(plan, table, key, result)


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
            for report in process.reports:
                result.crew.add(msgspec.json.decode(report, type=CrewReport))


def _signals(result: Result) -> "asyncio.Future[None]":
    """Done once somebody asks this process to end."""
    loop = asyncio.get_running_loop()
    asked: asyncio.Future[None] = loop.create_future()

    def end_by(number: signal.Signals) -> None:
        if not asked.done():
            result.ended_by = number
            asked.set_result(None)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, end_by, number)
    return asked
