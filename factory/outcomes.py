"""What came of a send: a provider's answer, a tool it used, how an attempt ended."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Literal

OUTPUT_LIMIT = 256 * 1024
"""Characters of a tool's output that are stored: coding agents cut their tools' output well below this."""
MASK = "•••"
_SHORTEST_SECRET = 8  # a shorter value would also be found where it is not meant

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
class Reply:
    """A provider's answer to one send. `error` says that the provider failed; whatever had arrived by then stands
    beside it. Tokens and cost are None where it did not say; `cached_input_tokens` are among `input_tokens`. `remarks`
    are for the reader of the run."""

    text: str | None
    error: str = ""
    model: str = ""
    session_id: str | None = None
    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None
    cost: Decimal | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """How an attempt ended. `reply` is None where the provider never answered; `check_command` and what it printed are
    of the check that failed, else None."""

    state: EndState
    failure: FailureKind = ""
    error: str = ""
    duration_ms: int | None = None
    reply: Reply | None = None
    check_command: str | None = None
    check_output: str | None = None


def storable(call: ToolCall, secrets: Sequence[str]) -> ToolCall:
    """The tool call with our own secrets masked in its output, and the output cut to what is stored.

    Only outputs are masked: the task and the messages stand exactly as they were sent.
    """
    if call.output is None:
        return call
    output, masked = mask(call.output, secrets)
    size = len(call.output.encode("utf-8", "surrogatepass")) if call.output_bytes is None else call.output_bytes
    return replace(call, output=output[:OUTPUT_LIMIT], output_bytes=size, masked=masked)


def mask(text: str, secrets: Sequence[str]) -> tuple[str, int]:
    """The text with each of the secrets as MASK, and how many there were. One that is short would be found where it
    is not meant, and one within another would leave the rest of it."""
    masked = 0
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET and (times := text.count(secret)):
            text, masked = text.replace(secret, MASK), masked + times
    return text, masked


def in_short(error: str) -> str:
    """The line of an error that says what happened: of a Python traceback the last one, else the first."""
    lines = [line for line in error[-20_000:].split("\n") if line.strip()]
    if error.lstrip().startswith("Traceback (") and lines:
        return lines[-1]
    return error
