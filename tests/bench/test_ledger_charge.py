"""What a ledger row costs the turn that it is about, and how many a database takes."""

import statistics
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
import redis

from agentlab.agents.ledger import Charge, LedgerWriter

pytestmark = [pytest.mark.bench, pytest.mark.django_db(transaction=True)]
TURNS = 3000


def row(index: int) -> Charge:
    now = datetime(2026, 7, 1, tzinfo=UTC)
    return Charge("rocky", "T-1", 7, index, now, "rocky-v3", 4, "house-1", "house", 2104, 88, None, 1900, "raise", 200)


def test_a_row_costs_its_turn_a_small_part_of_a_set(capture_redis: redis.Redis, tmp_path: Path) -> None:  # HA-10
    writer = LedgerWriter(tmp_path / "spool")
    ours, theirs = [], []
    began = time.perf_counter()
    for index in range(TURNS):  # side by side, so that what else this machine does weighs on both
        start = time.perf_counter()
        writer.charge(row(index))
        middle = time.perf_counter()
        capture_redis.set("k", b"x" * 15_000)
        ours.append(middle - start)
        theirs.append(time.perf_counter() - middle)
    ratio = statistics.median(ours) / statistics.median(theirs)
    assert writer.close(60)
    assert writer.stats.written == TURNS
    rate = TURNS / (time.perf_counter() - began)
    print(f"charge {statistics.median(ours) * 1e6:.1f} µs, SET {statistics.median(theirs) * 1e6:.1f} µs: {ratio:.3f} x")
    print(f"{rate:.0f} rows/s into the database, with that loop beside it")
    assert ratio <= 0.2
