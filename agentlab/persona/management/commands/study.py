"""`manage.py study`: run, resume, verify, export."""

import json
import os
import signal
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management import BaseCommand, CommandError
from django.core.management.base import OutputWrapper
from django.db import DatabaseError

from agentlab.common.local_site import prepare
from agentlab.persona import exporting, runs
from agentlab.persona.executors import SHAPES, ExecutorError, open_workers
from agentlab.persona.models import StudyPersona, StudyRun
from agentlab.persona.replaying import Moving, verify
from agentlab.persona.runner import PATIENCE, Progress, Runner
from agentlab.persona.study import read_study
from agentlab.persona.values import Invalid

FAILED_SHOWN = 5  # personas whose failure is told one by one
STOPPED = 130  # the exit code of a command that Ctrl-C ended


class Command(BaseCommand):
    help = "Runs studies of personas, resumes them, verifies and exports their traces."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        run = verbs.add_parser("run", help="run a study file (YAML or JSON)")
        run.add_argument("file", type=Path)
        run.add_argument("--owner", help="the user whose study it is; without one only operators see it")
        resume = verbs.add_parser("resume", help="go on with a study that was stopped or killed")
        resume.add_argument("id", type=int)
        for verb in (run, resume):
            verb.add_argument("--executor", default="inline", help=f"{SHAPES} (default: inline)")
            verb.add_argument("--patience", type=_seconds, default=PATIENCE, help="seconds until a job is given again")
            verb.add_argument("--json", action="store_true", help="end with one line of JSON on standard output")
        check = verbs.add_parser("verify", help="replay the trace and compare with the checkpoints")
        check.add_argument("id", type=int)
        export = verbs.add_parser("export", help="write the study as lines of JSON to standard output")
        export.add_argument("id", type=int)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, f"_{options['verb']}")(options)
        except (Invalid, runs.RunError, ExecutorError, Moving) as error:
            raise CommandError(str(error)) from None
        except DatabaseError as error:
            raise CommandError(f"the database does not answer: {str(error).splitlines()[0]}") from None

    def _run(self, options: dict[str, Any]) -> None:
        study = read_study(options["file"])
        prepare()
        owner = _user(options["owner"])
        self._go(options, lambda: runs.create(study, executor=options["executor"], owner_id=owner))

    def _resume(self, options: dict[str, Any]) -> None:
        prepare()
        self._go(options, lambda: runs.claim(options["id"], executor=options["executor"]))

    def _go(self, options: dict[str, Any], begin: Callable[[], StudyRun]) -> None:
        workers = open_workers(options["executor"])
        try:
            run = begin()
            meter = _Meter(self.stderr)
            self.stderr.write(f"Study {run.pk}: {run.name}, {run.personas} personas × {run.turns_each} turns")
            runner = Runner(run, workers, patience=options["patience"], on_progress=meter)
            with _until_told(runner):
                run = runner.go()
            meter.end()
        finally:
            workers.close()
        self._tell(run, options["json"])

    def _tell(self, run: StudyRun, as_json: bool) -> None:
        failed = StudyPersona.objects.filter(run=run).exclude(failed="")
        for one in failed[:FAILED_SHOWN]:
            self.stderr.write(f"{one.key}: {one.failed}")
        if run.status == StudyRun.Status.STOPPED:
            self.stderr.write(f"Stopped after {run.turns} turns. To go on: manage.py study resume {run.pk}")
            sys.exit(STOPPED)
        answer = {
            "study": run.pk,
            "status": run.status,
            "personas": run.personas,
            "failed": failed.count(),
            "turns": run.turns,
            "events": run.events,
            "trace_sha256": run.trace_sha256,
            "study_sha256": run.study_sha256,
        }
        if as_json:
            self.stdout.write(json.dumps(answer))
        else:
            self.stdout.write(
                f"Study {run.pk} {run.status}: {run.turns} turns, {run.events} events, trace {run.trace_sha256}"
            )
        if run.status == StudyRun.Status.INCOMPLETE:
            raise CommandError(
                f"{answer['failed']} of {run.personas} personas failed; `study resume {run.pk}` tries again"
            )

    def _verify(self, options: dict[str, Any]) -> None:
        prepare()
        run = _stored(options["id"])
        found = verify(run)
        if found is None:
            self.stdout.write(f"Study {run.pk}: replaying {run.events} events gives the checkpoints, byte for byte.")
            return
        where = f"{found.persona}, turn {found.turn}, event {found.sequence}: " if found.turn >= 0 else ""
        where = where or (f"{found.persona}: " if found.persona else "")
        raise CommandError(f"study {run.pk} differs. {where}{found.what}")

    def _export(self, options: dict[str, Any]) -> None:
        prepare()
        try:
            for line in exporting.lines(_stored(options["id"])):
                self.stdout.write(line)
            self.stdout.flush()
        except BrokenPipeError:  # `| head` has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Meter:
    """Progress on standard error: one line that renews itself on a terminal, a line now and then elsewhere."""

    def __init__(self, out: OutputWrapper) -> None:
        self._out, self._live = out, out.isatty()
        self._next = 0.0

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + (0.2 if self._live else 5.0)
        left = f", {_spelled(progress.left)} left" if progress.rate else ""
        failed = f", {progress.failed} personas failed" if progress.failed else ""
        line = f"{progress.done} of {progress.total} turns, {progress.rate:.0f} a second{left}{failed}"
        self._out.write(f"\r\x1b[K{line}" if self._live else line, ending="" if self._live else "\n")
        self._out.flush()

    def end(self) -> None:
        if self._live:
            self._out.write("\r\x1b[K", ending="")


@contextmanager
def _until_told(runner: Runner) -> Iterator[None]:
    """Ctrl-C and SIGTERM end the study cleanly; a second one ends it at once."""

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        runner.stop()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds >= 1:
        raise ArgumentTypeError("a number of seconds, 1 or more")
    return seconds


def _user(name: str | None) -> int | None:
    if name is None:
        return None
    user = get_user_model().objects.filter(username=name).first()
    if user is None:
        raise CommandError(f"there is no user {name!r}")
    return int(user.pk)


def _stored(id: int) -> StudyRun:
    run = StudyRun.objects.filter(pk=id).first()
    if run is None:
        raise CommandError(f"there is no study {id}")
    return run


def _spelled(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return (
        f"{minutes // 60} h {minutes % 60} min"
        if minutes >= 60
        else f"{minutes} min {rest} s"
        if minutes
        else f"{rest} s"
    )
