"""What our commands share: help that ends with examples, and whose the things are that one makes."""

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import CommandError, DjangoHelpFormatter


class ExamplesFormatter(DjangoHelpFormatter, RawDescriptionHelpFormatter):
    """Django's order of options, and the examples as they were written."""


def show_examples(parser: ArgumentParser, *examples: str) -> None:
    """One example a line, at the end of the command's help."""
    parser.formatter_class = ExamplesFormatter
    parser.epilog = "examples:\n" + "".join(f"  {example}\n" for example in examples)


def add_verb(verbs: Any, name: str, what: str, examples: str) -> ArgumentParser:
    """A subcommand of `verbs` (from `add_subparsers`). `examples` begins with a line break and may end with more to
    say, exit codes for instance."""
    parser: ArgumentParser = verbs.add_parser(
        name, help=what, description=what, epilog=f"examples:{examples}", formatter_class=RawDescriptionHelpFormatter
    )
    return parser


def owner_named(name: str | None) -> int | None:
    """The id of the user that `--owner` names, None without it. Raises CommandError where there is no such user."""
    if name is None:
        return None
    users = get_user_model()
    user = users.objects.filter(**{users.USERNAME_FIELD: name}).first() if name.isprintable() else None
    if user is None:
        raise CommandError(f"there is no user {name!r}")
    return int(user.pk)
