"""Runs a study: gives turns to workers, and is the only writer of the trace.

One job is a stretch of one persona's turns. Answers come in any order and are written in the order of the jobs, as many
as are ready in one transaction: events, checkpoints and counts together, or none of them. Killed anywhere, a study goes
on from its checkpoints; what was in flight is done again and gives the same events. Answers of a model that is paid for
wait for no others: each is written as soon as it is there, so that a resume pays again only for calls that were under
way. Memory is bounded by the window of jobs in flight, whatever the number of turns.
"""

import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec
from django.db import DatabaseError, connection, transaction
from django.db.models import F
from django.utils import timezone

from agentlab.persona.adapters import paid
from agentlab.persona.executors import Workers
from agentlab.persona.models import Checkpoint, StudyPersona, StudyRun
from agentlab.persona.planning import Plan, Stretch
from agentlab.persona.processes import Work
from agentlab.persona.reading import charted_turn, reactions
from agentlab.persona.replaying import trace_sha256
from agentlab.persona.runs import RunError, study_of
from agentlab.persona.values import canonical, why
from agentlab.persona.work import Done, Job, run_job

STRETCH = 20  # turns of a job: what one job costs beside its turns is shared by so many
PATIENCE = 600.0  # seconds without any answer after which those that are due are given again
TRIES = 3  # that often a job is given out: if its worker died each time, or none answered, its persona is given up
REACTED = "reacted"  # the kind of event that says what a persona did
HEARTBEAT = 5.0  # seconds between signs of life
SETTLED = 2.0  # seconds from the first turns written until their rate says how long the rest takes
GATHER = 0.2  # seconds that answers wait at most for others, so that many share a transaction

INSERT_EVENT = (
    "INSERT INTO study_trace (run_id, persona, turn, sequence, kind, label, payload, seal)"
    " VALUES (%s, %s, %s, %s, %s, %s, %s, %s)"
)
WRITE_CHECKPOINT = (
    "INSERT INTO study_checkpoints (run_id, persona, turn, state) VALUES (%s, %s, %s, %s)"
    " ON CONFLICT (run_id, persona) DO UPDATE SET turn = excluded.turn, state = excluded.state"
)


class TakenOver(RunError):
    """The run belongs to another runner now, or to nobody."""


@dataclass(frozen=True)
class Progress:
    done: int
    total: int
    rate: float  # turns a second, of this runner; 0 as long as it is not known
    failed: int

    @property
    def left(self) -> float:
        """Seconds, at the rate so far."""
        return (self.total - self.done) / self.rate if self.rate else float("inf")


class Pace:
    """Turns a second, counted from the first that were written: those before it waited for workers to start."""

    def __init__(self) -> None:
        self._first: tuple[float, int] | None = None

    def rate(self, now: float, written: int) -> float:
        """0 until enough time has passed for the rate to mean something."""
        self._first = self._first or (now, written)
        seconds, turns = now - self._first[0], written - self._first[1]
        return turns / seconds if seconds >= SETTLED else 0.0


@dataclass(eq=False)
class _Slot:
    """A job in the order of writing. `awaited` has a future for each time that it was given out and not given up;
    `done` is the first answer, all others late."""

    number: int
    data: bytes
    tries: int = 0
    awaited: "list[Future[bytes]]" = field(default_factory=list)
    done: Done | None = None

    @property
    def runs(self) -> bool:
        """Does a worker say that it is at it?"""
        return any(future.running() for future in self.awaited)


class Runner:
    """One go at a run that this process has created or claimed."""

    def __init__(
        self,
        run: StudyRun,
        workers: Workers,
        *,
        work: Work = run_job,
        patience: float = PATIENCE,
        on_progress: Callable[[Progress], None] = lambda progress: None,
    ) -> None:
        self.run, self.study = run, study_of(run)
        self._workers, self._work, self._patience, self._on_progress = workers, work, patience, on_progress
        committed = dict(Checkpoint.objects.filter(run=run).values_list("persona", "turn"))
        self._paid = paid(self.study.embedder, self.study.model)
        stretch = 1 if self._paid else STRETCH  # a paid answer is written before the next
        self._plan = Plan(run.personas, run.turns_each, stretch, committed)
        self._reacted = reactions(run) if run.turns else {}
        self._slots: deque[_Slot] = deque()
        self._answers: queue.SimpleQueue[tuple[_Slot, Future[bytes]] | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._late = 0
        self._written = 0
        self._beaten = self._heard = time.monotonic()
        self._pace = Pace()

    def stop(self) -> None:
        """End after what has been answered: from a signal handler or another thread."""
        self._stopping.set()
        self._answers.put(None)

    def go(self) -> StudyRun:
        """Run to the end, or until `stop`. Raises `RunError` where another runner took over or the workers are gone;
        whatever it raises, the run is then marked as stopped if that can still be written."""
        try:
            while not self._stopping.is_set():
                self._fill()
                if not self._slots:
                    break
                self._take()
                self._commit()
            self._finish()
        except BaseException:
            with suppress(DatabaseError):
                self._mark(StudyRun.Status.STOPPED)
            raise
        self.run.refresh_from_db()
        return self.run

    # Giving out ---------------------------------------------------------------------------------------------

    def _fill(self) -> None:
        """Give out as many jobs as the window allows."""
        for slot in self._jobs(self._plan.take(self._workers.window - len(self._slots))):
            self._slots.append(slot)
            self._give(slot)

    def _jobs(self, stretches: list[Stretch]) -> Iterator[_Slot]:
        numbers = [one.number for one in stretches if not one.arrives]
        states = {}
        if numbers:
            rows = Checkpoint.objects.filter(run=self.run, persona__in=numbers)
            states = dict(rows.values_list("persona", "state"))
        for one in stretches:
            persona = self.study.personas[one.number]
            job = Job(
                study=self.run.study_sha256,
                rules=msgspec.Raw(self.study.rules_bytes),
                embedder=self.study.embedder,
                expects=self.run.embedder,
                model=self.study.model,
                persona=persona,
                state=bytes(states.get(one.number, b"")),
                shown=msgspec.Raw(self.study.shown_bytes(persona.id, one.first, one.last)),
            )
            yield _Slot(one.number, canonical(job))

    def _give(self, slot: _Slot) -> None:
        slot.tries += 1
        future = self._workers.submit(self._work, slot.data)
        slot.awaited.append(future)
        future.add_done_callback(lambda answered: self._answers.put((slot, answered)))

    # Taking answers -----------------------------------------------------------------------------------------

    def _take(self) -> None:
        """Wait for an answer, then take every one that is there."""
        try:
            answer = self._answers.get(timeout=GATHER if any(self._ready()) else HEARTBEAT)
            while True:
                if answer:
                    self._answered(*answer)
                answer = self._answers.get_nowait()
        except queue.Empty:
            self._give_again()

    def _answered(self, slot: _Slot, future: "Future[bytes]") -> None:
        if slot.done is not None:
            self._late += not future.cancelled() and not future.exception()
            return
        self._heard = time.monotonic()
        try:
            slot.done = msgspec.msgpack.decode(future.result(), type=Done)
        except self._workers.deaths:
            if future in slot.awaited:  # else the worker was ended for its silence, and the job given again
                slot.awaited.remove(future)
                self._again(slot, f"its worker died {TRIES} times")
        except CancelledError:
            raise RunError("the workers are gone") from None
        except Exception as error:
            slot.done = _failed(why(error))
        if slot.done is not None:
            self._withdraw(slot)

    def _give_again(self) -> None:
        """After a long silence the jobs that are being worked on go to another worker; after a second one the workers
        that are stuck in them are ended. Whichever answers first is heard. While anybody answers, jobs wait in their
        queue, however slow it is."""
        now = time.monotonic()
        if now - self._heard <= self._patience:
            return
        self._heard = now
        due = [slot for slot in self._slots if slot.done is None]
        for slot in [slot for slot in due if slot.runs] or due:  # Dask does not tell which run
            if 1 < slot.tries < TRIES:
                self._drop(slot)
            self._again(slot, f"no answer within {TRIES} × {self._patience:g} s")

    def _again(self, slot: _Slot, reason: str) -> None:
        if slot.tries < TRIES:
            self._give(slot)
        else:
            slot.done = _failed(reason)
            self._withdraw(slot)

    def _drop(self, slot: _Slot) -> None:
        """End the workers that are at this job."""
        for future in [future for future in slot.awaited if future.running()]:
            slot.awaited.remove(future)
            self._workers.drop(future)

    def _withdraw(self, slot: _Slot) -> None:
        """Nobody need do this job any more: one that is given out twice would cost twice, or hold a worker for ever."""
        for future in slot.awaited:
            future.cancel()  # where it has not begun
        self._drop(slot)
        slot.awaited.clear()  # each holds the slot: a ring, which would stay in memory until the collector comes by

    # Writing ------------------------------------------------------------------------------------------------

    def _commit(self, *, now: bool = False) -> None:
        """Write every answer whose turn it is in the order of the jobs, in one transaction."""
        ready = list(self._ready())
        waited = time.monotonic() - self._beaten
        enough = ready and (self._paid or 2 * len(ready) >= len(self._slots))
        if not (now or enough or waited >= (GATHER if ready else HEARTBEAT)):
            return
        with transaction.atomic():
            self._still_mine(ready)
            self._write(ready)
        self._late, self._beaten = 0, time.monotonic()
        for slot, done in ready:
            self._slots.remove(slot)
            self._plan.close(slot.number, done.turn, bool(done.failure))
            self._written += done.turns
        if ready:
            self._on_progress(self._progress())

    def _ready(self) -> Iterator[tuple[_Slot, Done]]:
        """The answered jobs before the first that is not; all of them where answers are paid for."""
        for slot in self._slots:
            if slot.done is not None:
                yield slot, slot.done
            elif not self._paid:
                return

    def _still_mine(self, ready: list[tuple[_Slot, Done]]) -> None:
        """Count what is about to be written, if this runner still holds the run."""
        self._count_reactions(ready)
        mine = StudyRun.objects.filter(pk=self.run.pk, epoch=self.run.epoch).update(
            turns=F("turns") + sum(done.turns for _, done in ready),
            events=F("events") + sum(len(done.events) for _, done in ready),
            answered=F("answered") + sum(done.answered for _, done in ready),
            fallbacks=F("fallbacks") + sum(done.fallbacks for _, done in ready),
            late_results=F("late_results") + self._late,
            reacted=self._reacted,
            updated_at=timezone.now(),
            **({"replay": StudyRun.Replay.NOT_VERIFIED, "trace_sha256": ""} if ready else {}),
        )
        if not mine:
            if not StudyRun.objects.filter(pk=self.run.pk).exists():
                raise TakenOver(f"study {self.run.pk} was deleted meanwhile")
            raise TakenOver(f"another runner has taken over study {self.run.pk}")

    def _count_reactions(self, ready: list[tuple[_Slot, Done]]) -> None:
        """By turns of the chart, so that it stays small. An index of reactions would cost each turn more."""
        taken = Counter(
            (event.label, event.turn) for _, done in ready for event in done.events if event.kind == REACTED
        )
        for (action, turn), count in taken.items():
            of_action, at = self._reacted.setdefault(action, {}), charted_turn(turn, self.run.turns_each)
            of_action[at] = of_action.get(at, 0) + count

    def _write(self, ready: list[tuple[_Slot, Done]]) -> None:
        """Plain SQL: through model instances, writing would cost more than the turns and two workers would wait on
        it."""
        run = self.run.pk
        with connection.cursor() as cursor:
            cursor.executemany(
                INSERT_EVENT,
                [
                    (run, slot.number, e.turn, e.sequence, e.kind, e.label, e.payload, e.seal)
                    for slot, done in ready
                    for e in done.events
                ],
            )
            cursor.executemany(
                WRITE_CHECKPOINT, [(run, slot.number, done.turn, done.state) for slot, done in ready if done.events]
            )
        for slot, done in ready:
            if done.failure:
                StudyPersona.objects.filter(run=self.run, number=slot.number).update(failed=done.failure)

    def _finish(self) -> None:
        """Write what has been answered and say how it stands."""
        self._commit(now=True)
        Status = StudyRun.Status
        status = Status.STOPPED
        if not self._stopping.is_set():
            status = Status.INCOMPLETE if self._plan.failed else Status.COMPLETE
        self._mark(status, trace_sha256(self.run) if status != Status.STOPPED else "")

    def _mark(self, status: StudyRun.Status, sha256: str = "") -> None:
        """How it stands, unless another runner has taken over."""
        mine = StudyRun.objects.filter(pk=self.run.pk, epoch=self.run.epoch)
        mine.update(status=status, trace_sha256=sha256, updated_at=timezone.now())

    def _progress(self) -> Progress:
        total = self.run.personas * self.run.turns_each
        rate = self._pace.rate(time.monotonic(), self._written)
        return Progress(self.run.turns + self._written, total, rate, self._plan.failed)


def _failed(reason: str) -> Done:
    return Done(failure=reason[:500])
