"""Past one process: spawned workers that do not outlive their runner, and Dask with a real scheduler."""

import contextlib
import os
import select
import signal
import subprocess
import sys
from concurrent.futures import CancelledError
from pathlib import Path

import msgspec
import pytest

from agentlab.persona import runner as running
from agentlab.persona.executors import ExecutorError, Inline, Processes, open_workers
from agentlab.persona.models import StudyRun
from agentlab.persona.processes import BLAS, WorkerDied, WorkFailed
from agentlab.persona.replaying import verify
from agentlab.persona.runner import Runner
from agentlab.persona.runs import create
from agentlab.persona.study import read_study
from agentlab.persona.work import run_job

from .making import crowd, written
from .workers import die, echo, hang, raise_one, tell_environment

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize(
    "shape",
    ["", "threads:2", "processes", "processes:", "processes:0", "processes:x", "processes:²", "dask:", "dask-local:-1"],
)
def test_an_executor_that_is_none_says_which_there_are(shape: str) -> None:  # SF-4
    with pytest.raises(ExecutorError) as refusal:
        open_workers(shape)
    assert "\n" not in str(refusal.value)


def test_a_scheduler_that_does_not_answer_is_said_so(monkeypatch) -> None:  # SF-4
    monkeypatch.setattr("agentlab.persona.executors.CONNECT_WITHIN", 0.5)
    pytest.importorskip("distributed")
    with pytest.raises(ExecutorError, match="no Dask scheduler"):
        open_workers("dask:tcp://127.0.0.1:1")


def test_workers_keep_blas_to_one_thread_and_leave_ctrl_c_to_the_runner() -> None:  # PE-4
    with contextlib.closing(Processes(1)) as workers:
        found, deaf, parent = msgspec.json.decode(workers.submit(tell_environment, b"").result(60))
    assert found == dict.fromkeys(BLAS, "1")
    assert deaf
    assert parent == os.getpid()


ORPHAN = """
import os, sys
from agentlab.persona.processes import Processes
from tests.persona.workers import tell_environment
if __name__ == "__main__":
    workers = Processes(2)
    for told in [workers.submit(tell_environment, b"") for _ in range(2)]:
        told.result()
    print(*workers.pids, flush=True)
    sys.stdin.read()
"""


def test_workers_end_when_their_runner_is_killed(tmp_path) -> None:  # PE-5 SF-5
    script = tmp_path / "orphan.py"
    script.write_text(ORPHAN)
    runner = subprocess.Popen(
        [sys.executable, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "DJANGO_SETTINGS_MODULE": "tests.settings"},
    )
    assert runner.stdout is not None
    workers = [int(word) for word in runner.stdout.readline().split()]
    assert len(workers) == 2
    waits = [os.pidfd_open(worker) for worker in workers]
    runner.kill()
    runner.wait()
    for wait in waits:
        assert select.select([wait], [], [], 30)[0], "a worker outlived its runner"
        os.close(wait)


def test_inline_work_that_raises_is_an_answer() -> None:  # PE-4
    def broken(data: bytes) -> bytes:
        raise KeyError("x")

    assert isinstance(Inline().submit(broken, b"").exception(), KeyError)


@pytest.fixture
def plan(tmp_path):
    return read_study(written(tmp_path, crowd(6, 30, tier_b={"budget": 9, "above": 0.2})))


@pytest.fixture
def cluster():
    """A scheduler and two workers, each a process of its own: the address, and the workers."""
    pytest.importorskip("distributed")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "5"}
    with contextlib.ExitStack() as ending:

        def start(*command: str) -> subprocess.Popen:
            process = subprocess.Popen(
                [sys.executable, "-m", "distributed.cli." + command[0], *command[1:]],
                stderr=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                text=True,
                env=environment,
                start_new_session=True,
            )
            ending.callback(_end, process)
            return process

        scheduler = start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        assert scheduler.stderr is not None
        address = next(line.split()[-1] for line in scheduler.stderr if "Scheduler at:" in line)
        workers = [
            start("dask_worker", address, "--nthreads", "1", "--no-dashboard", "--no-nanny", "--host", "127.0.0.1")
            for _ in range(2)
        ]
        yield address, workers


def _end(process: subprocess.Popen) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stderr:
        process.stderr.close()


@pytest.mark.django_db
def test_dask_with_two_workers_writes_the_same_trace(plan, cluster) -> None:  # PE-4
    plain = Runner(create(plan, executor="inline"), Inline()).go()
    address, _ = cluster
    with contextlib.closing(open_workers(f"dask:{address}")) as workers:
        run = Runner(create(plan, executor="dask"), workers).go()
    assert (run.status, run.trace_sha256) == (StudyRun.Status.COMPLETE, plain.trace_sha256)
    assert verify(run) is None


@pytest.mark.django_db
def test_a_dask_worker_that_is_killed_loses_nothing(plan, cluster, monkeypatch) -> None:  # PE-4 PE-5 SF-5
    monkeypatch.setattr(running, "STRETCH", 3)
    plain = Runner(create(plan, executor="inline"), Inline()).go()
    address, processes = cluster

    def kill_one(progress) -> None:
        if progress.done > 30 and processes[0].poll() is None:
            processes[0].kill()

    with contextlib.closing(open_workers(f"dask:{address}")) as workers:
        run = Runner(create(plan, executor="dask"), workers, on_progress=kill_one).go()
    assert processes[0].wait() == -signal.SIGKILL
    assert (run.status, run.trace_sha256) == (StudyRun.Status.COMPLETE, plain.trace_sha256)


@pytest.mark.django_db
def test_a_local_cluster_of_two_writes_the_same_trace(plan) -> None:  # PE-4
    pytest.importorskip("distributed")
    plain = Runner(create(plan, executor="inline"), Inline()).go()
    with contextlib.closing(open_workers("dask-local:2")) as workers:
        run = Runner(create(plan, executor="dask-local:2"), workers).go()
    assert run.trace_sha256 == plain.trace_sha256


def test_the_work_of_a_job_is_the_same_in_any_process(plan) -> None:  # PE-4
    from agentlab.persona.values import canonical
    from agentlab.persona.work import Job

    persona = plan.personas[0]
    shown = msgspec.Raw(plan.shown_bytes(persona.id, 1, 30))
    job = canonical(
        Job(plan.sha256, msgspec.Raw(plan.rules_bytes), "hashing", "hashing-1/256", "rules", persona, b"", shown)
    )
    with contextlib.closing(Processes(1)) as workers:
        assert workers.submit(run_job, job).result(60) == run_job(job)


class TestProcesses:
    def test_only_the_job_that_was_running_is_blamed_for_a_death(self) -> None:  # PE-4
        with contextlib.closing(Processes(1)) as workers:
            futures = [workers.submit(work, bytes([n])) for n, work in enumerate([echo, die, echo, echo])]
            assert [future.exception(60) is None for future in futures] == [True, False, True, True]
            assert isinstance(futures[1].exception(), WorkerDied)
            assert futures[3].result() == b"\x03"

    def test_a_worker_that_is_stuck_is_ended_and_its_other_jobs_are_done(self) -> None:  # PE-4
        with contextlib.closing(Processes(1)) as workers:
            assert workers.submit(echo, b"a").result(60) == b"a"
            stuck, behind, later = (workers.submit(work, b"b") for work in (hang, echo, echo))
            assert stuck.running()
            assert not later.running()
            workers.drop(stuck)
            assert isinstance(stuck.exception(60), WorkerDied)
            assert (behind.result(60), later.result(60)) == (b"b", b"b")

    def test_a_job_that_is_cancelled_before_it_begins_is_never_done(self) -> None:  # PE-4 PE-8
        with contextlib.closing(Processes(1)) as workers:
            first, *others = (workers.submit(work, b"a") for work in (hang, hang, hang, echo))
            assert [future.cancel() for future in others[:2]] == [True, True]  # one is at the worker already, one not
            workers.drop(first)
            assert others[2].result(60) == b"a"

    def test_closing_answers_the_job_that_runs_as_well(self) -> None:  # PE-5
        workers = Processes(1)
        stuck = workers.submit(hang, b"")
        workers.close()
        assert isinstance(stuck.exception(60), CancelledError)

    def test_work_that_raises_says_what(self) -> None:  # PE-4
        with contextlib.closing(Processes(1)) as workers:
            failure = workers.submit(raise_one, b"").exception(60)
        assert isinstance(failure, WorkFailed)
        assert str(failure) == "ValueError: no such thing"

    def test_large_jobs_and_answers_pass_each_other(self) -> None:  # PE-4
        block = bytes(3_000_000)
        with contextlib.closing(Processes(2)) as workers:
            futures = [workers.submit(echo, block) for _ in range(12)]
            assert all(future.result(60) == block for future in futures)

    def test_closing_in_the_middle_of_large_answers_waits_for_nobody(self) -> None:  # PE-5
        workers = Processes(2)
        futures = [workers.submit(echo, bytes(3_000_000)) for _ in range(20)]
        futures[0].result(60)
        workers.close()
        assert all(future.done() for future in futures)
        assert futures[-1].cancelled()

    def test_workers_that_all_die_at_once_are_given_up(self) -> None:  # PE-4
        with contextlib.closing(Processes(1)) as workers:
            futures = [workers.submit(die, b"") for _ in range(40)]
            assert all(future.cancelled() or future.exception(60) for future in futures)
            assert futures[-1].cancelled()


def test_dask_workers_without_our_code_are_refused_at_once(cluster, tmp_path) -> None:  # SF-4
    address, workers = cluster
    for worker in workers:
        _end(worker)
    bare = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [
        sys.executable,
        "-P",
        "-m",
        "distributed.cli.dask_worker",
        address,
        "--nthreads",
        "1",
        "--no-nanny",
        "--no-dashboard",
    ]
    stranger = subprocess.Popen(command, cwd=tmp_path, env=bare, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        with pytest.raises(ExecutorError, match=r"cannot do our work: .*agentlab"):
            open_workers(f"dask:{address}")
    finally:
        _end(stranger)
