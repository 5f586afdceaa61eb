"""Does the trace still tell the story that the checkpoints tell? Reads events and folds them; calls no turn."""

import hashlib
from collections.abc import Iterator
from dataclasses import asdict

from django.utils import timezone

from agentlab.persona.events import Event
from agentlab.persona.models import Checkpoint, StudyPersona, StudyRun, TraceEvent
from agentlab.persona.trace import Difference, fold

CHUNK = 1000  # rows read at a time, so that memory does not depend on the trace's length


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


def verify(run: StudyRun) -> Difference | None:
    """Fold every persona's events and compare with its checkpoint byte for byte, then the whole with the hash that the
    runner left. Stores what came out, and returns the first difference.

    Raises `Moving` where a runner wrote meanwhile: then nothing was verified, and nothing is stored.
    """
    this = StudyRun.objects.filter(pk=run.pk)
    run.refresh_from_db(fields=["events", "trace_sha256"])
    this.update(replay=StudyRun.Replay.RUNNING, replayed_at=timezone.now())
    verdict = StudyRun.Replay.NOT_VERIFIED
    found = None
    try:
        found = _first_difference(run)
        verdict = StudyRun.Replay.DIFFERS if found else StudyRun.Replay.SAME
    finally:
        stood_still = this.filter(events=run.events).update(
            replay=verdict, replayed_at=timezone.now(), difference=asdict(found) if found else None
        )
    if not stood_still:
        this.filter(replay=StudyRun.Replay.RUNNING).update(replay=StudyRun.Replay.NOT_VERIFIED)
        raise Moving(f"study {run.pk} is being written to; verify it when it stands still")
    return found


def _first_difference(run: StudyRun) -> Difference | None:
    events = 0
    for number, key in StudyPersona.objects.filter(run=run).order_by("number").values_list("number", "key"):
        replay = fold(run.study_sha256, key, stored_events(run, number))
        events += replay.events
        found = replay.difference or _against_checkpoint(
            run, number, key, replay.state.to_bytes() if replay.state else None
        )
        if found:
            return found
    if events != run.events:
        return Difference("", -1, -1, f"{events} events hold together, {run.events} were written")
    if run.trace_sha256 and run.trace_sha256 != trace_sha256(run):
        return Difference("", -1, -1, "the trace's hash is not the one that the runner left")
    return None


def _against_checkpoint(run: StudyRun, number: int, key: str, replayed: bytes | None) -> Difference | None:
    stored = Checkpoint.objects.filter(run=run, persona=number).values_list("state", flat=True).first()
    state = None if stored is None else bytes(stored)
    if state == replayed:
        return None
    what = "the checkpoint is missing" if state is None else "the checkpoint is not the state that the trace gives"
    return Difference(key, -1, -1, what)
