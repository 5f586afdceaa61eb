"""What our commands share: help that ends with examples, and whose the things are that one makes."""

from argparse import ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import CommandError, DjangoHelpFormatter

from agentlab.common.databases import place


class ExamplesFormatter(DjangoHelpFormatter, RawDescriptionHelpFormatter):
    """Django's order of options, and the examples as they were written."""


def show_examples(parser: ArgumentParser, *examples: str, more: str) -> None:
    """One example a line, at the end of the command's help, and below them `more`: what Ctrl-C does, the exit codes."""
    parser.formatter_class = ExamplesFormatter
    parser.epilog = "examples:\n" + "".join(f"  {example}\n" for example in examples) + f"\n{more}"


def add_verb(verbs: Any, name: str, what: str, examples: str) -> ArgumentParser:
    """A subcommand of `verbs` (from `add_subparsers`). `examples` begins with a line break and may end with more to
    say, exit codes for instance."""
    parser: ArgumentParser = verbs.add_parser(
        name, help=what, description=what, epilog=f"examples:{examples}", formatter_class=RawDescriptionHelpFormatter
    )
    return parser


def words(given: str) -> str:
    """For `type=`: not empty, as of a variable that is not set; that would mean the folder one is in, or nothing."""
    if not given.strip():
        raise ArgumentTypeError("it is empty")
    return given


def path(given: str) -> Path:
    """For `type=`: a path, of which an empty one is none."""
    return Path(words(given))


def number(given: str) -> int:
    """For `type=`: the number that a run or a study has."""
    if not (given.isascii() and given.isdigit() and len(given) < 100):
        raise ArgumentTypeError(f"a number, as lists and pages give it, not {given[:40]!r}")
    return int(given)


def owner_named(name: str | None) -> int | None:
    """The id of the user that `--owner` names, None without it. Raises CommandError where there is no such user."""
    if name is None:
        return None
    users = get_user_model()
    user = users.objects.filter(**{users.USERNAME_FIELD: name}).first() if name.isprintable() else None
    if user is None:
        raise CommandError(f"there is no user {name!r} in {place()}: {_who_makes_users()}")
    return int(user.pk)


def _who_makes_users() -> str:
    if settings.LOCAL:
        return "`manage.py up` makes operator, ada and ben, `manage.py createsuperuser` an operator of any name"
    return "`manage.py createsuperuser` makes an operator, who adds others in the admin"
