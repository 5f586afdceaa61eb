"""The task out of an opening message, for attempts that did not record it apart.

Only messages made by the opening templates that we know are taken apart, and only where their boundaries are
unambiguous: the `### prompt` line and the template's next heading stand in the message exactly once. Whatever it
gives is derived, and is labelled so.
"""

import re

from factory.messages import PROMPT, REPLY, SEPARATOR, reply_section, section
from factory.phases import Phase
from factory.workflows import WORKFLOWS

_OPENINGS: tuple[Phase, ...] = tuple(workflow.phases[0] for workflow in WORKFLOWS.values())


def extract_task(message: str) -> str | None:
    """The task's exact words; None where the template is unknown or a boundary is missing or repeated."""
    for phase in _OPENINGS:
        head = section("phase", f"{phase.name}\n\n{phase.instruction}") + SEPARATOR
        if message.startswith(head):
            return _between(message, phase)
    return None


def _between(message: str, phase: Phase) -> str | None:
    if not _once(message, PROMPT) or not _once(message, REPLY):
        return None
    opening = f"### {PROMPT}{SEPARATOR}"
    start = message.index(opening) + len(opening) if opening in message else len(message)
    end = message.find(SEPARATOR + reply_section(phase), start)
    return message[start:end] if end >= 0 else None


def _once(message: str, heading: str) -> bool:
    return len(re.findall(rf"^### {heading}[ \t]*\r?$", message, re.MULTILINE)) == 1
