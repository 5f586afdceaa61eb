"""What the pages show, out of the trace and the checkpoints. Reads only; an event that cannot be read is said, not
hidden."""

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from django.db.models import Count, QuerySet, Sum
from django.db.models.functions import Length

from agentlab.common.access import User, visible
from agentlab.persona.events import Payload, Probed, Reacted, Reflected, Remembered, Snapshot, read_payload
from agentlab.persona.models import Checkpoint, StudyPersona, StudyRun, TraceEvent
from agentlab.persona.state import Belief, MemoryEvent, PersonaState, read_state
from agentlab.persona.values import Invalid

DRAWN = 60  # personas whose lines are drawn; more make a chart that nobody can read
OTHERS = 100  # studies that one can be compared with from its page; any two by their numbers
LOOKED_AT = 400  # reactions in which a reason is looked for
COLUMNS = 150  # turns that a chart has points for


def runs_of(user: User) -> QuerySet[StudyRun]:
    """The runs that this user may see, newest first."""
    return visible(StudyRun.objects.select_related("owner"), user)


def others(run: StudyRun) -> list[StudyRun]:
    """Its owner's other studies, the newest of them: what it can be compared with."""
    rows = StudyRun.objects.filter(owner=run.owner_id).exclude(pk=run.pk).order_by("-pk")
    return list(rows.only("pk", "name", "seed", "started_at")[:OTHERS])


def checkpoint_bytes(run: StudyRun) -> int:
    return Checkpoint.objects.filter(run=run).aggregate(total=Sum(Length("state")))["total"] or 0


def last_turn(run: StudyRun) -> int:
    """The last turn that every persona has reached, as checkpoints tell; a failed persona does not count."""
    failed = StudyPersona.objects.filter(run=run).exclude(failed="").values("number")
    turns = list(Checkpoint.objects.filter(run=run).exclude(persona__in=failed).values_list("turn", flat=True))
    whole = len(turns) + len(failed) >= run.personas
    return min(turns) if turns and whole else 0


@dataclass(frozen=True)
class Failure:
    """Why personas stopped, and which: the first of them by their ids."""

    reason: str
    count: int
    keys: list[str]


def failures(run: StudyRun, reasons: int = 3, shown: int = 5) -> list[Failure]:
    """The most frequent reasons: what is wrong with a model is wrong for everybody, and one line says it."""
    failed = StudyPersona.objects.filter(run=run).exclude(failed="")
    counted = failed.values_list("failed").annotate(count=Count("id")).order_by("-count", "failed")[:reasons]
    return [
        Failure(
            reason, count, list(failed.filter(failed=reason).order_by("number").values_list("key", flat=True)[:shown])
        )
        for reason, count in counted
    ]


@dataclass
class Trajectories:
    """Stances of the drawn personas on every topic: `lines[topic][number]` has a value for each of `turns` (NaN where
    there is none). `unread` counts snapshots that could not be read."""

    turns: list[int]
    lines: dict[str, dict[int, list[float]]] = field(default_factory=dict)
    unread: int = 0

    def over_personas(self, topic: str, choose: Callable[[list[float]], float]) -> list[float]:
        """`median`, `min` or `max` of the known stances in each turn; NaN where none is known."""
        columns = zip(*self.lines[topic].values(), strict=True)
        known = [[value for value in column if not math.isnan(value)] for column in columns]
        return [choose(column) if column else math.nan for column in known]


def drawn_numbers(run: StudyRun, chosen: int | None) -> list[int]:
    """The personas to draw: all, or evenly many of them, the chosen one always among them."""
    step = max(1, -(-run.personas // DRAWN))
    numbers = list(range(0, run.personas, step))
    return sorted({*numbers, chosen}) if chosen is not None else numbers


def trajectories(run: StudyRun, numbers: Sequence[int]) -> Trajectories:
    turns = charted_turns(run.turns_each)
    found = Trajectories(turns)
    place = {turn: n for n, turn in enumerate(turns)}
    rows = TraceEvent.objects.filter(run=run, kind="snapshot", persona__in=numbers, turn__in=turns)
    for number, turn, payload in rows.values_list("persona", "turn", "payload"):
        snapshot = readable(payload)
        if not isinstance(snapshot, Snapshot):
            found.unread += 1
            continue
        for belief in snapshot.beliefs:
            of_topic = found.lines.setdefault(belief.topic, {})
            of_topic.setdefault(number, [math.nan] * len(turns))[place[turn]] = belief.stance
    return found


def charted_turns(turns: int) -> list[int]:
    """Turn 0 and up to `COLUMNS` turns evenly spaced, the last one always among them."""
    step = max(1, -(-turns // COLUMNS))
    return sorted({*range(0, turns + 1, step), turns})


def charted_turn(turn: int, turns: int) -> int:
    """The turn of the chart that counts this one among those since the chart's last."""
    step = max(1, -(-turns // COLUMNS))
    return min(-(-turn // step) * step, turns)


def reactions(run: StudyRun) -> dict[str, dict[int, int]]:
    """How often each action was taken, by turns of the chart: {action: {turn: count}}. The runner leaves it with the
    run; of an older run the whole trace is counted."""
    if run.reacted is not None:
        return {action: {int(turn): count for turn, count in of.items()} for action, of in sorted(run.reacted.items())}
    rows = TraceEvent.objects.filter(run=run, kind="reacted").values_list("label", "turn")
    counted: dict[str, dict[int, int]] = {}
    for action, turn, count in rows.annotate(count=Count("turn")).order_by("label", "turn"):
        of_action, at = counted.setdefault(action, {}), charted_turn(turn, run.turns_each)
        of_action[at] = of_action.get(at, 0) + count
    return counted


def reacted_by(run: StudyRun, number: int) -> list[tuple[str, int]]:
    """How often one persona took each action."""
    rows = TraceEvent.objects.filter(run=run, kind="reacted", persona=number).values_list("label")
    return list(rows.annotate(count=Count("turn")).order_by("label"))


def first_fallback(run: StudyRun) -> str:
    """Why arithmetic had to answer for the model, as the first such reaction tells; "" where there is none among the
    first reactions."""
    if not run.fallbacks:
        return ""
    rows = TraceEvent.objects.filter(run=run, kind="reacted", persona__lt=LOOKED_AT)
    for payload in rows.order_by("persona", "turn").values_list("payload", flat=True)[:LOOKED_AT]:
        reacted = readable(payload)
        if isinstance(reacted, Reacted) and reacted.fallback:
            return reacted.fallback
    return ""


def counts_by_persona(run: StudyRun, numbers: Iterable[int]) -> dict[int, dict[str, int]]:
    """{number: {"reacted": …, "reflected": …, "drifted": …}} for a page of personas."""
    rows = TraceEvent.objects.filter(run=run, persona__in=list(numbers), kind__in=["reacted", "reflected", "probed"])
    counted: dict[int, dict[str, int]] = {}
    for number, kind, label, count in (
        rows.values_list("persona", "kind", "label").annotate(count=Count("turn")).order_by()
    ):
        key = label if kind == "probed" else kind
        of_persona = counted.setdefault(number, {})
        of_persona[key] = of_persona.get(key, 0) + count
    return counted


@dataclass(frozen=True)
class ProbeRow:
    number: int
    turn: int
    probed: Probed


def probes(run: StudyRun, number: int | None = None, *, drifted: bool = False, limit: int = 200) -> list[ProbeRow]:
    """Answers to character probes in the order of turns; only those that drifted where asked for."""
    rows = TraceEvent.objects.filter(run=run, kind="probed")
    if number is not None:
        rows = rows.filter(persona=number)
    if drifted:
        rows = rows.filter(label="drifted")
    found = []
    for of_persona, turn, payload in rows.order_by("turn", "persona").values_list("persona", "turn", "payload")[:limit]:
        probed = readable(payload)
        if isinstance(probed, Probed):
            found.append(ProbeRow(of_persona, turn, probed))
    return found


def probe_total(run: StudyRun, number: int) -> int:
    return TraceEvent.objects.filter(run=run, persona=number, kind="probed").count()


def probe_counts(run: StudyRun) -> dict[str, int]:
    """{"kept": …, "drifted": …, "unanswered": …}"""
    rows = TraceEvent.objects.filter(run=run, kind="probed").values_list("label").annotate(count=Count("turn"))
    return dict(rows.order_by())


@dataclass(frozen=True)
class TurnRow:
    """A turn in a persona's list. `reacted` is None where the event cannot be read."""

    turn: int
    reacted: Reacted | None
    change: dict[str, float]
    remembered: int
    drifted: int


def turn_rows(run: StudyRun, number: int, first: int, last: int) -> list[TurnRow]:
    """Turns first…last of one persona, newest first."""
    by_turn: dict[int, list[Payload | None]] = {}
    rows = TraceEvent.objects.filter(run=run, persona=number, turn__gte=first - 1, turn__lte=last)
    for turn, payload in rows.order_by("turn", "sequence").values_list("turn", "payload"):
        by_turn.setdefault(turn, []).append(readable(payload))
    found = []
    for turn in range(last, first - 1, -1):
        events = by_turn.get(turn, [])
        if events:
            found.append(
                TurnRow(
                    turn,
                    next((one for one in events if isinstance(one, Reacted)), None),
                    _changed(_beliefs(by_turn.get(turn - 1, [])), _beliefs(events)),
                    sum(isinstance(one, Remembered | Reflected) for one in events),
                    sum(isinstance(one, Probed) and one.drifted for one in events),
                )
            )
    return found


def state_of(run: StudyRun, number: int) -> PersonaState | None:
    """The persona's last checkpoint; None before its first, and where it cannot be read."""
    return states_of(run, [number]).get(number)


def states_of(run: StudyRun, numbers: Iterable[int]) -> dict[int, PersonaState]:
    """The last checkpoints of these personas, as far as they can be read."""
    states = {}
    for number, stored in Checkpoint.objects.filter(run=run, persona__in=list(numbers)).values_list("persona", "state"):
        with suppress(Invalid):
            states[number] = read_state(bytes(stored))
    return states


def last_turn_of(run: StudyRun, number: int) -> int:
    """The last turn that this persona's trace holds."""
    return Checkpoint.objects.filter(run=run, persona=number).values_list("turn", flat=True).first() or 0


def reflected_turns(run: StudyRun, number: int) -> list[int]:
    rows = TraceEvent.objects.filter(run=run, persona=number, kind="reflected", turn__gt=0)
    return sorted(set(rows.values_list("turn", flat=True)))


def memories_named(run: StudyRun, number: int, ids: Iterable[tuple[int, int]]) -> dict[tuple[int, int], MemoryEvent]:
    """Memories by their ids, live or not: the trace keeps them all."""
    wanted = set(ids)
    if not wanted:
        return {}
    turns = {turn for turn, _ in wanted}
    rows = TraceEvent.objects.filter(run=run, persona=number, turn__in=turns, kind__in=["remembered", "reflected"])
    found = {}
    for turn, sequence, payload in rows.values_list("turn", "sequence", "payload"):
        event = readable(payload)
        if (turn, sequence) in wanted and isinstance(event, Remembered | Reflected):
            found[turn, sequence] = event.memory
    return found


def readable(payload: bytes | memoryview) -> Payload | None:
    """The event, or None where the bytes are none (PostgreSQL hands out views of bytes)."""
    try:
        return read_payload(bytes(payload))
    except Invalid:
        return None


def _beliefs(events: Iterable[Payload | None]) -> tuple[Belief, ...]:
    return next((event.beliefs for event in events if isinstance(event, Snapshot)), ())


def _changed(before: Sequence[Belief], after: Sequence[Belief]) -> dict[str, float]:
    old = {belief.topic: belief.stance for belief in before}
    return {
        belief.topic: belief.stance - old[belief.topic]
        for belief in after
        if belief.topic in old and belief.stance != old[belief.topic]
    }
