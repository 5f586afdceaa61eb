"""Where jobs run: in this process, in a pool of processes, or on Dask. One small interface over
`concurrent.futures`."""

import importlib
import logging
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from agentlab.persona.processes import WINDOW, Processes, Work

CONNECT_WITHIN = 10.0  # seconds for a scheduler to answer
LOGGERS = ("distributed", "distributed.client", "distributed.core", "distributed.scheduler", "tornado.application")
SHAPES = "inline, processes:N, dask:ADDRESS or dask-local:N"


class ExecutorError(Exception):
    """Says in one line why jobs cannot run there."""


class Workers(Protocol):
    """`window` jobs at most are given out at a time: enough that no worker waits while answers are written. A future
    raises one of `deaths` where the worker died under the job."""

    window: int
    deaths: tuple[type[BaseException], ...]

    def submit(self, work: Work, data: bytes) -> "Future[bytes]": ...

    def drop(self, future: "Future[bytes]") -> None:
        """End the worker that is stuck in this running job; nobody awaits its answer."""

    def close(self) -> None:
        """Drop what has not been answered and end the workers."""


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

    def drop(self, future: "Future[bytes]") -> None:
        pass

    def close(self) -> None:
        pass


class Dask:
    """A Dask scheduler: this machine's own (`count` workers), or the one at `address`."""

    _cluster: Any = None
    _client: Any = None

    def __init__(self, address: str = "", count: int = 0) -> None:
        try:
            distributed: Any = importlib.import_module("distributed")
        except ImportError:
            raise ExecutorError("Dask is not installed: pip install -c constraints.txt -e '.[cluster]'") from None
        for name in LOGGERS:
            logging.getLogger(name).setLevel(logging.ERROR)
        self.deaths: tuple[type[BaseException], ...] = (distributed.KilledWorker,)
        try:
            self._open(distributed, address, count)
            self._check(address)
        except (OSError, ValueError, TimeoutError):
            self.close()
            raise ExecutorError(f"no Dask scheduler with a worker answers at {address or 'this machine'}") from None
        self.window = WINDOW * max(1, sum(self._client.nthreads().values()))
        self._executor: Executor = self._client.get_executor(pure=False)

    def _open(self, distributed: Any, address: str, count: int) -> None:
        if count:
            with _deaf_children():
                self._cluster = distributed.LocalCluster(
                    n_workers=count,
                    threads_per_worker=1,
                    processes=True,
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                    silence_logs=logging.CRITICAL,  # what matters comes with the answers
                )
        self._client = distributed.Client(self._cluster or address, timeout=CONNECT_WITHIN, set_as_default=False)
        self._client.wait_for_workers(1, timeout=CONNECT_WITHIN)

    def _check(self, address: str) -> None:
        """Workers that lack our code would fail every persona, one by one."""
        try:
            self._client.run(_can_work)
        except Exception as error:
            self.close()
            reason = str(error).splitlines()[0]
            raise ExecutorError(f"the Dask workers at {address} cannot do our work: {reason}") from None

    def submit(self, work: Work, data: bytes) -> "Future[bytes]":
        return self._executor.submit(work, data)

    def drop(self, future: "Future[bytes]") -> None:
        """Dask does not say which jobs run, and ends none."""

    def close(self) -> None:
        """The end of client and cluster, whatever state they are in. What they say of being ended is no news."""
        for name in LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        for part in (self._client, self._cluster):
            if part is not None:
                with suppress(Exception):
                    part.close(timeout=CONNECT_WITHIN)


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Processes that begin here leave Ctrl-C, which a terminal sends to all, to the runner. Only a main thread can say
    so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _can_work() -> None:
    """Raises ImportError where a worker has no agentlab."""
    importlib.import_module("agentlab.persona.work")


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
