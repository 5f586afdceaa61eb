"""What a tool was called with, in one line."""

import json

import pytest

from factory.called import LINE, OPENING, called_with


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"description": "List files", "command": "ls -la src"}, "ls -la src"),
        ({"path": "src", "pattern": "def main"}, "def main"),
        ({"file_path": "/a/b.py", "old_string": "x", "new_string": "y"}, "/a/b.py"),
        ({"command": ["bash", "-lc", "make test"]}, "bash -lc make test"),
        ({"todos": [{"content": "x"}], "note": "plan the work"}, "plan the work"),
        ({"command": "cd src\nmake\n"}, "cd src …"),
        ({"limit": 5, "all": True}, ""),
        ("just words", "just words"),
        ({}, ""),
    ],
)
def test_the_argument_that_says_most_stands_for_a_call(arguments: object, line: str) -> None:  # FA-13
    assert called_with(json.dumps(arguments)) == line


@pytest.mark.parametrize(("arguments", "line"), [("", ""), ("ls -la\npwd", "ls -la …"), ("{broken", "")])
def test_arguments_that_are_no_json_are_their_own_first_line(arguments: str, line: str) -> None:  # FA-13
    assert called_with(arguments) == line


def test_of_arguments_too_long_to_read_the_beginning_is_enough(  # FA-13
) -> None:
    written = json.dumps({"content": "x" * OPENING, "path": "late.py"})
    assert called_with(written).startswith("xxx"), "what was read of it"
    assert called_with(json.dumps({"path": "a/é.py", "content": "x" * OPENING})) == "a/é.py"
    assert called_with(json.dumps({"content": 'say "path": "no.py"', "path": "a.py", "more": "x" * OPENING})) == "a.py"


def test_a_long_line_is_cut_and_says_so() -> None:  # FA-13
    line = called_with(json.dumps({"command": "echo " + "x" * 500}))
    assert len(line) <= LINE and line.endswith("…")


def test_what_looks_like_a_secret_is_hidden_and_named_secrets_are_not_chosen() -> None:  # FA-13
    assert called_with(json.dumps({"command": "API_KEY=abcdef123456 ./go"})) == "API_KEY=••• ./go"
    assert called_with(json.dumps({"password": "hunter2222", "size": 3})) == ""
