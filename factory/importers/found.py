"""What an importer finds in a file that somebody already has: sessions, attempts, and an honest count of records.

Plain values, no Django. Whatever a format does not say stays None: an absent fact is never a zero or an empty text.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Literal

from factory.items import PacketItem

FoundState = Literal["succeeded", "failed", "cancelled", "not_asked"]
FoundFailure = Literal["", "provider", "interrupted"]
TURN = "turn"
"""The phase of an attempt whose format knows no phases."""
SUB_AGENT = "sub-agent"
"""The phase of an attempt that another attempt's agent started: the session does not end with it."""


class NotSupportedError(Exception):
    """The file is of another format. The message is fit for a person."""


class TooLargeError(Exception):
    """A limit on what is read was passed. The message names it."""


@dataclass(slots=True)
class Counts:
    """Records of one file. `records` is always the sum of the four others: nothing is left out in silence."""

    shown: int = 0
    hidden: int = 0
    damaged: int = 0
    unknown: int = 0

    @property
    def records(self) -> int:
        return self.shown + self.hidden + self.damaged + self.unknown


@dataclass(slots=True)
class FoundToolCall:
    """A tool call and its result; `output` None means that no result was recorded. `reply_offset` is how many
    characters of the attempt's reply had been said before it, None where the file does not tell."""

    name: str
    arguments: str
    output: str | None = None
    is_error: bool = False
    started_at: datetime | None = None
    reply_offset: int | None = None


@dataclass(slots=True)
class FoundAttempt:
    """One turn of a session: what was sent, what came back. `record_id` is unique within the session.

    `previous` and `retry_of` are record ids of earlier attempts: the turn before this one in the same model
    session, and the attempt that this one tries again. They are two different facts. `not_asked` is the state
    of words that were for the tool itself: no model was sent them as a task, so none failed to answer. `asked` is what
    the person wrote of the message, None where that is all of it. `input_tokens` leave out `cached_input_tokens`, those
    that the provider read from or wrote to its cache.
    """

    record_id: str
    phase: str
    session_id: str | None
    user_prompt: str | None = None
    asked: str | None = None
    system_prompt: str | None = None
    reply: str | None = None
    model: str = ""
    provider: str = ""
    state: FoundState = "succeeded"
    failure: FoundFailure = ""
    error: str = ""
    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None
    cost: Decimal | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    turn_index: int | None = None
    previous: str | None = None
    retry_of: str | None = None
    tool_calls: list[FoundToolCall] = field(default_factory=list)
    inputs: list[PacketItem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class FoundSession:
    """One session and its attempts, in the order of the file.

    `session_id` tells it from every other session of its format and stays as the file grows, whatever the file is
    called. `part` tells the file apart where several make up one session. `counts` and `notes` are complete only
    once `attempts` has been walked: a large file is read as it is walked. `request` is the name of what was
    asked for, where the format has one: it stands in where no attempt says what was asked. A name or a summary of the
    session is no request, and is a note. The attempts of `separate_tasks` are tries at tasks that have nothing to do
    with each other: one that failed is not mended by one that ends well later, as a turn of a conversation is. `ended`
    is what the file itself says of the end of the whole, None where it says nothing or that all went well; `error` is
    its reason.
    """

    format: str
    session_id: str
    attempts: Iterator[FoundAttempt]
    counts: Counts
    request: str = ""
    workspace: str = ""
    part: str = ""
    separate_tasks: bool = False
    ended: Literal["failed", "cancelled"] | None = None
    error: str = ""
    started_at: datetime | None = None
    notes: list[str] = field(default_factory=list)
