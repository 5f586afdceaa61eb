"""What a local site shows on its first day: one run of the rehearsal, and one session that another tool recorded."""

from pathlib import Path

from django.contrib.auth.models import User

from factory.importing import import_path
from factory.models import FactoryRun
from factory.providers.rehearsal import Rehearsal
from factory.resolve import resolve_request
from factory.running import make_job, run_job, snapshot_store
from factory.workflows import WORKFLOWS

EXAMPLES = Path(__file__).parent / "examples"


def ensure_examples(owner: User) -> None:
    """Give the owner both, unless there is a run of theirs already. Raises StoreError."""
    if FactoryRun.objects.filter(owner=owner).exists():
        return
    provider = Rehearsal(frozenset({"check"}))
    job = make_job(
        resolve_request(str(EXAMPLES / "task.md"), force="file"),
        provider,
        context=str(EXAMPLES / "context"),
        check="cat build.txt; grep -q done build.txt",
    )
    run_job(WORKFLOWS["build"], job, provider, snapshot_store(), owner_id=owner.pk)
    for _ in import_path(EXAMPLES / "session.jsonl", owner_id=owner.pk):
        pass
