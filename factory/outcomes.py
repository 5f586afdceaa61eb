"""What came of a send: a provider's answer, a tool it used, how an attempt ended."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal

EndState = Literal["succeeded", "failed", "cancelled"]
FailureKind = Literal["", "parse", "check", "provider", "interrupted"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One use of a tool: the arguments as the agent wrote them; `output` None where no result was recorded."""

    name: str
    arguments: str = ""
    output: str | None = None
    output_bytes: int | None = None
    masked: int = 0
    is_error: bool = False
    started_at: datetime | None = None
    duration_ms: int | None = None


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """What came of an attempt. Tokens and cost are None where the provider did not say."""

    state: EndState
    failure: FailureKind = ""
    error: str = ""
    reply: str | None = None
    model: str = ""
    session_id: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: Decimal | None = None
    duration_ms: int | None = None
    tool_calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """A provider's answer to one send. `error` says that the provider failed; whatever had arrived by then stands
    beside it. Tokens and cost are None where it did not say."""

    text: str | None
    error: str = ""
    model: str = ""
    session_id: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: Decimal | None = None
    tool_calls: tuple[ToolCall, ...] = ()
