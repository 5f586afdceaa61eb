"""Where jobs run: in this process, in a pool of processes, or on Dask. One small interface over
`concurrent.futures`."""

import importlib
from concurrent.futures import Executor, Future
from contextlib import suppress
from typing import Any, Protocol

from agentlab.persona.processes import WINDOW, Processes, Work

CONNECT_WITHIN = 10.0  # seconds for a scheduler to answer
SHAPES = "inline, processes:N, dask:ADDRESS or dask-local:N"


class ExecutorError(Exception):
    """Says in one line why jobs cannot run there."""


class Workers(Protocol):
    """`window` jobs at most are given out at a time: enough that no worker waits while answers are written. A future
    raises one of `deaths` where the worker died under the job."""

    window: int
    deaths: tuple[type[BaseException], ...]

    def submit(self, work: Work, data: bytes) -> "Future[bytes]": ...

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

    def close(self) -> None:
        pass


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
            self._client: Any = distributed.Client(
                self._cluster or address, timeout=CONNECT_WITHIN, set_as_default=False
            )
            self._client.wait_for_workers(1, timeout=30)
        except (OSError, ValueError, TimeoutError):
            self._end_cluster()
            raise ExecutorError(f"no Dask scheduler with a worker answers at {address or 'this machine'}") from None
        self.window = WINDOW * max(1, sum(self._client.nthreads().values()))
        self._executor: Executor = self._client.get_executor(pure=False)

    def submit(self, work: Work, data: bytes) -> "Future[bytes]":
        return self._executor.submit(work, data)

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
