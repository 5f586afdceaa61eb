"""`manage.py factory run | import | reconcile`: thin; the work is in `factory.running`, `.importing`, `.retention`."""

import json
import os
import signal
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from agentlab.common.commands import add_verb, owner_named, words
from agentlab.common.local_site import prepare
from agentlab.common.numbers import counted
from agentlab.common.text import first_line, on_a_terminal
from factory.importers.found import Counts
from factory.importing import FileReport, ImportRefused, import_path
from factory.outcomes import in_short
from factory.providers import ProviderError
from factory.resolve import Force, RequestError, ResolvedRequest, display_path, looks_like_a_path, resolve_request
from factory.retention import MARKER, Reconciled, SnapshotStore, StoreError
from factory.running import make_job, provider_for, run_job, snapshot_store
from factory.workflow import RunEnd, Sent
from factory.workflows import WORKFLOWS

EXIT_CODES = {"succeeded": 0, "failed": 1, "cancelled": 130}
RUN_EXAMPLES = """
  manage.py factory run "Write a slugify command" --owner ada
  manage.py factory run task.md --workflow build --check 'pytest -q'
  manage.py factory run task.md --provider openai:NAME --attach notes.md --json
  manage.py factory run task.md --provider pi --context docs

Ctrl-C ends the attempt and what it started, and records both as cancelled.
exit code: 0 succeeded · 1 failed, or refused · 2 wrong words · 130 interrupted"""
IMPORT_EXAMPLES = """
  manage.py factory import ~/.claude/projects/*/*.jsonl --owner ada
  manage.py factory import ~/.pi/agent/sessions/*/*.jsonl --json
  manage.py factory import logs/2026-11-29.eval

Each file's records are counted. Hidden ones are not part of the conversation, such as file snapshots or progress;
damaged ones cannot be read; unknown ones are of a kind that is not known here.
The same file twice changes nothing; one that has grown gives its new turns. No file is ever written to.
exit code: 0 all imported · 1 some were not, each named in a line · 2 wrong words · 130 interrupted"""
NO_OWNER = "These runs have no owner: only operators see them. Import again with --owner USER for runs of that user's."
NO_OWNER_RUN = "This run has no owner: only operators see it. --owner USER makes it a run of that user's."
RECONCILE_EXAMPLES = """
  manage.py factory reconcile --dry-run
  manage.py factory reconcile --json

Each `factory run` does this first.
exit code: 0 done · 1 something could not be removed · 2 wrong words"""


class Command(BaseCommand):
    help = "Run a work request through a factory workflow, or bring in sessions that other tools recorded."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="run | import | reconcile")
        run = add_verb(verbs, "run", "carry a request through a workflow's phases", RUN_EXAMPLES)
        run.add_argument("request", metavar="REQUEST", help="the request itself, or the path of a file that holds it")
        kind = run.add_mutually_exclusive_group()
        kind.add_argument("--text", dest="force", action="store_const", const="text", help="REQUEST is the request")
        kind.add_argument("--file", dest="force", action="store_const", const="file", help="REQUEST is a path")
        run.add_argument("--workflow", default="build", choices=sorted(WORKFLOWS), help="default: build")
        run.add_argument("--provider", default="rehearsal", metavar="NAME", help="rehearsal (default), openai:NAME, pi")
        run.add_argument("--context", type=words, metavar="DIR", help="a folder whose files the agent may read")
        run.add_argument(
            "--attach", type=words, metavar="FILE", action="append", default=[], help="text or image to send"
        )
        run.add_argument("--owner", metavar="USER", help="whose run this is; without one only operators see it")
        run.add_argument("--check", type=words, metavar="CMD", help="a shell command that must succeed after the work")
        run.add_argument("--json", action="store_true", help="the last line is a JSON object: run, state, attempts")
        bring = add_verb(
            verbs, "import", "read session files as runs: pi, Claude Code, inspect, older traces", IMPORT_EXAMPLES
        )
        bring.add_argument(
            "files", type=words, metavar="FILE", nargs="+", help="a session file; its format is found from its content"
        )
        bring.add_argument("--owner", metavar="USER", help="whose runs these are; without one only operators see them")
        bring.add_argument("--json", action="store_true", help="a JSON object a file, a line each")
        reconcile = add_verb(
            verbs, "reconcile", "remove what no attempt owns, end runs whose process died", RECONCILE_EXAMPLES
        )
        reconcile.add_argument("--dry-run", action="store_true", help="say what would be done")
        reconcile.add_argument("--json", action="store_true", help="one line of JSON")

    def handle(self, *args: Any, verb: str, **options: Any) -> None:
        try:
            prepare()
            store = snapshot_store()
            if verb == "run":
                self._run(store, **options)
            elif verb == "import":
                self._import(**options)
            else:
                self._reconcile(store, dry_run=options["dry_run"], as_json=options["json"])
        except BrokenPipeError:  # `| head` has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except (RequestError, ProviderError, StoreError) as error:
            raise CommandError(on_a_terminal(str(error))) from None
        except KeyboardInterrupt:  # outside an attempt; inside one it is recorded
            raise CommandError("interrupted", returncode=EXIT_CODES["cancelled"]) from None
        except DatabaseError as error:
            raise CommandError(f"the database failed: {error}".strip().splitlines()[0]) from None

    def _run(self, store: SnapshotStore, **options: Any) -> None:
        provider = provider_for(options["provider"])
        request = _request(options["request"], options["force"])
        owner = owner_named(options["owner"])
        job = make_job(request, provider, context=options["context"], attach=options["attach"], check=options["check"])
        say = _speaker(options["json"])
        with _interrupted_once():
            try:
                _say_reconciled(store.reconcile(), say)
            except StoreError as busy:  # another run holds the lock: tidying can wait for the next start
                say(str(busy))
            say(_took(request))
            if options["provider"].partition(":")[0] == "rehearsal":
                say("provider: rehearsal, which asks no model and does no real work; --provider names another")
            if owner is None:
                self._warn(NO_OWNER_RUN)  # while it can still be stopped
            run_id, end = run_job(WORKFLOWS[options["workflow"]], job, provider, store, owner_id=owner, progress=say)
        if options["json"]:
            self.stdout.write(json.dumps(_report(run_id, end)))
        else:
            attempts = counted(len(end.sent), "attempt")
            self.stdout.write(f"run {run_id} {end.state}, {attempts}: /factory/runs/{run_id}")
        if end.state != "succeeded":
            said = _one_line(f"run {run_id} {end.state}: {end.reason}")
            raise CommandError(said, returncode=EXIT_CODES[end.state])

    def _import(self, **options: Any) -> None:
        owner = owner_named(options["owner"])
        refused, brought = [], False
        for name in options["files"]:
            for report in _reports(name, owner):
                if report.error:
                    refused.append(on_a_terminal(f"{report.file}: {report.error}"))
                brought = brought or bool(report.runs)
                if options["json"]:
                    self.stdout.write(json.dumps(report.as_json()))
                elif not report.error:
                    self.stdout.write(_imported(report))
        if brought and owner is None:
            self._warn(NO_OWNER)
        if refused:
            raise CommandError("\n".join(refused))

    def _warn(self, sentence: str) -> None:
        """Beside what a program may read; whether anybody listens is nothing that the work depends on."""
        with suppress(BrokenPipeError):
            self.stderr.write(sentence, style_func=str)

    def _reconcile(self, store: SnapshotStore, *, dry_run: bool, as_json: bool) -> None:
        report = store.reconcile(dry_run=dry_run)
        if as_json:
            self.stdout.write(json.dumps({"dryRun": dry_run, **asdict(report)}))
        else:
            _say_reconciled(report, self.stdout.write)
            self.stdout.write(("would be done: " if dry_run else "done: ") + _counted(report))
        if report.failed:
            raise CommandError(f"could not remove {', '.join(report.failed)}")


def _request(arg: str, force: Force | None) -> ResolvedRequest:
    """As `resolve_request`, but a mistyped file name is not taken for the work to do."""
    request = resolve_request(arg, force=force)
    if force is None and request.path is None and looks_like_a_path(arg):
        raise RequestError(f"there is no file {display_path(arg)[:300]}; if these are the words to do, add --text")
    return request


@contextmanager
def _interrupted_once() -> Iterator[None]:
    """The first signal ends the run; a second one must not cut off what is being written about it. Afterwards signals
    do what they did before."""

    def interrupt(signum: int, frame: object) -> None:
        for one in before:
            signal.signal(one, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {one: signal.signal(one, interrupt) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, signal.SIG_DFL if handler is None else handler)


def _one_line(text: str) -> str:
    """Somebody else's words as the one line of an error: a provider may answer with a page."""
    return on_a_terminal(first_line(in_short(text), 500))


def _reports(name: str, owner_id: int | None) -> Iterator[FileReport]:
    """What became of one file, and of those that belong to it."""
    with _Meter(name, sys.stderr) as meter:
        try:
            for report in import_path(Path(name), owner_id=owner_id, progress=meter.attempts):
                meter.clear()
                yield report
        except ImportRefused as refusal:
            meter.clear()
            yield FileReport(name, "", Counts(), error=str(refusal))


class _Meter:
    """How far one file has been read, on a terminal: a line that renews itself, and is gone at the end."""

    def __init__(self, name: str, out: TextIO) -> None:
        self._name, self._out, self._live = on_a_terminal(name), out, out.isatty()
        self._next = time.monotonic() + 0.5  # most files are done by then

    def __enter__(self) -> "_Meter":
        return self

    def __exit__(self, *raised: object) -> None:
        self.clear()

    def attempts(self, count: int) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + 0.2
            self._write(f"{self._name}: {count} attempts")

    def clear(self) -> None:
        self._write("")

    def _write(self, line: str) -> None:
        if self._live:
            self._out.write(f"\r\x1b[K{line}")
            self._out.flush()


def _counted(report: Reconciled) -> str:
    return (
        f"{len(report.removed)} orphans and {len(report.strays)} stray files removed, "
        f"{len(report.young)} folders left as too young, {len(report.missing)} snapshots missing, "
        f"{report.evicted} evicted, {len(report.interrupted)} runs ended"
    )


def _imported(report: FileReport) -> str:
    pages = " ".join(f"/factory/runs/{run_id}" for run_id in report.runs) or "no run"
    brought = f"attempts: {report.new} new, {report.changed} changed, {report.unchanged} as before"
    if report.brought_nothing:
        brought = f"nothing new ({counted(report.unchanged, 'attempt')} as before)"
    return on_a_terminal(f"{report.file}: {report.format}; {report.records_in_words}; {brought}: {pages}")


def _speaker(as_json: bool) -> Callable[[str], None]:
    """Where progress goes: beside the JSON on a terminal, nowhere where a program reads."""
    out = sys.stderr if as_json else sys.stdout
    listening = not as_json or out.isatty()

    def say(line: str) -> None:
        nonlocal listening
        try:
            if listening:
                print(on_a_terminal(line), file=out, flush=True)
        except BrokenPipeError:  # the run goes on without whoever listened
            listening = False

    return say


def _took(request: ResolvedRequest) -> str:
    source = "the text itself" if request.path is None else f"the file {display_path(request.path)}"
    if request.path is None and len(request.text.split()) == 1:
        source += " (there is no file of that name)"
    return f"request: {source}, {request.byte_count} bytes, sha256 {request.sha256[:12]}…"


def _say_reconciled(report: Reconciled, say: Callable[[str], Any]) -> None:
    for name in report.removed:
        say(f"snapshots of no attempt: {name}")
    for path in report.failed:
        say(f"cannot be removed: {path}")
    if report.foreign:
        theirs = f"{counted(len(report.foreign), 'folder')} of snapshots left, for they may be another database's"
        say(f"{theirs}; without the file {MARKER} among them they are taken for nobody's")
    for run_id in report.interrupted:
        say(f"run {run_id} had died: recorded as failed")


def _report(run_id: int, end: RunEnd) -> dict[str, object]:
    return {"run": run_id, "state": end.state, "attempts": [_attempt(sent) for sent in end.sent]}


def _attempt(sent: Sent) -> dict[str, object]:
    packet = sent.packet
    return {
        "id": sent.attempt_id,
        "phase": sent.call.phase,
        "sendKind": sent.call.send_kind,
        "turnIndex": packet.lineage.turn_index,
        "inputCoverage": packet.coverage,
        "declaredInputCount": packet.declared,
        "capturedInputCount": packet.captured,
        "omittedInputCount": packet.omitted,
    }
