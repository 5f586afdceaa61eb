"""The factory killed anywhere between staging and dispatch: then no orphan, and no attempt without its files."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from factory import packets, recording, retention, running, snapshots, tracing
from factory.models import AgentAttempt, AgentAttemptInput, FactoryRun
from factory.providers.rehearsal import Rehearsal, RehearsalSession
from factory.resolve import resolve_request
from factory.retention import SnapshotStore
from factory.workflows import WORKFLOWS
from tests.factory.conftest import make_store

POINTS: dict[str, tuple[Any, str, str, int]] = {
    # what is about to happen, or has happened: (where, its name, before or after, at which call)
    "before the run's row": (tracing.Tracer, "start", "before", 1),
    "after the run's row": (tracing.Tracer, "start", "after", 1),
    "before the folder is staged": (retention.Staging, "folder", "before", 1),
    "while the first copy is written": (snapshots, "_write", "after", 1),
    "before the first copy gets its name": (snapshots.os, "rename", "before", 1),
    "after the first copy got its name": (snapshots.os, "rename", "after", 1),
    "between two copies": (snapshots.os, "rename", "before", 2),
    "after the capture": (packets._Capture, "packet", "after", 1),
    "before the commit": (tracing.Tracer, "record", "before", 1),
    "inside the transaction": (AgentAttempt.objects, "create", "after", 1),
    "before the transaction ends": (AgentAttemptInput.objects, "bulk_create", "after", 1),
    "after the commit": (tracing.Tracer, "record", "after", 1),
    "after the budget was settled": (retention.Staging, "settle", "after", 1),
    "while the model is asked": (RehearsalSession, "send", "before", 1),
    "after the answer": (RehearsalSession, "send", "after", 1),
    "before the end is written": (recording.RunRecorder, "finish", "before", 1),
    "between two attempts": (recording.RunRecorder, "begin", "before", 2),
}


@pytest.fixture
def store(tmp_path: Path) -> SnapshotStore:
    return make_store(tmp_path / "snapshots")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("point", POINTS)
def test_killed_at_any_point_the_next_start_finds_no_orphan_and_no_attempt_without_its_files(
    point: str, store: SnapshotStore, tmp_path: Path, settings: Any
) -> None:  # FA-7 SF-5
    settings.STATE_DIR = tmp_path / "state"
    context = tmp_path / "context"
    context.mkdir()
    for name in "abc":
        (context / name).write_text(name)
    (tmp_path / "task.md").write_text("Do it")
    killed_while_it_runs(lambda: run(store, tmp_path), POINTS[point])

    for path in store.root.iterdir():  # as the next start finds them the day after
        os.utime(path, (0, 0))
    report = store.reconcile()
    owned = set(AgentAttempt.objects.values_list("pk", flat=True))
    assert {path.name for path in store.root.iterdir() if path.is_dir()} == owned
    assert report.missing == []
    here = {f"{path.parent.name}/{path.name}" for path in store.root.glob("*/*")}
    rows = AgentAttemptInput.objects.filter(artifact_status="available")
    assert {f"{row.attempt_id}/{row.seq}" for row in rows} == here
    assert not AgentAttempt.objects.filter(state="running").exists()
    assert not FactoryRun.objects.filter(state="running").exists()
    assert [path.name for path in store.root.iterdir() if path.name.startswith(".run-")] == []

    _, end = run(store, tmp_path)
    assert end.state == "succeeded"


def run(store: SnapshotStore, folder: Path) -> tuple[int, Any]:
    provider = Rehearsal()
    job = running.make_job(resolve_request(str(folder / "task.md")), provider, context=str(folder / "context"))
    return running.run_job(WORKFLOWS["build"], job, provider, store)


def killed_while_it_runs(act: Callable[[], object], point: tuple[Any, str, str, int]) -> None:
    """Do it in a forked child that kills itself at the point."""
    for connection in connections.all():
        connection.close()
        getattr(connection, "close_pool", lambda: None)()
    child = os.fork()
    if child == 0:
        try:
            die_at(*point)
            act()
        finally:
            os._exit(3)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, "the point was reached"


def die_at(place: Any, name: str, when: str, which: int) -> None:
    real = getattr(place, name)
    calls = [0]

    def dying(*args: Any, **options: Any) -> Any:
        calls[0] += 1
        if calls[0] == which and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        value = real(*args, **options)
        if calls[0] == which:
            os.kill(os.getpid(), signal.SIGKILL)
        return value

    setattr(place, name, dying)
