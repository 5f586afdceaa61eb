"""The tracer: the only writer of runs, attempts, inputs and tool calls.

An attempt and its inputs are committed together, after the capture and before the provider is asked; what came of
it is written when it ended.
"""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from django.db import transaction
from django.db.models import F, TextField, Value
from django.db.models.functions import Concat
from django.utils import timezone

from factory.calls import AgentCall
from factory.models import (
    AgentAttempt,
    AgentAttemptInput,
    AgentToolCall,
    ArtifactStatus,
    FactoryRun,
    Failure,
    RunNote,
    State,
)
from factory.outcomes import AttemptEnd, EndState
from factory.packets import AgentInputPacket
from factory.resolve import ResolvedRequest
from factory.retention import StoredInput


class Tracer:
    """Writes one run. `number` counts its attempts in the order in which they are recorded."""

    def __init__(self, run: FactoryRun) -> None:
        self.run = run
        self.number = 0

    @classmethod
    def start(cls, request: ResolvedRequest, *, workflow: str, provider: str, owner_id: int | None) -> "Tracer":
        """Open a run."""
        return cls(
            FactoryRun.objects.create(
                owner_id=owner_id,
                workflow=workflow,
                provider=provider,
                task=request.text,
                request_kind=request.source_kind,
                request_path=request.path,
                request_bytes=request.byte_count,
                request_sha256=request.sha256,
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
                provider=provider,
                model=model,
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
            AgentAttemptInput.objects.bulk_create(
                AgentAttemptInput(attempt_id=attempt_id, **_columns(item)) for item in packet.items
            )
        self.number += 1

    def finish(self, attempt_id: str, end: AttemptEnd) -> None:
        """Write what came of an attempt and which tools it used."""
        with transaction.atomic():
            values: dict[str, Any] = {
                name: getattr(end, name)
                for name in (
                    "state",
                    "failure",
                    "error",
                    "reply",
                    "input_tokens",
                    "output_tokens",
                    "cost",
                    "duration_ms",
                )
            }
            values |= {name: value for name in ("model", "session_id") if (value := getattr(end, name))}
            AgentAttempt.objects.filter(pk=attempt_id).update(**values, ended_at=timezone.now())
            AgentToolCall.objects.bulk_create(
                AgentToolCall(attempt_id=attempt_id, seq=seq, **_columns(call))
                for seq, call in enumerate(end.tool_calls, 1)
            )

    def end(self, state: EndState) -> None:
        FactoryRun.objects.filter(pk=self.run.pk).update(state=state, ended_at=timezone.now())

    def note(self, text: str, *, is_error: bool = False) -> None:
        RunNote.objects.create(run=self.run, text=text, is_error=is_error, at=timezone.now())


def _columns(record: Any) -> dict[str, Any]:
    return asdict(record)


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

    def interrupted(self, run_id: int) -> bool:
        now = timezone.now()
        with transaction.atomic():
            if not FactoryRun.objects.filter(pk=run_id, state=State.RUNNING).update(state=State.FAILED, ended_at=now):
                return False
            AgentAttempt.objects.filter(run_id=run_id, state=State.RUNNING).update(
                state=State.FAILED,
                failure=Failure.INTERRUPTED,
                error="the factory's process ended before this attempt did",
                ended_at=now,
            )
            RunNote.objects.create(
                run_id=run_id, text="the factory's process ended before the run did", is_error=True, at=now
            )
        return True
