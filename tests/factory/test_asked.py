"""The line that says what an attempt was asked."""

import pytest

from factory.asked import LINE, asked_in_short
from factory.messages import check_correction, opening
from factory.workflows import WORKFLOWS

PLAN = WORKFLOWS["build"].phases[0]


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("\n\n  Why is it slow?\nSee a.py", "Why is it slow?"),
        ("<ide_opened_file>The user opened a.py</ide_opened_file>\nWhy is it slow?", "Why is it slow?"),
        ("<system-reminder>\none\n</system-reminder>\n<system-reminder>two</system-reminder>\nGo on", "Go on"),
        ('<file name="/w/a.md">\nnotes\n</file>\nDo it', "Do it"),
        ("<command-name>/model</command-name>\n<command-args>opus</command-args>", "/model opus"),
        ("<command-message>x</command-message>\n<command-name>/x</command-name>", "/x"),
        ("What is <command-name>/model</command-name>?", "What is <command-name>/model</command-name>?"),
        ("<local-command-stdout>ok\nand more</local-command-stdout>", "ok"),
        ("<task>mine</task> and more", "<task>mine</task> and more"),
        ("<system-reminder>never closed", "<system-reminder>never closed"),
        ("", ""),
    ],
)
def test_a_line_says_what_the_person_asked(message: str, line: str) -> None:  # AI-1
    assert asked_in_short(message) == line


def test_of_the_factorys_own_messages_the_line_says_what_is_new(  # AI-1
) -> None:
    assert asked_in_short(opening(PLAN, "Write a slug command")) == PLAN.instruction
    assert asked_in_short(check_correction(PLAN, "pytest -q", "1 failed")) == "The check failed: pytest -q"


def test_a_line_is_clipped() -> None:  # PF-4
    assert len(asked_in_short("x" * 100_000)) == LINE
