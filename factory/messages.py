"""The text of every message the factory sends, and the envelope it reads back.

A message is a row of sections, each a `### heading` line, an empty line, and text; an empty line parts them.
"""

import re

import msgspec

from factory.calls import Included
from factory.phases import Envelope, Phase
from factory.resolve import one_line

PROMPT, REPLY = "prompt", "reply"
SEPARATOR = "\n\n"
_FENCED = re.compile(r"\A```(?:json)?[ \t]*\r?\n(.*?)\r?\n?```\Z", re.DOTALL)
_WORDS = {"previous_envelope": "result", "explicit_attachment": "file"}


class UnreadableReply(ValueError):
    """The reply is not the envelope that was asked for; the message says why, for the agent and for people."""


def opening(phase: Phase, task: str, *, included: tuple[Included, ...] = (), context_root: str | None = None) -> str:
    """The first message of a session: the task stands, unchanged, in its section `prompt`, before `reply`."""
    return _join(_phase(phase), *_brought(included, context_root), section(PROMPT, task), reply_section(phase))


def continuing(phase: Phase, *, included: tuple[Included, ...] = (), context_root: str | None = None) -> str:
    """The first message of a later phase."""
    return _join(_phase(phase), *_brought(included, context_root), reply_section(phase))


def parse_correction(phase: Phase, reason: str) -> str:
    return _join(section("correction", f"Your last reply could not be read: {reason}"), reply_section(phase))


def check_correction(phase: Phase, command: str, output: str) -> str:
    """The check's command and the end of what it printed."""
    said = f"The check failed: {command}\n\n{output}\n\nMend what it found."
    return _join(section("correction", said), reply_section(phase))


def read_envelope(text: str, phase: Phase) -> tuple[Envelope, bytes]:
    """The reply's envelope, and as canonical JSON (UTF-8, keys in order). Raises UnreadableReply.

    The reply must be the JSON object and nothing else; one code fence around it is forgiven.
    """
    text = text.strip()
    if match := _FENCED.match(text):
        text = match[1]
    try:
        envelope = msgspec.json.decode(text, type=phase.envelope)
        return envelope, msgspec.json.encode(envelope, order="sorted")
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise UnreadableReply(str(error)) from None


def section(heading: str, text: str) -> str:
    return f"### {heading}\n\n{text}"


def reply_section(phase: Phase) -> str:
    return section(REPLY, f"Answer with one JSON object of this form and nothing else:\n\n{phase.example}")


def _phase(phase: Phase) -> str:
    return section("phase", f"{phase.name}\n\n{phase.instruction}")


def _brought(included: tuple[Included, ...], context_root: str | None) -> list[str]:
    parts = [section(f"{_WORDS[one.source_kind]}: {one_line(one.label)}", one.text) for one in included]
    if context_root is not None:
        parts.append(section("context", f"Files to read with your tools lie in\n\n    {context_root}"))
    return parts


def _join(*sections: str) -> str:
    return SEPARATOR.join(sections)
