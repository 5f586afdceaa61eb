"""What is written beside the reading: a turn's charge, and a hand that is kept and let go of."""

import tempfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import count
from pathlib import Path

from django.utils import timezone

from agentlab.agents.charge import Charge, Outcome
from agentlab.agents.ledger_rows import write
from agentlab.agents.models import InferenceCharge
from agentlab.agents.spool import Batch
from agentlab.common.models import AuditEntry
from agentlab.persona.executors import Inline
from agentlab.persona.models import TraceEvent
from agentlab.persona.removing import remove
from agentlab.persona.runner import Runner
from agentlab.persona.runs import create
from agentlab.persona.study import read_study
from capture.pinning import pin, unpin
from tests.load.pages import Page
from tests.load.turns import BUSY
from tests.load.world import HOT, World
from tests.persona import making as studies

NEW = "written-by-load"  # a table that the pages do not speak of


def all_writes(world: World) -> Iterator[Page]:
    for turns in (1, 100):
        yield Page(f"ledger: {turns} turn{'s' if turns > 1 else ''} charged", _charging(turns), _forget)
    yield Page("ledger: 100 outcomes", _outcomes(), _forget)
    yield Page("kept: a hand of one agent", lambda: _did(pin(HOT, 1, agent_id=BUSY, actor=None).pinned), _let_go)
    yield Page("kept: a hand, and let go of it", _unkeep)
    yield Page("study: one run, and deleted", _run_and_delete, _forget_deletions)


def _charging(turns: int) -> Callable[[], int]:
    hands = count(1)

    def visit() -> int:
        hand, now = next(hands), timezone.now()
        rows = [
            Charge(BUSY, NEW, hand, index, now + timedelta(microseconds=index), f"{BUSY}-v3", 4, "house-1", "house")
            for index in range(turns)
        ]
        charges = {row.key: row for row in rows}
        write(Batch(charges, {key: Outcome(key, "recorded") for key in charges}))
        return 200

    return visit


def _outcomes() -> Callable[[], int]:
    """The newest hundred turns of the busy one, said once more to be recorded."""
    rows = InferenceCharge.objects.filter(agent_id=BUSY, capture_outcome="recorded").order_by("-played_at", "-id")[:100]
    keys = [(row.agent_id, row.table_id, row.hand_number, row.action_index) for row in rows]

    def visit() -> int:
        write(Batch(outcomes={key: Outcome(key, "recorded") for key in keys}))
        return 200

    return visit


def _did(turns: int) -> int:
    return 200 if turns == 5 else 500


def _forget() -> None:
    InferenceCharge.objects.filter(table_id=NEW).delete()


def _let_go() -> None:
    unpin(HOT, 1, agent_id=BUSY, actor=None)
    AuditEntry.objects.filter(table_id=HOT, deed__in=("kept", "unkept")).delete()


def _unkeep() -> int:
    """Keeping is in its time too: there must be something to let go of."""
    pin(HOT, 1, agent_id=BUSY, actor=None)
    return _did(unpin(HOT, 1, agent_id=BUSY, actor=None))


def _run_and_delete() -> int:
    """The run is in its time too: there must be something to delete, among the events of all other studies."""
    with tempfile.TemporaryDirectory() as folder:
        study = read_study(studies.written(Path(folder), studies.study(name=NEW)))
    run = Runner(create(study, executor="inline"), Inline()).go()
    remove(run, None)
    return 500 if TraceEvent.objects.filter(run=run.pk).exists() else 200


def _forget_deletions() -> None:
    AuditEntry.objects.filter(deed="deleted").delete()
