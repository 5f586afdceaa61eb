"""Settings: what the environment may say, and what it may not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from agentlab import env

ROOT = Path(__file__).resolve().parents[2]
PRODUCTION = {"SECRET_KEY": "k" * 60, "ALLOWED_HOSTS": "agentlab.example", "DATABASE_URL": "sqlite:///:memory:"}
SHOW = """
import json
from django.conf import settings
names = "DEBUG ALLOWED_HOSTS SESSION_COOKIE_SECURE CSRF_COOKIE_SECURE SECURE_SSL_REDIRECT LOCAL".split()
print(json.dumps({name: getattr(settings, name) for name in [*names, "AGENT_CAPTURE_SERVICE_KEY"]}))
"""


def manage(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """A manage.py command with nothing in its environment but what is given."""
    clean = {name: os.environ[name] for name in ("PATH", "HOME", "AGENTLAB_STATE_DIR") if name in os.environ}
    return subprocess.run(
        [sys.executable, ROOT / "manage.py", *arguments],
        env={**clean, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(("text", "value"), [("1", True), ("Yes", True), ("off", False), ("FALSE", False), ("", True)])
def test_a_flag_is_read(monkeypatch: pytest.MonkeyPatch, text: str, value: bool) -> None:  # SF-3
    monkeypatch.setenv("X", text)
    assert env.flag("X", default=True) is value


@pytest.mark.parametrize("text", ["maybe", "2", "tru"])
def test_a_flag_that_is_neither_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:  # SF-4
    monkeypatch.setenv("X", text)
    with pytest.raises(ImproperlyConfigured, match="X must be true or false"):
        env.flag("X", default=True)


@pytest.mark.parametrize("text", ["-1", "1.5", "١", "0", "many", "9" * 5000])
def test_a_number_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:  # SF-4
    monkeypatch.setenv("X", text)
    with pytest.raises(ImproperlyConfigured, match="X must be a whole number"):
        env.whole("X", 5, least=1)


def test_a_secret_may_stand_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:  # SF-3
    (tmp_path / "key").write_text("secret\n")
    monkeypatch.setenv("X_FILE", str(tmp_path / "key"))
    assert env.text("X") == "secret"
    monkeypatch.setenv("X_FILE", str(tmp_path / "none"))
    with pytest.raises(ImproperlyConfigured, match="X_FILE: No such file"):
        env.text("X")


def test_production_is_strict_and_has_no_default_secret() -> None:  # SF-3
    import json

    shown = json.loads(manage("shell", "--no-imports", "-c", SHOW, **PRODUCTION).stdout)
    assert shown == {
        "DEBUG": False,
        "ALLOWED_HOSTS": ["agentlab.example"],
        "SESSION_COOKIE_SECURE": True,
        "CSRF_COOKIE_SECURE": True,
        "SECURE_SSL_REDIRECT": True,
        "AGENT_CAPTURE_SERVICE_KEY": "",
        "LOCAL": False,
    }


def test_the_deployment_checks_are_clean_with_production_settings() -> None:  # SF-3
    result = manage("check", "--deploy", "--fail-level", "WARNING", **{**PRODUCTION, **STRONG})
    assert (result.returncode, result.stderr) == (0, ""), result.stderr


STRONG = {
    "SECRET_KEY": "2Xw9_fQ7bL-c4Vt8sNzH1mRkP6yJ3dAeG5uTqCxWvBnMiOpLrSdFgHjKlZxCvBnM",
    "AGENT_CAPTURE_SERVICE_KEY": "Zq8_wE4rTy7UiOp2AsDf-GhJk5LzXcVb9NmQwErTy",
    "AGENT_CAPTURE_REDIS_URL": "redis://127.0.0.1:1",
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "postgres//user:hunter2@host"),
        ("DATABASE_URL", "mysql://user:hunter2@host/name"),
        ("AGENT_CAPTURE_REDIS_URL", "redis:hunter2@host"),
        ("CACHE_URL", "redis://:hunter2@host:port/0"),
        ("LOG_LEVEL", "LOUD"),
        ("DEBUG", "perhaps"),
        ("CAPTURE_TTL_SECONDS", "0"),
        ("SECRET_KEY_FILE", "/nowhere"),  # beside SECRET_KEY: which of them would be meant?
    ],
)
def test_a_setting_that_cannot_be_read_is_said_in_one_line_without_secrets(name: str, value: str) -> None:  # SF-4
    result = manage("check", **{**PRODUCTION, name: value})
    assert result.returncode != 0
    assert name in result.stderr
    assert result.stderr.count("\n") == 1
    assert "hunter2" not in result.stderr


def test_the_server_does_not_start_without_a_secret_key_and_says_so_in_one_line() -> None:  # SF-3
    clean = {"PATH": os.environ["PATH"], "DJANGO_SETTINGS_MODULE": "agentlab.settings"}
    serve = [sys.executable, "-m", "gunicorn", "agentlab.wsgi:application", "--bind", "127.0.0.1:0"]
    result = subprocess.run(
        [*serve, "--no-control-socket"], env=clean, cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 3
    said = [line for line in result.stderr.splitlines() if not line.startswith("[")]  # but for gunicorn's own log
    assert len(said) == 1, result.stderr
    assert said[0].startswith("agentlab: SECRET_KEY is not set.")


def test_the_project_is_untouched_by_a_local_command(tmp_path: Path) -> None:  # SF-3
    result = manage("check", AGENTLAB_STATE_DIR=str(tmp_path / "state"))
    assert result.returncode == 0, result.stderr
    secret = tmp_path / "state" / "secret-key"
    assert secret.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    before = secret.read_text()
    manage("check", AGENTLAB_STATE_DIR=str(tmp_path / "state"))
    assert secret.read_text() == before


def test_a_relative_path_means_the_same_file_to_every_process(tmp_path: Path) -> None:  # SF-4
    show = "from django.conf import settings as s; print(s.DATABASES['default']['NAME'], s.AGENT_LEDGER_SPOOL)"
    named = {"DATABASE_URL": "sqlite:///some.sqlite3", "AGENT_LEDGER_SPOOL": "some.spool"}
    result = manage("shell", "--no-imports", "-c", show, **{**PRODUCTION, **named})
    assert result.stdout.split() == [str(ROOT / "some.sqlite3"), str(ROOT / "some.spool")]
