"""One of everything that a URL can speak of, all of it owned by `owner`."""

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from django.contrib.auth.models import User

from agentlab.agents.models import Agent, AgentVersion, Whisper
from agentlab.persona.executors import Inline
from agentlab.persona.runner import Runner
from agentlab.persona.runs import create
from agentlab.persona.study import read_study
from factory.models import AgentAttempt, AgentAttemptInput, AgentToolCall, FactoryRun
from tests.capture import making
from tests.persona import making as studies

MOMENT = datetime(2026, 11, 29, 14, 2, tzinfo=UTC)
SECRET = "PRIVATE-" + hashlib.sha256(b"only the owner may read this").hexdigest()[:12]


@dataclass(frozen=True)
class World:
    """The ids that stand in the URLs, by the names that `routes.py` uses."""

    run: int
    attempt: str
    input: int
    study: int
    whisper: int


def build(owner: User, snapshots: Path) -> World:
    """Writes it all, snapshots into that folder; every text that is an owner's carries SECRET."""
    agent = Agent.objects.create(id="rocky", name=f"Rocky {SECRET}", owner=owner)
    AgentVersion.objects.create(
        id="rocky-v1",
        agent=agent,
        number=1,
        base_prompt=SECRET,
        strategy=SECRET,
        skills=[{"name": "x", "text": SECRET}],
    )
    making.play([making.turn("rocky", 0, table="T-1", hand=7, response=SECRET)])
    run = FactoryRun.objects.create(
        owner=owner,
        workflow="ask",
        provider="rehearsal",
        state="succeeded",
        task=SECRET,
        started_at=MOMENT,
        ended_at=MOMENT,
    )
    attempt = AgentAttempt.objects.create(
        attempt_id="a" * 32,
        run=run,
        number=1,
        phase="ask",
        provider="rehearsal",
        state="succeeded",
        task_prompt=SECRET,
        user_prompt=SECRET,
        started_at=MOMENT,
        ended_at=MOMENT,
    )
    AgentToolCall.objects.create(attempt=attempt, seq=1, name="read", arguments=SECRET, output=SECRET)
    item = AgentAttemptInput.objects.create(
        attempt=attempt,
        seq=1,
        label=f"notes {SECRET}.md",
        source_path=f"notes {SECRET}.md",
        source_kind="workspace_file",
        delivery_mode="available_path",
        media_type="text/plain",
        preview_kind="text",
        size_bytes=len(SECRET),
        sha256=hashlib.sha256(SECRET.encode()).hexdigest(),
        capture_status="captured",
        artifact_status="available",
    )
    (snapshots / attempt.pk).mkdir()
    (snapshots / attempt.pk / "1").write_text(SECRET)
    whisper = Whisper.objects.create(agent=agent, author=owner, text=SECRET)
    return World(run.pk, attempt.pk, item.pk, _study(owner, snapshots), whisper.pk)


def _study(owner: User, folder: Path) -> int:
    content = studies.study(name=SECRET, schedule={"turns": 3}, stimuli=[{"text": SECRET, "stances": {"levy": 0.8}}])
    run = create(read_study(studies.written(folder, content)), executor="inline", owner_id=owner.pk)
    Runner(run, Inline()).go()
    return run.pk
