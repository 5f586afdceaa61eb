"""Carry a request through a workflow's phases: send, read the envelope, check, correct once, go on.

Pure of databases and of providers: both stand behind ports. Every send is recorded before it happens and ended
exactly once, whatever happens.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from agentlab.common.faults import without_words
from factory import messages
from factory.calls import KIND_WORDS, AgentCall, Attachment, Included
from factory.checks import CheckResult
from factory.lineage import SessionTurns
from factory.outcomes import AttemptEnd, EndState, FailureKind, Reply
from factory.packets import AgentInputPacket
from factory.phases import Phase, Workflow
from factory.providers import Messages, Session
from factory.resolve import ResolvedRequest

log = logging.getLogger(__name__)

RETRIES: dict[str, int] = {"parse_retry": 1, "gate_retry": 1}
"""Corrections of each kind that one phase gets."""


@dataclass(frozen=True, slots=True)
class Job:
    """What a run was asked to do. Text attachments are `included`; images go as `attachments`."""

    request: ResolvedRequest
    included: tuple[Included, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    context_root: str | None = None
    check: str | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """One finished send, as the command reports it."""

    attempt_id: str
    call: AgentCall
    packet: AgentInputPacket
    end: AttemptEnd


@dataclass(frozen=True, slots=True)
class RunEnd:
    state: EndState
    reason: str
    sent: tuple[Sent, ...]


class Recorder(Protocol):
    """Where attempts are written down."""

    def begin(
        self, call: AgentCall, turns: SessionTurns, session: Session, launch: str
    ) -> tuple[str, AgentInputPacket]:
        """Capture the inputs, commit attempt and packet, and answer the attempt's id. Raises what the store raises."""

    def finish(self, attempt_id: str, end: AttemptEnd) -> None:
        """Write what came of it."""


class _Failed(Exception):
    """The run ends here, with a reason."""


Progress = Callable[[str], None]


class WorkflowRun:
    """One run of one workflow in one session."""

    def __init__(
        self,
        workflow: Workflow,
        job: Job,
        session: Session,
        recorder: Recorder,
        *,
        check: Callable[[str], CheckResult],
        progress: Progress = lambda line: None,
    ) -> None:
        self._workflow, self._job, self._session, self._recorder = workflow, job, session, recorder
        self._check, self._progress = check, progress
        self._turns = SessionTurns()
        self._sent: list[Sent] = []

    def run(self) -> RunEnd:
        """All phases. KeyboardInterrupt ends the run as cancelled."""
        handed: Included | None = None
        try:
            for phase in self._workflow.phases:
                handed = self._phase(phase, handed)
        except _Failed as failure:
            return RunEnd("failed", str(failure), tuple(self._sent))
        except KeyboardInterrupt:
            return RunEnd("cancelled", "interrupted", tuple(self._sent))
        return RunEnd("succeeded", "", tuple(self._sent))

    def _phase(self, phase: Phase, handed: Included | None) -> Included:
        """Carry out one phase and answer its envelope, as the next one's message will include it."""
        call = self._first_call(phase, handed)
        left = dict(RETRIES)
        while True:
            outcome = self._send(call, phase)
            if isinstance(outcome, Included):
                return outcome
            if outcome.kind is None or left[outcome.kind] == 0:
                raise _Failed(f"{phase.name}: {outcome.reason}")
            left[outcome.kind] -= 1
            # The session holds everything that was sent before: a correction brings its own words alone.
            call = replace(
                call,
                send_kind=outcome.kind,
                user_prompt=outcome.message,
                sends_task=False,
                included=(),
                attachments=(),
                context_root=None,
            )

    def _first_call(self, phase: Phase, handed: Included | None) -> AgentCall:
        job, first = self._job, not self._sent
        included = (job.included if first else ()) + ((handed,) if handed else ())
        attachments = job.attachments if first else ()
        if first:
            text = messages.opening(phase, job.request.text, included=included, context_root=job.context_root)
        else:
            text = messages.continuing(phase, included=included, context_root=job.context_root)
        return AgentCall(
            phase=phase.name,
            task=job.request.text,
            request=job.request,
            system_prompt=self._workflow.system,
            user_prompt=text,
            sends_task=first,
            included=included,
            attachments=attachments,
            context_root=job.context_root,
        )

    def _send(self, call: AgentCall, phase: Phase) -> "Included | _Setback":
        plain = Messages(self._workflow.system, call.user_prompt, call.attachments)
        exact = self._session.exact(plain)
        call = replace(call, system_prompt=exact.system, user_prompt=exact.user)
        launch = self._session.launch_command(plain)
        attempt_id, packet = self._recorder.begin(call, self._turns, self._session, launch)
        self._turns.sent(attempt_id, call.phase, packet.items)
        self._progress(f"{len(self._sent) + 1} {call.phase} ({KIND_WORDS[call.send_kind]}) …")
        began = time.monotonic()
        end, reply, duration = AttemptEnd("cancelled", error="interrupted"), None, None
        try:
            reply = self._ask(plain)
            duration = time.monotonic() - began
            end, outcome = self._judge(reply, phase)
            return outcome
        finally:
            seconds = time.monotonic() - began if duration is None else duration
            end = replace(end, reply=reply, duration_ms=round(seconds * 1000))
            self._recorder.finish(attempt_id, end)
            self._sent.append(Sent(attempt_id, call, packet, end))
            self._progress(f"{len(self._sent)} {call.phase}: {end.error or 'ok'}")

    def _ask(self, plain: Messages) -> Reply:
        """The provider's reply. It is the far end: whatever breaks there is this attempt's failure, not a crash."""
        try:
            return self._session.send(plain)
        except Exception as error:
            log.error("the provider broke: %s", without_words(error))
            return Reply(None, error=f"{type(error).__name__}: {error}")

    def _judge(self, reply: Reply, phase: Phase) -> "tuple[AttemptEnd, Included | _Setback]":
        """What the reply amounts to: the phase's envelope, or why not and what to send back."""
        if reply.error:
            return _failed("provider", reply.error), _Setback(None, reply.error)
        try:
            envelope, data = messages.read_envelope(reply.text or "", phase)
        except messages.UnreadableReply as unreadable:
            reason = f"reply could not be read: {unreadable}"
            message = messages.parse_correction(phase, str(unreadable))
            return _failed("parse", reason), _Setback("parse_retry", reason, message)
        if phase.gated and (command := self._job.check) is not None and not (result := self._check(command)).passed:
            message = messages.check_correction(phase, command, result.output)
            end = replace(_failed("check", result.summary), check_command=command, check_output=result.output)
            return end, _Setback("gate_retry", result.summary, message)
        if objection := envelope.objection():
            return AttemptEnd("succeeded"), _Setback(None, objection)
        return AttemptEnd("succeeded"), Included(phase.name, "previous_envelope", data)


@dataclass(frozen=True, slots=True)
class _Setback:
    """Why a phase is not done, and the correction that may mend it: without a kind, nothing can."""

    kind: Literal["parse_retry", "gate_retry"] | None
    reason: str
    message: str = ""


def _failed(failure: FailureKind, error: str) -> AttemptEnd:
    return AttemptEnd("failed", failure=failure, error=error)
