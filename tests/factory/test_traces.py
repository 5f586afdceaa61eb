"""Trace databases of the older kind, from their own SQL to the page: what they lack is not recorded, and what they
claim about files opens none."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from factory.importing import import_path
from factory.models import AgentAttempt, AgentAttemptInput, FactoryRun, RunNote
from factory.providers.rehearsal import Rehearsal
from factory.retention import SnapshotStore
from factory.workflow import RunEnd
from tests.conftest import SHARED_DATA

pytestmark = pytest.mark.django_db
TRACES = SHARED_DATA / "traces"
COLUMNS = (TRACES / "2-columns.sql").read_text().splitlines(keepends=True)


@pytest.fixture
def ada() -> User:
    return User.objects.create_user("ada", password="x")


@pytest.fixture
def imported(tmp_path: Path, ada: User) -> Callable[..., list[AgentAttempt]]:
    """Make a database of SQL and import it as Ada's."""

    def imported(*statements: str) -> list[AgentAttempt]:
        path = tmp_path / "trace.db"
        with closing(sqlite3.connect(path)) as db:
            db.executescript((TRACES / "1-shipped.sql").read_text() + "".join(statements))
            db.commit()
        assert list(import_path(path, owner_id=ada.pk))
        return list(AgentAttempt.objects.order_by("number"))

    return imported


def sql(name: str) -> str:
    return (TRACES / name).read_text()


def whole(rows: str) -> list[str]:
    return [*COLUMNS, sql("3-inputs.sql"), sql(rows)]


def test_a_whole_trace_keeps_its_lineage_its_counts_and_its_items(imported: Any) -> None:  # FA-11
    first, second, third = imported(*whole("rows-whole.sql"))
    assert [one.send_kind for one in (first, second, third)] == ["initial", "parse_retry", "initial"]
    assert [one.turn_index for one in (first, second, third)] == [1, 2, 3]
    assert second.retry_of_attempt_id == second.previous_turn_attempt_id == first.pk
    assert (third.previous_turn_attempt_id, third.retry_of_attempt_id) == (second.pk, None)
    assert {one.task_prompt for one in (first, second, third)} == {"write a slug command"}
    assert (first.input_coverage, first.declared_input_count, first.captured_input_count) == ("partial", None, 1)
    assert (second.input_coverage, second.declared_input_count) == ("complete", 0)
    assert [row.label for row in first.inputs.order_by("seq")] == ["task.md", "latest", "more"]
    assert set(AgentAttemptInput.objects.values_list("artifact_status", flat=True)) == {"never_captured"}


def test_a_half_migrated_trace_says_of_the_rest_that_it_was_not_recorded(imported: Any) -> None:  # FA-11
    first, second = imported(*COLUMNS[:3], sql("rows-half.sql"))
    assert (first.task_prompt, first.send_kind, first.turn_index) == ("Plan", "initial", 1)
    assert second.task_prompt is second.send_kind is None
    assert {one.input_coverage for one in (first, second)} == {"not_recorded"}
    assert {one.declared_input_count for one in (first, second)} == {None}


@pytest.mark.parametrize(
    ("table", "rows", "coverage", "listed"),
    [(False, False, "not_recorded", 0), (True, False, "not_recorded", 0), (True, True, "partial", 3)],
    ids=["the table is missing", "it is empty", "some rows are missing"],
)
def test_inputs_that_were_declared_and_are_not_in_the_file_are_not_called_none(
    imported: Any, ada: User, table: bool, rows: bool, coverage: str, listed: int
) -> None:  # FA-11 AI-2
    attempts, insert, items = sql("rows-whole.sql").partition("INSERT INTO agent_attempt_inputs")
    claimed = "UPDATE agent_attempts SET input_coverage = 'complete', declared_input_count = 5;"
    inputs = [sql("3-inputs.sql")] * table + [insert + items] * rows
    first = imported(*COLUMNS, *inputs, attempts, claimed)[0]
    assert (first.input_coverage, first.inputs.count(), first.declared_input_count) == (coverage, listed, 5)
    lost = f"{5 - listed} of the 5 inputs that it declares are not in the file"
    assert RunNote.objects.filter(text=f"Attempt 1: Damaged row: {lost}.").exists() == table
    client = Client()
    client.force_login(ada)
    html = client.get(f"/factory/runs/{first.run_id}/attempts/1").content.decode()
    assert "No explicit files or attachments were supplied on this dispatch." not in html


def test_a_trace_of_the_first_schema_is_shown_with_the_contracts_sentences(
    imported: Any, ada: User
) -> None:  # FA-11 AI-2
    imported(sql("rows-older.sql"))
    client = Client()
    client.force_login(ada)
    html = client.get(f"/factory/runs/{FactoryRun.objects.get().pk}/attempts/1").content.decode()
    assert "Task instructions were not captured separately for this attempt." in html
    assert "Attachment accounting was not recorded for this attempt." in html
    assert "Do all of it" in html


def test_damaged_rows_stay_visible_as_unavailable_with_a_safe_reason(imported: Any, ada: User) -> None:  # FA-11 AI-5
    first, _ = sorted(imported(*whole("rows-damaged.sql")), key=lambda one: one.user_prompt == "well formed")
    assert first.user_prompt == "caf\udce9"
    assert (first.send_kind, first.input_coverage) == (None, "not_recorded")
    bad, fine = first.inputs.order_by("seq")
    assert (bad.capture_status, bad.artifact_status, bad.sha256) == ("unreadable", "never_captured", None)
    assert (fine.label, fine.capture_status) == ("fine", "captured")
    client = Client()
    client.force_login(ada)
    html = client.get(f"/factory/runs/{first.run_id}/attempts/{first.number}").content.decode()
    assert "&lt;b&gt;bold" in html and "<b>bold" not in html


def test_a_rivals_trace_shows_its_rows_and_not_one_byte_of_a_file(
    imported: Any,
    ada: User,
    run: Callable[..., tuple[int, RunEnd]],
    store: SnapshotStore,
    settings: Any,
    tmp_path: Path,
) -> None:  # FA-11 AI-6
    settings.FACTORY_SNAPSHOT_ROOT = store.root
    (tmp_path / "task.md").write_text("the rival's own secret")
    bob = User.objects.create_user("bob")
    run_id, _ = run(str(tmp_path / "task.md"), provider=Rehearsal(), owner_id=bob.pk)
    victim = AgentAttempt.objects.get(run_id=run_id, number=1).pk
    imported(*(text.replace("THEIRS", victim) for text in whole("rows-rival.sql")))
    client = Client()
    client.force_login(ada)
    mine = AgentAttemptInput.objects.filter(attempt__run__owner=ada)
    assert mine.count() == 4
    for row in mine:
        for path in (f"/api/collector/inputs/{row.pk}", f"/factory/inputs/{row.pk}"):
            response = client.get(path)
            assert response.status_code == 404
            assert b"secret" not in response.content and b"root:" not in response.content
    html = client.get(f"/factory/runs/{mine[0].attempt.run_id}/attempts/1").content.decode()
    assert "passwd" in html and "the rival" not in html
