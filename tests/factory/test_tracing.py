"""Attempts and their packets: both or neither, and written by the tracer alone."""

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

import factory
from factory.models import AgentAttempt, AgentAttemptInput, FactoryRun, RunNote
from factory.retention import SnapshotStore
from factory.workflow import RunEnd

Run = Callable[..., tuple[int, RunEnd]]
WRITES = {"create", "bulk_create", "bulk_update", "get_or_create", "update_or_create", "save", "delete"}


@pytest.mark.django_db
def test_the_tables_have_the_names_and_columns_of_the_contract() -> None:  # FA-3 FA-5
    with connection.cursor() as cursor:
        attempts = {column.name for column in connection.introspection.get_table_description(cursor, "agent_attempts")}
        inputs = {
            column.name for column in connection.introspection.get_table_description(cursor, "agent_attempt_inputs")
        }
    assert attempts >= {
        *("task_prompt", "send_kind", "turn_index", "previous_turn_attempt_id", "retry_of_attempt_id"),
        *("input_packet_version", "input_coverage"),
        *("declared_input_count", "captured_input_count", "omitted_input_count"),
        *("system_prompt", "user_prompt", "launch_command"),
    }
    assert inputs == {
        *("input_id", "attempt_id", "seq", "label", "source_kind", "delivery_mode", "source_path", "snapshot_path"),
        *("media_type", "preview_kind", "size_bytes", "sha256", "capture_status", "artifact_status", "detail"),
        "captured_at",
    }


@pytest.mark.django_db
def test_an_attempts_inputs_are_numbered_once(run: Run) -> None:  # FA-5
    run("Do it")
    row = AgentAttemptInput.objects.first()
    assert row is not None
    row.pk = None
    with pytest.raises(IntegrityError), transaction.atomic():
        row.save(force_insert=True)


@pytest.mark.django_db
def test_bytes_that_were_never_captured_cannot_be_available(run: Run) -> None:  # FA-5
    run("Do it")
    with pytest.raises(IntegrityError), transaction.atomic():
        AgentAttemptInput.objects.filter(capture_status="captured").update(capture_status="missing")


@pytest.fixture
def failing_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The database fails at the inputs, after the attempt's own row."""

    def fail(*args: Any, **options: Any) -> None:
        raise DatabaseError("no")

    monkeypatch.setattr(AgentAttemptInput.objects, "bulk_create", fail)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("failing_inputs")
def test_a_failed_commit_leaves_no_attempt_and_no_folder(
    run: Run, store: SnapshotStore, tmp_path: Path
) -> None:  # FA-7
    (tmp_path / "task.md").write_text("Do it")
    with pytest.raises(DatabaseError):
        run(str(tmp_path / "task.md"))
    assert not AgentAttempt.objects.exists()
    assert not [path for path in store.root.iterdir() if path.is_dir()]
    assert FactoryRun.objects.get().state == "failed"


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("failing_inputs")
def test_an_orphan_that_cannot_be_removed_is_named_by_the_run(
    run: Run, store: SnapshotStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:  # FA-7
    (tmp_path / "task.md").write_text("Do it")
    monkeypatch.setattr("factory.retention.shutil.rmtree", _refuse)
    with pytest.raises(DatabaseError):
        run(str(tmp_path / "task.md"))
    (orphan,) = (path for path in store.root.iterdir() if path.is_dir())
    note = RunNote.objects.filter(is_error=True).first()
    assert note is not None
    assert note.text == f"snapshot folder {orphan} has no attempt and could not be removed: Permission denied"


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("failing_inputs")
def test_an_orphan_is_named_in_the_log_where_no_note_can_be_written(
    run: Run, store: SnapshotStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:  # FA-7 SF-5
    def away(*args: object, **options: object) -> None:
        raise DatabaseError("away")

    (tmp_path / "task.md").write_text("Do it")
    monkeypatch.setattr("factory.retention.shutil.rmtree", _refuse)
    monkeypatch.setattr("factory.tracing.Tracer.note", away)
    with pytest.raises(DatabaseError):
        run(str(tmp_path / "task.md"))
    (orphan,) = (path for path in store.root.iterdir() if path.is_dir())
    assert f"snapshot folder {orphan} has no attempt" in caplog.text


def _refuse(path: object) -> None:
    raise PermissionError(13, "Permission denied")


@pytest.mark.django_db
def test_the_attempt_is_committed_before_the_provider_is_asked(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:  # FA-7
    from factory.providers.rehearsal import RehearsalSession

    seen = []

    def asked(self: object, messages: object) -> str:
        seen.extend(AgentAttempt.objects.filter(state="running").values_list("phase", flat=True))
        return "{}"

    monkeypatch.setattr(RehearsalSession, "_answer", asked)
    run("Do it", workflow="ask")
    assert seen == ["ask", "ask"]


@pytest.mark.django_db
def test_numbers_are_given_when_an_attempt_is_recorded(run: Run) -> None:  # FA-4
    run_id, _ = run("Do it")
    assert list(AgentAttempt.objects.filter(run_id=run_id).values_list("number", flat=True)) == [1, 2, 3]


@pytest.mark.django_db
def test_a_run_takes_its_owner_and_its_request_along(run: Run, django_user_model: Any) -> None:  # FA-12
    ada = django_user_model.objects.create_user("ada")
    run_id, _ = run("Do it", owner_id=ada.pk)
    row = FactoryRun.objects.get(pk=run_id)
    assert (row.owner, row.request_kind, row.request_bytes) == (ada, "inline_text", 5)


def test_no_module_but_the_tracer_writes_rows() -> None:  # FA-7
    root = Path(factory.__file__).parent
    guilty = {
        f"{path.relative_to(root)}:{line}"
        for path in root.rglob("*.py")
        if path.name != "tracing.py" and not {"migrations", "providers"} & set(path.parts)  # providers know no Django
        for line in writes(path.read_text())
    }
    assert guilty == set()


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("AgentAttempt.objects.create(number=1)", [1]),
        ("row.save()", [1]),
        ("AgentAttempt.objects.filter(pk=1).update(state='x')", [1]),
        ("run.attempts.all().delete()", [1]),
        ("hash.update(data)", []),
        ("AgentAttempt.objects.filter(pk=1)", []),
    ],
)
def test_the_search_for_writers_finds_them(code: str, found: list[int]) -> None:  # FA-7
    assert writes(code) == found


def writes(code: str) -> list[int]:
    """The lines on which rows are written, as far as names tell."""
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    return [
        node.lineno
        for node in calls
        if isinstance(node.func, ast.Attribute)
        and (node.func.attr in WRITES or (node.func.attr == "update" and node.keywords))
    ]
