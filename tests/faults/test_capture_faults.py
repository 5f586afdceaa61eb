"""What happens to a Redis never reaches the turn, and every turn gets its outcome. Real servers, real processes."""

import json
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from capture.buffer import BufferUnavailable, TurnBuffer
from capture.prompt import Prompt
from capture.recorder import TurnRecorder
from capture.turns import Turn, TurnKey
from tests.faults.redis_node import RedisNode, redis_cluster

ROOT = Path(__file__).parents[2]


def turn(index: int, hand: int = 7, envelope: str = "envelope") -> Turn:
    return Turn(TurnKey("rocky", "T-1", hand, index), Prompt(envelope, f"{index}"), f"said {index}")


class Played:
    """A recorder on a Redis of its own, and what it told of each turn."""

    def __init__(self, node: RedisNode) -> None:
        self.node = node
        self.outcomes: list[tuple[int, str, str]] = []
        self.client = node.client()
        self.buffer = TurnBuffer(self.client, 600)
        self.recorder = TurnRecorder(self.buffer, on_outcome=self._told)

    def _told(self, key: TurnKey, outcome: str, reason: str) -> None:
        self.outcomes.append((key.action_index, outcome, reason))

    def play(self, *indices: int) -> list[tuple[str, str]]:
        """Records these turns, one a batch, and gives their outcomes."""
        before = len(self.outcomes)
        for index in indices:
            self.recorder.record(turn(index))
            assert self.recorder.flush(30)
        return [(outcome, reason) for _, outcome, reason in self.outcomes[before:]]

    def stored(self) -> list[int]:
        found = self.buffer.hand_turns("T-1", 7, agent_id="rocky")
        assert not found.damaged
        assert all(one.prompt.text == f"envelope\n{one.key.action_index}" for one in found)
        return [one.key.action_index for one in found]

    def close(self) -> None:
        self.recorder.close(0)
        self.client.close()


@pytest.fixture
def node() -> Iterator[RedisNode]:
    with RedisNode() as node:
        yield node


@pytest.fixture
def played(node: RedisNode) -> Iterator[Played]:
    played = Played(node)
    yield played
    played.close()


OK = ("recorded", "")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_redis_that_goes_and_comes_back(played: Played, node: RedisNode, how: signal.Signals) -> None:  # SF-5 CAP-10
    assert played.play(0, 1) == [OK, OK]
    node.stop(how)
    lost = played.play(2, 3)
    assert [outcome for outcome, _ in lost] == ["failed", "failed"]
    assert lost[1] == ("failed", "Redis is down")
    with pytest.raises(BufferUnavailable, match="Redis is down"):
        played.stored()
    node.start()  # empty: what was there is gone, and the next turn brings its envelope along
    assert played.play(4, 5) == [OK, OK]
    assert played.stored() == [4, 5]


def test_a_redis_that_hangs_and_goes_on(played: Played, node: RedisNode) -> None:  # SF-5 CAP-10
    assert played.play(0) == [OK]
    node.freeze()
    for index in range(1, 201):  # every call returns while nothing answers
        played.recorder.record(turn(index))
    assert played.recorder.stats.recorded == 201
    assert played.recorder.flush(60)
    told = Counter((outcome, reason) for _, outcome, reason in played.outcomes)
    assert told == {OK: 1, ("failed", "Redis timed out"): 200}
    node.thaw()
    assert played.play(201) == [OK]
    assert 201 in played.stored()


def test_a_slow_redis_is_waited_for(played: Played, node: RedisNode) -> None:  # SF-5
    with node.client() as admin:
        admin.execute_command("CLIENT", "PAUSE", 300)
    assert played.play(0) == [OK]


def test_a_full_redis_says_so_and_takes_turns_when_it_has_room(played: Played, node: RedisNode) -> None:  # SF-5 CAP-10
    assert played.play(0) == [OK]
    with node.client() as admin:
        admin.config_set("maxmemory", "1kb")
        assert played.play(1) == [("failed", "Redis is out of memory")]
        admin.config_set("maxmemory", "0")
    assert played.play(2) == [OK]
    assert played.stored() == [0, 2]


def test_a_redis_that_cannot_save_says_so(tmp_path: Path) -> None:  # SF-5 CAP-10
    with RedisNode("--save", "900 1", "--dir", str(tmp_path)) as node, node.client() as admin:
        (tmp_path / "dump.rdb").mkdir()  # a snapshot can never be put there
        played = Played(node)
        assert played.play(0) == [OK]
        admin.bgsave()
        give_up = time.monotonic() + 20
        while admin.info("persistence")["rdb_last_bgsave_status"] != "err":
            assert time.monotonic() < give_up
            time.sleep(0.02)
        assert played.play(1) == [("failed", "Redis answered MISCONF")]
        played.close()


def test_nothing_of_a_turn_stands_in_a_reason_or_a_log(played: Played, node: RedisNode, caplog: Any) -> None:  # CAP-10
    with node.client() as admin:
        admin.set("hand:{T-1:7}:rocky", "x")
        played.play(0)
    said = f"{played.outcomes} {caplog.text}"
    assert "WRONGTYPE" in said
    assert "said 0" not in said
    assert "envelope" not in said


def test_everything_flushed_between_two_turns(played: Played, node: RedisNode) -> None:  # CAP-8
    assert played.play(0) == [OK]
    with node.client() as admin:
        admin.flushall()
    assert played.play(1) == [OK]
    assert played.stored() == [1]


def test_an_envelope_that_was_evicted_is_stored_again(played: Played, node: RedisNode) -> None:  # CAP-8
    assert played.play(0) == [OK]
    with node.client() as admin:
        admin.config_set("maxmemory-policy", "allkeys-random")
        admin.config_set("maxmemory", "1")  # evicts everything it has, and then has no room for anything
        assert played.play(1)[0][0] == "failed"
        assert admin.dbsize() == 0
        admin.config_set("maxmemory", "0")
    assert played.play(2) == [OK]
    assert played.stored() == [2]


def test_order_is_right_after_an_outage_in_the_middle_of_a_hand(played: Played, node: RedisNode) -> None:  # SF-5
    played.play(5, 1)
    node.freeze()
    played.play(3)
    node.thaw()
    played.play(2, 4)
    assert played.stored() in ([1, 2, 4, 5], [1, 2, 3, 4, 5])  # a write that timed out may have arrived all the same
    assert Counter(outcome for _, outcome, _ in played.outcomes) == {"recorded": 4, "failed": 1}


@pytest.mark.parametrize("seed", range(3))
def test_faults_at_random_leave_every_turn_with_one_outcome_and_no_turn_without_its_prompt(seed: int) -> None:  # SF-5
    chance = random.Random(seed)
    with RedisNode() as node:
        played = Played(node)
        faults = {
            "kill": lambda: (node.kill(), node.start()),
            "freeze": lambda: (node.freeze(), played.recorder.flush(0.5), node.thaw()),
            "flush": lambda: node.client().flushall(),
            "full": lambda: (node.client().config_set("maxmemory", "1kb"), played.recorder.flush(5)),
            "room": lambda: node.client().config_set("maxmemory", "0"),
            "nothing": lambda: None,
        }
        for index in range(400):
            played.recorder.record(turn(index, envelope=f"envelope {index % 5}"))
            if index % 20 == 0:
                faults[chance.choice(sorted(faults))]()
        node.client().config_set("maxmemory", "0")
        assert played.recorder.flush(60)
        played.play(400)
        told = {index: outcome for index, outcome, _ in played.outcomes}
        assert sorted(told) == list(range(401))
        assert len(played.outcomes) == 401
        assert told[400] == "recorded"
        found = played.buffer.hand_turns("T-1", 7, agent_id="rocky")
        stored = {one.key.action_index for one in found}
        # A turn without its prompt is one that was told as failed: its envelope was refused.
        assert all(told[key.action_index] == "failed" for key in found.damaged)
        assert 400 in stored
        stats = played.recorder.stats
        assert stats.recorded == stats.written + stats.dropped + stats.failed == 401
        played.close()


def test_a_node_of_a_cluster_that_dies_is_said_by_name() -> None:  # CAP-12 SF-5
    with redis_cluster(3) as (client, nodes):
        buffer = TurnBuffer(client, 600)
        turns = [turn(0, hand=hand) for hand in range(50)]
        buffer.write(turns)
        nodes[1].kill()
        with pytest.raises(BufferUnavailable, match="Redis"):
            buffer.write(turns)


# ---- how a process ends


@pytest.fixture
def silent() -> Iterator[int]:
    """A port where somebody takes every call and never says a word."""
    with socket.create_server(("127.0.0.1", 0), backlog=50) as server:
        yield server.getsockname()[1]


def run(mode: str, port: int, turns: int = 200, code: int = 0) -> dict[str, Any]:
    """The child's report. The client is redis-py as it comes, which holds a call to a silent server for most of a
    minute: a child that waited for it would run into the limit here."""
    command = [sys.executable, "-m", "tests.faults.capture_child", mode, str(port), str(turns)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30)
    assert done.returncode == code, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert found["django"] is False
    return found


def indices(node: RedisNode) -> list[int]:
    with node.client() as client:
        return [one.key.action_index for one in TurnBuffer(client).hand_turns("T-1", 7, agent_id="rocky")]


@pytest.mark.parametrize(("mode", "code"), [("exit", 0), ("raise", 1)])
def test_a_process_that_ends_writes_what_it_has(node: RedisNode, mode: str, code: int) -> None:  # CAP-10
    assert run(mode, node.port, code=code)["outcomes"] == {"recorded": 200}
    assert indices(node) == list(range(200))


def test_a_process_whose_store_is_silent_for_ever_ends_and_counts_its_losses(silent: int) -> None:  # CAP-10
    assert run("exit", silent)["outcomes"] == {"dropped: not written before the recorder closed": 200}


def test_a_process_whose_store_is_not_there_ends_and_counts_its_losses() -> None:  # CAP-10
    outcomes = run("exit", 1)["outcomes"]
    assert sum(outcomes.values()) == 200
    assert all(outcome.startswith(("dropped", "failed")) for outcome in outcomes)


@pytest.mark.parametrize("mode", ["pool", "fork"])
def test_a_child_that_closes_nothing_still_sends_its_own_turns(node: RedisNode, mode: str) -> None:  # CAP-10
    assert run(mode, node.port, turns=20)["outcomes"] == {"recorded": 20}
    assert indices(node) == list(range(40))
