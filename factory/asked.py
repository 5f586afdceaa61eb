"""What an attempt was asked, in a line: the beginning of its message without what a tool or a template put before it.

Pure. It is a help for finding an attempt in a list; the attempt's own page shows the message exactly.
"""

import re

from agentlab.common.text import first_line
from factory.messages import SEPARATOR

OPENING = 2_000  # characters of a message that are looked at
LINE = 160
_ADDED = re.compile(
    r"\s*<(system-reminder|ide_opened_file|ide_selection|local-command-caveat|file)(?: [^>\n]*)?>.*?</\1>", re.DOTALL
)
_COMMAND = re.compile(r"<command-name>([^<]*)</command-name>")
_ARGUMENTS = re.compile(r"<command-args>([^<]*)</command-args>")
_PRINTED = re.compile(r"\s*<((?:local-command|bash)-[a-z]+)>(.*?)(?:</\1>|\Z)", re.DOTALL)


def asked_in_short(message: str) -> str:
    """The first line of what was asked; "" of a message that is empty. `message` may be its beginning alone."""
    return first_line(_of_a_command(message) or _of_a_template(message) or _without_what_was_added(message), LINE)


def _of_a_command(message: str) -> str:
    """A command of Claude Code as it was typed, or what one printed."""
    typed = message.lstrip().startswith("<command-")  # else somebody speaks of such a tag
    if typed and (name := _COMMAND.search(message)):
        arguments = _ARGUMENTS.search(message)
        return f"{name[1]} {arguments[1] if arguments else ''}".strip()
    return printed[2] if (printed := _PRINTED.match(message)) else ""


def _of_a_template(message: str) -> str:
    """The phase's instruction, or the correction, of a message that the factory's own templates made."""
    heading, _, rest = message.partition(SEPARATOR)
    if heading == "### correction":
        return rest
    return rest.partition(SEPARATOR)[2] if heading == "### phase" else ""


def _without_what_was_added(message: str) -> str:
    rest = message
    while match := _ADDED.match(rest):
        rest = rest[match.end() :]
    return rest if rest.strip() else message
