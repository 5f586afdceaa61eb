"""One call of a coding agent, before it is sent: its messages, its stable task, and what it brings along."""

import hashlib
from dataclasses import dataclass, field
from typing import Literal

from factory.resolve import ResolvedRequest, inline_request

SendKind = Literal["initial", "parse_retry", "gate_retry"]
KIND_WORDS = {"initial": "initial", "parse_retry": "parse correction", "gate_retry": "check correction"}
"""What a person reads for a kind of send, everywhere; programs read the kind itself."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """Bytes that go to the provider as an attachment, read once. This one descriptor makes the provider's request
    and the trace."""

    label: str
    path: str
    media_type: str
    data: bytes = field(repr=False)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True, slots=True)
class Included:
    """Held bytes that the message itself contains: a text file the user attached, or the envelope of the phase
    before (canonical UTF-8 JSON)."""

    label: str
    source_kind: Literal["previous_envelope", "explicit_attachment"]
    data: bytes = field(repr=False)
    path: str | None = None

    @property
    def text(self) -> str:
        return self.data.decode()


@dataclass(frozen=True, slots=True)
class AgentCall:
    """What one send consists of.

    `task` is the stable original request; `system_prompt` and `user_prompt` are the exact messages. A caller that
    gives no `request` gets the descriptor of `task` as inline text. `context_root` is a folder whose path the
    message names. `sends_task` says that the message contains the task (else the session holds it already).
    """

    phase: str
    task: str
    system_prompt: str
    user_prompt: str
    request: ResolvedRequest = None  # type: ignore[assignment]  # filled in below
    send_kind: SendKind = "initial"
    sends_task: bool = True
    included: tuple[Included, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    context_root: str | None = None

    def __post_init__(self) -> None:
        if not self.request:
            object.__setattr__(self, "request", inline_request(self.task))
