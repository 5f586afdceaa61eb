"""A study is deleted whole or not at all: trace, checkpoints, personas, and its file where no other run has it."""

from django.db import transaction
from django.db.models import Avg, F
from django.db.models.functions import Length

from agentlab.common import audit
from agentlab.common.access import User
from agentlab.common.models import Deed
from agentlab.common.numbers import counted, size
from agentlab.persona.models import StudyDefinition, StudyRun, TraceEvent
from agentlab.persona.reading import checkpoint_bytes
from agentlab.persona.runs import RunError, is_running

SAMPLED = 1000  # events that stand for all when the size is told: reading every one would take as long as deleting them
EVENT_BYTES = 120  # of an event beside its payload: place, kind, label, seal, and its entry in the primary key


def holds(run: StudyRun) -> str:
    """What goes with the study, in words: `40 personas, 2,400 turns, 9,000 events, about 3.1 MB`."""
    sample = TraceEvent.objects.filter(run=run).order_by("persona", "turn", "sequence")[:SAMPLED]
    payload = sample.aggregate(mean=Avg(Length("payload")))["mean"] or 0
    about = round(run.events * (payload + EVENT_BYTES)) + checkpoint_bytes(run)
    parts = (counted(run.personas, "persona"), counted(run.turns, "turn"), counted(run.events, "event"))
    return f"{', '.join(parts)}, about {size(about)}"


def check(run: StudyRun) -> None:
    """Raises `RunError` where the study may not be deleted now."""
    if is_running(run):
        raise RunError(f"study {run.pk} is running: stop it first, with Ctrl-C where it runs")


def remove(run: StudyRun, actor: User | None) -> None:
    """Delete it, in one transaction. Django deletes what hangs on a run by one statement a table, so that memory does
    not depend on the trace's length. `actor` stands in the audit, None for the command line. Raises `RunError`."""
    check(run)
    with transaction.atomic():
        # Whoever runs it has no epoch to write in from here on; and who has claimed it since `check` keeps it.
        if not StudyRun.objects.filter(pk=run.pk, epoch=run.epoch).update(epoch=F("epoch") + 1):
            raise RunError(f"study {run.pk} was deleted or gone on with meanwhile")
        StudyRun.objects.filter(pk=run.pk).delete()
        _definition(run.study_sha256)
        detail = ", ".join((counted(run.turns, "turn"), counted(run.events, "event")))
        audit.record(actor, Deed.DELETED, [f"study {run.pk}"], detail=detail, nobody=audit.COMMAND)


def _definition(sha256: str) -> None:
    """The study's file goes with its last run; who makes another at this moment waits for the row (`runs.create`)."""
    kept = StudyDefinition.objects.select_for_update().filter(pk=sha256)
    if list(kept.values_list("pk")) and not StudyRun.objects.filter(study_sha256=sha256).exists():
        kept.delete()
