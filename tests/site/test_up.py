"""`manage.py up` as a person meets it: real processes, a real browser's requests, and nothing left behind."""

import http.cookiejar
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis

ROOT = Path(__file__).resolve().parents[2]
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with a parent that is killed")


class Up:
    """A running `manage.py up` on a state folder of its own, with nothing configured."""

    def __init__(self, output: Path, state: Path, *options: str, largest_file: int | None = None, **named: str) -> None:
        """`largest_file`: bytes; a file that would grow beyond is as good as a full disk."""
        run: list[str | Path] = [sys.executable, ROOT / "manage.py", "up", *options]
        if largest_file:
            limit = f"import os, resource as r, sys; r.setrlimit(r.RLIMIT_FSIZE, ({largest_file}, {largest_file}))"
            run = [sys.executable, "-c", f"{limit}; os.execv(sys.argv[1], sys.argv[1:])", *run]
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
        self.state = state
        self.output = output
        with output.open("w") as said:
            self.process = subprocess.Popen(
                run,
                env={**kept, **named, "AGENTLAB_STATE_DIR": str(state)},
                stdout=said,
                stderr=subprocess.STDOUT,
            )

    @property
    def said(self) -> str:
        return self.output.read_text()

    def wait_for(self, what: Callable[[], object], seconds: float = 240) -> None:
        deadline = time.monotonic() + seconds
        while not what():
            assert self.process.poll() is None, self.said
            assert time.monotonic() < deadline, self.said
            time.sleep(0.1)

    def wait_until_it_says(self, words: str) -> None:
        self.wait_for(lambda: words in self.said)

    @property
    def url(self) -> str:
        match = re.search(r"http://127\.0\.0\.1:\d+", self.said)
        assert match, self.said
        return match[0]

    def family(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(30)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Up]]:
    begun: list[Up] = []

    def begin(*options: str, state: str = "state", **named: Any) -> Up:
        begun.append(Up(tmp_path / f"{len(begun)}.out", tmp_path / state, *options, **named))
        return begun[-1]

    yield begin
    for up in begun:
        if up.process.poll() is None:
            up.end()


class Visitor:
    """Somebody with cookies, who fills in the forms that the pages have."""

    def __init__(self, site: str) -> None:
        self.site = site
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), cookies)

    def read(self, path: str) -> str:
        with self._opener.open(self.site + path, timeout=30) as answer:
            text: str = answer.read().decode()
            return text

    def sign_in(self, name: str, password: str) -> str:
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', self.read("/login"))
        assert token
        form = {"csrfmiddlewaretoken": token[1], "username": name, "password": password}
        with self._opener.open(f"{self.site}/login", urllib.parse.urlencode(form).encode(), timeout=30) as answer:
            text: str = answer.read().decode()
            return text


def gone(processes: list[psutil.Process]) -> bool:
    _, alive = psutil.wait_procs(processes, timeout=20)
    return all(process.status() == psutil.STATUS_ZOMBIE for process in alive if process.is_running())


def a_captured_hand(visitor: Visitor) -> str | None:
    """The address of the first hand of the list."""
    link = re.search(r'href="(/agent-capture\?table=[^"]+hand=\d+)"', visitor.read("/agent-capture"))
    return unescape(link[1]) if link else None


def test_an_operator_signs_in_and_opens_a_captured_hand_and_sigterm_ends_it_all(  # VW-1, SF-5, SF-6
    start: Callable[..., Up], tmp_path: Path
) -> None:
    up = start("--port", "0", "--hands", "1", "--ready-file", str(tmp_path / "ready"))
    up.wait_for((tmp_path / "ready").exists)
    assert (tmp_path / "ready").stat().st_mode & 0o777 == 0o600
    ready = json.loads((tmp_path / "ready").read_text())
    assert ready["url"] == up.url
    assert sorted(ready["users"]) == ["ada", "ben", "operator"]
    assert ready["users"]["operator"] in up.said
    assert json.loads(Visitor(up.url).read("/healthz"))["ok"]

    second = start("--port", "0")
    assert second.process.wait(60) == 1
    where = f"(process {up.process.pid}, data in {up.state})"
    assert second.said.strip() == f"CommandError: already running at {up.url} {where}"

    visitor = Visitor(up.url)
    assert "Captured hands" in visitor.sign_in("operator", ready["users"]["operator"])
    up.wait_until_it_says("All hands are played; the site stays.")
    up.wait_for(lambda: a_captured_hand(visitor))
    page = visitor.read(a_captured_hand(visitor) or "")
    assert "Rocky" in page or "rocky" in page
    address = re.search(r"^Capture Redis: (unix://\S+)$", up.said, re.M)
    assert address
    with redis.Redis.from_url(address[1]) as client:  # where anybody's own agent may put its turns
        assert next(client.scan_iter("turn:*"), None)

    family = up.family()
    assert {process.name() for process in family} & {"redis-server", "valkey-server"}
    assert up.end() == 0
    assert gone(family)
    assert not (tmp_path / "ready").exists()
    assert all(
        password not in str(file.read_bytes()) for password in ready["users"].values() for file in files(up.state)
    )


def files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


def test_a_second_start_has_the_old_users_and_says_how_to_reset_them(start: Callable[..., Up]) -> None:  # SF-6
    first = start("--port", "0", "--no-play")
    first.wait_until_it_says("shown this once")
    password = re.search(r"operator +(\S+)", first.said)
    assert password
    assert first.end(signal.SIGINT) == 0
    assert first.said.index("Ending,") < first.said.index("Ended:")
    second = start("--port", "0", "--no-play")
    second.wait_until_it_says("--reset-passwords makes new ones")
    assert "Captured hands" in Visitor(second.url).sign_in("operator", password[1])


def test_a_restart_forgets_no_turn_of_the_day(start: Callable[..., Up]) -> None:  # VW-2, SF-5
    first = start("--port", "0", "--hands", "1")
    first.wait_until_it_says("All hands are played")
    password = re.search(r"operator +(\S+)", first.said)
    assert password
    assert first.end() == 0
    second = start("--port", "0", "--no-play")
    second.wait_until_it_says("--reset-passwords makes new ones")
    visitor = Visitor(second.url)
    visitor.sign_in("operator", password[1])
    page = visitor.read(a_captured_hand(visitor) or "")
    assert "what it was told, exactly" in page
    assert "in the buffer" not in page


@pytest.mark.parametrize(("child", "name"), [("gunicorn", "the site"), ("unixsocket:", "the private Redis")])
def test_a_child_that_dies_ends_the_whole_and_is_named_in_one_line(  # SF-4, SF-5
    start: Callable[..., Up], child: str, name: str
) -> None:
    up = start("--port", "0", "--no-play")
    up.wait_until_it_says("Data and logs")
    family = up.family()
    next(process for process in family if child in " ".join(process.cmdline())).kill()
    assert up.process.wait(30) == 1
    assert up.said.splitlines()[-1].startswith(f"CommandError: {name} was killed by SIGKILL")
    assert gone(family)


@LINUX
def test_nothing_is_left_of_a_site_that_is_killed(start: Callable[..., Up]) -> None:  # SF-5
    up = start("--port", "0")
    up.wait_for(lambda: len(up.family()) >= 8)  # Redis, the site's three, the table, its agents
    family = up.family()
    up.end(signal.SIGKILL)
    assert gone(family)


def test_a_port_in_use_is_said_in_one_line(start: Callable[..., Up]) -> None:  # SF-4
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        up = start("--port", str(port))
        assert up.process.wait(60) == 1
    assert up.said.strip() == (f"CommandError: port {port} is in use: --port names another, --port 0 takes a free one")


def test_a_ready_file_that_is_there_is_refused(start: Callable[..., Up], tmp_path: Path) -> None:  # SF-6
    (tmp_path / "ready").touch()
    up = start("--port", "0", "--ready-file", str(tmp_path / "ready"))
    assert up.process.wait(60) == 1
    assert up.said.strip() == f"CommandError: {tmp_path}/ready exists already: the ready file must be a new one"


def test_a_state_folder_that_cannot_be_used_is_said_in_one_line(start: Callable[..., Up], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    up = start("--port", "0", state="file/state")  # SF-4
    assert up.process.wait(60) == 1
    assert len(up.said.strip().splitlines()) == 1
    assert "AGENTLAB_STATE_DIR names another folder" in up.said


def test_a_full_disk_is_said_in_one_line(start: Callable[..., Up]) -> None:  # SF-4, SF-5
    up = start("--port", "0", "--no-play", largest_file=10_000)
    assert up.process.wait(60) == 1
    assert len(up.said.strip().splitlines()) == 1, up.said
    assert up.said.startswith("CommandError: the local site cannot run: File too large")


def test_a_database_that_does_not_answer_is_said_in_one_line_with_the_reason(start: Callable[..., Up]) -> None:  # SF-4
    with socket.create_server(("127.0.0.1", 0)) as was:
        port = was.getsockname()[1]
    up = start("--port", "0", DATABASE_URL=f"postgresql://root:hunter2@127.0.0.1:{port}/none")
    assert up.process.wait(60) == 1
    assert len(up.said.strip().splitlines()) == 1, up.said
    assert up.said.startswith("CommandError: the database cannot be used: ")
    assert "Connection refused" in up.said
    assert "hunter2" not in up.said


@pytest.mark.parametrize("option", [("--port", "70000"), ("--hands", "0"), ("--port", "many")])
def test_an_option_that_makes_no_sense_is_refused(start: Callable[..., Up], option: tuple[str, str]) -> None:  # SF-4
    up = start(*option)
    assert up.process.wait(60) != 0
    assert f"argument {option[0]}" in up.said.splitlines()[-1]
