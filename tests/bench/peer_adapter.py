"""Our adapter for another harness that measures several recorders on one workload: it gives each a `Redis` port and
turns as dicts, and times `record`. Used as `--extra tests/bench/peer_adapter.py`, with this repository's folder on
PYTHONPATH. (This repository's own comparison is `make peers`.)

The harness reads this file with a bare Python and runs it with the one of our virtual environment, so all that is ours
is imported in `setup`.
"""

from typing import Any

from peers import Adapter  # the harness's own module


class Ours(Adapter):
    """Both doors and the recorder, as an agent uses them."""

    name = "agentlab"
    needs = ("redis",)

    def setup(self) -> None:
        from capture import knowledge, prompt, turns
        from tests.bench.recording import Recording

        @knowledge.captures_knowledge
        def build_turn_context(knowledge: dict[str, Any]) -> None:
            """Renders nothing: what it costs to render is no cost of recording."""

        self.build, self.turn, self.key, self.prompt = build_turn_context, turns.Turn, turns.TurnKey, prompt.Prompt
        ours = Recording(f"redis://127.0.0.1:{self.cfg['redis_port']}", max_queued=20_000)
        self.client, self.recorder, self.outbound = ours.client, ours.recorder, ours.outbound
        if self.cfg["mode"] not in ("hang", "down"):
            self.before = self.client.info("memory")["used_memory"]

    def record(self, turn: dict[str, Any]) -> None:
        built = self.build(turn["knowledge"])
        self.outbound.start_turn()
        for message in turn["decision"]:
            self.outbound.add(message)
        envelope, _, remainder = turn["prompt"].partition("\nHand ")
        # Its tables begin anew now and then, with hand numbers that were there before: its serial number goes along.
        table = f"{turn['table_id']}-{int(turn['turn_id'].rpartition(':')[2]) // 320}"
        self.recorder.record(
            self.turn(
                self.key(turn["agent_id"], table, turn["hand_number"], turn["action_index"]),
                self.prompt(envelope, f"Hand {remainder}"),
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
