"""A pool of spawned worker processes, each with a pipe of its own.

The standard library's process pool was tried and left: its workers share two pipes, so that one which is killed while
it writes leaves the others' results behind a torn one, and the whole pool waits for ever; and any death fails every job
at once, so that nobody can tell whose it was. With a pipe for each worker a death is the end of a file, and the job
that was running is known.

This module imports neither numpy nor the engine: a new worker first says that BLAS gets one thread.
"""

import multiprocessing
import os
import pickle
import queue
import signal
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

Work = Callable[[bytes], bytes]

BLAS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
WINDOW = 32  # jobs for each worker that are given out at a time: none waits while answers are written
AHEAD = 2  # jobs at a worker: the one that it does, and the next, so that it never waits for this process

HOPELESS = 10  # workers dead one after the other without one answer: it is not the jobs


class WorkerDied(Exception):
    """The process ended under the job."""


class WorkFailed(Exception):
    """The work raised; the message names what."""


@dataclass(eq=False)
class _Job:
    message: bytes
    future: "Future[bytes]"


@dataclass(eq=False)
class _Worker:
    process: SpawnProcess
    pipe: Connection
    jobs: deque[_Job] = field(default_factory=deque)

    def begin(self) -> None:
        """The first of its jobs is the one that it does: its future says so. One that was sent and then cancelled ends
        the worker, as nobody waits for it any more and it may never end."""
        first = self.jobs[0].future if self.jobs else None
        if first and not first.running() and (first.cancelled() or not first.set_running_or_notify_cancel()):
            self.process.kill()


class Processes:
    """`submit` from any thread. Workers start when there is work, and a dead one is replaced when there is more."""

    deaths: tuple[type[BaseException], ...] = (WorkerDied,)

    def __init__(self, count: int) -> None:
        self._count, self.window = count, WINDOW * count
        self._spawn = multiprocessing.get_context("spawn")
        self._lock = threading.Lock()
        self._waiting: deque[_Job] = deque()
        self._workers: list[_Worker] = []
        self._threads: list[threading.Thread] = []
        self._closing = False
        self._died = 0  # workers, since the last answer

    @property
    def pids(self) -> list[int]:
        return [worker.process.pid or 0 for worker in self._workers]

    def submit(self, work: Work, data: bytes) -> "Future[bytes]":
        """The future raises `WorkerDied` or `WorkFailed` where there is no answer."""
        job = _Job(pickle.dumps((work, data)), Future())
        with self._lock:
            self._waiting.append(job)
            self._feed()
        return job.future

    def drop(self, future: "Future[bytes]") -> None:
        """End the worker that is stuck in this job."""
        with self._lock:
            for worker in self._workers:
                if worker.jobs and worker.jobs[0].future is future:
                    worker.process.kill()

    def close(self) -> None:
        """End the workers at once; what they had not answered is cancelled."""
        with self._lock:
            self._closing = True
            for worker in self._workers:
                worker.process.kill()
            self._cancel()
        for thread in self._threads:
            thread.join()

    def _cancel(self) -> None:
        while self._waiting:
            self._waiting.popleft().future.cancel()

    def _feed(self) -> None:
        """Hand waiting jobs to the workers that have the fewest. The lock is held."""
        while self._waiting and not self._closing:
            worker = min(self._workers, key=lambda one: len(one.jobs), default=None)
            if len(self._workers) < self._count and (worker is None or worker.jobs):
                worker = self._start()
            if worker is None or len(worker.jobs) >= AHEAD:
                return
            job = self._waiting.popleft()
            if job.future.cancelled():
                continue
            worker.jobs.append(job)
            worker.begin()
            with suppress(OSError):  # a dead one's listener is about to find out
                worker.pipe.send_bytes(job.message)

    def _start(self) -> _Worker:
        ours, theirs = self._spawn.Pipe()
        process = self._spawn.Process(target=_serve, args=(theirs,), daemon=True)
        process.start()
        theirs.close()  # or its death would not be the end of the file
        worker = _Worker(process, ours)
        self._workers.append(worker)
        listener = threading.Thread(target=self._listen, args=(worker,), daemon=True)
        self._threads.append(listener)
        listener.start()
        return worker

    def _listen(self, worker: _Worker) -> None:
        """Take one worker's answers, in the order of its jobs, until it ends."""
        while True:
            try:
                done, answer = pickle.loads(worker.pipe.recv_bytes())  # noqa: S301 (our own process)
            except (EOFError, OSError, pickle.UnpicklingError):
                break
            with self._lock:
                job = worker.jobs.popleft()
                worker.begin()
                self._died = 0
                self._feed()
            with suppress(InvalidStateError):  # it was cancelled meanwhile
                if done:
                    job.future.set_result(answer)
                else:
                    job.future.set_exception(WorkFailed(answer))
        self._bury(worker)

    def _bury(self, worker: _Worker) -> None:
        """The job that was running died with it; those behind it go to the front of the queue."""
        worker.process.kill()
        worker.process.join()
        worker.pipe.close()
        with self._lock:
            self._workers.remove(worker)
            blamed = worker.jobs.popleft() if worker.jobs else None
            self._waiting.extendleft(reversed(worker.jobs))
            self._died += 1
            if self._closing or self._died >= HOPELESS:
                self._cancel()
            self._feed()
        if blamed:  # a job that runs cannot be cancelled
            died = WorkerDied(f"exit code {worker.process.exitcode}")
            with suppress(InvalidStateError):
                blamed.future.set_exception(CancelledError() if self._closing else died)


def _serve(pipe: Connection) -> None:
    """A worker's life: jobs in, answers out, and the end when the runner is gone. It leaves Ctrl-C to the runner."""
    for name in BLAS:
        os.environ[name] = "1"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    jobs: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(pipe, jobs), daemon=True).start()
    while True:
        pipe.send_bytes(pickle.dumps(_answer(jobs.get())))


def _receive(pipe: Connection, jobs: "queue.SimpleQueue[bytes]") -> None:
    """Always takes what is sent, so that neither side ever waits for the other to read first."""
    while True:
        try:
            jobs.put(pipe.recv_bytes())
        except (EOFError, OSError):
            os._exit(0)


def _answer(message: bytes) -> tuple[bool, Any]:
    work, data = pickle.loads(message)  # noqa: S301 (our own process)
    try:
        return True, work(data)
    except Exception as error:
        return False, f"{type(error).__name__}: {error}"
