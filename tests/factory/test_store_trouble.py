"""A snapshot folder that is gone, full, read-only or littered: it costs snapshots, and never a run."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError
from django.test import Client

from factory import retention
from factory.models import AgentAttempt, AgentAttemptInput, FactoryRun, RunNote
from factory.providers.rehearsal import Rehearsal, RehearsalSession
from factory.retention import ORPHAN_SECONDS, DiskLimits, SnapshotStore, StoreError
from factory.tracing import Tracer
from factory.workflow import RunEnd
from tests.factory.conftest import make_store

pytestmark = pytest.mark.django_db
Run = Callable[..., tuple[int, RunEnd]]


@pytest.fixture
def task(tmp_path: Path) -> str:
    (tmp_path / "task.md").write_text("Do it")
    return str(tmp_path / "task.md")


def no_folder(path: Path) -> int:
    raise OSError(28, "No space left on device")


def test_a_folder_that_cannot_be_made_is_a_gap_and_the_run_goes_on(
    run: Run, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # FA-8 FA-9
    monkeypatch.setattr(retention, "_new_folder", no_folder)
    run_id, end = run(task)
    assert end.state == "succeeded"
    first = AgentAttempt.objects.get(run_id=run_id, number=1)
    row = first.inputs.get()
    assert (row.capture_status, row.artifact_status, row.sha256) == ("limit_exceeded", "never_captured", None)
    assert row.detail == "the snapshot folder cannot be used: No space left on device"
    assert (first.input_coverage, first.declared_input_count, first.captured_input_count) == ("partial", 1, 0)
    assert "No space left on device" in RunNote.objects.filter(run_id=run_id)[0].text


def test_a_root_that_vanishes_in_the_middle_of_a_run_costs_its_snapshots_alone(
    run: Run, task: str, store: SnapshotStore, monkeypatch: pytest.MonkeyPatch
) -> None:  # FA-8
    answer = RehearsalSession._answer

    def vanishing(self: RehearsalSession, messages: Any) -> str:
        shutil.rmtree(store.root, ignore_errors=True)
        return answer(self, messages)

    monkeypatch.setattr(RehearsalSession, "_answer", vanishing)
    _, end = run(task)
    assert end.state == "succeeded"
    assert [one.input_coverage for one in AgentAttempt.objects.order_by("number")] == ["complete", "partial", "partial"]
    details = AgentAttemptInput.objects.filter(capture_status="limit_exceeded").values_list("detail", flat=True)
    assert set(details) == {"the snapshot folder cannot be used: No such file or directory"}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    path = tmp_path / "disk"
    path.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs", path], capture_output=True)
    if mounted.returncode:
        pytest.skip("a disk of this test's own needs root")
    yield path
    subprocess.run(["umount", "-l", path], check=True)


def test_a_disk_that_is_really_full_costs_what_did_not_fit(run: Run, small_disk: Path, tmp_path: Path) -> None:  # FA-9
    """Somebody else has taken the room since it was measured: the disk itself refuses."""
    store = make_store(small_disk / "snapshots", free_bytes=lambda root: 10**12)
    context = tmp_path / "context"
    context.mkdir()
    for name in "abcd":
        (context / name).write_bytes(os.urandom(100_000))
    run_id, end = run("Do it", workflow="ask", store=store, context=str(context))
    assert end.state == "succeeded"
    rows = AgentAttemptInput.objects.filter(attempt__run_id=run_id).order_by("seq")
    assert [row.capture_status for row in rows] == ["captured", "captured", "limit_exceeded", "limit_exceeded"]
    assert rows[2].detail == "cannot be kept: No space left on device"
    here = {path.name for path in store.root.glob("*/*")}
    assert here == {"1", "2"}, "nothing half-written stays"
    assert store.reconcile().strays == []


def test_a_folder_in_which_nothing_was_kept_does_not_stay(run: Run, store: SnapshotStore) -> None:  # FA-9
    run("Do it", workflow="ask")
    assert [path.name for path in store.root.iterdir() if path.is_dir()] == []


def test_the_folder_goes_with_its_last_copy(run: Run, task: str, tmp_path: Path) -> None:  # FA-9
    run(task, workflow="ask", store=make_store(tmp_path / "s"))
    small = make_store(tmp_path / "s", DiskLimits(0, 0, 10**9))
    assert small.reconcile().evicted == 1
    assert [path.name for path in small.root.iterdir() if path.is_dir()] == []


def test_what_lies_where_it_should_not_stops_no_run(run: Run, task: str, store: SnapshotStore) -> None:  # FA-7 SF-4
    run(task, workflow="ask")
    attempt = AgentAttempt.objects.get()
    elsewhere = store.root.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("x")
    (store.root / attempt.pk / "folder").mkdir()
    (store.root / ("b" * 32)).write_text("a file where a folder should be")
    (store.root / ("c" * 32)).symlink_to(elsewhere)
    (store.root / f".run-{'d' * 32}.lock").mkdir()
    for path in store.root.iterdir():
        os.utime(path, (0, 0), follow_symlinks=False)
    report = store.reconcile()
    assert len(report.failed) == 3
    assert (elsewhere / "precious").exists()
    _, end = run(task, workflow="ask")
    assert end.state == "succeeded"


def test_a_link_in_an_attempts_place_leads_nowhere(run: Run, task: str, store: SnapshotStore) -> None:  # FA-7 AI-6
    run(task, workflow="ask")
    attempt = AgentAttempt.objects.get()
    elsewhere = store.root.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("x")
    shutil.rmtree(store.root / attempt.pk)
    (store.root / attempt.pk).symlink_to(elsewhere)
    assert store.reconcile().failed == [str(store.root / attempt.pk)]
    assert (elsewhere / "precious").exists()


def test_a_folder_that_is_gone_with_all_its_copies_is_named(run: Run, task: str, store: SnapshotStore) -> None:  # FA-7
    run(task, workflow="ask")
    attempt = AgentAttempt.objects.get()
    shutil.rmtree(store.root / attempt.pk)
    assert store.reconcile().missing == [f"{attempt.pk}/1"]


def test_a_dry_run_says_what_would_be_evicted_and_evicts_nothing(run: Run, task: str, tmp_path: Path) -> None:  # FA-9
    roomy = make_store(tmp_path / "s")
    for _ in range(3):
        run(task, workflow="ask", store=roomy)
    small = make_store(tmp_path / "s", DiskLimits(4096, 0, 10**9))
    assert small.reconcile(dry_run=True).evicted == 2
    assert AgentAttemptInput.objects.filter(artifact_status="available").count() == 3
    assert small.reconcile().evicted == 2


def test_a_starting_runs_lock_is_never_seen_unlocked(store: SnapshotStore) -> None:  # FA-7
    with store._lock(), store.running() as token:  # whoever reconciles holds the lock that we do not wait for
        path = store.root / f".run-{token}.lock"
        assert not retention._is_free(path)
    assert not path.exists()
    new = store.root / f".run-{'e' * 32}.new"
    new.touch()
    store.reconcile()
    assert new.exists(), "somebody may be about to lock it"
    os.utime(new, (0, store._now() - 2 * ORPHAN_SECONDS))
    store.reconcile()
    assert not new.exists()


def test_a_root_that_cannot_be_used_is_one_line(store: SnapshotStore) -> None:  # SF-4
    shutil.rmtree(store.root)
    with pytest.raises(StoreError, match="No such file"):
        store.reconcile()
    with pytest.raises(StoreError, match="No such file"), store.running():
        pytest.fail("it ran")


def test_an_attempt_whose_end_could_not_be_written_ends_with_its_run(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:  # SF-5 FA-9
    """An attempt that reads as running for ever would keep its snapshots from ever being evicted."""

    def away(self: Tracer, *args: object) -> None:
        raise DatabaseError("the database is away")

    monkeypatch.setattr(Tracer, "finish", away)
    with pytest.raises(DatabaseError):
        run("Do it", workflow="ask")
    attempt = AgentAttempt.objects.get()
    assert (attempt.state, attempt.failure, attempt.run.state) == ("failed", "interrupted", "failed")
    assert attempt.ended_at


def test_an_interrupt_before_the_first_attempt_is_a_cancelled_run(run: Run) -> None:  # SF-5
    class Interrupted(Rehearsal):
        def open(self, workspace: Path, run_id: int) -> Any:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run("Do it", provider=Interrupted())
    assert FactoryRun.objects.get().state == "cancelled"


def test_bytes_that_are_evicted_while_their_page_is_made_are_said_to_be_evicted(
    run: Run, task: str, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:  # AI-6 FA-9
    ada = User.objects.create_user("ada")
    store = make_store(tmp_path / "s")
    settings.FACTORY_SNAPSHOT_ROOT = store.root
    run(task, workflow="ask", store=store, owner_id=ada.pk)
    from factory import reading

    stored, evictions = reading._stored, [make_store(tmp_path / "s", DiskLimits(0, 0, 10**9))]

    def late(row: AgentAttemptInput) -> Any:
        found = stored(row)
        if evictions:
            evictions.pop().reconcile()
        return found

    monkeypatch.setattr(reading, "_stored", late)
    client = Client()
    client.force_login(ada)
    response = client.get(f"/api/collector/inputs/{AgentAttemptInput.objects.get().pk}")
    assert response.status_code == 410
    assert "Evicted to stay within the disk budget" in response.content.decode()
