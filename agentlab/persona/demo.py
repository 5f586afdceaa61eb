"""The study that ships with the project, finished and verified, so that a new site has one to look at."""

from pathlib import Path

from agentlab.persona import runs
from agentlab.persona.executors import Inline
from agentlab.persona.models import StudyRun
from agentlab.persona.replaying import Moving, verify
from agentlab.persona.runner import Runner
from agentlab.persona.study import read_study

FIRST = Path(__file__).parent / "studies" / "first.yaml"


def ensure_first_study(owner_id: int) -> StudyRun:
    """The owner's run of it: the one that is there, gone on with if it was cut short, else a new one. One that another
    process is at, or that cannot be gone on with, is left as it is; its page says how it stands."""
    study = read_study(FIRST)
    run = StudyRun.objects.filter(study_sha256=study.sha256, owner=owner_id).order_by("id").first()
    try:
        if run is None:
            run = Runner(runs.create(study, executor="inline", owner_id=owner_id), Inline()).go()
        elif run.status != StudyRun.Status.COMPLETE:
            run = Runner(runs.claim(run.pk, executor="inline"), Inline()).go()
        if run.replay != StudyRun.Replay.SAME:
            verify(run)
    except (runs.RunError, Moving):
        if run is None:
            raise
    run.refresh_from_db()
    return run
