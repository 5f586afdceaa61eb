"""The recorder: a turn costs its caller one reference on a queue; one thread of its own writes to the buffer."""

import atexit
import contextlib
import logging
import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from opentelemetry.context import Context, get_current

from capture.buffer import BufferUnavailable, Encoded, TurnBuffer
from capture.spans import turn_span
from capture.turns import Turn, TurnError, TurnKey, freeze_decision

BATCH: Final = 100
AT_EXIT_SECONDS: Final = 1.8  # all recorders of the process together end within two seconds

RECORDED, DROPPED, FAILED = "recorded", "dropped", "failed"
FULL, CLOSED, UNFINISHED = "buffer full", "recorder closed", "not written before the recorder closed"
NO_THREAD: Final = "no thread to write it"

OnOutcome = Callable[[TurnKey, str, str], None]
log = logging.getLogger(__name__)


class Stats(NamedTuple):
    """`recorded` turns were given to `record`; each ends as written, dropped (never tried) or failed (tried)."""

    recorded: int
    written: int
    dropped: int
    failed: int


class _Queued(NamedTuple):
    """A turn, its messages as they were when it was recorded, and the span that was current then."""

    turn: Turn
    decision: bytes | None
    context: Context


class TurnRecorder:
    """Records turns without ever blocking, delaying or failing the caller. Every turn gets one outcome.

    `max_queued` turns at most wait for the store, those on their way to it included; more are dropped.
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
        self._lock = threading.RLock()  # reentrant: a signal handler may record while its thread is in here
        self._work = threading.Condition(self._lock)  # there is something to write, or nothing ever again
        self._news = threading.Condition(self._lock)  # turns have got their outcome
        self._waiting: deque[_Queued] = deque()
        self._thread: threading.Thread | None = None
        self._in_flight: list[_Queued] = []
        self._accepted = self._done = 0
        self._counts = {RECORDED: 0, DROPPED: 0, FAILED: 0}
        self._calls = 0
        self._closed = self._over = False
        self._told: set[str] = set()
        self._untold: set[str] = set()

    # ---- the caller's side

    def record(self, turn: Turn) -> None:
        """Hand the turn over. Returns at once and never raises."""
        with self._lock:
            self._calls += 1
        outcome: str = DROPPED
        try:
            queued = _Queued(turn, freeze_decision(turn), get_current())
            reason = self._enqueue(queued)
        except Exception as error:  # not a Turn at all
            queued = _Queued(turn, None, Context())
            outcome, reason = FAILED, f"not recordable ({type(error).__name__})"
        if reason is not None:
            self._settle(queued, outcome, reason)

    def _enqueue(self, queued: _Queued) -> str | None:
        """Why the turn cannot be queued, or None once it is."""
        with self._lock:
            if self._closed:
                return CLOSED
            if len(self._waiting) + len(self._in_flight) >= self._max_queued:
                return FULL
            if self._thread is None and not self._start():
                return NO_THREAD
            self._accepted += 1
            self._waiting.append(queued)
            self._work.notify()
            return None

    def _start(self) -> bool:
        self._thread = threading.Thread(target=self._run, name="turn-recorder", daemon=True)
        try:
            self._thread.start()  # a signal handler that records in the middle of this finds the thread made
        except RuntimeError:  # the process has none to give, or is on its way out
            self._thread = None
            return False
        _close_at_a_childs_exit(self)
        return True

    @property
    def stats(self) -> Stats:
        with self._lock:
            return Stats(self._calls, self._counts[RECORDED], self._counts[DROPPED], self._counts[FAILED])

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until every turn recorded so far has its outcome. False where that took longer than `timeout` s."""
        with self._lock:
            target = self._accepted
            return self._news.wait_for(lambda: self._done >= target, timeout)

    def close(self, timeout: float = 2) -> bool:
        """Take no more turns, write what is queued within `timeout` seconds, count the rest as dropped. True where
        nothing had to be dropped. Again is harmless."""
        with self._lock:
            self._closed = True
        clean = self.flush(timeout)
        rest = self._claim_the_rest()
        for queued in rest:
            self._settle(queued, DROPPED, UNFINISHED)
        self._count_done(len(rest))
        self._tell()
        return clean and not rest

    def _claim_the_rest(self) -> list[_Queued]:
        """What the writer has not finished; from now on it finishes nothing."""
        with self._lock:
            rest = [*self._in_flight, *self._waiting]
            self._in_flight = []
            self._waiting.clear()
            self._over = True
            self._work.notify_all()
            return rest

    # ---- outcomes

    def _settle(self, queued: _Queued, outcome: str, reason: str) -> None:
        with self._lock:
            self._counts[outcome] += 1
            if reason and reason not in self._told:
                self._untold.add(reason)
        try:
            if self._on_outcome is not None:
                self._on_outcome(queued.turn.key, outcome, reason)
            turn_span(queued.turn, outcome, reason, queued.context)
        except Exception as error:
            with self._lock:
                self._untold.add(f"an outcome could not be told ({type(error).__name__})")

    def _tell(self) -> None:
        """Log each new kind of loss once. Never on the thread of a turn: a log handler may block, or record."""
        with self._lock:
            news = sorted(self._untold - self._told)
            self._told |= self._untold
            self._untold.clear()
        for reason in news:
            with contextlib.suppress(Exception):  # somebody else's log handler is no reason to stop
                log.warning("turns are not recorded: %s", reason)

    def _count_done(self, count: int) -> None:
        with self._lock:
            self._done += count
            self._news.notify_all()

    # ---- the writer's side

    def _run(self) -> None:
        while self._write_a_batch():
            pass  # while the thread waits for the next turn it holds none that is written

    def _write_a_batch(self) -> bool:
        """Whether there was one: at the end there is none."""
        batch = self._next_batch()
        if not batch:
            return False
        reasons = self._stored(batch)
        if self._finishes(batch):
            for queued, reason in zip(batch, reasons, strict=True):
                self._settle(queued, RECORDED if reason is None else FAILED, reason or "")
            self._tell()
            self._count_done(len(batch))
        return True

    def _next_batch(self) -> list[_Queued]:
        """Up to a hundred turns, as soon as there is one; none once the recorder is closed."""
        with self._lock:
            self._work.wait_for(lambda: self._waiting or self._over)
            self._in_flight = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            return self._in_flight

    def _finishes(self, batch: list[_Queued]) -> bool:
        """Whether the batch's outcomes are still the writer's to tell: close() settles what it cannot wait for."""
        with self._lock:
            mine = self._in_flight is batch
            self._in_flight = []
            return mine

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


def _close_at_a_childs_exit(recorder: TurnRecorder) -> None:
    """A child of multiprocessing leaves through os._exit, where atexit has no say."""
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None and processes.parent_process() is not None:
        from multiprocessing.util import Finalize

        Finalize(recorder, recorder.close, (AT_EXIT_SECONDS,), exitpriority=0)


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_the_parents_turns)
