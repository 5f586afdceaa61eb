"""What a command says of a database that it cannot use."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("words", [["play", "--hands", "1"], ["study", "verify", "1"]], ids=" ".join)
def test_outside_a_local_site_an_old_schema_names_the_step_that_is_missing(tmp_path: Path, words: list[str]) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "AGENTLAB_LOCAL"} | {  # SF-4
        "DJANGO_SETTINGS_MODULE": "agentlab.settings",
        "AGENTLAB_STATE_DIR": str(tmp_path / "state"),
        "SECRET_KEY": "x" * 60,
        "ALLOWED_HOSTS": "a",
        "DATABASE_URL": f"sqlite:///{tmp_path}/old.sqlite3",
    }
    command = [sys.executable, str(ROOT / "manage.py"), *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "CommandError: the database's schema is not up to date: `manage.py migrate` first\n"


def test_commands_that_begin_at_once_in_a_fresh_clone_all_find_the_tables(tmp_path: Path) -> None:  # FA-2 SF-4
    ours = {"SECRET_KEY", "DATABASE_URL"}
    environment = {key: value for key, value in os.environ.items() if key not in ours} | {
        "DJANGO_SETTINGS_MODULE": "agentlab.settings",
        "AGENTLAB_STATE_DIR": str(tmp_path / "state"),
    }
    command = [sys.executable, str(ROOT / "manage.py"), "study", "verify", "1"]
    begun = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    said = [one.communicate(timeout=120)[1] for one in begun]
    assert said == [f"CommandError: there is no study 1 in sqlite file {tmp_path}/state/agentlab.sqlite3\n"] * 3
