"""The recorder: a turn costs its caller next to nothing, every turn gets one outcome, and nothing that happens to the
store reaches the caller. Faults of a real Redis are in tests/faults."""

import gc
import logging
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
import redis

from capture.buffer import BufferUnavailable, Encoded, TurnBuffer
from capture.prompt import Prompt
from capture.recorder import Stats, TurnRecorder
from capture.turns import Turn, TurnKey


def turn(index: int = 0, **fields: Any) -> Turn:
    made: dict[str, Any] = {"prompt": Prompt("envelope", f"{index}"), "response": f"said {index}"}
    return Turn(
        TurnKey("rocky", "T-1", 7, index), **(made | {"captured_at": datetime(2026, 11, 1, tzinfo=UTC)} | fields)
    )


class Outcomes(list[tuple[int, str, str]]):
    """Every outcome in the order it was told: action index, outcome, reason."""

    def __call__(self, key: TurnKey, outcome: str, reason: str) -> None:
        self.append((key.action_index, outcome, reason))


class Store:
    """A store that works as it is told: `error` to raise, reasons by index, and a gate that holds every write."""

    def __init__(self, error: Exception | None = None, reasons: dict[int, str] | None = None) -> None:
        self.error, self.reasons = error, reasons or {}
        self.stored: list[int] = []
        self.gate = threading.Event()
        self.gate.set()
        self.asked = threading.Semaphore(0)

    def store(self, batch: Sequence[Encoded]) -> list[str | None]:
        self.asked.release()
        assert self.gate.wait(20)
        if self.error:
            raise self.error
        self.stored += [one.key.action_index for one in batch]
        return [self.reasons.get(one.key.action_index) for one in batch]

    def hold(self) -> None:
        self.gate.clear()


@pytest.fixture
def outcomes() -> Outcomes:
    return Outcomes()


@pytest.fixture
def recorders() -> Iterator[list[TurnRecorder]]:
    made: list[TurnRecorder] = []
    yield made
    for recorder in made:
        recorder.close(0)


@pytest.fixture
def make(recorders: list[TurnRecorder], outcomes: Outcomes) -> Any:
    def made(store: Any, max_queued: int = 10_000, on_outcome: Any = outcomes) -> TurnRecorder:
        recorders.append(TurnRecorder(store, max_queued, on_outcome))
        return recorders[-1]

    return made


def test_turns_reach_the_buffer_and_each_is_told_as_recorded_once(
    make: Any, outcomes: Outcomes, capture_redis: redis.Redis
) -> None:  # CAP-1
    recorder = make(TurnBuffer(capture_redis))
    turns = [turn(index) for index in range(250)]
    for one in turns:
        recorder.record(one)
    assert recorder.flush(10)
    assert TurnBuffer(capture_redis).hand_turns("T-1", 7, agent_id="rocky") == turns
    assert outcomes == [(index, "recorded", "") for index in range(250)]
    assert recorder.stats == Stats(recorded=250, written=250, dropped=0, failed=0)


def test_the_record_is_the_turn_as_it_was_when_it_was_recorded(make: Any, capture_redis: redis.Redis) -> None:  # CAP-4
    recorder, message = make(TurnBuffer(capture_redis)), {"v": 1}
    recorder.record(turn(0, decision=[message]))
    message["v"] = 2
    recorder.record(turn(1, decision=[message]))
    recorder.flush(10)
    found = TurnBuffer(capture_redis).hand_turns("T-1", 7, agent_id="rocky")
    assert [one.decision for one in found] == [[{"v": 1}], [{"v": 2}]]


def test_a_field_of_one_turn_is_not_on_the_next(make: Any, capture_redis: redis.Redis) -> None:  # CAP-4
    recorder = make(TurnBuffer(capture_redis))
    recorder.record(turn(0, reasoning="thoughts", knowledge=b"\x80"))
    recorder.record(turn(1))
    recorder.flush(10)
    found = TurnBuffer(capture_redis).hand_turns("T-1", 7, agent_id="rocky")
    assert (found[1].reasoning, found[1].knowledge) == (None, None)


def test_a_full_queue_drops_the_turn_at_once_and_says_so(make: Any, outcomes: Outcomes) -> None:  # CAP-10
    store = Store()
    store.hold()
    recorder = make(store, max_queued=2)
    recorder.record(turn(0))
    assert store.asked.acquire(timeout=10)  # the writer has taken the first one
    for index in range(1, 5):
        recorder.record(turn(index))
    assert outcomes == [(2, "dropped", "buffer full"), (3, "dropped", "buffer full"), (4, "dropped", "buffer full")]
    store.gate.set()
    assert recorder.flush(10)
    assert outcomes[3:] == [(0, "recorded", ""), (1, "recorded", "")]
    assert recorder.stats == Stats(recorded=5, written=2, dropped=3, failed=0)


def test_a_turn_that_cannot_be_encoded_fails_alone_with_its_reason(make: Any, outcomes: Outcomes) -> None:  # CAP-10
    recorder = make(Store())
    for one in (turn(0), turn(1, response=object()), turn(2)):
        recorder.record(one)
    recorder.flush(10)
    assert sorted(outcomes) == [(0, "recorded", ""), (1, "failed", "response is object, not str"), (2, "recorded", "")]


def test_an_object_in_a_decision_costs_its_place_and_not_the_turn(
    make: Any, capture_redis: redis.Redis
) -> None:  # CAP-9
    recorder = make(TurnBuffer(capture_redis))
    recorder.record(turn(0, decision=[{"it": object(), "beside": 1}]))
    recorder.flush(10)
    decision = TurnBuffer(capture_redis).hand_turns("T-1", 7, agent_id="rocky")[0].decision
    assert decision is not None
    assert decision[0]["beside"] == 1


@pytest.mark.parametrize("nonsense", [None, 7, "a turn", object()])
def test_what_is_no_turn_is_counted_and_raises_nothing(make: Any, outcomes: Outcomes, nonsense: Any) -> None:  # CAP-10
    recorder = make(Store())
    recorder.record(nonsense)
    recorder.record(turn(1))
    assert recorder.flush(10)
    assert outcomes == [(1, "recorded", "")]
    assert recorder.stats == Stats(recorded=2, written=1, dropped=0, failed=1)


def test_an_unreachable_store_fails_every_turn_with_its_reason(make: Any, outcomes: Outcomes) -> None:  # CAP-10
    recorder = make(Store(BufferUnavailable("Redis is down")))
    for index in range(3):
        recorder.record(turn(index))
    assert recorder.flush(10)
    assert outcomes == [(index, "failed", "Redis is down") for index in range(3)]


def test_a_store_may_take_some_turns_of_a_batch_and_not_others(make: Any, outcomes: Outcomes) -> None:  # CAP-10
    recorder = make(Store(reasons={1: "Redis is out of memory"}))
    for index in range(3):
        recorder.record(turn(index))
    recorder.flush(10)
    assert outcomes == [(0, "recorded", ""), (1, "failed", "Redis is out of memory"), (2, "recorded", "")]


def test_a_store_that_breaks_in_its_own_way_stops_nothing(make: Any, outcomes: Outcomes) -> None:  # CAP-10
    store = Store(ZeroDivisionError("with content"))
    recorder = make(store)
    recorder.record(turn(0))
    assert recorder.flush(10)
    store.error = None
    recorder.record(turn(1))
    assert recorder.flush(10)
    assert outcomes == [(0, "failed", "not stored (ZeroDivisionError)"), (1, "recorded", "")]


def test_an_on_outcome_that_raises_stops_nothing(make: Any) -> None:  # CAP-10
    def raises(*args: Any) -> None:
        raise RuntimeError

    recorder = make(Store(), on_outcome=raises)
    for index in range(3):
        recorder.record(turn(index))
    assert recorder.flush(10)
    assert recorder.stats == Stats(recorded=3, written=3, dropped=0, failed=0)


def test_nobody_needs_to_listen_to_outcomes(make: Any) -> None:
    recorder = make(Store(), on_outcome=None)
    recorder.record(turn())
    assert recorder.close()
    assert recorder.stats.written == 1


def test_closing_writes_what_is_queued(make: Any, outcomes: Outcomes) -> None:  # CAP-10
    store = Store()
    recorder = make(store)
    for index in range(300):
        recorder.record(turn(index))
    assert recorder.close(timeout=10)
    assert store.stored == list(range(300))


def test_closing_a_blocked_store_counts_the_rest_as_dropped(make: Any, outcomes: Outcomes) -> None:  # CAP-10
    store = Store()
    store.hold()
    recorder = make(store)
    recorder.record(turn(0))
    assert store.asked.acquire(timeout=10)
    for index in range(1, 5):
        recorder.record(turn(index))
    assert recorder.close(timeout=0.01) is False
    wanted = [(index, "dropped", "not written before the recorder closed") for index in range(5)]
    assert outcomes == wanted
    store.gate.set()  # too late: what was told stays told
    recorder._thread.join(10)
    assert outcomes == wanted
    assert recorder.stats == Stats(recorded=5, written=0, dropped=5, failed=0)


def test_after_closing_a_turn_is_dropped_and_closing_again_is_harmless(make: Any, outcomes: Outcomes) -> None:  # CAP-10
    recorder = make(Store())
    assert recorder.close()
    assert recorder.close()
    recorder.record(turn())
    assert outcomes == [(0, "dropped", "recorder closed")]


def test_flushing_a_blocked_store_gives_up_in_time(make: Any) -> None:  # CAP-10
    store = Store()
    store.hold()
    recorder = make(store)
    recorder.record(turn())
    assert recorder.flush(0.01) is False
    store.gate.set()
    assert recorder.flush(10) is True


def test_every_turn_from_eight_threads_gets_exactly_one_outcome(make: Any, outcomes: Outcomes) -> None:  # CAP-10
    recorder = make(Store(reasons={5: "why"}), max_queued=50)

    def play(first: int) -> None:
        for index in range(first, first + 200):
            recorder.record(turn(index))

    threads = [threading.Thread(target=play, args=[number * 200]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.close(20)
    assert Counter(index for index, _, _ in outcomes) == Counter(range(1600))
    told = Counter(outcome for _, outcome, _ in outcomes)
    assert recorder.stats == Stats(1600, told["recorded"], told["dropped"], told["failed"])


class Held(str):
    """A response that can be looked for."""


def test_what_is_written_is_let_go_of(make: Any) -> None:  # CAP-10
    recorder = make(Store(reasons={3: "why"}))
    for index in range(150):
        recorder.record(turn(index, response=Held("x" * 1000)))
    assert recorder.flush(10)
    deadline = time.monotonic() + 10  # the last outcome is told a moment before the thread is back to waiting
    while still := sum(type(held) is Turn and type(held.response) is Held for held in gc.get_objects()):
        assert time.monotonic() < deadline, f"{still} turns are still held"
        time.sleep(0.01)


# ---- logging


class IntoTheRecorder(logging.Handler):
    """A host that records what it logs: each line becomes a turn."""

    def __init__(self, recorder: TurnRecorder) -> None:
        super().__init__()
        self.recorder = recorder
        self.lines: list[str] = []

    def emit(self, line: logging.LogRecord) -> None:
        self.lines.append(line.getMessage())
        self.recorder.record(turn(1000 + len(self.lines)))


@pytest.fixture
def handled() -> Iterator[Any]:
    log, added = logging.getLogger("capture.recorder"), []

    def handle(handler: logging.Handler) -> None:
        log.addHandler(handler)
        added.append(handler)

    yield handle
    for handler in added:
        log.removeHandler(handler)


def test_a_loss_is_logged_once_for_each_reason_and_without_content(
    make: Any, caplog: pytest.LogCaptureFixture
) -> None:  # CAP-10
    recorder = make(Store(BufferUnavailable("Redis is down")))
    for index in range(300):
        recorder.record(turn(index, response="SECRET"))
    recorder.record(turn(300, response=object()))
    recorder.flush(10)
    recorder.close()
    assert sorted(line.getMessage() for line in caplog.records) == [
        "turns are not recorded: Redis is down",
        "turns are not recorded: response is object, not str",
    ]
    assert "SECRET" not in caplog.text


def test_a_log_handler_that_records_makes_no_endless_loop(make: Any, handled: Any) -> None:  # CAP-10
    store = Store()
    store.hold()
    recorder = make(store, max_queued=1)
    handler = IntoTheRecorder(recorder)
    handled(handler)
    for index in range(50):
        recorder.record(turn(index))
    store.gate.set()
    recorder.close(10)
    assert (
        handler.lines
        == ["turns are not recorded: buffer full", "turns are not recorded: recorder closed"][: len(handler.lines)]
    )
    assert handler.lines


def test_dropping_in_eight_threads_at_once_meets_no_lock_of_logging(make: Any, handled: Any) -> None:  # CAP-10
    store = Store()
    store.hold()
    recorder = make(store, max_queued=1)
    handler = IntoTheRecorder(recorder)
    handled(handler)

    def play() -> None:
        for index in range(100):
            recorder.record(turn(index))

    handler.acquire()  # somebody's log handler is blocked
    try:
        threads = [threading.Thread(target=play) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert not any(thread.is_alive() for thread in threads)
    finally:
        handler.release()
    store.gate.set()
    assert recorder.close(10)


def test_a_log_handler_that_raises_stops_nothing(make: Any, handled: Any, outcomes: Outcomes) -> None:  # CAP-10
    class Raises(logging.Handler):
        def emit(self, line: logging.LogRecord) -> None:
            raise RuntimeError

        handle = emit  # type: ignore[assignment]

    handled(Raises())
    recorder = make(Store(BufferUnavailable("Redis is down")))
    recorder.record(turn(0))
    assert recorder.flush(10)
    recorder.record(turn(1))
    assert recorder.flush(10)
    assert len(outcomes) == 2


# ---- the caller's thread


def test_the_callers_thread_opens_and_touches_no_socket(make: Any, capture_redis_server: str) -> None:  # CAP-10 E-AFT-2
    seen: list[tuple[int, str]] = []
    watching = True

    def hook(event: str, args: Any) -> None:
        if watching and event.startswith("socket."):
            seen.append((threading.get_ident(), event))

    touched: list[int] = []

    class Watched(redis.Redis):
        def pipeline(self, *args: Any, **options: Any) -> Any:
            touched.append(threading.get_ident())
            return super().pipeline(*args, **options)

    sys.addaudithook(hook)
    try:
        with Watched.from_url(capture_redis_server) as client:
            recorder = make(TurnBuffer(client))
            for index in range(200):
                recorder.record(turn(index))
            assert recorder.flush(10)
            assert recorder.stats.written == 200
    finally:
        watching = False
    me = threading.get_ident()
    assert {thread for thread, _ in seen} == {recorder._thread.ident}  # the writer connected, and nobody else
    assert set(touched) == {recorder._thread.ident}
    assert me not in touched


def test_a_signal_handler_may_record_at_any_moment(make: Any) -> None:  # CAP-10
    recorder = make(Store())
    before = signal.signal(signal.SIGALRM, lambda *args: recorder.record(turn()))
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        for index in range(2000):
            recorder.record(turn(index))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert recorder.close(20)
    stats = recorder.stats
    assert stats.recorded == stats.written >= 2000


def test_a_process_without_a_thread_to_spare_drops_the_turn(
    make: Any, outcomes: Outcomes, monkeypatch: pytest.MonkeyPatch
) -> None:  # CAP-10
    def no_thread(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    recorder = make(Store())
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        recorder.record(turn(0))
    recorder.record(turn(1))
    recorder.flush(10)
    assert outcomes == [(0, "dropped", "no thread to write it"), (1, "recorded", "")]


# ---- forks


def test_a_forked_child_sends_its_own_turns_and_none_of_its_parents(
    make: Any, capture_redis: redis.Redis
) -> None:  # CAP-10
    class Held(TurnBuffer):
        """Writes nothing in the parent until it may."""

        def store(self, batch: Sequence[Encoded]) -> list[str | None]:
            if os.getpid() == parent:
                assert may_write.wait(20)
            return super().store(batch)

    parent, may_write = os.getpid(), threading.Event()
    recorder = make(Held(capture_redis))
    recorder.record(turn(0))
    recorder.record(turn(1))
    child = os.fork()
    if child == 0:
        try:
            recorder.record(turn(2))
            clean = recorder.close(10) and recorder.stats == Stats(1, 1, 0, 0)
        finally:
            os._exit(0 if clean else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    buffer = TurnBuffer(capture_redis)
    assert [one.key.action_index for one in buffer.hand_turns("T-1", 7, agent_id="rocky")] == [2]
    may_write.set()
    assert recorder.flush(10)
    assert buffer.hand_turns("T-1", 7, agent_id="rocky") == [turn(0), turn(1), turn(2)]


class Lockless:
    """A store with no lock of its own, which a fork could leave locked."""

    def store(self, batch: Sequence[Encoded]) -> list[str | None]:
        return [None for _ in batch]


def test_a_fork_in_the_middle_of_recording_leaves_no_lock_behind(make: Any) -> None:  # CAP-10
    recorder = make(Lockless())
    playing = threading.Event()

    def play() -> None:
        while not playing.is_set():
            recorder.record(turn())

    thread = threading.Thread(target=play)
    thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                signal.alarm(10)  # a child that waits for a lock of the parent's ends as a failure
                recorder.record(turn(1))
                os._exit(0 if recorder.flush(5) else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        playing.set()
        thread.join()
