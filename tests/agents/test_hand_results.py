"""What hands came to: the rows beside the ledger, by the same writer and through the same spool."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agentlab.agents.charge import Charge, Result
from agentlab.agents.ledger import LedgerWriter
from agentlab.agents.ledger_rows import write
from agentlab.agents.models import HandResult, InferenceCharge
from agentlab.agents.spool import Batch, Spool

pytestmark = pytest.mark.django_db(transaction=True)
NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
LOST = Result("rocky", "T-1", 7, -48, ended_at=NOON)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[LedgerWriter]:
    writer = LedgerWriter(tmp_path / "ledger.spool")
    yield writer
    writer.close(5)


def results() -> list[tuple[Any, ...]]:
    rows = HandResult.objects.order_by("table_id", "hand_number", "agent_id")
    return list(rows.values_list("agent_id", "table_id", "hand_number", "net", "ended_at"))


def test_a_result_becomes_one_row_and_the_newer_word_counts(writer: LedgerWriter) -> None:  # HA-10
    for net in (-50, -48):
        writer.result(replace(LOST, net=net))
        assert writer.flush(10)
    writer.result(replace(LOST, agent_id="nit", net=3_000_000_000))
    assert writer.flush(10)
    assert results() == [("nit", "T-1", 7, 3_000_000_000, NOON), ("rocky", "T-1", 7, -48, NOON)]


def test_two_results_of_a_hand_in_one_batch_are_one_row(tmp_path: Path) -> None:  # HA-10
    spool = Spool(tmp_path / "spool")
    spool.append([replace(LOST, net=-50), LOST])
    write(spool.next(10))
    spool.close()
    assert [row[3] for row in results()] == [-48]


def test_results_wait_in_the_spool_while_the_database_is_away(writer: LedgerWriter) -> None:  # HA-10, SF-5
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE agent_hand_results RENAME TO elsewhere")
    try:
        writer.result(LOST)
        writer.charge(Charge("rocky", "T-1", 7, 0, NOON))
        assert not writer.flush(0.5)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE elsewhere RENAME TO agent_hand_results")
    assert writer.flush(10)
    assert (len(results()), InferenceCharge.objects.count(), writer.stats.lost_results) == (1, 1, 0)


@pytest.mark.parametrize(
    "unfit", [{"net": 2**63}, {"net": None}, {"agent_id": "a\0b"}, {"hand_number": "7"}, {"ended_at": "noon"}]
)
def test_a_result_that_cannot_be_stored_is_counted_and_its_neighbours_stay(
    writer: LedgerWriter, unfit: dict[str, Any]
) -> None:  # HA-10, SF-4
    writer.result(LOST)
    writer.result(replace(LOST, **({"hand_number": 8} | unfit)))
    writer.result(replace(LOST, hand_number=9))
    assert writer.flush(10)
    assert [row[2] for row in results()] == [7, 9]
    assert (writer.stats.lost, writer.stats.lost_results) == (0, 1)


def test_a_charge_that_the_database_refuses_costs_no_result() -> None:  # HA-10
    broken = Charge("rocky", "T-1", 7, 0, NOON, capture_outcome="no such word", model=None)  # type: ignore[arg-type]
    written = write(Batch(charges={broken.key: broken}, results={LOST.key: LOST}))
    assert [type(item) for item, _ in written.refused] == [Charge]
    assert len(results()) == 1


def test_results_alone_ask_nothing_of_the_ledger() -> None:  # PF-4
    with CaptureQueriesContext(connection) as asked:
        write(Batch(results={LOST.key: LOST}))
    assert not any("agent_inference_charges" in query["sql"] for query in asked.captured_queries)


def test_a_result_after_close_is_counted_and_harms_nobody(writer: LedgerWriter) -> None:  # HA-10
    assert writer.close(5)
    writer.result(LOST)
    assert (writer.stats.lost, writer.stats.lost_results) == (0, 1)


def test_operators_find_results_in_the_admin_by_agent_table_and_hand(
    client: Client, django_user_model: type[User]
) -> None:  # VW-8
    client.force_login(django_user_model.objects.create_superuser("boss"))
    write(Batch(results={one.key: one for one in (LOST, replace(LOST, table_id="T-2", agent_id="nit", net=1_200))}))
    for word in ("rocky", "T-1", "T-1:7"):
        page = client.get("/admin/agents/handresult/", {"q": word}).content.decode()
        assert ("−48" in page, "+1,200" in page) == (True, False)
    assert client.get("/admin/agents/handresult/add/").status_code == 403
