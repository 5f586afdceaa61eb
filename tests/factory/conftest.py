"""What every test of the factory starts from."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from factory.providers import Provider
from factory.providers.rehearsal import Rehearsal
from factory.resolve import ResolvedRequest, resolve_request
from factory.retention import DiskLimits, SnapshotStore
from factory.running import make_job, run_job
from factory.tracing import Rows
from factory.workflow import RunEnd
from factory.workflows import WORKFLOWS

from .visiting import IMAGE, Run

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


@pytest.fixture
def ada() -> User:
    return User.objects.create_user("ada", password="x")


@pytest.fixture
def client_of(settings: Any, store: SnapshotStore) -> Callable[[User | None], Client]:
    settings.FACTORY_SNAPSHOT_ROOT = store.root

    def client_of(user: User | None) -> Client:
        client = Client()
        if user is not None:
            client.force_login(user)
        return client

    return client_of


@pytest.fixture
def owner(client_of: Callable[[User | None], Client], ada: User) -> Client:
    return client_of(ada)


@pytest.fixture
def built(run: Run, ada: User, tmp_path: Path) -> Iterator[int]:
    """A run of Ada's with a prompt file, a context folder, an image, and one unreadable reply."""
    task = tmp_path / "task.md"
    task.write_text("Write a slugify command.\n")
    context = tmp_path / "context"
    context.mkdir()
    (context / "notes.md").write_text("Use hyphens.")
    (context / "blob.bin").write_bytes(b"\xff\x00")
    (context / "drawing.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>')
    (context / "link").symlink_to("/etc/passwd")
    run_id, _ = run(
        str(task),
        provider=Rehearsal(frozenset({"parse"})),
        owner_id=ada.pk,
        context=str(context),
        attach=[str(IMAGE)],
    )
    yield run_id
