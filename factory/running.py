"""Start a run with this site's settings: what the command and the demonstration call."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from django.conf import settings

from factory.calls import Attachment, Included
from factory.checks import run_check
from factory.media import TEXT, recognise
from factory.phases import Workflow
from factory.providers import Endpoint, Provider, provider_named
from factory.recording import RunRecorder
from factory.resolve import RequestError, ResolvedRequest, display_path, one_line, read_file
from factory.retention import DiskLimits, SnapshotStore
from factory.snapshots import MAX_FILE_BYTES
from factory.tracing import Rows, Tracer
from factory.workflow import Job, RunEnd, WorkflowRun


def snapshot_store() -> SnapshotStore:
    """The store that the settings describe, ready to use. Raises StoreError."""
    limits = DiskLimits(
        budget=settings.FACTORY_SNAPSHOT_BUDGET_BYTES,
        min_free=settings.FACTORY_MIN_FREE_BYTES,
        run_cap=settings.FACTORY_RUN_CAP_BYTES,
    )
    store = SnapshotStore(settings.FACTORY_SNAPSHOT_ROOT, limits, Rows())
    store.prepare()
    return store


def provider_for(spec: str) -> Provider:
    """The provider of this name, with this site's endpoint. Raises ProviderError."""
    model = settings.AGENTLAB_MODEL
    # "house" is the poker table's built-in model, which no endpoint serves.
    endpoint = Endpoint(settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY, "" if model == "house" else model)
    return provider_named(spec, endpoint=endpoint, project=settings.BASE_DIR)


def make_job(
    request: ResolvedRequest,
    provider: Provider,
    *,
    context: str | None = None,
    attach: Sequence[str] = (),
    check: str | None = None,
) -> Job:
    """What a run is to do, each attached file read once. Raises RequestError for what cannot be given to it."""
    if context is not None and not provider.has_tools:
        raise RequestError(f"{provider.name} has no tools to read a folder with; --attach sends a file along")
    if check is not None and not _is_utf8(check):
        raise RequestError("the check is not valid UTF-8, so no message can tell it")
    included: list[Included] = []
    attachments: list[Attachment] = []
    for path in attach:
        data = read_file(path, MAX_FILE_BYTES)
        if data is None:
            raise RequestError(f"there is no file {display_path(path)}")
        label, media = display_path(os.path.basename(path)), recognise(data)  # noqa: PTH119
        attachment = Attachment(label, os.path.abspath(path), media.media_type, data)  # noqa: PTH100
        if media.media_type == TEXT:
            included.append(Included(label, "explicit_attachment", data, attachment.path))
        elif provider.accepts(attachment):
            attachments.append(attachment)
        else:
            raise RequestError(f"{provider.name} cannot take {label} ({media.media_type})")
    return Job(request, tuple(included), tuple(attachments), _context_root(context), check)


def run_job(
    workflow: Workflow,
    job: Job,
    provider: Provider,
    store: SnapshotStore,
    *,
    owner_id: int | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> tuple[int, RunEnd]:
    """Carry a job out and record it: the run's number and how it ended. Raises ProviderError, or what the database
    raises; the run then stands as failed."""
    with store.running() as token:
        tracer = Tracer.start(
            job.request, workflow=workflow.name, provider=provider.name, owner_id=owner_id, process=token
        )
        try:
            end = _carry_out(workflow, job, provider, store, tracer, progress)
        except KeyboardInterrupt:  # between two attempts; within one it is the workflow's
            tracer.end("cancelled")
            raise
        except Exception as error:
            tracer.note(f"{type(error).__name__}: {error}", is_error=True)
            tracer.end("failed")
            raise
        if end.reason:
            tracer.note(end.reason, is_error=end.state == "failed")
        tracer.end(end.state)
        return tracer.run.pk, end


def _carry_out(
    workflow: Workflow,
    job: Job,
    provider: Provider,
    store: SnapshotStore,
    tracer: Tracer,
    progress: Callable[[str], None],
) -> RunEnd:
    workspace = _workspace(tracer.run.pk)
    tracer.place(str(workspace))
    progress(f"run {tracer.run.pk}, workspace {workspace}")
    session = provider.open(workspace, tracer.run.pk)
    try:
        return WorkflowRun(
            workflow,
            job,
            session,
            RunRecorder(tracer, store, provider.name, secrets=_secrets()),
            check=lambda command: run_check(command, workspace),
            progress=progress,
        ).run()
    finally:
        session.close()


def _secrets() -> list[str]:
    """What must not be kept when a tool has printed it."""
    database = settings.DATABASES["default"].get("PASSWORD")
    named = (settings.SECRET_KEY, settings.AGENT_CAPTURE_SERVICE_KEY, settings.OPENAI_API_KEY, database)
    urls = (settings.AGENT_CAPTURE_REDIS_URL, settings.CACHE_URL, settings.OPENAI_BASE_URL)
    passwords = [_password(url) for url in urls if url]
    return [str(secret) for secret in {*named, *passwords, *map(unquote, passwords)} if secret]


def _password(url: str) -> str:
    try:
        return urlsplit(url).password or ""
    except ValueError:
        return ""


def _is_utf8(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _workspace(run_id: int) -> Path:
    """A new folder in which this run's agent works, kept afterwards: it holds what was built.

    A database that was set back gives a number again whose folder is still there: that is left as it is.
    """
    root = Path(settings.STATE_DIR) / "workspaces"
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder, times = root / f"run-{run_id}", 1
    while folder.exists():
        times += 1
        folder = root / f"run-{run_id}-{times}"
    folder.mkdir(mode=0o700)
    return folder


def _context_root(path: str | None) -> str | None:
    """The folder's own path: a link that the user named is resolved here, once, and never again."""
    if path is None:
        return None
    real = os.path.realpath(path)
    if not os.path.isdir(real):  # noqa: PTH112
        raise RequestError(f"{display_path(path)} is not a folder")
    if one_line(display_path(real)) != real:
        raise RequestError(f"the name of {display_path(path)} holds what no message can tell")
    return real
