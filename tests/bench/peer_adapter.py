"""Our adapter for a harness that measures several recorders on one workload: it gives each a `Redis` port and turns as
dicts, and times `record`. Used as `--extra tests/bench/peer_adapter.py`, with this repository's folder on PYTHONPATH.
"""

from typing import Any

import redis
from peers import Adapter  # the harness's own module
from redis.backoff import NoBackoff
from redis.retry import Retry

from capture.buffer import TurnBuffer
from capture.knowledge import captures_knowledge
from capture.outbound import TurnOutbound
from capture.prompt import Prompt
from capture.recorder import TurnRecorder
from capture.turns import Turn, TurnKey


@captures_knowledge
def build_turn_context(knowledge: dict[str, Any]) -> None:
    """Renders nothing: what it costs to render is no cost of recording."""


class Ours(Adapter):
    """Both doors and the recorder, as an agent uses them."""

    name = "agentlab"
    needs = ("redis",)

    def setup(self) -> None:
        self.client = redis.Redis(
            port=self.cfg["redis_port"], socket_timeout=1, socket_connect_timeout=1, retry=Retry(NoBackoff(), 0)
        )
        self.recorder = TurnRecorder(TurnBuffer(self.client), max_queued=20_000)
        self.outbound = TurnOutbound()
        if self.cfg["mode"] not in ("hang", "down"):
            self.before = self.client.info("memory")["used_memory"]

    def record(self, turn: dict[str, Any]) -> None:
        built = build_turn_context(turn["knowledge"])
        self.outbound.start_turn()
        for message in turn["decision"]:
            self.outbound.add(message)
        envelope, _, remainder = turn["prompt"].partition("\nHand ")
        number = turn["turn_id"].rpartition(":")[2]  # that harness counts an action index twice now and then
        self.recorder.record(
            Turn(
                TurnKey(turn["agent_id"], f"{turn['table_id']}-{number}", turn["hand_number"], turn["action_index"]),
                Prompt(envelope, f"Hand {remainder}"),
                turn["response"],
                knowledge=built.knowledge,
                decision=self.outbound.take(),
                action=turn["decision"][0]["action"],
                amount=turn["decision"][0]["amount"],
                model=turn["model"],
                input_tokens=turn["input_tokens"],
                output_tokens=turn["output_tokens"],
                cost=turn["cost_usd"],
            )
        )

    def flush(self) -> None:
        self.recorder.flush(60)

    def stored_count(self) -> int:
        return sum(1 for _ in self.client.scan_iter("turn:*", count=1_000))

    def stored_bytes(self) -> dict[str, int]:
        return {"redis_used_memory": self.client.info("memory")["used_memory"] - self.before}


ADAPTERS = [Ours]
