"""The tracer: the only writer of runs, attempts, inputs and tool calls.

An attempt and its inputs are committed together, after the capture and before the provider is asked; what came of
it is written when it ended.
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Literal

from django.db import transaction
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import Exists, F, Max, OuterRef, QuerySet, TextField, Value
from django.db.models.functions import Concat
from django.utils import timezone

from agentlab.common.numbers import counted
from factory.calls import AgentCall
from factory.fields import short
from factory.importers.found import SUB_AGENT, FoundAttempt, FoundSession
from factory.importers.trace_database import TracedAttempt
from factory.items import PacketItem
from factory.models import (
    AgentAttempt,
    AgentAttemptInput,
    AgentToolCall,
    ArtifactStatus,
    AttemptState,
    Coverage,
    FactoryRun,
    Failure,
    RunNote,
    State,
)
from factory.outcomes import AttemptEnd, EndState, ToolCall
from factory.packets import AgentInputPacket
from factory.resolve import ResolvedRequest
from factory.retention import StoredInput
from factory.values import total


class Tracer:
    """Writes one run. `number` counts its attempts in the order in which they are recorded."""

    def __init__(self, run: FactoryRun) -> None:
        self.run = run
        self.number = 0

    @classmethod
    def start(
        cls, request: ResolvedRequest, *, workflow: str, provider: str, owner_id: int | None, process: str = ""
    ) -> "Tracer":
        """Open a run. `process` is the token of the lock that its process holds."""
        return cls(
            FactoryRun.objects.create(
                owner_id=owner_id,
                workflow=workflow,
                provider=short(provider, NAME),
                task=request.text,
                request_kind=request.source_kind,
                request_path=request.path,
                request_bytes=request.byte_count,
                request_sha256=request.sha256,
                process=process,
                started_at=timezone.now(),
            )
        )

    def place(self, workspace: str) -> None:
        """Say where the run's agent works."""
        FactoryRun.objects.filter(pk=self.run.pk).update(workspace=workspace)

    def record(
        self,
        attempt_id: str,
        call: AgentCall,
        packet: AgentInputPacket,
        *,
        provider: str,
        model: str,
        session_id: str | None,
        launch_command: str,
    ) -> None:
        """Commit the preallocated attempt and its packet, both or neither. Raises the database's error."""
        with transaction.atomic():
            AgentAttempt.objects.create(
                attempt_id=attempt_id,
                run=self.run,
                number=self.number + 1,
                phase=call.phase,
                provider=short(provider, NAME),
                model=short(model, NAME),
                session_id=session_id,
                system_prompt=call.system_prompt,
                user_prompt=call.user_prompt,
                launch_command=launch_command,
                started_at=datetime.now(UTC),
                task_prompt=call.task,
                send_kind=call.send_kind,
                turn_index=packet.lineage.turn_index,
                previous_turn_attempt_id=packet.lineage.previous_turn_attempt_id,
                retry_of_attempt_id=packet.lineage.retry_of_attempt_id,
                input_packet_version=packet.version,
                input_coverage=packet.coverage,
                declared_input_count=packet.declared,
                captured_input_count=packet.captured,
                omitted_input_count=packet.omitted,
            )
            _write_inputs(attempt_id, packet.items)
        self.number += 1

    def finish(self, attempt_id: str, end: AttemptEnd) -> None:
        """Write what came of an attempt and which tools it used."""
        names = ("state", "failure", "error", "duration_ms", "check_command", "check_output")
        values: dict[str, Any] = {name: getattr(end, name) for name in names}
        calls: tuple[ToolCall, ...] = ()
        if reply := end.reply:
            calls = reply.tool_calls
            values["reply"] = reply.text
            values |= {name: getattr(reply, name) for name in _USED}
            values |= {"model": short(reply.model, NAME)} if reply.model else {}
            values |= {"session_id": reply.session_id} if reply.session_id else {}
        with transaction.atomic():
            AgentAttempt.objects.filter(pk=attempt_id).update(**values, ended_at=timezone.now())
            AgentToolCall.objects.bulk_create(
                AgentToolCall(attempt_id=attempt_id, seq=seq, **_columns(call)) for seq, call in enumerate(calls, 1)
            )

    def end(self, state: EndState) -> None:
        """The run is over, and with it an attempt whose own end could not be written."""
        with transaction.atomic():
            FactoryRun.objects.filter(pk=self.run.pk).update(state=state, ended_at=timezone.now())
            _end_attempts(self.run.pk, "the run ended before this attempt did")

    def note(self, text: str, *, is_error: bool = False) -> None:
        RunNote.objects.create(run=self.run, text=text, is_error=is_error, at=timezone.now())


def _columns(record: Any) -> dict[str, Any]:
    return asdict(record)


def _write_inputs(attempt_id: str, items: Iterable[PacketItem]) -> None:
    AgentAttemptInput.objects.bulk_create(
        AgentAttemptInput(
            attempt_id=attempt_id,
            **_columns(item) | {"media_type": None if item.media_type is None else short(item.media_type, MEDIA_TYPE)},
        )
        for item in items
    )


def _end_attempts(run_id: int, why: str) -> None:
    AgentAttempt.objects.filter(run_id=run_id, state=State.RUNNING).update(
        state=State.FAILED, failure=Failure.INTERRUPTED, error=why, ended_at=timezone.now()
    )


class Rows:
    """The rows as the snapshot store sees them (see `retention.SnapshotLedger`)."""

    def evictable(self) -> Iterator[StoredInput]:
        rows = (
            AgentAttemptInput.objects.filter(artifact_status=ArtifactStatus.AVAILABLE)
            .exclude(attempt__state=State.RUNNING)
            .order_by("attempt__started_at", "attempt_id", "seq")
            .values_list("input_id", "attempt_id", "seq", "size_bytes")
        )
        return (StoredInput(input_id, attempt_id, seq, size or 0) for input_id, attempt_id, seq, size in rows)

    def evict(self, input_id: int, reason: str) -> bool:
        row = AgentAttemptInput.objects.filter(pk=input_id, artifact_status=ArtifactStatus.AVAILABLE)
        said = f"{reason} on {timezone.now():%d %b %Y}"
        return bool(
            row.filter(detail=None).update(artifact_status=ArtifactStatus.EVICTED, detail=said)
            or row.update(
                artifact_status=ArtifactStatus.EVICTED,
                detail=Concat(F("detail"), Value(f"; {said}"), output_field=TextField()),
            )
        )

    def attempts_of(self, run_id: int) -> set[str]:
        return set(AgentAttempt.objects.filter(run_id=run_id).values_list("pk", flat=True))

    def known(self, attempt_ids: list[str]) -> dict[str, set[int]]:
        known: dict[str, set[int]] = {}
        for start in range(0, len(attempt_ids), 500):  # SQLite takes no more than so many values in one query
            some = attempt_ids[start : start + 500]
            known |= {pk: set() for pk in AgentAttempt.objects.filter(pk__in=some).values_list("pk", flat=True)}
            available = AgentAttemptInput.objects.filter(attempt_id__in=some, artifact_status=ArtifactStatus.AVAILABLE)
            for attempt_id, seq in available.values_list("attempt_id", "seq"):
                known[attempt_id].add(seq)
        return known

    def identity(self) -> str:
        # When its first table was made: a copy of the database has it too, another database does not.
        applied = MigrationRecorder.Migration.objects.order_by("pk").values_list("applied", flat=True)
        return str(applied.first())

    def interrupted(self, token: str, *, dry_run: bool) -> int | None:
        now = timezone.now()
        running = FactoryRun.objects.filter(process=token, state=State.RUNNING)
        run_id = running.values_list("pk", flat=True).first()
        if run_id is None or dry_run:
            return run_id
        with transaction.atomic():
            running.update(state=State.FAILED, ended_at=now)
            _end_attempts(run_id, "the factory's process ended before this attempt did")
            text = "the factory's process ended before the run did"
            RunNote.objects.create(run_id=run_id, text=text, is_error=True, at=now)
        return run_id


class FoundRun:
    """Writes a run that was read from somebody's file: what it says, and nothing that it does not say."""

    def __init__(self, run: FactoryRun) -> None:
        self.run = run
        self.number = AgentAttempt.objects.filter(run=run).aggregate(last=Max("number"))["last"] or 0
        self._said: dict[str, bool] = {}  # by the note's words: is it a problem?
        self._separate_tasks = False
        self._stated = ""
        self._ended: EndState | None = None
        self._requests: dict[bool, tuple[str, str | None]] = {}  # by a sub-agent? the first attempt and its request

    @classmethod
    def open(cls, session: FoundSession, *, identity: str, owner_id: int | None) -> "FoundRun":
        """The run of this session: the one that an earlier import made, else a new one.

        Called in a transaction, which keeps other imports of the session waiting.
        """
        run, _ = FactoryRun.objects.get_or_create(
            import_identity=identity,
            defaults={
                "owner_id": owner_id,
                "workflow": "imported",
                "provider": session.format,
                "source_format": session.format,
                "workspace": session.workspace,
                "started_at": session.started_at,
                "state": State.SUCCEEDED,
                "imported_at": timezone.now(),
            },
        )
        found = cls(FactoryRun.objects.select_for_update().get(pk=run.pk))
        found._stated, found._separate_tasks, found._ended = session.request, session.separate_tasks, session.ended
        if session.ended == "failed":
            found._said[f"The run as a whole failed: {session.error or 'no reason is recorded'}"] = True
        return found

    def write(
        self, attempt_id: str, found: FoundAttempt, *, previous: str | None, retried: str | None, is_known: bool
    ) -> Literal["new", "changed", "unchanged"]:
        """One attempt with its inputs and tool calls. A known one is written again only where the file says more."""
        values = _found_values(found)
        self._hear(attempt_id, found)
        if is_known:
            same = AgentAttempt.objects.filter(pk=attempt_id, **{name: values[name] for name in _WHAT_GROWS})
            calls = AgentToolCall.objects.filter(attempt_id=attempt_id)
            inputs = AgentAttemptInput.objects.filter(attempt_id=attempt_id)
            as_many = calls.count() == len(found.tool_calls) and inputs.count() == len(found.inputs)
            if same.exists() and as_many and not _tells_order(found, calls):
                return "unchanged"
            AgentAttempt.objects.filter(pk=attempt_id).update(**values)
            inputs.delete()
            calls.delete()
        else:
            self.number += 1
            AgentAttempt.objects.create(
                attempt_id=attempt_id,
                run=self.run,
                number=self.number,
                previous_turn_attempt_id=previous,
                retry_of_attempt_id=retried,
                **values,
            )
        _write_inputs(attempt_id, found.inputs)
        AgentToolCall.objects.bulk_create(
            AgentToolCall(attempt_id=attempt_id, seq=seq, output_bytes=_size(call.output), **_columns(call))
            for seq, call in enumerate(found.tool_calls, 1)
        )
        return "changed" if is_known else "new"

    def _hear(self, attempt_id: str, found: FoundAttempt) -> None:
        """What the person asked a model first, of the session and of its sub-agents; what only the tool wrote does not
        count."""
        if found.state == "not_asked":
            return
        by_sub_agent = found.phase == SUB_AGENT
        first, request = self._requests.get(by_sub_agent, (attempt_id, None))
        if request is None and found.asked != "":
            request = (found.user_prompt if found.asked is None else found.asked) or ""
        self._requests[by_sub_agent] = first, request

    def note(self, text: str) -> None:
        self._said[text] = False

    def close(self, source: str = "") -> None:
        """The run ended as the last attempt that a model was asked did; its task is the first. Of separate tasks, it
        failed where the last try at one of them did. What the file says of the whole goes before either.

        `source` is the file that the notes are from, where several make up the run: what it does not say any more
        (that it was still being written) goes.
        """
        attempts = AgentAttempt.objects.filter(run=self.run).defer("user_prompt", "reply").order_by("number")
        asked = attempts.exclude(state=AttemptState.NOT_ASKED)
        failed = self._failed_tasks(asked) if self._separate_tasks else 0
        known = dict(RunNote.objects.filter(run=self.run).values_list("text", "pk"))
        stale = RunNote.objects.filter(run=self.run, source=source).values_list("text", "pk")
        RunNote.objects.filter(pk__in=[pk for text, pk in stale if text not in self._said]).delete()
        RunNote.objects.bulk_create(
            RunNote(run=self.run, text=text, is_error=is_problem, source=source, at=timezone.now())
            for text, is_problem in self._said.items()
            if text not in known
        )
        last, first = asked.exclude(phase=SUB_AGENT).last() or asked.last(), attempts.first()
        began = asked.exclude(phase=SUB_AGENT).first() or asked.first()
        ended = State.FAILED if failed else last.state if last else State.SUCCEEDED
        self.run.state, self.run.task = self._ended or ended, self.run.task or self._stated
        if last is not None and began is not None:
            self.run.ended_at = last.ended_at
            # Of several files, that with the run's first attempt says what was asked.
            asked_for = dict(self._requests.values()).get(began.pk)
            self.run.task = asked_for or self._stated or (self.run.task if asked_for is None else asked_for)
        self.run.started_at = self.run.started_at or (first.started_at if first else None)
        self.run.save(update_fields=["state", "ended_at", "task", "started_at"])

    def _failed_tasks(self, asked: QuerySet[AgentAttempt]) -> int:
        """How many samples ended in failure, which a note says. A try that was tried again is not how one ended."""
        again = AgentAttempt.objects.filter(run=self.run, retry_of_attempt=OuterRef("pk"))
        states = list(asked.exclude(Exists(again)).order_by().values_list("state", flat=True))
        failed = states.count(State.FAILED)
        if failed:
            self._said[f"{failed:,} of {counted(len(states), 'sample')} failed."] = True
        return failed


def _tells_order(found: FoundAttempt, stored: QuerySet[AgentToolCall]) -> bool:
    """Does the file say where in the reply the calls stood, which an import of before did not keep?"""
    knows = any(call.reply_offset is not None for call in found.tool_calls)
    return knows and not stored.filter(reply_offset__isnull=False).exists()


NAME, PHASE, MEDIA_TYPE = 200, 80, 80
"""The lengths of the short columns."""
_USED = ("input_tokens", "cached_input_tokens", "output_tokens", "cost")
_LARGEST_COUNT = 2**31 - 1
_WHAT_GROWS = ("state", "error", "reply", "ended_at", "input_tokens", "cached_input_tokens", "output_tokens", "model")
_PACKET = (
    "task_prompt",
    "send_kind",
    "input_packet_version",
    "input_coverage",
    "declared_input_count",
    "captured_input_count",
    "omitted_input_count",
)


def _found_values(found: FoundAttempt) -> dict[str, Any]:
    """The columns of an attempt that was found. Coverage is never complete: a session file lists what it lists."""
    names: tuple[str, ...] = ("session_id", "system_prompt", "user_prompt", "reply", "state", "failure", "error")
    names += ("output_tokens", "cost", "started_at", "ended_at", "turn_index")
    values = {name: getattr(found, name) for name in names} | _input_tokens(found)
    values |= {"phase": short(found.phase, PHASE)}
    values |= {name: short(getattr(found, name), NAME) for name in ("provider", "model")}
    if found.started_at and found.ended_at:
        values["duration_ms"] = max(0, round((found.ended_at - found.started_at).total_seconds() * 1000))
    if isinstance(found, TracedAttempt):
        values |= {name: getattr(found, name) for name in _PACKET}
        return {name: None if _too_large(name, value) else value for name, value in values.items()}
    return values | {"input_coverage": Coverage.PARTIAL if found.inputs else Coverage.NOT_RECORDED}


def _input_tokens(found: FoundAttempt) -> dict[str, int | None]:
    """The whole input, and what of it went through a cache; of an input that is not known no part is."""
    if found.input_tokens is None:
        return {"input_tokens": None, "cached_input_tokens": None}
    whole = total([found.input_tokens, found.cached_input_tokens])
    return {"input_tokens": whole, "cached_input_tokens": None if whole is None else found.cached_input_tokens}


def _too_large(name: str, value: object) -> bool:
    """Is it a count that only a damaged trace can hold, and no column of ours?"""
    return isinstance(value, int) and not name.endswith("_tokens") and name != "duration_ms" and value > _LARGEST_COUNT


def _size(output: str | None) -> int | None:
    return None if output is None else len(output.encode("utf-8", "surrogatepass"))
