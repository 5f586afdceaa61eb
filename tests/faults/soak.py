"""Play for many minutes while its stores misbehave at random; then hold the ledger to account.

    python -m tests.faults.soak --minutes 30 --seed 1

House agents play at a table of their own, on a Redis and a SQLite file of the run's own. Every few seconds one thing
happens to them: Redis is frozen, killed and started again, flushed, filled up, or paused; the database is locked by
another writer. At the end every turn that was decided must be recorded, or lost with a reason. Exit code 1 if not.
"""

import argparse
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import redis

from agentlab.private_redis import PrivateRedis

ROOT = Path(__file__).resolve().parents[2]


class Faults:
    """What may happen, to one Redis and one database file."""

    def __init__(self, server: PrivateRedis, database: Path, chance: random.Random) -> None:
        self.server, self.database, self.chance = server, database, chance
        self.happened: Counter[str] = Counter()

    def strike(self) -> None:
        fault: Callable[[], None] = self.chance.choice(
            [self.freeze, self.kill, self.flush, self.fill, self.pause, self.lock]
        )
        self.happened[fault.__name__] += 1
        fault()

    def freeze(self) -> None:
        assert self.server.process
        self.server.process.send_signal(signal.SIGSTOP)
        time.sleep(self.chance.uniform(1, 10))
        self.server.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        assert self.server.process
        self.server.process.kill()
        self.server.process.wait()
        time.sleep(self.chance.uniform(0, 5))
        self.server.start()

    def flush(self) -> None:
        self._client().flushall()

    def fill(self) -> None:
        client = self._client()
        client.config_set("maxmemory", 1)
        time.sleep(self.chance.uniform(1, 6))
        client.config_set("maxmemory", 0)

    def pause(self) -> None:
        self._client().client_pause(int(self.chance.uniform(200, 4000)))

    def lock(self) -> None:
        writer = sqlite3.connect(self.database, timeout=30, isolation_level=None)
        writer.execute("BEGIN EXCLUSIVE")
        time.sleep(self.chance.uniform(1, 8))
        writer.execute("ROLLBACK")
        writer.close()

    def _client(self) -> redis.Redis:
        return redis.Redis(unix_socket_path=str(self.server.socket), socket_timeout=10)


def soak(minutes: float, seed: int) -> bool:
    with tempfile.TemporaryDirectory(prefix="agentlab-soak-") as folder:
        state = Path(folder)
        database = state / "soak.sqlite3"
        # Not where a private Redis would lie: play would start one of its own there while ours is down.
        with PrivateRedis(state / "soak" / "redis.sock") as server:
            environment = {
                **os.environ,
                "AGENTLAB_STATE_DIR": folder,
                "DATABASE_URL": f"sqlite:///{database}",
                "AGENT_CAPTURE_REDIS_URL": server.url,
                "MIN_TURN_MS": "100",
            }
            command = [sys.executable, str(ROOT / "manage.py"), "play", "--hands", "0", "--agents", "6"]
            with (state / "play.out").open("w") as said:
                play = subprocess.Popen(
                    [*command, "--pace", "watch", "--json"], env=environment, stdout=said, stderr=said
                )
            faults = Faults(server, database, random.Random(seed))
            deadline = time.monotonic() + 60 * minutes
            while time.monotonic() < deadline and play.poll() is None:
                time.sleep(faults.chance.uniform(2, 12))
                faults.strike()
            ended_early = play.poll() is not None
            play.send_signal(signal.SIGINT)
            play.wait(120)
            output = (state / "play.out").read_text()
        return account(database, faults.happened, output, ended_early=ended_early)


def account(database: Path, happened: Counter[str], output: str, *, ended_early: bool) -> bool:
    """Prints what happened and what became of every turn. Whether the books balance."""
    with sqlite3.connect(database) as books:
        rows = books.execute(
            "SELECT capture_outcome, capture_reason, count(*) FROM agent_inference_charges GROUP BY 1, 2"
        ).fetchall()
    outcomes: Counter[str] = Counter()
    for outcome, _, number in rows:
        outcomes[outcome] += number
    decided = sum(outcomes.values()) - outcomes["none"]
    unexplained = sum(number for outcome, reason, number in rows if outcome in ("dropped", "failed") and not reason)
    lost = outcomes["dropped"] + outcomes["failed"]
    print(json.dumps({"faults": happened, "outcomes": outcomes, "reasons": rows}, indent=1))
    balanced = outcomes["recorded"] + lost == decided and not outcomes["pending"] and not unexplained and decided > 0
    known = f"{outcomes['recorded']} recorded, {lost} lost with a reason, {outcomes['pending']} not known"
    print(f"{decided} turns decided: {known}")
    if ended_early:
        print(output[-2000:])
    return balanced and not ended_early


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sys.exit(0 if soak(options.minutes, options.seed) else 1)
