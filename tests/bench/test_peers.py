"""The comparison with other recorders still works: with ours and a plain SET alone, which need nothing installed."""

import gzip
import http.client
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest

from tests.bench.peers.__main__ import environments
from tests.bench.peers.report import markdown, summary
from tests.bench.peers.stores import ROOT, store

COMMAND = [sys.executable, "-m", "tests.bench.peers"]


def test_a_smoke_run_measures_every_part_of_ours_and_of_a_set() -> None:  # PF-1
    done = subprocess.run([*COMMAND, "--smoke", "--json"], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    rows = {row["recorder"]: row for row in said["rows"]}
    assert list(rows) == ["redis", "agentlab"]
    for row in rows.values():
        assert (row["burst_lost"], row["overrun_lost"], row["failed"]) == ([0], [0], [])
        assert row["bytes"] > 0
    assert rows["redis"]["p50_ratio"] == 1
    assert rows["agentlab"]["p50_ratio"] > 0
    assert rows["agentlab"]["hang_ratio"] > 0
    assert rows["agentlab"]["exit"] != [None]  # it ended by itself
    assert "| **agentlab** |" in markdown(said["rows"], said)


def test_a_ratio_is_against_the_set_of_the_same_repetition() -> None:  # PF-1
    runs = [run("redis", 0, 1), run("redis", 1, 4), run("mlflow", 0, 2), run("mlflow", 1, 8), run("mlflow", 2, 9)]
    ours, theirs = summary(runs)
    assert (ours["p50_ratio"], theirs["p50_ratio"]) == (1, 2)


def test_what_a_recorder_counts_itself_stands_beside_what_it_lost() -> None:  # PF-1
    lost = {"lost": 30, "turns": 100, "said": ["Queue full, dropping Span."]}
    counts = {"recorder": "opentelemetry", "part": "overrun", "repetition": 0, "losses": {"queue_full": 29}, **lost}
    silent = {"recorder": "mlflow", "part": "overrun", "repetition": 0, "losses": None, **lost}
    rows = summary([counts, silent])
    assert [row["counted"] for row in rows] == [[29], []]
    table = markdown(rows, {"repetitions": 1, "machine": "here", "command": "this"})
    assert "| 30 | 29 |" in table
    assert "| 30 | no; it logged |" in table
    assert "logged 1 such lines in a run, the first: Queue full, dropping Span." in table


def run(recorder: str, repetition: int, seconds: float) -> dict[str, Any]:
    times = dict.fromkeys(("p50", "p99", "cpu"), seconds)
    counts = {"turns": 1, "lost": 0, "bytes": 1, "losses": None, "said": []}
    return {"recorder": recorder, "part": "burst", "repetition": repetition, **times, **counts}


def test_the_sink_counts_each_turn_once_compressed_or_not(tmp_path: Path) -> None:
    with store("sink", tmp_path / "work") as sink:
        connection = http.client.HTTPConnection(urlsplit(sink.place).netloc, timeout=10)
        for body, headers in (
            (b"turn-000001 and turn-0000022", {}),
            (gzip.compress(b"turn-000002, turn-000003"), {"Content-Encoding": "gzip"}),
        ):
            connection.request("POST", "/v1/traces", body, headers)
            assert connection.getresponse().read() == b""
        connection.close()
        assert sink.arrived() == 3
        assert sink.size(0) > 40


def test_a_peer_that_cannot_be_installed_is_left_out_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")  # as good as no network, and told at once
    assert environments(["agentlab", "langfuse"], tmp_path) == {"redis": sys.executable, "agentlab": sys.executable}
    said = [line for line in capsys.readouterr().err.split("\n") if line.startswith("peers: ")]
    assert len(said) == 1
    assert said[0].startswith("peers: without langfuse: langfuse==5.0.4 could not be installed; is there a network?")


def test_an_interrupt_ends_everything_that_it_started() -> None:
    command = [*COMMAND, "--peers", "agentlab", "--parts", "burst", "--repeat", "99"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
        assert started.stderr
        next(line for line in started.stderr if "agentlab" in line)
        parent = psutil.Process(started.pid)
        while len(children := parent.children(recursive=True)) < 2:  # a store and a recorder
            assert started.poll() is None
            time.sleep(0.01)
        started.send_signal(signal.SIGINT)
        out, err = started.communicate(timeout=30)
    assert started.returncode == 130
    assert "Traceback" not in err
    assert "| plain Redis `SET` of the JSON | 1.00 |" in out  # what had been measured by then
    assert psutil.wait_procs(children, timeout=10)[1] == []
