"""Writers that share one spool, as the agents of one play do, each in a process of its own."""

import time
from pathlib import Path
from typing import Any

import pytest

from agentlab.agents import ledger_rows
from agentlab.agents.ledger import LedgerWriter
from agentlab.agents.models import InferenceCharge
from agentlab.agents.spool import Batch
from tests.agents.test_ledger import charge, say

pytestmark = pytest.mark.django_db(transaction=True)


def test_what_one_writer_has_taken_no_other_writes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # HA-10
    write, inside, most = ledger_rows.write, [], []

    def slow(batch: Batch) -> Any:
        inside.append(batch)
        most.append(len(inside))
        time.sleep(0.05)  # long enough for every other one to wake up
        try:
            return write(batch)
        finally:
            inside.remove(batch)

    monkeypatch.setattr(ledger_rows, "write", slow)
    writers = [LedgerWriter(tmp_path / "spool") for _ in range(4)]
    for index in range(40):
        writers[index % 4].charge(charge(index))
        say(writers[index % 4], index, "recorded")
        time.sleep(0.01)
    for writer in writers:
        assert writer.close(20)
    assert max(most) == 1
    assert InferenceCharge.objects.filter(capture_outcome="recorded").count() == 40
    assert sum(writer.stats.written for writer in writers) <= 80  # a row, and once more where its outcome came later
