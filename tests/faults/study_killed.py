"""Run by a test in a process of its own: kills the study runner at random lines of its own code, resumes, compares.

Each go is a fork of this warm process (it has no threads and no database connection open), so that fifty deaths cost
seconds. The death is SIGKILL from within, at a line drawn over all the lines that the runner executes: before a job is
given out, between two statements of a transaction, after the commit.
"""

# ruff: noqa: E402 (settings first)

import json
import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentlab.settings")

import django

django.setup()

from django.core.management import call_command
from django.db import connections

from agentlab.persona import runner as running
from agentlab.persona.executors import Inline
from agentlab.persona.models import StudyRun, TraceEvent
from agentlab.persona.replaying import verify
from agentlab.persona.runner import Runner
from agentlab.persona.runs import claim, create
from agentlab.persona.study import read_study

FILES = {running.__file__}


class Window(Inline):
    """Several jobs out at a time, so that answers wait in the buffer when death comes."""

    window = 7


def forked(work: Callable[[], Any]) -> tuple[int, Any]:
    """(the signal that ended it or 0, what it returned) of `work` in a fork of this process."""
    connections.close_all()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        answer = json.dumps(work()).encode()
        connections.close_all()
        os.write(writing, answer)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, json.loads(answer) if answer else None


def counted(path: Path, dies_at: int = 0) -> Callable[[], Any]:
    """Run the study; count the runner's lines, and die at one of them."""

    def work() -> Any:
        lines = 0

        def line(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal lines
            if event == "line":
                lines += 1
                if lines == dies_at:
                    os.kill(os.getpid(), signal.SIGKILL)
            return line

        def call(frame: FrameType, event: str, argument: Any) -> Any:
            return line if frame.f_code.co_filename in FILES else None

        run = create(read_study(path), executor="a test")
        sys.settrace(call)
        run = Runner(run, Window()).go()
        sys.settrace(None)
        return [run.trace_sha256, run.turns, run.events, lines]

    return work


def resumed(number: int) -> Callable[[], Any]:
    def work() -> Any:
        held = StudyRun.objects.get(pk=number)
        assert held.events == TraceEvent.objects.filter(run=held).count(), "counts and trace disagree after the kill"
        assert verify(held) is None, "trace and checkpoints disagree after the kill"
        if held.status == StudyRun.Status.COMPLETE:  # it died after its last word
            return [held.trace_sha256, held.turns, held.events]
        run = Runner(claim(number, executor="a test"), Window()).go()
        assert verify(run) is None, "trace and checkpoints disagree after the resume"
        return [run.trace_sha256, run.turns, run.events]

    return work


def main(path: Path, deaths: int) -> None:
    forked(lambda: call_command("migrate", verbosity=0))
    _, (*plain, lines) = forked(counted(path))
    drawn = random.Random(7)
    spoiled = []
    for number in range(2, deaths + 2):
        at = drawn.randint(1, lines * 9 // 10)  # how long answers gather varies by a few lines
        killed, _ = forked(counted(path, at))
        _, after = forked(resumed(number))
        if killed != signal.SIGKILL or after != plain:
            spoiled.append([at, killed, after])
    print(json.dumps({"deaths": deaths, "lines": lines, "plain": plain, "spoiled": spoiled}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
