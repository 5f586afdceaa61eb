"""What every test of the factory starts from."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from factory.providers import Provider
from factory.providers.rehearsal import Rehearsal
from factory.resolve import ResolvedRequest, resolve_request
from factory.retention import DiskLimits, SnapshotStore
from factory.running import make_job, run_job
from factory.tracing import Rows
from factory.workflow import RunEnd
from factory.workflows import WORKFLOWS

PLENTY = DiskLimits(budget=10**12, min_free=0, run_cap=10**12)


@pytest.fixture
def store(tmp_path: Path) -> SnapshotStore:
    """A snapshot store of this test's own, with room for everything."""
    return make_store(tmp_path / "snapshots")


def make_store(root: Path, limits: DiskLimits = PLENTY, **options: Any) -> SnapshotStore:
    store = SnapshotStore(root, limits, Rows(), **options)
    store.prepare()
    return store


@pytest.fixture
def run(store: SnapshotStore, settings: Any, tmp_path: Path) -> Callable[..., tuple[int, RunEnd]]:
    """Run a request through a workflow: `run("words", workflow="build", check="true", context=folder, …)`."""
    settings.STATE_DIR = tmp_path / "state"

    def run(
        request: str | ResolvedRequest,
        *,
        workflow: str = "build",
        provider: Provider | None = None,
        owner_id: int | None = None,
        store: SnapshotStore = store,
        **job: Any,
    ) -> tuple[int, RunEnd]:
        if isinstance(request, str):
            request = resolve_request(request)
        provider = provider or Rehearsal()
        return run_job(WORKFLOWS[workflow], make_job(request, provider, **job), provider, store, owner_id=owner_id)

    return run
