"""`manage.py factory` as a person or a script meets it: a process of its own, in a fresh place."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from factory.models import FactoryRun

NO_OWNER = "This run has no owner: only operators see it. --owner USER makes it a run of that user's.\n"
PROJECT = Path(__file__).parent.parent.parent
Manage = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """What a clone has after `make install`: nothing configured, no database yet."""
    ours = {
        *("DATABASE_URL", "AGENT_CAPTURE_REDIS_URL", "SECRET_KEY", "ALLOWED_HOSTS", "DJANGO_SETTINGS_MODULE"),
        *("AGENTLAB_TEST_DATABASE", "AGENTLAB_LOCAL"),
    }
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    return kept | {"AGENTLAB_STATE_DIR": str(tmp_path / "state")}


@pytest.fixture
def manage(environment: dict[str, str], tmp_path: Path) -> Manage:
    def manage(*arguments: str | bytes, **more: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, str(PROJECT / "manage.py"), "factory", *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment | more,
            timeout=120,
        )

    return manage


def result(done: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def test_a_fresh_clone_runs_a_prompt_file_through_build(manage: Manage, tmp_path: Path) -> None:  # FA-2
    (tmp_path / "task.md").write_text("Write a slugify command.")
    done = manage("run", "--file", "task.md", "--workflow", "build", "--json")
    assert (done.returncode, done.stderr) == (0, NO_OWNER)
    report = result(done)
    assert (set(report), report["state"]) == ({"run", "state", "attempts"}, "succeeded")
    assert [(a["phase"], a["sendKind"], a["turnIndex"]) for a in report["attempts"]] == [
        ("plan", "initial", 1),
        ("build", "initial", 2),
        ("review", "initial", 3),
    ]
    assert set(report["attempts"][0]) == {
        *("id", "phase", "sendKind", "turnIndex", "inputCoverage"),
        *("declaredInputCount", "capturedInputCount", "omittedInputCount"),
    }
    first = report["attempts"][0]
    assert (tmp_path / "state/snapshots" / first["id"] / "1").read_text() == "Write a slugify command."
    assert (first["inputCoverage"], first["declaredInputCount"], first["omittedInputCount"]) == ("complete", 1, 0)


def test_it_says_which_kind_of_request_it_took(manage: Manage, tmp_path: Path) -> None:  # FA-1
    (tmp_path / "task.md").write_text("In the file")
    assert manage("run", "task.md").stdout.startswith("request: the file ")
    assert manage("run", "task.md", "--text").stdout.startswith("request: the text itself")
    mistyped = manage("run", "slugify", "--workflow", "ask").stdout
    assert mistyped.startswith("request: the text itself (there is no file of that name), 7 bytes")


def test_without_json_it_tells_its_progress_and_its_end(manage: Manage) -> None:  # FA-2
    lines = manage("run", "Do it", "--workflow", "ask", "--provider", "rehearsal:parse").stdout.splitlines()
    assert lines[1].startswith("provider: rehearsal, which asks no model")
    assert "1 ask (initial) …" in lines
    assert "2 ask (parse correction) …" in lines
    assert lines[-1] == "run 1 succeeded, 2 attempts: /factory/runs/1"


def test_a_failed_run_has_its_object_and_an_exit_code_that_says_so(manage: Manage) -> None:  # FA-2
    done = manage("run", "Do it", "--workflow", "ask", "--check", "exit 7", "--json")
    assert done.returncode == 1
    assert result(done)["state"] == "failed"
    assert [a["sendKind"] for a in result(done)["attempts"]] == ["initial", "gate_retry"]
    assert done.stderr == NO_OWNER + "CommandError: run 1 failed: ask: check failed (exit 7)\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "missing.md", "--file"], "there is no file missing.md"),
        (["run", "missing.md"], "there is no file missing.md; if these are the words to do, add --text"),
        (["run", "notes/missing"], "there is no file notes/missing;"),
        (["run", "latin.md"], "latin.md is not UTF-8 (byte 3)"),
        (["run", ""], "the request is empty"),
        (["run", "x", "--provider", "nobody"], "there is no provider 'nobody'"),
        (["run", "x", "--provider", "rehearsal:dance"], "the rehearsal cannot play 'dance'"),
        (["run", "x", "--context", "nowhere"], "nowhere is not a folder"),
        (["run", "x", "--attach", "nowhere"], "there is no file nowhere"),
        (["run", "x", "--attach", "bytes.bin"], "rehearsal cannot take bytes.bin (application/octet-stream)"),
        (["run", "x", "--owner", "nobody"], "there is no user 'nobody' in "),
    ],
)
@pytest.mark.django_db
def test_what_cannot_be_done_is_one_line_and_nothing_is_written(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:  # SF-4
    monkeypatch.chdir(tmp_path)
    settings.FACTORY_SNAPSHOT_ROOT = tmp_path / "snapshots"
    (tmp_path / "latin.md").write_bytes(b"caf\xe9")
    (tmp_path / "bytes.bin").write_bytes(b"\xff\x00")
    with pytest.raises(CommandError) as refused:
        call_command("factory", *arguments)
    assert said in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1
    assert not list((tmp_path / "snapshots").iterdir())
    assert not FactoryRun.objects.exists()


def test_words_that_are_not_utf8_are_refused(manage: Manage) -> None:  # FA-1 SF-4
    done = manage("run", b"caf\xe9 au lait")
    assert (done.returncode, done.stderr) == (1, "CommandError: the request is not valid UTF-8\n")


def test_a_snapshot_root_that_is_unsafe_stops_the_factory(manage: Manage) -> None:  # AI-6
    done = manage("run", "x", FACTORY_SNAPSHOT_ROOT="/")
    assert done.returncode == 1
    assert done.stderr.startswith("CommandError: snapshot root /: not a folder of its own")


def test_a_database_that_cannot_be_migrated_stops_the_factory(manage: Manage, tmp_path: Path) -> None:  # FA-7
    (tmp_path / "broken.sqlite3").write_bytes(b"this is no database at all, whatever its name says" * 20)
    done = manage("run", "x", DATABASE_URL=f"sqlite:///{tmp_path}/broken.sqlite3")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "database" in done.stderr


def test_outside_a_local_site_an_old_schema_stops_the_factory(manage: Manage, tmp_path: Path) -> None:  # FA-7
    production = {"SECRET_KEY": "x" * 60, "DATABASE_URL": f"sqlite:///{tmp_path}/new.sqlite3", "ALLOWED_HOSTS": "a"}
    done = manage("run", "x", **production)
    assert done.returncode == 1
    assert "schema is not up to date" in done.stderr


def test_reconcile_counts_what_it_did(manage: Manage, tmp_path: Path) -> None:  # FA-7
    orphan = tmp_path / "state/snapshots" / ("a" * 32)
    orphan.mkdir(parents=True)
    os.utime(orphan, (0, 0))
    (tmp_path / "state/snapshots").chmod(0o700)
    assert "would be done: 1 orphans" in manage("reconcile", "--dry-run").stdout
    assert orphan.exists()
    assert "done: 1 orphans" in manage("reconcile").stdout
    assert not orphan.exists()


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_is_cancelled_its_check_ended_and_its_attempt_says_so(
    environment: dict[str, str], manage: Manage, tmp_path: Path, signum: int
) -> None:  # FA-2 SF-5
    os.mkfifo(tmp_path / "began")
    began = os.open(tmp_path / "began", os.O_RDONLY | os.O_NONBLOCK)
    check = f"echo $$ > {tmp_path}/began; sleep 600"
    process = subprocess.Popen(
        [
            sys.executable,
            str(PROJECT / "manage.py"),
            "factory",
            "run",
            "x",
            "--workflow",
            "ask",
            "--check",
            check,
            "--json",
        ],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    ready, _, _ = select.select([began], [], [], 60)
    assert ready, "the check was started"
    pid = int(os.read(began, 100))
    os.close(began)
    process.send_signal(signum)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert json.loads(out.splitlines()[-1])["state"] == "cancelled"
    assert err == NO_OWNER + "CommandError: run 1 cancelled: interrupted\n"
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_no_secret_of_ours_reaches_a_check(manage: Manage, tmp_path: Path) -> None:  # FA-14
    secrets = {
        "AGENT_CAPTURE_SERVICE_KEY": "our-service-key",
        "AGENT_CAPTURE_REDIS_URL": "redis://:our-redis-password@127.0.0.1:1/0",
        "DATABASE_URL": f"sqlite:///{tmp_path}/our-database.sqlite3",
        "OPENAI_API_KEY": "our-openai-key",
        "SOME_TOKEN": "our-token",
    }
    done = manage("run", "x", "--workflow", "ask", "--check", f"env > {tmp_path}/seen", **secrets)
    assert done.returncode == 0, done.stderr
    seen = (tmp_path / "seen").read_text()
    assert "our-" not in seen
    names = {line.split("=")[0] for line in seen.splitlines()}
    assert not names & {*secrets, "SECRET_KEY", "AGENTLAB_LOCAL", "AGENTLAB_STATE_DIR"}
    assert "PATH" in names


def test_a_secret_key_of_production_does_not_reach_a_check(manage: Manage, tmp_path: Path) -> None:  # FA-14
    production = {"SECRET_KEY": "s" * 60, "DATABASE_URL": f"sqlite:///{tmp_path}/db.sqlite3", "ALLOWED_HOSTS": "a"}
    migrate = subprocess.run(
        [sys.executable, str(PROJECT / "manage.py"), "migrate"],
        env=os.environ | production,
        capture_output=True,
        check=True,
    )
    assert migrate.returncode == 0
    done = manage("run", "x", "--workflow", "ask", "--check", f"env > {tmp_path}/seen", **production)
    assert done.returncode == 0, done.stderr
    assert "s" * 60 not in (tmp_path / "seen").read_text()
