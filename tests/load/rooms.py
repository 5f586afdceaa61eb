"""Studies and factory runs: one that was really made, and as many like it as a world wants."""

import tempfile
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.db import connection

from agentlab.persona.executors import Inline
from agentlab.persona.models import Checkpoint, StudyPersona, StudyRun, TraceEvent
from agentlab.persona.runner import Runner
from agentlab.persona.runs import create
from agentlab.persona.study import read_study
from factory.models import AgentAttempt, AgentAttemptInput, AgentToolCall, FactoryRun, RunNote
from tests.load.loading import Say, load
from tests.persona import making as studies

MIDDLING = (10, 20)  # personas and turns of the studies that fill the tables
CLONES = 100  # studies in one statement
WORDS = ("parser", "migration", "login form", "README", "flaky test", "importer", "cache", "release")
TEXT = "Read the files that you were given, change what the task asks for, and say what you changed and why. "
COLUMNS = {
    StudyPersona: "number, key, name, failed",
    Checkpoint: "persona, turn, state",
    TraceEvent: "persona, turn, sequence, kind, label, payload, seal",
}


def study_runs(count: int, many: User, few: User, end: datetime, say: Say) -> None:
    """Studies of the middling kind."""
    first = study(MIDDLING, many)
    facts = StudyRun.objects.filter(pk=first.pk).values().get()
    del facts["id"]
    for number in range(count):
        owner = few if number < 3 else many
        facts |= {"name": f"Levy, {WORDS[number % len(WORDS)]} {number}", "owner_id": owner.pk}
        facts |= {"started_at": end - timedelta(hours=count - number)}
        StudyRun.objects.create(**facts)
    last = StudyRun.objects.latest("id").pk
    for low in range(first.pk, last, CLONES):
        say(f"studies: {low - first.pk} of {count}")
        for model in COLUMNS:
            _clone(model, first.pk, low, min(low + CLONES, last))


def study(size: tuple[int, int], owner: User) -> StudyRun:
    """A study that is really run."""
    content = studies.crowd(*size, reflection={"batch": 5, "at": 3}, probes={"every": 10, "fields": ["age"]})
    with tempfile.TemporaryDirectory() as folder:
        made = read_study(studies.written(Path(folder), content))
    return Runner(create(made, executor="inline", owner_id=owner.pk), Inline()).go()


def _clone(model: Any, source: int, after: int, until: int) -> None:
    """The rows of one study for those after `after` up to `until`."""
    names = COLUMNS[model]
    table, runs = model._meta.db_table, StudyRun._meta.db_table
    values = ", ".join(f"one.{name}" for name in names.split(", "))
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} (run_id, {names}) SELECT run.id, {values} FROM {table} one CROSS JOIN {runs} run "
            "WHERE one.run_id = %s AND run.id > %s AND run.id <= %s",
            [source, after, until],
        )


RUN = ("owner", "workflow", "provider", "task", "request_kind", "state", "source_format", "started_at", "ended_at")
ATTEMPT = (
    *("attempt_id", "run", "number", "phase", "provider", "model", "session_id", "system_prompt", "user_prompt"),
    *("reply", "state", "failure", "error", "input_tokens", "output_tokens", "cost", "duration_ms", "started_at"),
    *("ended_at", "task_prompt", "send_kind", "turn_index", "input_coverage", "declared_input_count"),
    *("captured_input_count", "omitted_input_count"),
)
INPUT = (
    *("attempt", "seq", "label", "source_kind", "delivery_mode", "source_path", "media_type", "preview_kind"),
    *("size_bytes", "sha256", "capture_status", "artifact_status"),
)
TOOL = ("attempt", "seq", "name", "arguments", "output", "output_bytes", "masked", "is_error", "duration_ms")


def factory_runs(count: int, many: User, few: User, end: datetime, say: Say) -> int:
    """Runs of two to eight attempts, with inputs, tool calls and a note; the last one's number. It has eight."""
    before = FactoryRun.objects.count()
    load(FactoryRun, _filled(FactoryRun, RUN), _padded(FactoryRun, RUN, _runs(count, many, few, end)))
    ids = list(FactoryRun.objects.order_by("id").values_list("id", flat=True))[before:]
    attempts = [
        (run, n, f"{run:016x}{n:016x}") for run in ids for n in range(1, (8 if run == ids[-1] else 2 + run % 7) + 1)
    ]
    say(f"factory: {len(attempts):,} attempts")
    load(AgentAttempt, _filled(AgentAttempt, ATTEMPT), _padded(AgentAttempt, ATTEMPT, _attempts(attempts, end)))
    load(AgentAttemptInput, INPUT, (_input(one, seq) for _, _, one in attempts for seq in (1, 2, 3)), say)
    load(AgentToolCall, TOOL, (_tool(one, seq) for _, _, one in attempts for seq in range(1, 9)), say)
    load(RunNote, ("run", "text", "is_error", "at"), ((run, "A budget was hit.", False, end) for run in ids))
    return ids[-1]


def _runs(count: int, many: User, few: User, end: datetime) -> Iterator[tuple[Any, ...]]:
    for number in range(count):
        began = end - timedelta(hours=count - number)
        owner = few if number < 3 else many
        state = "failed" if number % 9 == 0 else "succeeded"
        task = f"Mend the {WORDS[number % len(WORDS)]}. {TEXT * (3 + number % 9)}"
        flow = ("build", "ask", "review")[number % 3]
        yield (owner.pk, flow, "rehearsal", task, "inline_text", state, "", began, began + timedelta(minutes=20))


def _attempts(attempts: list[tuple[int, int, str]], end: datetime) -> Iterator[tuple[Any, ...]]:
    for run, number, key in attempts:
        began = end - timedelta(minutes=number)
        yield (
            *(key, run, number, "build", "rehearsal", ("small-1", "large-2")[run % 2], f"s{run}", TEXT * 40, TEXT * 30),
            *(TEXT * 20, "succeeded", "", "", 2000, 300, "0.01", 9000, began, began + timedelta(seconds=9)),
            *(TEXT * 5, "initial" if number == 1 else "gate_retry", number, "complete", 3, 3, 0),
        )


def _input(attempt: str, seq: int) -> tuple[Any, ...]:
    name = f"notes-{seq}.md"
    kind = ("prompt_file", "context_handoff", "explicit_attachment")[seq % 3]
    return (attempt, seq, name, kind, "inline", name, "text/plain", "text", 400, "0" * 64, "captured", "evicted")


def _tool(attempt: str, seq: int) -> tuple[Any, ...]:
    return (attempt, seq, ("read", "edit", "bash")[seq % 3], '{"path": "a.py"}', TEXT * 15, 1500, 0, False, 40)


def _empty(model: Any, names: tuple[str, ...]) -> list[Any]:
    """The text columns that a row may leave empty and not null."""
    return [
        column
        for column in model._meta.concrete_fields
        if column.name not in names and not column.null and not column.primary_key
    ]


def _filled(model: Any, names: tuple[str, ...]) -> tuple[str, ...]:
    return (*names, *(column.name for column in _empty(model, names)))


def _padded(model: Any, names: tuple[str, ...], rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    rest = [column.get_default() for column in _empty(model, names)]
    return ((*row, *rest) for row in rows)
