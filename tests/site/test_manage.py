"""`manage.py` where it cannot even begin: one line, or nothing, and no traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, get_commands, load_command_class

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("happens", "code", "said"),
    [
        ("def begin(): raise KeyboardInterrupt\nmanage.run = begin", 130, ""),
        ("sys.modules['pokerkit'] = None", 1, "agentlab: no module pokerkit in "),
        ("sys.modules['django'] = None", 1, "agentlab: no module django"),
    ],
    ids=["Ctrl-C", "a dependency that is not installed yet", "another Python"],
)
def test_what_stops_it_before_a_command_begins_is_no_traceback(happens: str, code: int, said: str) -> None:  # SF-4
    begin = f"import sys\nsys.argv = ['manage.py', 'play', '--help']\nimport manage\n{happens}\nmanage.main()"
    done = subprocess.run([sys.executable, "-c", begin], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == code
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == (1 if said else 0)


def test_what_is_told_is_utf8_whatever_the_locale_says() -> None:  # SF-4
    told = "α 🂡 × \ud83e"
    begin = f"import manage\nmanage.run = lambda: print({told!a})\nmanage.main()"
    ascii_alone = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([sys.executable, "-c", begin], cwd=ROOT, capture_output=True, env=ascii_alone, timeout=60)
    assert done.stdout.decode() == "α 🂡 × \\ud83e\n"  # a lone surrogate has no bytes in UTF-8
    assert done.returncode == 0


def test_a_fault_of_our_own_keeps_its_traceback() -> None:
    begin = "import sys, manage\nsys.modules['agentlab.local'] = None\nmanage.main()"
    done = subprocess.run([sys.executable, "-c", begin], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert "Traceback" in done.stderr


@pytest.mark.parametrize("command", ["up", "play"])
def test_help_ends_with_examples_that_can_be_run(command: str) -> None:  # SF-6
    parser = load_command_class(get_commands()[command], command).create_parser("manage.py", command)
    help_text = parser.format_help()
    examples_part, _, more = help_text.partition("examples:\n")[2].partition("\n\n")
    examples = [line.split("#")[0].split() for line in examples_part.splitlines()]
    assert "exit code: 0 " in more
    assert "Ctrl-C" in more
    assert len(examples) > 2
    for program, name, *options in examples:
        assert (program, name) == ("manage.py", command)
        parser.parse_args(options)


NOBODY_THERE = "postgresql://nobody:hunter2@127.0.0.1:9/none"


def manage(*arguments: str, stdout: int = subprocess.PIPE, **environment: str) -> "subprocess.CompletedProcess[str]":
    """A command of a deployed site, with nothing else in its environment."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "AGENTLAB_STATE_DIR") if name in os.environ}
    deployed = {"SECRET_KEY": "k" * 60, "ALLOWED_HOSTS": "a", "DATABASE_URL": NOBODY_THERE}
    return subprocess.run(
        [sys.executable, ROOT / "manage.py", *arguments],
        env={**kept, **deployed, **environment},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("command", ["migrate", "createsuperuser"])
def test_a_database_that_is_away_is_one_line_in_its_own_words_and_without_the_password(command: str) -> None:  # SF-4
    done = manage(command)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("agentlab: the database cannot be used: ")
    assert "Connection refused" in done.stderr
    assert done.stderr.endswith(" (postgresql 127.0.0.1:9/none)\n")
    assert done.stderr.count("\n") == 1
    assert "hunter2" not in done.stderr


def test_a_file_that_cannot_be_made_is_one_line_and_the_trace_is_there_for_who_asks(tmp_path: Path) -> None:  # SF-4
    done = manage("migrate", DATABASE_URL=f"sqlite:///{tmp_path}/nowhere/db.sqlite3")
    said = f"agentlab: the database cannot be used: unable to open database file (sqlite file {tmp_path}/nowhere/db"
    assert (done.returncode, done.stderr) == (1, f"{said}.sqlite3)\n")
    (tmp_path / "file").write_text("")
    done = manage("collectstatic", "--noinput", STATIC_ROOT=f"{tmp_path}/file/static")
    assert done.returncode == 1
    assert done.stderr.startswith("agentlab: Not a directory: ")
    assert done.stderr.count("\n") == 1
    traced = manage("collectstatic", "--noinput", "--traceback", STATIC_ROOT=f"{tmp_path}/file/static")
    assert "Traceback" in traced.stderr


def test_a_command_before_the_first_migrate_names_the_step_that_is_missing(tmp_path: Path) -> None:  # SF-4
    done = manage("clearsessions", DATABASE_URL=f"sqlite:///{tmp_path}/db.sqlite3")
    assert done.returncode == 1
    assert done.stderr == "agentlab: the database's schema is not up to date: `manage.py migrate` first\n"


def test_a_disk_that_is_full_is_not_called_an_old_schema(tmp_path: Path) -> None:  # SF-4, SF-5
    limit = "import os, resource as r, signal, sys; r.setrlimit(r.RLIMIT_FSIZE, (200_000, 200_000))"
    database = {"SECRET_KEY": "k" * 60, "DATABASE_URL": f"sqlite:///{tmp_path}/db.sqlite3"}
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"{limit}; os.execv(sys.argv[1], sys.argv[1:])",
            sys.executable,
            ROOT / "manage.py",
            "migrate",
        ],
        env={"PATH": os.environ["PATH"], **database},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("agentlab: the database cannot be used: ")
    assert "schema" not in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["showmigrations", "diffsettings", "help"])
def test_a_reader_that_has_seen_enough_is_no_fault(tmp_path: Path, command: str) -> None:  # SF-4
    seen, write = os.pipe()
    os.close(seen)  # as `| head` does, but before the first line
    try:
        done = manage(command, stdout=write, DATABASE_URL=f"sqlite:///{tmp_path}/db.sqlite3")
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a disk that is always full")
@pytest.mark.parametrize("words", [["showmigrations"], ["factory", "reconcile"]], ids=" ".join)
def test_an_output_that_takes_nothing_is_one_line(tmp_path: Path, words: list[str]) -> None:  # SF-4, SF-5
    database = {
        "DATABASE_URL": f"sqlite:///{tmp_path}/db.sqlite3",
        "FACTORY_SNAPSHOT_ROOT": str(tmp_path / "snapshots"),
    }
    manage("migrate", "--verbosity", "0", **database)
    with Path("/dev/full").open("w") as full:
        done = manage(*words, stdout=full.fileno(), **database)
    assert (done.returncode, done.stderr) == (1, "agentlab: No space left on device\n")


@pytest.mark.parametrize(
    "words",
    [
        ["up", "--ready-file", ""],
        ["study", "run", ""],
        ["study", "resume", "x"],
        ["study", "verify", "-1"],
        ["factory", "import", ""],
        ["factory", "run", "x", "--context", ""],
        ["factory", "run", "x", "--attach", " "],
        ["factory", "run", "x", "--check", ""],
    ],
    ids=" ".join,
)
def test_what_a_variable_that_is_not_set_gives_is_refused_and_not_taken_for_something(words: list[str]) -> None:
    # SF-4
    parser = load_command_class(get_commands()[words[0]], words[0]).create_parser("manage.py", words[0])
    with pytest.raises((CommandError, SystemExit), match=r"it is empty|a number, as lists|2"):
        parser.parse_args(words[1:])


@pytest.mark.parametrize(
    ("command", "verb"),
    [
        *(("study", verb) for verb in ("run", "resume", "verify", "export", "delete")),
        *(("factory", verb) for verb in ("run", "import", "reconcile")),
    ],
)
def test_every_verb_has_examples_and_says_what_its_exit_code_means(
    command: str, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:  # SF-4
    parser = load_command_class(get_commands()[command], command).create_parser("manage.py", command)
    with pytest.raises(SystemExit):
        parser.parse_args([verb, "--help"])
    told = capsys.readouterr().out
    assert "examples:\n" in told
    assert "exit code: 0 " in told
