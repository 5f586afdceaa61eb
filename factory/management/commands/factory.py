"""`manage.py factory run | reconcile`: thin; the work is in `factory.running` and `factory.retention`."""

import json
import signal
import sys
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from factory.providers import ProviderError, provider_named
from factory.resolve import RequestError, ResolvedRequest, display_path, resolve_request
from factory.retention import Reconciled, SnapshotStore, StoreError
from factory.running import make_job, run_job, snapshot_store
from factory.workflow import RunEnd, Sent
from factory.workflows import WORKFLOWS

EXIT_CODES = {"succeeded": 0, "failed": 1, "cancelled": 130}


class Command(BaseCommand):
    help = "Run a work request through a factory workflow, or put its snapshot folder in order."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="run | reconcile")
        run = verbs.add_parser("run", help="carry a request through a workflow's phases")
        run.add_argument("request", metavar="REQUEST", help="the request itself, or the path of a file that holds it")
        kind = run.add_mutually_exclusive_group()
        kind.add_argument("--text", dest="force", action="store_const", const="text", help="REQUEST is the request")
        kind.add_argument("--file", dest="force", action="store_const", const="file", help="REQUEST is a path")
        run.add_argument("--workflow", default="build", choices=sorted(WORKFLOWS), help="default: build")
        run.add_argument("--provider", default="rehearsal", metavar="NAME", help="rehearsal (default), openai:NAME, pi")
        run.add_argument("--context", metavar="DIR", help="a folder whose files the agent may read")
        run.add_argument("--attach", metavar="FILE", action="append", default=[], help="a text or image to send along")
        run.add_argument("--owner", metavar="USER", help="whose run this is; without one only operators see it")
        run.add_argument("--check", metavar="CMD", help="a shell command that must succeed after the work")
        run.add_argument("--json", action="store_true", help="the last line is a JSON object")
        reconcile = verbs.add_parser("reconcile", help="remove what no attempt owns, end runs whose process died")
        reconcile.add_argument("--dry-run", action="store_true", help="say what would be done")

    def handle(self, *args: Any, verb: str, **options: Any) -> None:
        try:
            call_command("migrate", verbosity=0, interactive=False)
            store = snapshot_store()
            if verb == "run":
                self._run(store, **options)
            else:
                self._reconcile(store, dry_run=options["dry_run"])
        except (RequestError, ProviderError, StoreError) as error:
            raise CommandError(str(error)) from None
        except DatabaseError as error:
            raise CommandError(f"the database failed: {error}".strip().splitlines()[0]) from None

    def _run(self, store: SnapshotStore, **options: Any) -> None:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        provider = provider_named(options["provider"])
        request = resolve_request(options["request"], force=options["force"])
        owner_id = _owner(options["owner"])
        job = make_job(request, provider, context=options["context"], attach=options["attach"], check=options["check"])
        say = _speaker(options["json"])
        _say_reconciled(store.reconcile(), say)
        say(_took(request))
        run_id, end = run_job(WORKFLOWS[options["workflow"]], job, provider, store, owner_id=owner_id, progress=say)
        if options["json"]:
            self.stdout.write(json.dumps(_report(run_id, end)))
        else:
            self.stdout.write(f"run {run_id} {end.state}, {len(end.sent)} attempts")
        if end.state != "succeeded":
            raise CommandError(f"run {run_id} {end.state}: {end.reason}", returncode=EXIT_CODES[end.state])

    def _reconcile(self, store: SnapshotStore, *, dry_run: bool) -> None:
        report = store.reconcile(dry_run=dry_run)
        _say_reconciled(report, self.stdout.write)
        self.stdout.write(
            f"{'would remove' if dry_run else 'removed'} {len(report.removed)} orphans, {len(report.strays)} stray files; "
            f"{len(report.young)} folders too young, {len(report.missing)} snapshots missing, "
            f"{report.evicted} evicted, {len(report.interrupted)} runs ended"
        )
        if report.failed:
            raise CommandError(f"could not remove {', '.join(report.failed)}")


def _owner(name: str | None) -> int | None:
    if name is None:
        return None
    users = get_user_model()
    user = users.objects.filter(**{users.USERNAME_FIELD: name}).first()
    if user is None:
        raise CommandError(f"there is no user {name!r}")
    return int(user.pk)


def _speaker(as_json: bool) -> Any:
    """Where progress goes: beside the JSON on a terminal, nowhere where a program reads."""
    if not as_json:
        return lambda line: print(line, flush=True)  # noqa: T201
    if sys.stderr.isatty():
        return lambda line: print(line, file=sys.stderr, flush=True)  # noqa: T201
    return lambda line: None


def _took(request: ResolvedRequest) -> str:
    source = f"the file {display_path(request.path)}" if request.path else "the text itself"
    return f"request: {source}, {request.byte_count} bytes, sha256 {request.sha256[:12]}…"


def _say_reconciled(report: Reconciled, say: Any) -> None:
    for name in report.removed:
        say(f"snapshots of no attempt: {name}")
    for path in report.failed:
        say(f"cannot be removed: {path}")
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
