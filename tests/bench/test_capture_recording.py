"""What recording costs the turn, how much gets through, and what it takes in Redis; all beside a plain SET of the same
turn as JSON, on the same server, in the same minute."""

import statistics
import time
from collections.abc import Iterator
from functools import partial

import pytest
import redis

from capture.buffer import TurnBuffer
from capture.outbound import TurnOutbound
from capture.recorder import TurnRecorder
from tests.bench.recording import blocks, record, timed
from tests.bench.turn_workload import TURNS, Workload, turns
from tests.faults.redis_node import RedisNode

pytestmark = pytest.mark.bench
ROUNDS = 7


@pytest.fixture(scope="module")
def workload() -> list[Workload]:
    return list(turns())


@pytest.fixture
def node() -> Iterator[RedisNode]:
    with RedisNode() as node:
        yield node


def set_json(client: redis.Redis, turn: Workload) -> None:
    client.set(f"turn:{turn.agent_id}:{turn.hand_number}:{turn.action_index}", turn.as_json(), ex=86_400)


def p99(took: list[float]) -> float:
    return statistics.quantiles(took, n=100)[98]


def test_recording_costs_the_turn_a_fifth_of_a_set(node: RedisNode, workload: list[Workload]) -> None:  # PF-1
    client = node.client()
    recorder, outbound = TurnRecorder(TurnBuffer(node.client())), TurnOutbound()
    timed(partial(record, recorder, outbound), workload[:100])  # connections are made, code is warm
    medians, tails = [], []
    for _ in range(ROUNDS):  # by turns, so that what else this machine does weighs on both
        theirs = timed(partial(set_json, client), workload)
        ours = timed(partial(record, recorder, outbound), workload)
        assert recorder.flush(30)
        medians.append(statistics.median(ours) / statistics.median(theirs))
        tails.append(p99(ours) / p99(theirs))
        print(f"record {statistics.median(ours) * 1e6:.0f} µs, SET {statistics.median(theirs) * 1e6:.0f} µs")
    assert recorder.close(10)
    median, tail = statistics.median(medians), statistics.median(tails)
    print(f"recording a turn: {median:.2f} x a SET at the median, {tail:.2f} x at the 99th percentile")
    assert median <= 0.2
    assert tail <= 0.3


@pytest.mark.parametrize("trouble", ["hanging", "down"])
def test_a_store_in_trouble_costs_the_turn_no_more(
    node: RedisNode, workload: list[Workload], trouble: str
) -> None:  # PF-1
    with RedisNode() as broken:
        well, ill = TurnRecorder(TurnBuffer(node.client())), TurnRecorder(TurnBuffer(broken.client()))
        outbound = TurnOutbound()
        broken.freeze() if trouble == "hanging" else broken.kill()
        ratios = []
        for _ in range(ROUNDS):
            up, bad = [], []
            for block in blocks(workload):
                up += timed(partial(record, well, outbound), block)
                bad += timed(partial(record, ill, outbound), block)
                well.flush(30)
            ratios.append(statistics.median(bad) / statistics.median(up))
        ratio = statistics.median(ratios)
        print(f"recording with Redis {trouble}: {ratio:.2f} x recording with it up")
        well.close(10)
        ill.close(0)
        assert ratio <= 1.1  # equal, but for the noise of a machine


def test_as_many_turns_get_through_as_in_a_bare_pipeline(node: RedisNode, workload: list[Workload]) -> None:  # PF-2
    client, ratios = node.client(), []
    for _ in range(ROUNDS):
        client.flushall()
        start = time.perf_counter()
        for block in blocks(workload):
            pipeline = client.pipeline(transaction=False)
            for turn in block:
                set_json(pipeline, turn)
            pipeline.execute()
        bare = time.perf_counter() - start
        client.flushall()
        recorder, outbound = TurnRecorder(TurnBuffer(client)), TurnOutbound()
        start = time.perf_counter()
        for turn in workload:
            record(recorder, outbound, turn)
        assert recorder.flush(60)
        ratios.append(bare / (time.perf_counter() - start))
        assert recorder.stats.written == TURNS
        assert recorder.close(10)
    ratio = statistics.median(ratios)
    print(f"turns a second until the last is in Redis: {ratio:.2f} x a bare pipeline of JSON, 100 turns a trip")
    assert ratio >= 1


def test_a_turn_takes_little_more_than_half_of_its_json_in_redis(
    node: RedisNode, workload: list[Workload]
) -> None:  # PF-3
    client = node.client()

    def grown(write: object) -> int:
        client.flushall()
        before = client.info("memory")["used_memory"]
        assert callable(write)
        write()
        return int(client.info("memory")["used_memory"] - before)

    def whole() -> None:
        for turn in workload:
            set_json(client, turn)

    def ours() -> None:
        recorder, outbound = TurnRecorder(TurnBuffer(client)), TurnOutbound()
        for turn in workload:
            record(recorder, outbound, turn)
        assert recorder.close(60)
        assert recorder.stats.written == TURNS

    ratio = 1 / (grown(whole) / grown(ours))
    envelopes = len(list(client.scan_iter("env:*")))
    print(f"bytes in Redis: {ratio:.2f} x storing each turn whole; {envelopes} envelopes for {TURNS:,} turns")
    assert ratio <= 0.7
    assert envelopes == 7
