"""`manage.py study`: run, resume, verify, export, delete."""

import json
import os
import signal
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from types import FrameType
from typing import Any

from django.core.management import BaseCommand, CommandError
from django.core.management.base import OutputWrapper
from django.db import DatabaseError
from django.urls import reverse

from agentlab.common.commands import add_verb, number, owner_named, path
from agentlab.common.local_site import prepare
from agentlab.common.numbers import duration
from agentlab.common.text import on_a_terminal
from agentlab.persona import exporting, reading, removing, runs, showing
from agentlab.persona.adapters import paid
from agentlab.persona.executors import SHAPES, ExecutorError, open_workers
from agentlab.persona.models import StudyPersona, StudyRun
from agentlab.persona.replaying import Moving, verify
from agentlab.persona.runner import PATIENCE, Progress, Runner, TakenOver
from agentlab.persona.study import read_study
from agentlab.persona.values import Invalid

FAILED_SHOWN = 5  # personas whose failure is told one by one
CODES = "exit code: 0 done · 1 refused, or personas failed · 2 wrong words · 130 Ctrl-C, 143 SIGTERM"
RUN_EXAMPLES = f"""
  manage.py study run agentlab/persona/studies/first.yaml --owner ada
  manage.py study run FILE --executor processes:4 --json
  manage.py study run FILE --executor dask:tcp://HOST:8786

Ctrl-C ends it after what is answered, and says how to go on.
{CODES}"""
RESUME_EXAMPLES = f"""
  manage.py study resume 3 --executor processes:4

What is written stays. Turns that were under way are done again, and the calls of a model within them made again: one
turn for each worker at most.
{CODES}"""
VERIFY_EXAMPLES = """
  manage.py study verify 3
  manage.py study verify 3 --json

exit code: 0 the same · 1 it differs, or is being written to"""
EXPORT_EXAMPLES = """
  manage.py study export 3 > study-3.jsonl
  manage.py study export 3 | head -1        the study itself; then each event

exit code: 0 written, as far as it was read · 1 refused · 2 wrong words"""

DELETE_EXAMPLES = """
  manage.py study delete 3          says what goes, and asks
  manage.py study delete 3 --yes

A study that is running is refused: stop it first. It goes whole or not at all.
exit code: 0 deleted · 1 refused, or not confirmed · 2 wrong words · 130 Ctrl-C"""


class Command(BaseCommand):
    help = "Runs studies of personas, goes on with them, verifies, exports and deletes their traces."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="run | resume | verify | export | delete")
        run = add_verb(verbs, "run", "run a study file (YAML or JSON)", RUN_EXAMPLES)
        run.add_argument("file", type=path, metavar="FILE", help="its keys: agentlab/persona/README.md")
        run.add_argument("--owner", metavar="USER", help="whose study it is; without one only operators see it")
        resume = add_verb(verbs, "resume", "go on with a study that was stopped or killed", RESUME_EXAMPLES)
        for verb in (run, resume):
            verb.add_argument("--executor", default="inline", metavar="WHERE", help=f"{SHAPES} (default: inline)")
            verb.add_argument(
                "--patience",
                type=_seconds,
                default=PATIENCE,
                metavar="SECONDS",
                help="of silence until a job is given again (default: %(default)g)",
            )
            verb.add_argument("--json", action="store_true", help="end with one line of JSON on standard output")
        check = add_verb(verbs, "verify", "replay the trace and compare with the checkpoints", VERIFY_EXAMPLES)
        check.add_argument("--json", action="store_true", help="one line of JSON on standard output")
        export = add_verb(verbs, "export", "write the study as lines of JSON to standard output", EXPORT_EXAMPLES)
        delete = add_verb(verbs, "delete", "delete a study and its whole trace, for good", DELETE_EXAMPLES)
        delete.add_argument("--yes", action="store_true", help="do not ask; needed where there is no terminal")
        for verb in (resume, check, export, delete):
            verb.add_argument("id", type=number, metavar="NUMBER", help="the study's number, as `run` says it")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, f"_{options['verb']}")(options)
        except (Invalid, runs.RunError, ExecutorError, Moving) as error:
            raise CommandError(on_a_terminal(str(error))) from None
        except DatabaseError as error:
            raise CommandError(f"the database failed: {str(error).splitlines()[0]}") from None
        except KeyboardInterrupt:
            raise CommandError("interrupted", returncode=128 + signal.SIGINT) from None

    def _run(self, options: dict[str, Any]) -> None:
        study = read_study(options["file"])
        prepare()
        owner = owner_named(options["owner"])
        self._go(options, lambda: runs.create(study, executor=options["executor"], owner_id=owner))

    def _resume(self, options: dict[str, Any]) -> None:
        prepare()
        self._go(options, lambda: runs.claim(options["id"], executor=options["executor"]))

    def _go(self, options: dict[str, Any], begin: Callable[[], StudyRun]) -> None:
        workers = open_workers(options["executor"])
        ended = True
        try:
            run = begin()
            ended = False
            name = on_a_terminal(run.name)
            self.stderr.write(f"Study {run.pk}: {name}, {run.personas} personas × {run.turns_each} turns")
            meter = _Meter(self.stderr)
            runner = Runner(run, workers, patience=options["patience"], on_progress=meter.turns)
            if paid(run.model):
                reactions, probes = runner.study.budget, runner.study.probe_calls
                asked = f"at most {reactions} times for reactions and {probes} times by probes"
                self.stderr.write(on_a_terminal(f"{run.model} is asked {asked}, in the whole study"))
            with _until_told(runner) as told, meter:
                run = runner.go()
            ended = True
        except TakenOver:
            ended = True
            raise
        finally:
            workers.close()
            if not ended:
                self.stderr.write(f"To go on: manage.py study resume {run.pk}")
        self._tell(run, options["json"], told)

    def _tell(self, run: StudyRun, as_json: bool, told: list[int]) -> None:
        failed = StudyPersona.objects.filter(run=run).exclude(failed="")
        for one in failed[:FAILED_SHOWN]:
            self.stderr.write(on_a_terminal(f"{one.key}: {one.failed}"))
        answer = {
            "study": run.pk,
            "status": run.status,
            "personas": run.personas,
            "failed": failed.count(),
            "turns": run.turns,
            "events": run.events,
            "model_calls": run.model_calls,
            "answered": run.answered,
            "trace_sha256": run.trace_sha256,
            "study_sha256": run.study_sha256,
        }
        if as_json:
            self.stdout.write(json.dumps(answer))
        elif run.status != StudyRun.Status.STOPPED:
            self.stdout.write(
                f"Study {run.pk} {run.status}: {run.turns:,} turns, {run.events:,} events, trace {run.trace_sha256}: "
                f"{_page(run)}"
            )
            if calls := showing.model_calls(run):
                why = reading.first_fallback(run)
                self.stdout.write(on_a_terminal(f"{calls}{f' ({why})' if why else ''}"))
        if run.status == StudyRun.Status.STOPPED:
            self.stderr.write(f"Stopped after {run.turns} turns: {_page(run)}")
            self.stderr.write(f"To go on: manage.py study resume {run.pk}")
            sys.exit(128 + (told[0] if told else signal.SIGINT))
        if run.status == StudyRun.Status.INCOMPLETE:
            raise CommandError(
                f"{answer['failed']} of {run.personas} personas failed; `study resume {run.pk}` tries again"
            )

    def _verify(self, options: dict[str, Any]) -> None:
        prepare()
        run = runs.stored(options["id"])
        with _Meter(self.stderr) as meter:
            found = verify(run, meter.personas)
        if options["json"]:
            verdict = "differs" if found else "same"
            answer = {"study": run.pk, "replay": verdict, "events": run.events}
            self.stdout.write(json.dumps({**answer, "difference": asdict(found) if found else None}))
        elif found is None:
            same = f"replaying {run.events} events gives the checkpoints, byte for byte"
            self.stdout.write(f"Study {run.pk}: {same}: {_page(run)}")
        if found:
            where = f"{found.persona}, turn {found.turn}, event {found.sequence}: " if found.turn >= 0 else ""
            where = where or (f"{found.persona}: " if found.persona else "")
            raise CommandError(on_a_terminal(f"study {run.pk} differs. {where}{found.what}: {_page(run)}"))

    def _delete(self, options: dict[str, Any]) -> None:
        prepare()
        run = runs.stored(options["id"])
        removing.check(run)
        holds = removing.holds(run)
        if not options["yes"]:
            self._ask(f"Study {run.pk}: {on_a_terminal(run.name)}, {holds}. It cannot be had back.")
        removing.remove(run, None)
        self.stdout.write(f"Study {run.pk} is deleted: {holds}")

    def _ask(self, what: str) -> None:
        if not sys.stdin.isatty():
            raise CommandError("nobody can be asked here: --yes says that it is meant")
        self.stderr.write(what)
        self.stderr.write("Delete it? [y/N] ", ending="")
        self.stderr.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise CommandError("nothing is deleted")

    def _export(self, options: dict[str, Any]) -> None:
        prepare()
        try:
            for line in exporting.lines(runs.stored(options["id"])):
                self.stdout.write(line)
            self.stdout.flush()
        except BrokenPipeError:  # `| head` has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Meter:
    """Progress on standard error: one line that renews itself on a terminal, a line now and then elsewhere."""

    def __init__(self, out: OutputWrapper) -> None:
        self._out, self._live = out, out.isatty()
        self._next = 0.0

    def __enter__(self) -> "_Meter":
        return self

    def __exit__(self, *raised: object) -> None:
        if self._live:
            self._out.write("\r\x1b[K", ending="")

    def turns(self, progress: Progress) -> None:
        left = "time left not known yet"
        if rate := progress.rate:
            left = f"{f'{rate:,.0f}' if rate >= 10 else f'{rate:.2g}'} a second, {duration(progress.left * 1000)} left"
        failed = f", {progress.failed} personas failed" if progress.failed else ""
        self._say(f"{progress.done:,} of {progress.total:,} turns, {left}{failed}")

    def personas(self, done: int, of: int) -> None:
        if done:
            self._say(f"{done} of {of} personas replayed")

    def _say(self, line: str) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + (0.2 if self._live else 5.0)
        self._out.write(f"\r\x1b[K{line}" if self._live else line, ending="" if self._live else "\n")
        self._out.flush()


@contextmanager
def _until_told(runner: Runner) -> Iterator[list[int]]:
    """Ctrl-C and SIGTERM end the study cleanly; a second one ends it at once. Gives the signals that came."""
    told: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        told.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        runner.stop()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _page(run: StudyRun) -> str:
    """Where the study is looked at, on whatever site shows this database."""
    return reverse("study", args=[run.pk])


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds >= 1:
        raise ArgumentTypeError("a number of seconds, 1 or more")
    return seconds
