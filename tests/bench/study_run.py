"""Run by a benchmark in a process of its own: runs a study on a fresh state folder, and prints what it cost as JSON."""

import json
import multiprocessing
import os
import resource
import sys
import time
from pathlib import Path


def main(path: Path, shape: str) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentlab.settings")
    import django

    django.setup()
    from django.core.management import call_command

    from agentlab.persona.executors import open_workers
    from agentlab.persona.runner import Runner
    from agentlab.persona.runs import create
    from agentlab.persona.study import read_study

    call_command("migrate", verbosity=0)
    run = create(read_study(path), executor=shape)
    workers = open_workers(shape)
    began, busy = time.perf_counter(), time.process_time()
    run = Runner(run, workers).go()
    seconds, busy = time.perf_counter() - began, time.process_time() - busy
    workers.close()
    multiprocessing.active_children()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        json.dumps(
            {
                "seconds": seconds,
                "turns": run.turns,
                "trace_sha256": run.trace_sha256,
                "runner_us": busy / run.turns * 1e6,
                "worker_us": (children.ru_utime + children.ru_stime) / run.turns * 1e6,
                "peak_kib": _peak_kib(),
            }
        )
    )


def _peak_kib() -> int:
    """The most memory that this process had; `ru_maxrss` would tell the parent's, which a child inherits."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0])


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
