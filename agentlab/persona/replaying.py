"""Does the trace still tell the story that the checkpoints tell? Reads events and folds them; calls no turn."""

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict

from django.db.models import QuerySet
from django.utils import timezone

from agentlab.persona.events import Event
from agentlab.persona.models import Checkpoint, StudyDefinition, StudyPersona, StudyRun, TraceEvent
from agentlab.persona.trace import Difference, fold
from agentlab.persona.values import sha256

CHUNK = 1000  # rows read at a time, so that memory does not depend on the trace's length
HEARTBEAT = 10.0  # seconds between a verification's signs of life


def trace_sha256(run: StudyRun) -> str:
    """SHA-256 over the study's own hash and the seal of every event (the SHA-256 of its place and bytes), in the
    order of personas, turns, sequences: the same for the same study file, whatever ran it."""
    digest = hashlib.sha256(bytes.fromhex(run.study_sha256))
    rows = TraceEvent.objects.filter(run=run).order_by("persona", "turn", "sequence")
    for seal in rows.values_list("seal", flat=True).iterator(chunk_size=CHUNK):
        digest.update(seal)
    return digest.hexdigest()


def stored_events(run: StudyRun, number: int, *, turn: int | None = None) -> Iterator[Event]:
    """One persona's events in order, of all turns or up to and with `turn`."""
    rows = TraceEvent.objects.filter(run=run, persona=number)
    if turn is not None:
        rows = rows.filter(turn__lte=turn)
    fields = ("turn", "sequence", "kind", "label", "payload", "seal")
    for row in rows.order_by("turn", "sequence").values_list(*fields).iterator(chunk_size=CHUNK):
        turn_of, sequence, kind, label, payload, seal = row
        yield Event(turn_of, sequence, kind, label, bytes(payload), bytes(seal))


class Moving(Exception):
    """The run was written to while it was read."""


def verify(run: StudyRun, on_progress: Callable[[int, int], None] = lambda done, of: None) -> Difference | None:
    """Fold every persona's events and compare with its checkpoint byte for byte, then the whole with the hash that the
    runner left. Stores what came out, and returns the first difference. `on_progress` hears of personas.

    Raises `Moving` where a runner wrote meanwhile: then nothing was verified, and nothing is stored.
    """
    this = StudyRun.objects.filter(pk=run.pk)
    run.refresh_from_db(fields=["events", "trace_sha256"])
    this.update(replay=StudyRun.Replay.RUNNING, replayed_at=timezone.now())
    verdict = StudyRun.Replay.NOT_VERIFIED
    found = None
    try:
        found = _first_difference(run, _heard(this, on_progress))
        verdict = StudyRun.Replay.DIFFERS if found else StudyRun.Replay.SAME
    finally:
        stood_still = this.filter(events=run.events).update(
            replay=verdict, replayed_at=timezone.now(), difference=asdict(found) if found else None
        )
    if not stood_still:
        this.filter(replay=StudyRun.Replay.RUNNING).update(replay=StudyRun.Replay.NOT_VERIFIED)
        raise Moving(f"study {run.pk} is being written to; verify it when it stands still")
    return found


def _heard(this: "QuerySet[StudyRun]", on_progress: Callable[[int, int], None]) -> Callable[[int, int], None]:
    """Progress that also leaves a sign of life now and then, so that a page can tell a long verification from one
    whose process is gone."""
    beaten = time.monotonic()

    def progress(done: int, of: int) -> None:
        nonlocal beaten
        if time.monotonic() - beaten > HEARTBEAT:
            beaten = time.monotonic()
            this.filter(replay=StudyRun.Replay.RUNNING).update(replayed_at=timezone.now())
        on_progress(done, of)

    return progress


def _first_difference(run: StudyRun, on_progress: Callable[[int, int], None]) -> Difference | None:
    events = 0
    people = list(StudyPersona.objects.filter(run=run).order_by("number").values_list("number", "key"))
    for done, (number, key) in enumerate(people):
        on_progress(done, len(people))
        replay = fold(run.study_sha256, key, stored_events(run, number))
        events += replay.events
        found = replay.difference or _against_checkpoint(
            run, number, key, replay.state.to_bytes() if replay.state else None
        )
        if found:
            return found
    what = _whole(run, {number for number, _ in people}, events)
    return Difference("", -1, -1, what) if what else None


def _whole(run: StudyRun, numbers: set[int], events: int) -> str:
    """What is wrong with the study though each of its personas holds; "" where nothing is."""
    if numbers != set(range(run.personas)):
        return f"{len(numbers)} personas are listed, {run.personas} took part"
    for kind, rows in (("an event", TraceEvent.objects), ("a checkpoint", Checkpoint.objects)):
        stray = rows.filter(run=run, persona__gte=run.personas).values_list("persona", flat=True).first()
        if stray is not None:
            return f"there is {kind} of persona number {stray}, and the study has {run.personas}"
    if events != run.events:
        return f"{events} events hold together, {run.events} were written"
    if run.trace_sha256 and run.trace_sha256 != trace_sha256(run):
        return "the trace's hash is not the one that the runner left"
    stored = StudyDefinition.objects.filter(pk=run.study_sha256).values_list("data", flat=True).first()
    if stored is None:
        return "the study itself is missing"
    if sha256(bytes(stored)) != run.study_sha256:
        return "the study is not the one that the run was made of"
    return ""


def _against_checkpoint(run: StudyRun, number: int, key: str, replayed: bytes | None) -> Difference | None:
    stored = Checkpoint.objects.filter(run=run, persona=number).values_list("state", flat=True).first()
    state = None if stored is None else bytes(stored)
    if state == replayed:
        return None
    what = "the checkpoint is missing" if state is None else "the checkpoint is not the state that the trace gives"
    return Difference(key, -1, -1, what)
