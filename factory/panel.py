"""From an attempt and the other attempts of its run to what a reader is shown: six sections, each item once.

Pure: rows go in as plain values, a frozen panel comes out, and one template draws it wherever it appears. What was not
recorded is said to be so; nothing here infers that something was absent.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from agentlab.common.numbers import counted
from factory.calls import KIND_WORDS
from factory.extraction import extract_task
from factory.items import PacketItem

NO_TASK = "Task instructions were not captured separately for this attempt. The exact user message is available below."
NO_TASK_NOR_MESSAGE = "Task instructions were not captured separately for this attempt, nor is its message recorded."
NOT_RECORDED = "Attachment accounting was not recorded for this attempt."
NOTHING_SUPPLIED = "No explicit files or attachments were supplied on this dispatch."
DELIVERED = {
    "path_reference": "Available by path",
    "inline": "Included in message",
    "provider_attachment": "Attached to request",
    "session_history": "In the session's history",
}
SEND_KINDS = {kind: words.capitalize() for kind, words in KIND_WORDS.items()} | {"initial": "Initial request"}
UNKNOWN_KIND = "Whether a first request or a correction is not recorded"
TURNS_LISTED = 100
OPAQUE = "What the provider itself keeps of a session cannot be listed in full."
NOT_IN_MESSAGES = "the provider's history of the session is not in it"
AMBIGUOUS_TURNS = "Which turns came before this one cannot be told: their times are equal, missing or out of order."
AMBIGUOUS_TASK = "The task could not be separated from this session's other messages."


SOURCES = {
    "prompt_file": "prompt file",
    "previous_envelope": "result of an earlier phase",
    "context_handoff": "context folder",
    "explicit_attachment": "attachment",
}
_COUNTED = {"inline": "input", "path_reference": "file", "provider_attachment": "attachment"}
CAPTURES = {
    "captured": "captured",
    "missing": "missing",
    "unreadable": "not read",
    "limit_exceeded": "over a limit",
    "changed_during_capture": "changed during capture",
    "enumeration_incomplete": "listing stopped",
    "not_applicable": "sent earlier",
}


@dataclass(frozen=True, slots=True)
class Recorded:
    """One input with the id by which its bytes are asked for, and its facts in words."""

    input_id: int
    item: PacketItem

    @property
    def source(self) -> str:
        return SOURCES.get(self.item.source_kind, self.item.source_kind)

    @property
    def delivered(self) -> str:
        return DELIVERED.get(self.item.delivery_mode, self.item.delivery_mode)

    @property
    def capture(self) -> str:
        if self.item.capture_status == "not_applicable" and self.item.delivery_mode != "session_history":
            return "not captured"  # found in somebody's session file: it was sent on this dispatch
        return CAPTURES.get(self.item.capture_status, self.item.capture_status)

    @property
    def is_sentinel(self) -> bool:
        """Does it stand for what the listing did not reach?"""
        return self.item.capture_status == "enumeration_incomplete"

    @property
    def is_gap(self) -> bool:
        return self.item.capture_status not in {"captured", "not_applicable"}

    @property
    def previewable(self) -> bool:
        return self.item.artifact_status == "available" and self.item.preview_kind != "none"


@dataclass(frozen=True, slots=True)
class AttemptFacts:
    """What the panel must know of an attempt; None is what was not recorded."""

    attempt_id: str
    number: int
    phase: str
    session_id: str | None = None
    started_at: datetime | None = None
    system_prompt: str | None = None
    user_prompt: str | None = None
    task_prompt: str | None = None
    send_kind: str | None = None
    turn_index: int | None = None
    previous_turn_attempt_id: str | None = None
    retry_of_attempt_id: str | None = None
    coverage: str = "not_recorded"
    declared: int | None = None
    captured: int | None = None
    omitted: int | None = None
    inputs: tuple[Recorded, ...] = ()

    @property
    def has_lineage(self) -> bool:
        return self.turn_index is not None or self.previous_turn_attempt_id is not None


@dataclass(frozen=True, slots=True)
class Task:
    """`text` is the recorded task, else (`derived`) one taken out of the message of attempt `found_in`; None where it
    could not be told apart, for the reason in `note`, of which `reason` says more where more is known."""

    text: str | None
    derived: bool = False
    found_in: int | None = None
    origin: str = ""
    note: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """The inputs of one delivery mode, in the packet's order, and the sentence that sums them up."""

    items: tuple[Recorded, ...]
    answer: str


@dataclass(frozen=True, slots=True)
class Inherited:
    """The turns before this one in its session, oldest first; `notes` say what is not known about them."""

    turns: tuple[AttemptFacts, ...]
    previous: AttemptFacts | None
    retried: AttemptFacts | None
    group: Group
    notes: tuple[str, ...]

    @property
    def listed(self) -> tuple[AttemptFacts, ...]:
        """The turns that are listed one by one: of a long session the nearest."""
        return self.turns[-TURNS_LISTED:]

    @property
    def left_out(self) -> int:
        return len(self.turns) - len(self.listed)


@dataclass(frozen=True, slots=True)
class InputPanel:
    """The six sections, in the order in which they are read."""

    attempt: AttemptFacts
    task: Task
    dispatch_kind: str
    dispatch: Group
    inherited: Inherited
    files: Group
    attachments: Group
    coverage: str
    counts: str
    accounting: str

    @property
    def beyond_messages(self) -> str:
        """What the model had beside the exact messages, as far as that is known; "" for a session's first turn."""
        is_later = bool(self.inherited.turns) or (self.attempt.turn_index or 1) > 1
        return NOT_IN_MESSAGES if is_later else ""


@dataclass(frozen=True, slots=True)
class PriorTurns:
    turns: tuple[AttemptFacts, ...]
    ambiguous: bool = False


def build_panel(attempt: AttemptFacts, prior_turns: PriorTurns) -> InputPanel:
    """The panel of an attempt, given the turns before it (see `find_prior_turns`)."""
    return InputPanel(
        attempt=attempt,
        task=_task(attempt, prior_turns),
        dispatch_kind=SEND_KINDS.get(attempt.send_kind or "", UNKNOWN_KIND),
        dispatch=_group(attempt, "inline"),
        inherited=_inherited(attempt, prior_turns),
        files=_group(attempt, "path_reference"),
        attachments=_group(attempt, "provider_attachment"),
        coverage=attempt.coverage,
        counts=_counts(attempt),
        accounting=_accounting(attempt),
    )


def find_prior_turns(attempt: AttemptFacts, run: Iterable[AttemptFacts]) -> PriorTurns:
    """The earlier turns of the attempt's session among the attempts of its run, oldest first.

    Recorded lineage is followed where there is any. Otherwise: the same session id (none is no session), strictly
    earlier, ordered by start and then id; a start that is equal or missing makes the order ambiguous, and an
    ambiguous order gives no turns.
    """
    others = [one for one in run if one.attempt_id != attempt.attempt_id]
    if attempt.has_lineage:
        return _follow(attempt, {one.attempt_id: one for one in others})
    same = [one for one in others if attempt.session_id is not None and one.session_id == attempt.session_id]
    if not same:
        return PriorTurns(())
    starts = [one.started_at for one in same]
    if attempt.started_at is None or None in starts or attempt.started_at in starts:
        return PriorTurns((), ambiguous=True)
    earlier = [one for one in same if one.started_at and one.started_at < attempt.started_at]
    return PriorTurns(tuple(sorted(earlier, key=lambda one: (one.started_at, one.attempt_id))))


def _follow(attempt: AttemptFacts, by_id: dict[str, AttemptFacts]) -> PriorTurns:
    chain: list[AttemptFacts] = []
    seen = {attempt.attempt_id}
    here: AttemptFacts | None = attempt
    while here is not None and here.previous_turn_attempt_id and here.previous_turn_attempt_id not in seen:
        seen.add(here.previous_turn_attempt_id)
        here = by_id.get(here.previous_turn_attempt_id)
        if here is not None:
            chain.append(here)
    return PriorTurns(tuple(reversed(chain)))


def _task(attempt: AttemptFacts, prior: PriorTurns) -> Task:
    if attempt.task_prompt is not None:
        return Task(attempt.task_prompt, origin=_origin(attempt))
    if (text := extract_task(attempt.user_prompt or "")) is not None:
        return Task(text, derived=True, found_in=attempt.number)
    absent = NO_TASK if attempt.user_prompt is not None else NO_TASK_NOR_MESSAGE
    if prior.ambiguous:
        return Task(None, note=absent, reason=AMBIGUOUS_TASK)
    if found := _from_earlier(attempt, prior.turns):
        text, turn = found
        return Task(text, derived=True, found_in=turn.number)
    return Task(None, note=absent, reason=AMBIGUOUS_TASK if prior.turns else "")


def _from_earlier(attempt: AttemptFacts, turns: Sequence[AttemptFacts]) -> tuple[str, AttemptFacts] | None:
    """The task from the nearest earlier turn that has one; a turn of another phase in between ends the search."""
    for turn in reversed(turns):
        if turn.phase != attempt.phase:
            return None
        text = turn.task_prompt if turn.task_prompt is not None else extract_task(turn.user_prompt or "")
        if text is not None:
            return text, turn
    return None


def _origin(attempt: AttemptFacts) -> str:
    """Where the task came from, as far as the packet says."""
    for recorded in attempt.inputs:
        if recorded.item.source_kind == "prompt_file":
            return f"from {recorded.item.label}"
    return "given as text" if attempt.coverage != "not_recorded" else ""


def _group(attempt: AttemptFacts, delivery: Literal["inline", "path_reference", "provider_attachment"]) -> Group:
    items = tuple(one for one in attempt.inputs if one.item.delivery_mode == delivery)
    listed = [one for one in items if not one.is_sentinel]
    incomplete = len(listed) < len(items)
    if attempt.coverage == "not_recorded" and not items:
        return Group(items, "not recorded")
    if not items:
        # What lists only some inputs does not say that there were no others.
        return Group(items, "none recorded" if attempt.coverage == "partial" else "none on this dispatch")
    kept = sum(one.item.capture_status == "captured" for one in listed)
    answer = f"{counted(len(listed), _COUNTED[delivery])} · {DELIVERED[delivery]}"
    if kept < len(listed):
        answer += f" · {kept} captured"
    return Group(items, f"{answer}; how many more is unknown" if incomplete else answer)


def _inherited(attempt: AttemptFacts, prior: PriorTurns) -> Inherited:
    by_id = {turn.attempt_id: turn for turn in prior.turns}
    items = tuple(one for one in attempt.inputs if one.item.delivery_mode == "session_history")
    answer, notes = _inheritance(attempt, prior)
    if items:
        answer += f" · {counted(len(items), 'input')} in the session's history"
    previous = by_id.get(attempt.previous_turn_attempt_id or "") or (prior.turns[-1] if prior.turns else None)
    retried = by_id.get(attempt.retry_of_attempt_id or "")
    return Inherited(prior.turns, previous, retried, Group(items, answer), notes)


def _inheritance(attempt: AttemptFacts, prior: PriorTurns) -> tuple[str, tuple[str, ...]]:
    if prior.ambiguous:
        return "cannot be told", (AMBIGUOUS_TURNS, OPAQUE)
    earlier = len(prior.turns)
    if attempt.turn_index == 1:
        return "none: the first turn of its session", ()
    if attempt.turn_index is not None and attempt.turn_index - 1 > earlier:
        missing = attempt.turn_index - 1 - earlier
        return f"{counted(attempt.turn_index - 1, 'earlier turn')}, {missing} of them not recorded", (OPAQUE,)
    if earlier:
        return counted(earlier, "earlier turn"), (OPAQUE,)
    if attempt.session_id is None:
        return "not recorded: the session is unknown", (OPAQUE,)
    return "no earlier turn is recorded", (OPAQUE,)


def _counts(attempt: AttemptFacts) -> str:
    """The packet's counts in words; a count that is not known is said to be unknown, and never 0."""
    if attempt.coverage == "not_recorded" and attempt.captured is None and attempt.declared is None:
        return ""

    if attempt.declared is None and attempt.captured is None and attempt.omitted is None:
        return "How many inputs were declared, captured and omitted is unknown."

    def word(count: int | None) -> str:
        return "unknown" if count is None else str(count)

    return f"declared {word(attempt.declared)} · captured {word(attempt.captured)} · omitted {word(attempt.omitted)}"


def _accounting(attempt: AttemptFacts) -> str:
    own = [one for one in attempt.inputs if one.item.delivery_mode != "session_history"]
    if attempt.coverage == "not_recorded" and not own:
        return NOT_RECORDED
    if attempt.coverage == "complete" and not own:
        return NOTHING_SUPPLIED
    return ""
