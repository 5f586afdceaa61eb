"""How an agent records one turn of the workload: both doors, the record, the queue."""

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from capture.buffer import TurnBuffer
from capture.knowledge import captures_knowledge
from capture.outbound import TurnOutbound
from capture.prompt import Prompt
from capture.recorder import OnOutcome, TurnRecorder
from capture.turns import Turn, TurnKey
from tests.bench.turn_workload import Workload


@captures_knowledge
def build_turn_context(state: Any, action_log: Any, hand_history: Any, notes: Any, whispers: Any = ()) -> None:
    """Renders nothing: what it costs to render is no cost of recording."""


def record(recorder: TurnRecorder, outbound: TurnOutbound, turn: Workload) -> None:
    """Everything that recording adds to a turn."""
    built = build_turn_context(turn.state, turn.action_log, turn.hand_history, turn.notes)
    outbound.start_turn()
    outbound.add(turn.message)
    recorder.record(
        Turn(
            TurnKey(turn.agent_id, turn.table_id, turn.hand_number, turn.action_index),
            Prompt(turn.envelope, turn.remainder),
            turn.response,
            knowledge=built.knowledge,
            decision=outbound.take(),
            action=turn.message["action"],
            amount=turn.message["amount"],
            model="house-1",
            routing="house",
            agent_version_id="rocky-v3",
            input_tokens=2104,
            output_tokens=88,
            cost=turn.cost,
        )
    )


class Recording:
    """What an agent's process has: a client made as capture's README says, the recorder, the second door."""

    def __init__(self, url: str, *, max_queued: int = 10_000, on_outcome: OnOutcome | None = None) -> None:
        self.client = redis.Redis.from_url(url, socket_timeout=2, socket_connect_timeout=1, retry=Retry(NoBackoff(), 0))
        self.recorder = TurnRecorder(TurnBuffer(self.client), max_queued, on_outcome)
        self.outbound = TurnOutbound()

    def record(self, turn: Workload) -> None:
        record(self.recorder, self.outbound, turn)


def timed(work: Callable[[Workload], None], turns: Iterable[Workload]) -> list[float]:
    """Seconds that each call took."""
    took = []
    for turn in turns:
        start = time.perf_counter()
        work(turn)
        took.append(time.perf_counter() - start)
    return took


def blocks(turns: list[Workload], size: int = 100) -> Iterator[list[Workload]]:
    rest = iter(turns)
    while block := list(islice(rest, size)):
        yield block
