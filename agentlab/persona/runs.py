"""The life of a run around its turns: made, claimed by one runner at a time, taken over when that one is gone."""

import os
import socket
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import msgspec
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from agentlab.common.databases import place
from agentlab.persona.adapters import ports
from agentlab.persona.models import StudyDefinition, StudyPersona, StudyRun
from agentlab.persona.ports import PortFailed
from agentlab.persona.study import Study, StudyHead, study_from
from agentlab.persona.values import UNREADABLE, Invalid

SILENCE = timedelta(minutes=15)  # after which a runner on another machine counts as gone: it may wait for a model


class RunError(Exception):
    """Says in one line why a study cannot run, or goes on no more."""


def study_of(run: StudyRun) -> Study:
    """The run's study, with all its personas. Raises `RunError` where it is not the one that the run was made of."""
    study = study_from(_definition(run))
    if study.sha256 != run.study_sha256:
        raise RunError(f"what is stored of study {run.pk} is not what it was made of")
    return study


def head_of(run: StudyRun) -> StudyHead | None:
    """The run's study without its personas and stimuli, which may be many; None where it cannot be read."""
    try:
        return msgspec.msgpack.decode(_definition(run), type=StudyHead)
    except (RunError, *UNREADABLE):
        return None


def _definition(run: StudyRun) -> bytes:
    stored = StudyDefinition.objects.filter(pk=run.study_sha256).values_list("data", flat=True).first()
    if stored is None:
        raise RunError(f"study {run.pk} has lost its definition")
    return bytes(stored)


def stored(run_id: int) -> StudyRun:
    """Raises `RunError` where there is none."""
    run = StudyRun.objects.filter(pk=run_id).first() if 0 < run_id < 2**63 else None
    if run is None:
        raise RunError(f"there is no study {run_id} in {place()}")  # there may be several databases
    return run


def create(study: Study, *, executor: str, owner_id: int | None = None) -> StudyRun:
    """A new run of a study, with all its personas; nothing of an earlier run is in it. Raises `RunError`."""
    embedder, model = _identities(study)
    data = study.to_bytes()
    with transaction.atomic():
        # For update: who deletes the last run of the same file at this moment must not take it away from this one.
        StudyDefinition.objects.select_for_update().get_or_create(sha256=study.sha256, defaults={"data": data})
        run = StudyRun.objects.create(
            owner_id=owner_id,
            name=study.name,
            study_sha256=study.sha256,
            seed=study.seed,
            embedder=embedder,
            model=model,
            executor=executor[:200],
            personas=len(study.personas),
            turns_each=study.turns,
            runner=_me(),
        )
        people = [StudyPersona(run=run, number=n, key=one.id, name=one.name) for n, one in enumerate(study.personas)]
        StudyPersona.objects.bulk_create(people, batch_size=500)
    return run


def claim(run_id: int, *, executor: str) -> StudyRun:
    """The run, for this process to go on with. Failed personas get another chance.

    Raises `RunError` where another runner is alive, the embedder or the model is not the one that the study began with,
    or there is nothing left to do.
    """
    run = stored(run_id)
    if run.status == StudyRun.Status.COMPLETE:
        raise RunError(f"study {run_id} is complete")
    if run.status == StudyRun.Status.RUNNING and _alive(run):
        host, process, _ = run.runner.rsplit(":", 2)
        ago = int((timezone.now() - run.updated_at).total_seconds())
        raise RunError(f"study {run_id} is running in process {process} of {host}, last heard of {ago} s ago")
    try:
        embedder, model = _identities(study_of(run))
    except Invalid as error:
        raise RunError(f"study {run_id} cannot be read: {error}") from None
    if (embedder, model) != (run.embedder, run.model):
        began = f"{run.embedder} and {run.model or 'no model'}"
        raise RunError(f"study {run_id} began with {began}, and would go on with {embedder} and {model or 'no model'}")
    with transaction.atomic():
        mine = StudyRun.objects.filter(pk=run_id, epoch=run.epoch).update(
            epoch=F("epoch") + 1,
            status=StudyRun.Status.RUNNING,
            runner=_me(),
            executor=executor[:200],
            updated_at=timezone.now(),
        )
        if not mine:
            raise RunError(f"another runner has just taken study {run_id}")
        StudyPersona.objects.filter(run=run_id).exclude(failed="").update(failed="")
    run.refresh_from_db()
    return run


def is_running(run: StudyRun) -> bool:
    """Does anybody go on with it now? One that was killed is marked as running, and is not."""
    return run.status == StudyRun.Status.RUNNING and (_alive(run) or (run.runner == _me() and not run.silent))


def _identities(study: Study) -> tuple[str, str]:
    """What embedder and model call themselves here and now."""
    try:
        made = ports(study.embedder, study.model)
        return made.embed.id, made.complete.id if made.complete else ""
    except PortFailed as failure:
        raise RunError(str(failure)) from None


def _me() -> str:
    """This process, so that another can tell whether it still lives: host, number, and when it began (numbers are used
    again)."""
    return f"{socket.gethostname()}:{os.getpid()}:{_began(os.getpid())}"


def _alive(run: StudyRun) -> bool:
    if not run.runner:
        return False
    host, process, began = run.runner.rsplit(":", 2)
    if host != socket.gethostname():
        return timezone.now() - run.updated_at < SILENCE
    if not process.isdigit() or int(process) == os.getpid():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return _began(int(process)) == began


def _began(process: int) -> str:
    """Clock ticks from the machine's start to the process', where the kernel tells; "gone" for a zombie."""
    with suppress(OSError, IndexError):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return "gone" if fields[0] == "Z" else fields[19]
    return ""
