"""What the pages and the collector read: runs, attempts, inputs, each within what the user may see.

Access is decided in the getters; what is not the user's raises Http404, as if it were not there. The number of
queries does not depend on how many attempts or inputs there are.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Case, Count, Exists, F, Max, Min, OuterRef, Q, QuerySet, Sum, Value, When, Window
from django.db.models.functions import Coalesce, Substr
from django.shortcuts import get_object_or_404

from agentlab.common.access import User, visible
from agentlab.common.paging import page_number
from factory.artifacts import Artifact, Refused, StoredCopy, load
from factory.asked import OPENING, asked_in_short
from factory.fields import ExactTextField
from factory.items import PacketItem
from factory.models import AgentAttempt, AgentAttemptInput, AttemptState, FactoryRun, State
from factory.panel import AttemptFacts, InputPanel, Recorded, build_panel, find_prior_turns

PAGE = 25
ATTEMPTS_SHOWN = 100
_BODIES = ("system_prompt", "user_prompt", "task_prompt", "reply", "launch_command", "check_output")


@dataclass(frozen=True, slots=True)
class RunQuery:
    """What is looked for; empty values look for everything. Dates are whole days in UTC, the last one included."""

    words: str = ""
    model: str = ""
    state: str = ""
    since: date | None = None
    until: date | None = None


@dataclass(frozen=True, slots=True)
class RunPage:
    """Runs, newest first, each with its `models` (see `ModelsUsed`). A cursor is the id after which the next page
    begins, or None where there is none."""

    rows: Sequence[Any]
    newer: int | None
    older: int | None


def list_runs(user: User, query: RunQuery, *, before: int | None = None, after: int | None = None) -> RunPage:
    """One page of the runs. It goes by their ids, which never tie, so that no run is skipped or shown twice."""
    found = _matching(visible(FactoryRun.objects.all(), user), query)
    if after is not None:
        rows = list(reversed(_summed(found.filter(pk__gt=after).order_by("pk"))[: PAGE + 1]))
        more_newer, rows = len(rows) > PAGE, rows[-PAGE:]
        return RunPage(_with_models(rows), rows[0].pk if rows and more_newer else None, rows[-1].pk if rows else None)
    page = found.filter(pk__lt=before) if before is not None else found
    rows = list(_summed(page.order_by("-pk"))[: PAGE + 1])
    more_older, rows = len(rows) > PAGE, rows[:PAGE]
    newer, older = rows[0].pk if rows and before is not None else None, rows[-1].pk if more_older else None
    return RunPage(_with_models(rows), newer, older)


def _matching(runs: QuerySet[FactoryRun], query: RunQuery) -> QuerySet[FactoryRun]:
    if query.words:
        runs = runs.filter(task__icontains=query.words)
    if query.model:
        attempts = AgentAttempt.objects.filter(run=OuterRef("pk"), model__icontains=query.model)
        runs = runs.filter(Exists(attempts))
    if query.state:
        runs = runs.filter(state=query.state)
    if query.state == State.SUCCEEDED:  # where no model was asked anything, nothing has succeeded
        asked = AgentAttempt.objects.filter(run=OuterRef("pk")).exclude(state=AttemptState.NOT_ASKED)
        runs = runs.filter(Q(source_format="") | Exists(asked))
    if query.since:
        runs = runs.filter(started_at__gte=_midnight(query.since))
    if query.until:
        runs = runs.filter(started_at__lt=_midnight(query.until) + timedelta(days=1))
    return runs


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _summed(runs: QuerySet[FactoryRun]) -> QuerySet[FactoryRun, Any]:
    return runs.select_related("owner").annotate(
        attempt_count=Count("attempts"),
        asked_count=Count("attempts", filter=~Q(attempts__state=AttemptState.NOT_ASKED)),
        tokens_in=Sum("attempts__input_tokens"),
        tokens_cached=Sum("attempts__cached_input_tokens"),
        tokens_out=Sum("attempts__output_tokens"),
        total_cost=Sum("attempts__cost"),
    )


@dataclass(frozen=True, slots=True)
class ModelsUsed:
    """The models of a run's attempts with the number of attempts of each, the most used first. An attempt that names
    none does not count."""

    counts: tuple[tuple[str, int], ...] = ()

    @property
    def first(self) -> str:
        return self.counts[0][0] if self.counts else ""

    @property
    def others(self) -> int:
        return max(0, len(self.counts) - 1)


def models_of(runs: Iterable[int]) -> dict[int, ModelsUsed]:
    """The models of each run. One query."""
    named = AgentAttempt.objects.filter(run__in=list(runs)).exclude(model="").order_by()
    found: dict[int, list[tuple[str, int]]] = {}
    for run_id, model, count in named.values_list("run_id", "model").annotate(Count("pk")):
        found.setdefault(run_id, []).append((model, count))
    return {pk: ModelsUsed(tuple(sorted(counts, key=lambda one: (-one[1], one[0])))) for pk, counts in found.items()}


def _with_models(rows: Sequence[Any]) -> Sequence[Any]:
    used = models_of(row.pk for row in rows)
    for row in rows:
        row.models = used.get(row.pk, ModelsUsed())
    return rows


def newest_runs(user: User, count: int) -> list[Any]:
    """The newest runs that the user may see, each with whether a model `was_asked` anything in it."""
    asked = AgentAttempt.objects.filter(run=OuterRef("pk")).exclude(state=AttemptState.NOT_ASKED)
    runs = visible(FactoryRun.objects.select_related("owner"), user).annotate(was_asked=Exists(asked))
    return list(runs.order_by("-pk")[:count])


def get_run(user: User, run_id: int) -> FactoryRun:
    """Raises Http404."""
    return get_object_or_404(visible(FactoryRun.objects.select_related("owner"), user), pk=run_id)


def attempts_of(run: FactoryRun) -> list[AgentAttempt]:
    """A run's attempts in their order, without their texts."""
    return list(run.attempts.defer(*_BODIES).order_by("number"))


@dataclass(frozen=True, slots=True)
class AttemptPage:
    """Some of a run's attempts, in their order, and what is so of all of them: how many there are, how many a model
    was asked, and between which times. Each row has the numbers of the attempts that it `retries` and `follows`."""

    rows: Sequence[Any]
    number: int = 1
    pages: int = 1
    count: int = 0
    asked: int = 0
    began: datetime | None = None
    ended: datetime | None = None

    @property
    def first(self) -> int:
        return (self.number - 1) * ATTEMPTS_SHOWN + 1

    @property
    def last(self) -> int:
        return self.first + len(self.rows) - 1


def page_of_attempts(run: FactoryRun, wanted: str | None) -> AttemptPage:
    """One page of a run's attempts; what is beyond the last page is the last. One query, however many there are."""
    every = run.attempts.defer(*_BODIES).order_by("number")
    every = every.annotate(
        retries=F("retry_of_attempt__number"),
        follows=F("previous_turn_attempt__number"),
        of_all=Window(Count("pk")),
        of_asked=Window(Count("pk", filter=~Q(state=AttemptState.NOT_ASKED))),
        began=Window(Min("started_at")),
        last=Window(Max(Coalesce("ended_at", "started_at"))),
    )
    number = page_number(wanted, 10**6)
    rows = list(every[(number - 1) * ATTEMPTS_SHOWN : number * ATTEMPTS_SHOWN])
    if not rows and number > 1:
        number = max(1, -(-run.attempts.count() // ATTEMPTS_SHOWN))
        rows = list(every[(number - 1) * ATTEMPTS_SHOWN : number * ATTEMPTS_SHOWN])
    if not rows:
        return AttemptPage(rows)
    one = rows[0]
    return AttemptPage(rows, number, -(-one.of_all // ATTEMPTS_SHOWN), one.of_all, one.of_asked, one.began, one.last)


def asked_of(attempts: Iterable[AgentAttempt]) -> dict[str, str | None]:
    """By attempt: the first line of what it was asked, None where that was not recorded. One query, which reads no more
    than the beginning of each message."""
    rows = AgentAttempt.objects.filter(pk__in=[one.pk for one in attempts])
    opening = Substr("user_prompt", 1, OPENING, output_field=ExactTextField())
    found = rows.annotate(opening=opening).values_list("pk", "opening")
    return {pk: None if text is None else asked_in_short(text) for pk, text in found}


def page_with(number: int) -> int:
    """On which page of its run an attempt stands, as attempts are numbered from 1 on without a gap."""
    return -(-number // ATTEMPTS_SHOWN)


def snapshots_of(run: FactoryRun) -> dict[str, int]:
    """How many snapshots of a run are kept, and their bytes."""
    kept = AgentAttemptInput.objects.filter(attempt__run=run, artifact_status="available")
    found = kept.aggregate(count=Count("pk"), bytes=Sum("size_bytes"))
    return {"count": found["count"], "bytes": found["bytes"] or 0}


def get_attempt(user: User, run_id: int, number: int) -> AgentAttempt:
    """Raises Http404."""
    return get_object_or_404(_attempts(user), run_id=run_id, number=number)


def get_attempt_by_id(user: User, attempt_id: str) -> AgentAttempt:
    """Raises Http404."""
    return get_object_or_404(_attempts(user), pk=attempt_id)


def _attempts(user: User) -> QuerySet[AgentAttempt]:
    return visible(AgentAttempt.objects.select_related("run"), user, owner="run__owner")


def get_input(user: User, input_id: int) -> AgentAttemptInput:
    """Raises Http404."""
    inputs = AgentAttemptInput.objects.select_related("attempt", "attempt__run").defer(
        *(f"attempt__{name}" for name in _BODIES)
    )
    return get_object_or_404(visible(inputs, user, owner="attempt__run__owner"), pk=input_id)


def load_artifact(row: AgentAttemptInput) -> Artifact:
    """The input's stored bytes. Raises artifacts.Refused."""
    try:
        return load(settings.FACTORY_SNAPSHOT_ROOT, _stored(row))
    except Refused:
        was = row.artifact_status
        row.refresh_from_db(fields=["artifact_status", "detail"])
        if row.artifact_status == was:
            raise
    return load(settings.FACTORY_SNAPSHOT_ROOT, _stored(row))  # evicted since the row was read: it says so


def _stored(row: AgentAttemptInput) -> StoredCopy:
    return StoredCopy(
        attempt_id=row.attempt_id,
        seq=row.seq,
        sha256=row.sha256,
        preview_kind=row.preview_kind,
        artifact_status=row.artifact_status,
        detail=row.detail,
    )


def panel_of(attempt: AgentAttempt) -> InputPanel:
    """The attempt's panel, with the earlier turns of its session found among its run's attempts."""
    mine = facts_of(attempt, attempt.inputs.order_by("seq"))
    others = AgentAttempt.objects.filter(run_id=attempt.run_id).exclude(pk=attempt.pk).defer(*_BODIES)
    if attempt.task_prompt is None:
        # Only a message that our templates opened can give its task; the others' text stays where it is.
        opened = When(user_prompt__startswith="### phase", then=F("user_prompt"))
        others = others.annotate(opening=Case(opened, default=Value(None), output_field=ExactTextField()))
        others = others.annotate(stable=F("task_prompt"))
    return build_panel(mine, find_prior_turns(mine, [facts_of(other) for other in others]))


def facts_of(row: AgentAttempt, inputs: Sequence[AgentAttemptInput] | QuerySet[AgentAttemptInput] = ()) -> AttemptFacts:
    """The row as plain values. Of a row whose texts were left out, they stay out."""
    whole = "user_prompt" not in row.get_deferred_fields()
    return AttemptFacts(
        attempt_id=row.pk,
        number=row.number,
        phase=row.phase,
        session_id=row.session_id,
        started_at=row.started_at,
        system_prompt=row.system_prompt if whole else None,
        user_prompt=row.user_prompt if whole else getattr(row, "opening", None),
        task_prompt=row.task_prompt if whole else getattr(row, "stable", None),
        send_kind=row.send_kind,
        turn_index=row.turn_index,
        previous_turn_attempt_id=row.previous_turn_attempt_id,
        retry_of_attempt_id=row.retry_of_attempt_id,
        coverage=row.input_coverage,
        declared=row.declared_input_count,
        captured=row.captured_input_count,
        omitted=row.omitted_input_count,
        inputs=tuple(Recorded(one.pk, _item(one)) for one in inputs),
    )


def _item(row: AgentAttemptInput) -> PacketItem:
    return PacketItem(**{name: getattr(row, name) for name in PacketItem.__slots__})
