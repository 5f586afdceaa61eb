"""The parts of one turn as a page shows them: what it knew, the prompt, the response, what it sent. Pure.

What holds content has no repr: a fault in a template would otherwise write prompts into the server's log.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.utils.safestring import SafeString

from agentlab.common.numbers import size
from agentlab.common.text import CLIPPED_BYTES, ON_DEMAND_BYTES, TextBlock, plain
from capture.frozen import json_form
from capture.knowing import Knowing, arrange
from capture.knowledge import read_knowledge
from capture.links import TurnLinks
from capture.notes import Note
from capture.reading import TurnView
from capture.recorded import recorded_html
from capture.turns import Turn, TurnKey

BRIEF = 2_000  # characters of an argument among the others of its turn


@dataclass(frozen=True)
class Setting:
    """What a page knows beside the hand: where its parts are, what people call the agents, the time, the search."""

    links: TurnLinks
    now: datetime
    ttl: timedelta
    names: Mapping[str, str] = field(default_factory=dict)
    seated: frozenset[str] = frozenset()  # agents that share the table, with a turn in view or without
    find: str = ""
    notes: Callable[[TurnView], Sequence[Note]] = lambda view: ()
    inline_bytes: int = ON_DEMAND_BYTES  # a longer response is loaded when it comes into view


@dataclass(frozen=True, repr=False)
class KnewPart:
    """What it knew: the reading, and where the exact record is. `arranged` is None where the bytes cannot be read."""

    anchor: str
    arranged: Knowing | None
    bytes: int
    raw_url: str
    part_url: str
    subject: str
    found: bool = False
    recorded: Any = None  # all of it
    find: str = ""
    whole: bool = False

    @property
    def clipped(self) -> bool:
        return self.bytes > CLIPPED_BYTES and not self.whole

    @property
    def everything(self) -> SafeString:
        """Every argument; of a record as long as nobody reads, its beginning."""
        return recorded_html(self.recorded, self.find, ON_DEMAND_BYTES if self.clipped else None)

    @property
    def others(self) -> list[tuple[str, SafeString]]:
        """The arguments that have no place of their own, each in brief: all forty turns of a hand load at once."""
        others = self.arranged.others if self.arranged else []
        return [(name, recorded_html(value, limit=BRIEF)) for name, value in others]

    @property
    def all_url(self) -> str:
        return f"{self.part_url}&all=1"

    @property
    def about(self) -> str:
        return plain(f"what it knew, {self.subject}")

    @property
    def size(self) -> str:
        return size(self.bytes)


@dataclass(frozen=True, repr=False)
class PromptPart:
    """The exact prompt: one block to open, in it the envelope (closed) and what belongs to this turn alone."""

    block: TextBlock
    envelope: TextBlock
    remainder: TextBlock


@dataclass(frozen=True, repr=False)
class SentPart:
    """`messages` is what left, one text each; empty: captured, and nothing was sent."""

    anchor: str
    messages: list[str]
    raw_url: str
    subject: str
    find: str = ""

    @property
    def about(self) -> str:
        return plain(f"what it sent, {self.subject}")


class TurnParts:
    """Makes the parts of one turn: each with its anchor, its own page and its exact bytes."""

    def __init__(self, key: TurnKey, anchor: str, subject: str, setting: Setting) -> None:
        self._key = (key.table_id, key.hand_number, key.agent_id, key.action_index)
        self._anchor, self._subject, self._setting = anchor, subject, setting

    def _part(self, name: str) -> str:
        return self._setting.links.part(*self._key, name)

    def _raw(self, name: str) -> str:
        return self._setting.links.raw(*self._key, name)

    def text(self, anchor: str, label: str, name: str, text: str, *, is_open: bool = False) -> TextBlock:
        return TextBlock(
            f"{self._anchor}-{anchor}",
            label,
            text,
            raw_url=self._raw(name),
            part_url=self._part(name),
            subject=self._subject,
            find=self._setting.find,
            open=is_open,
            inline_bytes=self._setting.inline_bytes,
        )

    def prompt(self, turn: Turn, same_as: int | None) -> PromptPart:
        prompt, find = turn.prompt, self._setting.find
        envelope = TextBlock(
            f"{self._anchor}-envelope",
            "The part that repeats",
            prompt.envelope,
            note="" if same_as is None else f"unchanged since turn {same_as}",
            subject=self._subject,
            find=find,
            level=0,
        )
        remainder = TextBlock(
            f"{self._anchor}-remainder", "This turn's part", prompt.remainder, subject=self._subject, find=find
        )
        note = "what it was told, exactly"
        if same_as is not None:
            note += f"; {size(envelope.bytes)} of it as on turn {same_as}"
        block = TextBlock(
            f"{self._anchor}-prompt",
            "Prompt",
            prompt.text,
            raw_url=self._raw("prompt"),
            part_url=self._part("prompt"),
            note=note,
            subject=self._subject,
            find=find,
            lazy=True,
        )
        return PromptPart(block, envelope, remainder)

    def knew(self, turn: Turn) -> KnewPart | None:
        if turn.knowledge is None:
            return None
        arguments = arguments_of(turn.knowledge)
        find = self._setting.find
        found = bool(find) and arguments is not None and "<mark>" in recorded_html(arguments, find)
        return KnewPart(
            f"{self._anchor}-knew",
            arrange(arguments, self._setting.names) if isinstance(arguments, Mapping) else None,
            len(turn.knowledge),
            self._raw("knowledge"),
            self._part("knowledge"),
            self._subject,
            found,
            arguments,
            find,
        )

    def sent(self, turn: Turn) -> SentPart | None:
        if turn.decision is None:
            return None
        return SentPart(
            f"{self._anchor}-sent",
            # A message that was text is that text: as JSON it would stand on the page encoded a second time.
            [message if isinstance(message, str) else json_text(message) for message in turn.decision],
            self._raw("decision"),
            self._subject,
            self._setting.find,
        )


def arguments_of(knowledge: bytes) -> Any:
    """The recorded arguments; None where the bytes are not what capture writes."""
    try:
        return read_knowledge(knowledge)
    except ValueError:
        return None


def json_text(value: Any, indent: int | None = None) -> str:
    """A recorded value as JSON text: letters as themselves, lone surrogates as the escapes that JSON has for them."""
    text = json.dumps(json_form(value), ensure_ascii=False, indent=indent)
    return re.sub("[\ud800-\udfff]", lambda match: f"\\u{ord(match.group()):04x}", text)
