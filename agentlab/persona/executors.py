"""Where jobs run: in this process, in a pool of processes, or on Dask. One small interface over `concurrent.futures`.

Workers are spawned, not forked (a fork copies locks that threads hold), and their BLAS keeps to one thread: a worker is
a core's worth of work. This module imports neither numpy nor the engine, so that a child can be told so first.
"""

import importlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import suppress
from typing import Any, Protocol

BLAS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
WINDOW = 32  # jobs for each worker
SHAPES = "inline, processes:N, dask:ADDRESS or dask-local:N"

Work = Callable[[bytes], bytes]


class ExecutorError(Exception):
    """Says in one line why jobs cannot run there."""


class Workers(Protocol):
    """`window` jobs at most are given out at a time: enough that no worker waits while answers are written. A future
    raises one of `deaths` where the worker died under the job."""

    window: int
    deaths: tuple[type[BaseException], ...]

    def submit(self, work: Work, data: bytes) -> "Future[bytes]": ...

    def renew(self) -> None:
        """New workers in place of dead ones."""

    def close(self) -> None:
        """Drop what has not begun and end the workers."""


class Inline:
    """This process, one job at a time."""

    window = 1
    deaths: tuple[type[BaseException], ...] = ()

    def submit(self, work: Work, data: bytes) -> "Future[bytes]":
        future: Future[bytes] = Future()
        try:
            future.set_result(work(data))
        except Exception as error:
            future.set_exception(error)
        return future

    def renew(self) -> None:
        pass

    def close(self) -> None:
        pass


class Processes:
    """A pool of spawned processes on this machine."""

    deaths: tuple[type[BaseException], ...] = (BrokenExecutor,)

    def __init__(self, count: int) -> None:
        self._count, self.window = count, WINDOW * count
        self._pool = self._opened()

    def _opened(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self._count, multiprocessing.get_context("spawn"), initializer=_settle)

    def submit(self, work: Work, data: bytes) -> "Future[bytes]":
        return self._pool.submit(work, data)

    def renew(self) -> None:
        self.close()
        self._pool = self._opened()

    def close(self) -> None:
        processes = list((self._pool._processes or {}).values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:  # a worker in the middle of a slow answer would hold up the end
            process.terminate()


class Dask:
    """A Dask scheduler: this machine's own (`count` workers), or the one at `address`."""

    def __init__(self, address: str = "", count: int = 0) -> None:
        try:
            distributed: Any = importlib.import_module("distributed")
        except ImportError:
            raise ExecutorError("Dask is not installed: pip install -c constraints.txt -e '.[cluster]'") from None
        self.deaths: tuple[type[BaseException], ...] = (distributed.KilledWorker,)
        self._cluster: Any = None
        if count:
            self._cluster = distributed.LocalCluster(
                n_workers=count, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
            )
        try:
            self._client: Any = distributed.Client(self._cluster or address, timeout="10s", set_as_default=False)
            self._client.wait_for_workers(1, timeout=30)
        except (OSError, ValueError, TimeoutError):
            self._end_cluster()
            raise ExecutorError(f"no Dask scheduler with a worker answers at {address or 'this machine'}") from None
        self.window = WINDOW * max(1, sum(self._client.nthreads().values()))
        self._executor: Executor = self._client.get_executor(pure=False)

    def submit(self, work: Work, data: bytes) -> "Future[bytes]":
        return self._executor.submit(work, data)

    def renew(self) -> None:
        """The scheduler starts new workers itself."""

    def close(self) -> None:
        with suppress(Exception):
            self._executor.shutdown(wait=False)
        self._client.close(timeout=5)
        self._end_cluster()

    def _end_cluster(self) -> None:
        if self._cluster is not None:
            self._cluster.close(timeout=10)


def open_workers(shape: str) -> Workers:
    """The workers that `--executor` names. Raises `ExecutorError`."""
    kind, _, rest = shape.partition(":")
    if shape == "inline":
        return Inline()
    if kind == "processes":
        return Processes(_count(rest, shape))
    if kind == "dask-local":
        return Dask(count=_count(rest, shape))
    if kind == "dask" and rest:
        return Dask(address=rest)
    raise ExecutorError(f"no executor {shape!r}: {SHAPES}")


def _count(text: str, shape: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 1024):
        raise ExecutorError(f"{shape!r}: the number of workers is 1 to 1024")
    return int(text)


def _settle() -> None:
    """A new worker: one BLAS thread, deaf to Ctrl-C (the runner ends it), gone when the runner is gone."""
    for name in BLAS:
        os.environ[name] = "1"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent,), daemon=True).start()


def _follow(parent: Any) -> None:
    """A pool's process waits on a pipe that it holds open itself: killed, its parent would leave it there for ever."""
    parent.join()
    os._exit(1)
