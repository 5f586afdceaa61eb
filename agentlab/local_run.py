"""What `manage.py up` does, step by step: the local site as a handful of functions over one set of children."""

import errno
import fcntl
import os
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from redis import Redis, RedisError

from agentlab.agents import demo
from agentlab.agents.base_prompt import BASE_PROMPT
from agentlab.common import local_site
from agentlab.hosted.house_roster import HOUSE
from agentlab.local import make_private
from agentlab.persona.demo import ensure_first_study
from agentlab.private_redis import PrivateRedis
from agentlab.processes import Child, Children
from factory.demo import ensure_examples
from factory.retention import StoreError

WORKERS, THREADS = 2, 8  # two processes, so that one slow page holds nobody up
SEATS = 4
ANSWERS_WITHIN = 60.0  # seconds for the site's first answer; a laptop takes about two
LEFTOVER_GONE_WITHIN = 5.0
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # whatever proxy this machine uses otherwise
KEEPS_ITS_DAY = ("--save", "60", "1")  # written when it ends, read when it starts: a restart forgets no turn of the day


class UpError(Exception):
    """Says in one line why the local site cannot run."""


@contextmanager
def only_one(state: Path) -> Iterator[Callable[[str], None]]:
    """Holds the state folder; two local sites on one would each run a Redis and a table of their own. What is given,
    once it is known, is the address, so that whoever starts a second one is told where the first one is."""
    with (make_private(state) / "up.lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise UpError(_already(state, file.read().splitlines())) from None

        def note(line: str) -> None:
            file.write(f"{line}\n")
            file.flush()

        file.truncate(0)
        note(str(os.getpid()))
        yield note


def _already(state: Path, noted: list[str]) -> str:
    """`noted`: the process, and the address where the site answers already."""
    process, address = [*noted, "", ""][:2]
    where = f"already running at {address}" if address else "already starting"
    return f"{where} (process {process or 'unknown'}, data in {state})"


def listen(host: str, port: int) -> socket.socket:
    """The site's socket, bound here and handed on, so that no other program can take the port in between."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=256)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UpError(f"port {port} is in use: --port names another, --port 0 takes a free one") from None
        raise UpError(f"cannot listen on {host} port {port}: {error.strerror}") from None


def prepare() -> None:
    """Static files and tables, and what there is to see on the first day."""
    call_command("collectstatic", interactive=False, verbosity=0)
    local_site.prepare()
    demo.ensure_house(HOUSE[:SEATS], base_prompt=BASE_PROMPT)
    owner = User.objects.get(username=demo.OWNERS[0])
    ensure_first_study(owner.pk)
    try:
        ensure_examples(owner)
    except StoreError as error:
        raise UpError(str(error)) from None


@contextmanager
def capture_redis() -> Iterator[Child | None]:
    """A private Redis for the life of the block, or None where the environment names another."""
    server = PrivateRedis(settings.PRIVATE_REDIS_SOCKET, options=KEEPS_ITS_DAY)
    if server.url != settings.AGENT_CAPTURE_REDIS_URL:
        _ask(settings.AGENT_CAPTURE_REDIS_URL)
        yield None
        return
    deadline = time.monotonic() + LEFTOVER_GONE_WITHIN
    while server.is_up():  # of a parent that was killed a moment ago, or of a command that is still running
        if time.monotonic() > deadline:
            raise UpError(f"another Redis runs at {server.socket}: end the command that started it")
        time.sleep(0.1)
    with server:
        assert server.process is not None
        yield Child("the private Redis", server.process, server.log)


def start_site(children: Children, listener: socket.socket, log: Path) -> Child:
    """The web server on the socket. Returns once it answers. Raises ProcessError or UpError."""
    server = [sys.executable, "-m", "gunicorn", "agentlab.wsgi:application", "--bind", f"fd://{listener.fileno()}"]
    server += ["--worker-class", "gthread", "--workers", str(WORKERS), "--threads", str(THREADS)]
    server += ["--graceful-timeout", "3", "--no-control-socket", "--log-level", "warning"]
    server += ["--chdir", str(settings.BASE_DIR)]
    site = children.start("the site", server, log=log, env=_environment(listener), pass_fds=[listener.fileno()])
    deadline = time.monotonic() + ANSWERS_WITHIN
    while (why := _does_not_answer(listener)) and time.monotonic() < deadline:
        if site.code is not None:
            raise site.ended()
        time.sleep(0.1)
    if why:
        raise UpError(f"the site does not answer: {why}; see {log}")
    return site


def start_play(children: Children, hands: int | None, log: Path) -> Child:
    """The house agents at a table of their own: for ever, or for so many hands."""
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "play", "--agents", str(SEATS)]
    command += ["--hands", "0" if hands is None else str(hands), "--pace", "watch", "--table", "main"]
    return children.start("the table", command, log=log, env=os.environ)


def watch(children: Children, redis: Child | None, table: Child | None, on_played: Callable[[], object]) -> None:
    """Until a signal comes. Raises ProcessError when a child ends that should not; a table may, when all is played."""
    while True:
        if redis and redis.code is not None:
            raise redis.ended()
        if dead := children.dead():
            if dead is not table or dead.code != 0:
                raise dead.ended()
            children.forget(dead)
            on_played()
        time.sleep(0.25)


def url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{shown}:{port}"


def _environment(listener: socket.socket) -> dict[str, str]:
    """The site's own address is always allowed, whatever else ALLOWED_HOSTS says."""
    host = listener.getsockname()[0]
    named = {*settings.ALLOWED_HOSTS, "127.0.0.1", "localhost", "[::1]", f"[{host}]" if ":" in host else host}
    kept = {name: value for name, value in os.environ.items() if name != "ALLOWED_HOSTS_FILE"}  # it has been read
    return {**kept, "ALLOWED_HOSTS": ",".join(sorted(named)), "DJANGO_SETTINGS_MODULE": "agentlab.settings"}


def _does_not_answer(listener: socket.socket) -> str:
    """Why /healthz is not 200, or nothing."""
    try:
        with _DIRECT.open(f"{url(listener)}/healthz", timeout=5) as answer:
            return "" if answer.status == 200 else f"status {answer.status}"
    except urllib.error.HTTPError as error:
        said = " ".join(error.read(200).decode(errors="replace").split())
        return f"/healthz says {error.code}: {said}"
    except OSError as error:
        return str(error)


def _ask(redis_url: str) -> None:
    try:
        client = Redis.from_url(redis_url, socket_connect_timeout=3, socket_timeout=3)
        client.ping()
        client.close()
    except (RedisError, OSError, ValueError) as error:  # its text may hold the URL and its password
        raise UpError(f"AGENT_CAPTURE_REDIS_URL is set, and no Redis answers there ({type(error).__name__})") from None
