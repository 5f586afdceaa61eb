"""Work that goes wrong in its worker, and workers that answer out of order: what real ones do on a bad day."""

import os
import queue
import random
import signal
import threading
import weakref
from concurrent.futures import Future
from pathlib import Path

import msgspec

from agentlab.persona.processes import BLAS, Processes, Work
from agentlab.persona.work import Job, run_job

VICTIM = "p2"
MARK = "STUDY_TEST_MARK"


def dies_always(data: bytes) -> bytes:
    if msgspec.msgpack.decode(data, type=Job).persona.id == VICTIM:
        os._exit(9)
    return run_job(data)


def dies_once(data: bytes) -> bytes:
    """Takes its worker down the first time that it is given the victim's turns."""
    if msgspec.msgpack.decode(data, type=Job).persona.id == VICTIM:
        try:
            Path(os.environ[MARK]).touch(exist_ok=False)
        except FileExistsError:
            pass
        else:
            os._exit(9)
    return run_job(data)


def tell_environment(data: bytes) -> bytes:
    """What a worker finds around it."""
    deaf = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    return msgspec.json.encode([{name: os.environ.get(name) for name in BLAS}, deaf, os.getppid()])


class Shuffled:
    """A thread that takes all jobs that wait and does them in an order of its own."""

    deaths: tuple = ()

    def __init__(self, seed: int, window: int = 32) -> None:
        self.window = window
        self._random = random.Random(seed)
        self._jobs: queue.SimpleQueue = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def submit(self, work, data: bytes) -> Future:
        future: Future = Future()
        self._jobs.put((future, work, data))
        return future

    def close(self) -> None:
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        waiting: list = []
        while True:
            job = self._jobs.get() if not waiting else None
            if job is None and not waiting:
                return
            if job:
                waiting.append(job)
            while not self._jobs.empty():
                if (job := self._jobs.get()) is None:
                    return
                waiting.append(job)
            future, work, data = waiting.pop(self._random.randrange(len(waiting)))
            future.set_result(work(data))


class Forgetful:
    """Never answers the first time that it is given a job, but answers both times at once when it is given it again."""

    deaths: tuple = ()
    window = 4

    def __init__(self) -> None:
        self.given: dict[bytes, Future] = {}

    def submit(self, work, data: bytes) -> Future:
        future: Future = Future()
        future.set_running_or_notify_cancel()
        if data not in self.given:
            self.given[data] = future
        else:
            answer = work(data)
            future.set_result(answer)
            threading.Timer(0, self.given[data].set_result, [answer]).start()
        return future

    def drop(self, future: Future) -> None:
        pass

    def close(self) -> None:
        pass


def echo(data: bytes) -> bytes:
    return data


def die(data: bytes) -> bytes:
    os._exit(7)


def raise_one(data: bytes) -> bytes:
    raise ValueError("no such thing")


class Slow:
    """A thread that takes its time over each job, one after the other, as a model on one's own machine does."""

    deaths: tuple = ()
    window = 8

    def __init__(self, seconds: float) -> None:
        self.given = 0
        self._seconds = seconds
        self._jobs: queue.SimpleQueue = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def submit(self, work, data: bytes) -> Future:
        self.given += 1
        future: Future = Future()
        self._jobs.put((future, work, data))
        return future

    def close(self) -> None:
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        while job := self._jobs.get():
            future, work, data = job
            threading.Event().wait(self._seconds)
            future.set_result(work(data))


class Stuck:
    """Threads of which one that is given the victim's turns never comes back; it can be ended, and another begins."""

    deaths: tuple = ()
    window = 8

    def __init__(self, count: int) -> None:
        self.ended = 0
        self._jobs: queue.SimpleQueue = queue.SimpleQueue()
        self._count = count
        for _ in range(count):
            self._start()

    def _start(self) -> None:
        threading.Thread(target=self._work, daemon=True).start()

    def submit(self, work, data: bytes) -> Future:
        future: Future = Future()
        self._jobs.put((future, work, data))
        return future

    def drop(self, future: Future) -> None:
        assert future.running()
        self.ended += 1
        self._start()

    def close(self) -> None:
        for _ in range(self._count):
            self._jobs.put(None)

    def _work(self) -> None:
        while job := self._jobs.get():
            future, work, data = job
            if not future.set_running_or_notify_cancel():
                continue
            if msgspec.msgpack.decode(data, type=Job).persona.id == VICTIM:
                return
            future.set_result(work(data))


def hang(data: bytes) -> bytes:
    threading.Event().wait()
    return data


class Remembered(Processes):
    """Two real processes; `given` are weak references to what was given out."""

    def __init__(self) -> None:
        super().__init__(2)
        self.given: list[weakref.ref[Future[bytes]]] = []

    def submit(self, work: Work, data: bytes) -> "Future[bytes]":
        future = super().submit(work, data)
        self.given.append(weakref.ref(future))
        return future
