"""The recorder: a turn costs its caller one reference on a queue; one thread of its own writes to the buffer."""

import atexit
import logging
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable
from typing import Final, NamedTuple

from capture.buffer import BufferUnavailable, Encoded, TurnBuffer
from capture.turns import Turn, TurnError, TurnKey, freeze_decision

BATCH: Final = 100
AT_EXIT_SECONDS: Final = 1.8  # all recorders of the process together end within two seconds

RECORDED, DROPPED, FAILED = "recorded", "dropped", "failed"
FULL, CLOSED, UNFINISHED = "buffer full", "recorder closed", "not written before the recorder closed"

OnOutcome = Callable[[TurnKey, str, str], None]
log = logging.getLogger(__name__)


class Stats(NamedTuple):
    """`recorded` turns were given to `record`; each ends as written, dropped (never tried) or failed (tried)."""

    recorded: int
    written: int
    dropped: int
    failed: int


class _Queued(NamedTuple):
    turn: Turn
    decision: bytes | None


class TurnRecorder:
    """Records turns without ever blocking, delaying or failing the caller. Every turn gets one outcome.

    `on_outcome(key, outcome, reason)` is called once for each turn with "recorded", "dropped" or "failed": on the
    writer's thread, or inside `record` where the queue is full. In a forked child the recorder starts empty.
    """

    def __init__(self, buffer: TurnBuffer, max_queued: int = 10_000, on_outcome: OnOutcome | None = None) -> None:
        self._buffer = buffer
        self._max_queued = max_queued
        self._on_outcome = on_outcome
        self._reset()
        _recorders.add(self)

    def _reset(self) -> None:
        """Empty, with no thread: at the start, and again in a forked child, whose turns are its own alone."""
        self._queue: queue.SimpleQueue[_Queued | None] = queue.SimpleQueue()
        self._lock = threading.RLock()  # reentrant: a signal handler may record while its thread is in here
        self._settled = threading.Condition(self._lock)
        self._thread: threading.Thread | None = None
        self._in_flight: list[_Queued] | None = None
        self._accepted = self._done = 0
        self._counts = {RECORDED: 0, DROPPED: 0, FAILED: 0}
        self._calls = 0
        self._closed = False
        self._told: set[str] = set()
        self._untold: set[str] = set()

    # ---- the caller's side

    def record(self, turn: Turn) -> None:
        """Hand the turn over. Returns at once and never raises."""
        try:
            self._accept(turn)
        except Exception as error:
            with self._lock:
                self._calls += 1
            self._outcome(turn, FAILED, f"not recordable ({type(error).__name__})")

    def _accept(self, turn: Turn) -> None:
        queued = _Queued(turn, freeze_decision(turn.decision))
        with self._lock:
            reason = self._refusal()
            if reason is None:
                self._calls += 1
                self._accepted += 1
                self._queue.put(queued)
                return
            self._calls += 1
        self._outcome(turn, DROPPED, reason)

    def _refusal(self) -> str | None:
        if self._closed:
            return CLOSED
        if self._queue.qsize() >= self._max_queued:
            return FULL
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="turn-recorder", daemon=True)
            thread.start()
            self._thread = thread
        return None

    @property
    def stats(self) -> Stats:
        with self._lock:
            return Stats(self._calls, self._counts[RECORDED], self._counts[DROPPED], self._counts[FAILED])

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until every turn recorded so far has its outcome. False where that took longer than `timeout` s."""
        with self._lock:
            target = self._accepted
            return self._settled.wait_for(lambda: self._done >= target, timeout)

    def close(self, timeout: float = 2) -> bool:
        """Take no more turns, write what is queued within `timeout` seconds, count the rest as dropped. True where
        nothing had to be dropped. Again is harmless."""
        with self._lock:
            self._closed = True
        clean = self.flush(timeout)
        rest = self._claim_all()
        for queued in rest:
            self._outcome(queued.turn, DROPPED, UNFINISHED)
        with self._lock:
            self._done += len(rest)
            self._settled.notify_all()
        self._queue.put(None)
        self._tell()
        return clean and not rest

    def _claim_all(self) -> list[_Queued]:
        with self._lock:
            rest, self._in_flight = self._in_flight or [], None
            while not self._queue.empty():
                queued = self._queue.get_nowait()
                if queued is not None:
                    rest.append(queued)
            return rest

    # ---- outcomes

    def _outcome(self, turn: Turn, outcome: str, reason: str) -> None:
        with self._lock:
            self._counts[outcome] += 1
            if reason and reason not in self._told:
                self._untold.add(reason)
        if self._on_outcome is not None:
            try:
                self._on_outcome(turn.key, outcome, reason)
            except Exception as error:
                with self._lock:
                    self._untold.add(f"on_outcome raised {type(error).__name__}")

    def _tell(self) -> None:
        """Log each new kind of loss once. Never on the thread of a turn: a log handler may block, or record."""
        with self._lock:
            news = sorted(self._untold - self._told)
            self._told |= self._untold
            self._untold.clear()
        for reason in news:
            log.warning("turns are not being recorded: %s", reason)

    # ---- the writer's side

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            self._write(self._batch(first))
            self._tell()

    def _batch(self, first: _Queued) -> list[_Queued]:
        batch = [first]
        with self._lock:
            while len(batch) < BATCH and not self._queue.empty():
                queued = self._queue.get_nowait()
                if queued is None:
                    self._queue.put(None)
                    break
                batch.append(queued)
            self._in_flight = batch
        return batch

    def _write(self, batch: list[_Queued]) -> None:
        outcomes = self._stored(batch)
        with self._lock:
            if self._in_flight is not batch:  # close() could wait no longer and has settled it
                return
            self._in_flight = None
        for queued, reason in zip(batch, outcomes, strict=True):
            self._outcome(queued.turn, RECORDED if reason is None else FAILED, reason or "")
        with self._lock:
            self._done += len(batch)
            self._settled.notify_all()

    def _stored(self, batch: list[_Queued]) -> list[str | None]:
        """Why each turn was not stored, or None."""
        reasons: list[str | None] = []
        encoded: list[Encoded] = []
        for queued in batch:
            try:
                encoded.append(Encoded(queued.turn, queued.decision))
                reasons.append(None)
            except TurnError as error:
                reasons.append(str(error))
            except Exception as error:
                reasons.append(f"cannot be encoded ({type(error).__name__})")
        try:
            stored = iter(self._buffer.store(encoded))
        except BufferUnavailable as error:
            return [reason or str(error) for reason in reasons]
        except Exception as error:
            return [reason or f"not stored ({type(error).__name__})" for reason in reasons]
        return [reason or next(stored) for reason in reasons]


_recorders: "weakref.WeakSet[TurnRecorder]" = weakref.WeakSet()


def _forget_the_parents_turns() -> None:
    for recorder in list(_recorders):
        recorder._reset()


def _close_all() -> None:
    deadline = time.monotonic() + AT_EXIT_SECONDS
    for recorder in list(_recorders):
        recorder.close(max(0, deadline - time.monotonic()))


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_the_parents_turns)
