"""Between the workflow and the rows: each send gets an id, a snapshot folder, a packet, and one commit."""

import logging
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from django.db import DatabaseError

from factory.calls import AgentCall
from factory.lineage import SessionTurns
from factory.outcomes import AttemptEnd, mask, storable
from factory.packets import AgentInputPacket, capture_attempt_inputs
from factory.providers import Session
from factory.retention import SnapshotStore
from factory.snapshots import Deadline

if TYPE_CHECKING:
    from factory.tracing import Tracer

log = logging.getLogger(__name__)


class RunRecorder:
    """Records one run's attempts: captured under the store's lock, committed with their packet, or not there at all."""

    def __init__(
        self,
        tracer: "Tracer",
        store: SnapshotStore,
        provider: str,
        *,
        secrets: Sequence[str] = (),
        deadline: Callable[[], Deadline] = Deadline,
    ) -> None:
        self._tracer, self._store, self._provider, self._deadline = tracer, store, provider, deadline
        self._secrets = secrets

    def begin(
        self, call: AgentCall, turns: SessionTurns, session: Session, launch: str
    ) -> tuple[str, AgentInputPacket]:
        """Capture and commit. A snapshot folder that cannot be used costs the snapshots and not the send."""
        attempt_id = uuid.uuid4().hex
        lineage = turns.next(call.phase, call.send_kind)
        with self._store.staging(self._tracer.run.pk) as staging:
            try:
                with staging.folder(attempt_id) as folder:
                    packet = capture_attempt_inputs(
                        call, lineage, attempt_id=attempt_id, folder=folder, deadline=self._deadline()
                    )
                self._tracer.record(
                    attempt_id,
                    call,
                    packet,
                    provider=self._provider,
                    model=session.model,
                    session_id=session.session_id,
                    launch_command=launch,
                )
            except BaseException:
                self._discard(attempt_id)
                raise
        self._tell_limits(packet)
        return attempt_id, packet

    def finish(self, attempt_id: str, end: AttemptEnd) -> None:
        if reply := end.reply:
            calls = tuple(storable(call, self._secrets) for call in reply.tool_calls)
            end = replace(
                end,
                error=mask(end.error, self._secrets)[0],
                reply=replace(reply, tool_calls=calls),
                check_output=end.check_output and mask(end.check_output, self._secrets)[0],
            )
            for remark in reply.remarks:
                self._tracer.note(f"attempt {self._tracer.number}: {remark}")
        self._tracer.finish(attempt_id, end)

    def _discard(self, attempt_id: str) -> None:
        if why := self._store.discard(attempt_id):
            said = f"snapshot folder {self._store.root / attempt_id} has no attempt and could not be removed: {why}"
            log.error("%s", said)  # what failed may be the database, which then takes no note either
            with suppress(DatabaseError):
                self._tracer.note(said, is_error=True)

    def _tell_limits(self, packet: AgentInputPacket) -> None:
        """A budget that kept bytes out is the run's news, not only the row's."""
        reasons = {item.detail for item in packet.items if item.capture_status == "limit_exceeded" and item.detail}
        for reason in sorted(reasons):
            self._tracer.note(f"some inputs of attempt {self._tracer.number} were not kept: {reason}")
