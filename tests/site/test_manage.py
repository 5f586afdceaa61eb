"""`manage.py` where it cannot even begin: one line, or nothing, and no traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

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
    examples = [line.split("#")[0].split() for line in help_text.partition("examples:\n")[2].splitlines()]
    assert len(examples) > 2
    for program, name, *options in examples:
        assert (program, name) == ("manage.py", command)
        parser.parse_args(options)
