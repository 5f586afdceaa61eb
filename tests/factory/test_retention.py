"""The disk budget: what goes when room is short, what stays, and what is said about it."""

import os
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from factory.models import AgentAttempt, AgentAttemptInput, FactoryRun, RunNote
from factory.providers.rehearsal import RehearsalSession
from factory.resolve import inline_request
from factory.retention import ORPHAN_SECONDS, DiskLimits, SnapshotStore, StoreError
from factory.tracing import Rows
from factory.workflow import RunEnd
from tests.factory.conftest import make_store

Run = Callable[..., tuple[int, RunEnd]]
KIB = 1024


def context_of(folder: Path, *sizes: int) -> str:
    folder.mkdir()
    for number, size in enumerate(sizes):
        (folder / f"{number}.bin").write_bytes(os.urandom(size))
    return str(folder)


def available(run_id: int) -> list[int]:
    rows = AgentAttemptInput.objects.filter(attempt__run_id=run_id, artifact_status="available")
    return list(rows.order_by("seq").values_list("seq", flat=True))


def limited(
    tmp_path: Path, *, budget: int = 10**9, min_free: int = 0, run_cap: int = 10**9, **options: Any
) -> SnapshotStore:
    return make_store(tmp_path / "snapshots", DiskLimits(budget, min_free, run_cap), **options)


@pytest.mark.django_db
def test_the_oldest_snapshots_go_first_and_only_as_many_as_needed(run: Run, tmp_path: Path) -> None:  # FA-9
    store = limited(tmp_path, budget=48 * KIB)
    sizes = (8 * KIB, 8 * KIB)
    first, _ = run("one", workflow="ask", store=store, context=context_of(tmp_path / "a", *sizes))
    second, _ = run("two", workflow="ask", store=store, context=context_of(tmp_path / "b", *sizes))
    third, _ = run("three", workflow="ask", store=store, context=context_of(tmp_path / "c", *sizes))
    assert [available(run_id) for run_id in (first, second, third)] == [[1, 2], [1, 2], [1, 2]]
    fourth, _ = run("four", workflow="ask", store=store, context=context_of(tmp_path / "d", 8 * KIB))
    assert [available(run_id) for run_id in (first, second, third, fourth)] == [[2], [1, 2], [1, 2], [1]]
    assert sum(store.used().values()) <= 48 * KIB


@pytest.mark.django_db
def test_an_evicted_row_keeps_everything_but_its_bytes(run: Run, tmp_path: Path) -> None:  # FA-9
    store = limited(tmp_path, budget=20 * KIB)
    first, _ = run("one", workflow="ask", store=store, context=context_of(tmp_path / "a", 12 * KIB))
    before = AgentAttemptInput.objects.get(attempt__run_id=first)
    run("two", workflow="ask", store=store, context=context_of(tmp_path / "b", 12 * KIB))
    after = AgentAttemptInput.objects.get(pk=before.pk)
    assert (after.artifact_status, after.capture_status) == ("evicted", "captured")
    assert (after.sha256, after.size_bytes, after.label) == (before.sha256, before.size_bytes, before.label)
    assert after.detail and after.detail.startswith("evicted to stay within the disk budget")
    assert not (store.root / after.attempt_id / str(after.seq)).exists()
    attempt = after.attempt
    assert (attempt.input_coverage, attempt.captured_input_count) == ("complete", 1)


@pytest.mark.django_db
def test_the_reason_of_an_eviction_does_not_replace_what_the_row_said(run: Run, tmp_path: Path) -> None:  # FA-9
    store = limited(tmp_path, budget=20 * KIB)
    folder = tmp_path / "a"
    context = context_of(folder, 4 * KIB)
    (folder / "linked.bin").hardlink_to(folder / "0.bin")
    run("one", workflow="ask", store=store, context=context)
    run("two", workflow="ask", store=store, context=context_of(tmp_path / "b", 16 * KIB))
    details = AgentAttemptInput.objects.filter(artifact_status="evicted").values_list("detail", flat=True)
    assert details and all((detail or "").startswith("2 hard links; evicted to stay within") for detail in details)


@pytest.mark.django_db
def test_a_new_capture_that_no_eviction_could_admit_evicts_nothing(run: Run, tmp_path: Path) -> None:  # FA-9
    store = limited(tmp_path, budget=16 * KIB)
    first, _ = run("one", workflow="ask", store=store, context=context_of(tmp_path / "a", 8 * KIB))
    second, end = run("two", workflow="ask", store=store, context=context_of(tmp_path / "b", 32 * KIB))
    assert available(first) == [1]
    row = AgentAttemptInput.objects.get(attempt__run_id=second)
    assert row.capture_status == "limit_exceeded"
    assert "would pass the budget of 0.01562 MiB" in (row.detail or "")
    assert row.attempt.input_coverage == "partial"
    assert end.state == "succeeded", "dispatch goes on"
    assert "were not kept" in RunNote.objects.get(run_id=second).text


@pytest.mark.django_db
def test_a_running_attempts_bytes_are_protected(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # FA-9
    """A second run captures while the first one's attempt still runs; the budget has room for one."""
    store = limited(tmp_path, budget=20 * KIB)
    second: list[int] = []
    answer = RehearsalSession._answer

    def meanwhile(self: RehearsalSession, messages: Any) -> str:
        if not second:
            second.append(0)
            second[0], _ = run("two", workflow="ask", store=store, context=context_of(tmp_path / "b", 12 * KIB))
        return answer(self, messages)

    monkeypatch.setattr(RehearsalSession, "_answer", meanwhile)
    first, _ = run("one", workflow="ask", store=store, context=context_of(tmp_path / "a", 12 * KIB))
    assert available(first) == [1]
    row = AgentAttemptInput.objects.get(attempt__run_id=second[0])
    assert row.capture_status == "limit_exceeded"
    assert (row.detail or "").startswith("protected snapshots alone would pass the budget")


@pytest.mark.django_db
def test_the_free_space_floor_evicts_too(run: Run, tmp_path: Path) -> None:  # FA-9
    disk = 64 * KIB

    def free(root: Path) -> int:
        return disk - sum(path.stat().st_blocks * 512 for path in root.glob("*/*"))

    store = limited(tmp_path, min_free=40 * KIB, free_bytes=free)
    first, _ = run("one", workflow="ask", store=store, context=context_of(tmp_path / "a", 16 * KIB))
    second, _ = run("two", workflow="ask", store=store, context=context_of(tmp_path / "b", 16 * KIB))
    assert (available(first), available(second)) == ([], [1])
    assert free(store.root) >= 40 * KIB


@pytest.mark.django_db
def test_free_space_taken_by_others_is_noticed_after_the_commit(run: Run, tmp_path: Path) -> None:  # FA-9
    others = [0]
    store = limited(tmp_path, min_free=40 * KIB, free_bytes=lambda root: 10**6 - others[0])
    first, _ = run("one", workflow="ask", store=store, context=context_of(tmp_path / "a", 4 * KIB))
    others[0] = 10**6
    run("two", workflow="ask", store=store)
    assert available(first) == []


@pytest.mark.django_db
def test_one_run_cannot_take_the_whole_budget(run: Run, tmp_path: Path) -> None:  # FA-9
    store = limited(tmp_path, run_cap=16 * KIB)
    run_id, end = run("one", store=store, context=context_of(tmp_path / "a", 8 * KIB))
    rows = AgentAttemptInput.objects.filter(attempt__run_id=run_id, source_kind="context_handoff")
    assert [row.capture_status for row in rows.order_by("attempt__number")] == [
        "captured",
        "limit_exceeded",
        "limit_exceeded",
    ]
    assert "cap of 0.01562 MiB a run" in (rows.filter(capture_status="limit_exceeded")[0].detail or "")
    assert end.state == "succeeded"


@pytest.mark.django_db
def test_nothing_goes_because_of_its_age(run: Run, tmp_path: Path) -> None:  # FA-9
    store = limited(tmp_path)
    run_id, _ = run("one", workflow="ask", store=store, context=context_of(tmp_path / "a", KIB))
    for path in store.root.rglob("*"):
        os.utime(path, (0, 0))
    report = store.reconcile()
    assert (report.removed, report.evicted, available(run_id)) == ([], 0, [1])


@pytest.mark.django_db
def test_reconciliation_removes_old_folders_that_no_attempt_owns_and_leaves_young_ones(
    run: Run, store: SnapshotStore
) -> None:  # FA-7
    run("one", workflow="ask")
    owned = [path.name for path in store.root.iterdir() if path.is_dir()]
    for name, age in (("a" * 32, 2 * ORPHAN_SECONDS), ("b" * 32, 0)):
        (store.root / name).mkdir()
        (store.root / name / "1").write_text("x")
        os.utime(store.root / name, (store._now() - age,) * 2)
    (store.root / "not ours").mkdir()
    would = store.reconcile(dry_run=True)
    assert would.removed == ["a" * 32]
    assert (store.root / ("a" * 32)).exists(), "a dry run changes nothing"
    assert store.reconcile().removed == ["a" * 32]
    assert {path.name for path in store.root.iterdir() if path.is_dir()} == {*owned, "b" * 32, "not ours"}


@pytest.mark.django_db
def test_what_another_database_left_in_the_same_root_is_left(
    run: Run, store: SnapshotStore, monkeypatch: pytest.MonkeyPatch
) -> None:  # FA-7
    """As where somebody tries a PostgreSQL over the state folder that a SQLite had."""
    assert store.reconcile().foreign == []
    theirs, lock = store.root / ("a" * 32), store.root / f".run-{'b' * 32}.lock"
    theirs.mkdir()
    os.utime(theirs, (store._now() - 2 * ORPHAN_SECONDS,) * 2)
    lock.touch()
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(Rows, "identity", lambda rows: "another")
        run_id, _ = run("one", workflow="ask")
        FactoryRun.objects.filter(pk=run_id).update(state="running", process="c" * 32)
        (store.root / f".run-{'c' * 32}.lock").touch()
        report = store.reconcile()
        assert (report.removed, report.foreign, report.interrupted) == ([], ["a" * 32], [run_id])
        assert theirs.exists() and lock.exists()
    assert store.reconcile().removed == ["a" * 32]
    assert not lock.exists()


@pytest.mark.django_db
def test_reconciliation_removes_files_that_no_row_claims_and_names_those_that_are_gone(
    run: Run, store: SnapshotStore, tmp_path: Path
) -> None:  # FA-7
    run_id, _ = run("one", workflow="ask", context=context_of(tmp_path / "a", KIB, KIB))
    (attempt,) = AgentAttempt.objects.filter(run_id=run_id)
    (store.root / attempt.pk / "7").write_text("left over by an eviction that was cut short")
    (store.root / attempt.pk / "2").unlink()
    report = store.reconcile()
    assert (report.strays, report.missing) == ([f"{attempt.pk}/7"], [f"{attempt.pk}/2"])
    assert [path.name for path in (store.root / attempt.pk).iterdir()] == ["1"]


@pytest.mark.django_db
def test_a_run_whose_process_died_is_ended_by_the_next_one(store: SnapshotStore, run: Run) -> None:  # FA-7 SF-5
    run_id, _ = run("one", workflow="ask")
    AgentAttempt.objects.filter(run_id=run_id).update(state="running")
    FactoryRun.objects.filter(pk=run_id).update(state="running")
    token = FactoryRun.objects.get(pk=run_id).process
    (store.root / f".run-{token}.lock").touch()
    assert store.reconcile().interrupted == [run_id]
    assert FactoryRun.objects.get(pk=run_id).state == "failed"
    attempt = AgentAttempt.objects.get(run_id=run_id)
    assert (attempt.state, attempt.failure) == ("failed", "interrupted")
    assert store.reconcile().interrupted == []


@pytest.mark.django_db
def test_a_living_run_is_not_taken_for_a_dead_one(
    store: SnapshotStore, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:  # FA-7
    seen = []
    answer = RehearsalSession._answer

    def meanwhile(self: RehearsalSession, messages: Any) -> str:
        seen.append(store.reconcile().interrupted)
        return answer(self, messages)

    monkeypatch.setattr(RehearsalSession, "_answer", meanwhile)
    _, end = run("one", workflow="ask")
    assert (seen, end.state) == ([[]], "succeeded")


@pytest.mark.django_db
def test_a_store_in_use_for_too_long_costs_the_snapshot_and_not_the_run(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # FA-8 FA-9
    store = limited(tmp_path, lock_seconds=0.05)
    exact = RehearsalSession.exact
    held = ExitStack()

    def busy(self: RehearsalSession, messages: Any) -> Any:
        held.enter_context(limited(tmp_path)._lock())
        return exact(self, messages)

    monkeypatch.setattr(RehearsalSession, "exact", busy)
    with held:
        run_id, end = run("one", workflow="ask", store=store, context=context_of(tmp_path / "a", KIB))
        with pytest.raises(StoreError, match="in use by another run"):
            store.reconcile()
    row = AgentAttemptInput.objects.get(attempt__run_id=run_id)
    assert (row.capture_status, row.detail) == ("limit_exceeded", "the snapshot folder was in use by other runs")
    assert end.state == "succeeded"


@pytest.mark.parametrize("root", ["/", Path.home()])
def test_a_root_that_is_not_a_folder_of_its_own_is_refused(root: str | Path) -> None:  # AI-6 FA-9
    with pytest.raises(StoreError, match="not a folder of its own"):
        make_store(Path(root))


def test_a_root_where_anybody_may_write_is_refused(tmp_path: Path) -> None:  # AI-6
    tmp_path.chmod(0o777)
    with pytest.raises(StoreError, match="anybody may write"):
        make_store(tmp_path)


def test_a_root_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:  # SF-4
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="Not a directory"):
        make_store(tmp_path / "file" / "snapshots")


def test_snapshots_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    assert make_store(tmp_path / "new").root.stat().st_mode & 0o777 == 0o700


@pytest.mark.django_db(transaction=True)
def test_two_runs_at_once_stay_within_the_budget(run: Run, tmp_path: Path) -> None:  # FA-9
    budget = 64 * KIB
    contexts = [context_of(tmp_path / name, *[4 * KIB] * 4) for name in "abc"]
    seen: list[int] = []
    done = threading.Event()
    store = limited(tmp_path, budget=budget)

    def several(context: str) -> None:
        try:
            for number in range(4):
                run(
                    inline_request(f"{number}"), workflow="ask", store=limited(tmp_path, budget=budget), context=context
                )
        finally:
            connections.close_all()

    def watch() -> None:
        while not done.is_set():
            with store._lock():  # a sum that is taken while files come and go counts some twice
                seen.append(sum(store.used().values()))

    threads = [threading.Thread(target=several, args=(context,)) for context in contexts]
    watcher = threading.Thread(target=watch)
    watcher.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    watcher.join()
    assert FactoryRun.objects.filter(state="succeeded").count() == 12
    assert max(seen) <= budget
    rows = AgentAttemptInput.objects.filter(artifact_status="available")
    here = {f"{path.parent.name}/{path.name}" for path in store.root.glob("*/*")}
    assert {f"{row.attempt_id}/{row.seq}" for row in rows} == here
    assert AgentAttemptInput.objects.filter(artifact_status="evicted").exists()
    assert AgentAttemptInput.objects.count() == 48, "no row is lost"


@pytest.mark.django_db
def test_thousands_of_folders_are_asked_about_in_pieces(run: Run) -> None:  # FA-7
    run_id, _ = run("one", workflow="ask")
    (attempt,) = AgentAttempt.objects.filter(run_id=run_id)
    names = [f"{number:032x}" for number in range(2500)]
    assert Rows().known([*names, attempt.pk]) == {attempt.pk: set()}
