"""A site as `manage.py up` makes it, with the Redis that its environment names and commands beside it."""

import json
import os
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import redis

from agentlab.private_redis import PrivateRedis
from tests.site.test_up import ROOT, Up

PATIENCE = 120  # seconds for a command, on a machine that has other things to do


@dataclass
class Command:
    """A `manage.py` that runs. Its words go to files, so that no pipe can fill up."""

    process: subprocess.Popen[bytes]
    said: Path
    complained: Path

    def ends(self) -> dict[str, Any]:
        """The JSON of its last line, once it has ended well."""
        code = self.process.wait(PATIENCE)
        assert code == 0, f"exit code {code}: {self.said.read_text()}{self.complained.read_text()}"
        lines = self.said.read_text().splitlines()
        told: dict[str, Any] = json.loads(lines[-1]) if lines else {}
        return told

    def child_that_talks_to(self, port: int) -> psutil.Process:
        """The process below it that has a connection open to this port of this machine."""
        for child in psutil.Process(self.process.pid).children(recursive=True):
            if any(one.raddr and one.raddr.port == port for one in child.net_connections("tcp")):
                return child
        raise AssertionError(f"no child of {self.process.args!r} talks to port {port}")


class InstalledSite:
    """`url`, and `passwords` by user. The Redis is not the site's own: it may be stopped, and the site stays."""

    def __init__(self, folder: Path, *options: str, **settings: str) -> None:
        self._folder = folder
        self._redis = PrivateRedis(folder / "redis" / "redis.sock")
        self._commands: list[Command] = []
        self._up: Up | None = None
        self._options, self._settings = options, settings | {"AGENT_CAPTURE_REDIS_URL": self._redis.url}
        self.url = ""
        self.passwords: dict[str, str] = {}

    def __enter__(self) -> "InstalledSite":
        self._redis.start()
        try:
            ready = self._folder / "ready.json"
            options = ["--port", "0", "--ready-file", str(ready), *self._options]
            self._up = Up(self._folder / "up.out", self._folder / "state", *options, **self._settings)
            self._up.wait_for(ready.exists)
            told = json.loads(ready.read_text())
            self.url, self.passwords = told["url"].rstrip("/"), told["users"]
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for command in self._commands:
            if command.process.poll() is None:
                command.process.terminate()
                command.process.wait(PATIENCE)
        if self._up and self._up.process.poll() is None:
            self._up.end()
        self._redis.stop()

    def waits_until_all_is_played(self) -> None:
        assert self._up
        self._up.wait_until_it_says("All hands are played")

    def begins(self, *words: str | Path) -> Command:
        """A command on the same stores, in a process of its own."""
        name = f"{len(self._commands)}-{words[0]}"
        said, complained = self._folder / f"{name}.out", self._folder / f"{name}.err"
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
        env = {**kept, **self._settings, "AGENTLAB_STATE_DIR": str(self._folder / "state")}
        with said.open("wb") as out, complained.open("wb") as err:
            process = subprocess.Popen(
                [sys.executable, ROOT / "manage.py", *words], cwd=self._folder, env=env, stdout=out, stderr=err
            )
        self._commands.append(Command(process, said, complained))
        return self._commands[-1]

    def lets_a_day_pass(self) -> int:
        """What the buffer holds expires, as every key of it would, and the ledger's turns are a day older. How many
        keys there were."""
        buffer = redis.Redis.from_url(self._redis.url)
        keys = list(buffer.scan_iter())
        assert all(0 < buffer.ttl(key) <= 24 * 3600 for key in keys), "each goes by itself within a day"  # CAP-11
        for key in keys:
            buffer.pexpire(key, 1)
        while buffer.exists(*keys):
            pass
        buffer.close()
        with sqlite3.connect(self._folder / "state" / "agentlab.sqlite3", timeout=20) as ledger:
            ledger.execute(
                "UPDATE agent_inference_charges SET played_at = strftime('%Y-%m-%d %H:%M:%f', played_at, '-1 day')"
            )
        ledger.close()
        return len(keys)

    def stops_redis(self) -> None:
        self._redis.stop()

    def starts_redis(self) -> None:
        self._redis.start()
