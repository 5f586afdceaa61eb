"""`manage.py up`: the whole site on this machine, with agents that play, until Ctrl-C."""

from argparse import ArgumentParser, ArgumentTypeError
from contextlib import ExitStack, suppress
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError
from django.db import DatabaseError

from agentlab import local_run
from agentlab.agents import demo
from agentlab.common.commands import path, show_examples
from agentlab.local import make_private
from agentlab.local_run import UpError
from agentlab.private_redis import PrivateRedisError
from agentlab.processes import Children, ProcessError, Stop, Stopping
from agentlab.ready import ReadyFile, ReadyFileError

SEES = {
    demo.OPERATOR: "every agent's turns: /agent-capture, and the admin",
    **dict.fromkeys(demo.OWNERS, "their own agents, runs and studies: /agents, /factory, /personas"),
}


class Command(BaseCommand):
    help = "Runs the local site: private Redis, migrations, demo users, house agents that play, and the pages."
    requires_system_checks = ()  # they ask Redis, which is not there yet

    def add_arguments(self, parser: ArgumentParser) -> None:
        show_examples(
            parser,
            "manage.py up",
            "manage.py up --port 0 --hands 20          # a free port; twenty hands, then the site alone",
            "manage.py up --no-play --reset-passwords",
            more="Ctrl-C ends all that it started; a second one does not wait for it.\n"
            "exit code: 0 ended by Ctrl-C or SIGTERM · 1 it could not start, or a part of it ended · 2 wrong words",
        )
        parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (127.0.0.1)")
        parser.add_argument("--port", type=_port, default=8000, help="8000; 0 takes a free one")
        parser.add_argument("--hands", type=_count, help="stop playing after so many hands; the site stays")
        parser.add_argument("--no-play", action="store_true", help="seat nobody")
        parser.add_argument("--reset-passwords", action="store_true", help="new passwords for the demo users")
        parser.add_argument(
            "--ready-file",
            type=path,
            metavar="PATH",
            help="write url, users and service key as JSON once the site answers; resets the passwords",
        )

    def handle(self, **options: Any) -> None:
        try:
            with ExitStack() as stack:
                try:
                    self._run(stack, options)
                except Stop:
                    with suppress(OSError):  # the terminal may be what has gone
                        self._say("\nEnding, which takes some seconds.")
                    raise
        except Stop:
            self.stdout.write("Ended: nothing that was started still runs.")
        except (UpError, ReadyFileError, PrivateRedisError, ProcessError) as error:
            raise CommandError(str(error)) from None
        except OSError as error:
            raise CommandError(
                f"the local site cannot run: {error.strerror}: {error.filename or settings.STATE_DIR}"
            ) from None
        except DatabaseError as error:
            raise CommandError(f"the database cannot be used: {str(error).splitlines()[0]}") from None

    def _run(self, stack: ExitStack, options: dict[str, Any]) -> None:
        stopping = stack.enter_context(Stopping())
        note_address = stack.enter_context(local_run.only_one(settings.STATE_DIR))
        ready = ReadyFile(options["ready_file"]) if options["ready_file"] else None
        listener = stack.enter_context(local_run.listen(options["host"], options["port"]))
        local_run.prepare()
        redis = stack.enter_context(local_run.capture_redis())
        children = stack.enter_context(Children(stopping))
        logs = make_private(settings.STATE_DIR / "logs")
        local_run.start_site(children, listener, logs / "site.log")
        note_address(local_run.url(listener))
        people = demo.ensure_people(reset=options["reset_passwords"] or ready is not None)
        self._say_where(local_run.url(listener), people)
        if redis:  # another's address is known to whoever named it, and a password may be in it
            self._say(f"Capture Redis: {settings.AGENT_CAPTURE_REDIS_URL}")
        if ready:
            stack.callback(ready.remove)
            users = {name: password for name, password in people.items() if password}
            ready.write(url=local_run.url(listener), users=users, service_key=settings.AGENT_CAPTURE_SERVICE_KEY)
        table = None if options["no_play"] else local_run.start_play(children, options["hands"], logs / "table.log")
        local_run.watch(children, redis, table, lambda: self._say("All hands are played; the site stays."))

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()

    def _say_where(self, url: str, people: dict[str, str | None]) -> None:
        self._say(f"agentlab is at {url} (Ctrl-C ends it)\n\n")
        for name, password in people.items():
            self._say(f"  {name:10}{password or '(as before)':20}{SEES[name]}")
        if all(people.values()):
            self._say("\nThe passwords are shown this once: only their hashes are kept.")
        else:
            self._say("\nPasswords are as before; --reset-passwords makes new ones.")
        self._say(f"Data and logs: {settings.STATE_DIR}")


def _port(text: str) -> int:
    return _whole(text, 0, 65535, "a port is a number from 0 to 65535")


def _count(text: str) -> int:
    return _whole(text, 1, 10**9, "a number of hands is 1 or more")


def _whole(text: str, least: int, most: int, otherwise: str) -> int:
    if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
        raise ArgumentTypeError(otherwise)
    return int(text)
