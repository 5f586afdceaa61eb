"""The model as a port: one prompt in, one completion out, whoever answers (`model_adapters.py` has who does).

`ask` is how a turn calls one: timed, bounded, and with every way to fail turned
into a `ModelFailed` whose reason is fit for the ledger (it never quotes the prompt or the answer).
"""

import asyncio
import json
import time
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, NamedTuple, Protocol

from opentelemetry import trace

tracer = trace.get_tracer("agentlab.hosted")


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer of a model. `tool_call` is {"name": str, "args": dict}. Tokens, cost (US dollars) and reasoning are
    None where the provider does not give them; `duration_ms` is filled by `ask`."""

    text: str
    reasoning: str | None = None
    tool_call: dict[str, Any] | None = None
    model: str = ""
    routing: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: Decimal | None = None
    duration_ms: int = 0

    @property
    def said(self) -> str:
        """All that was answered, as it is recorded: the text as it came, and below it a tool call as JSON, which has
        no text of its own."""
        if self.tool_call is None:
            return self.text
        call = json.dumps({"tool_call": self.tool_call}, ensure_ascii=False)
        return f"{self.text}\n{call}" if self.text else call


class ModelFailed(Exception):
    """No completion came. `reason` is one short line without content."""

    def __init__(self, reason: str, duration_ms: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.duration_ms = duration_ms


class Model(Protocol):
    """What an adapter offers. `name` and `routing` are known before any answer, for the ledger row of a failed turn."""

    name: str
    routing: str

    async def complete(self, prompt: str, *, timeout: float) -> Completion:
        """The answer to one prompt. Raises ModelFailed."""
        ...

    async def close(self) -> None: ...


class _Failure(NamedTuple):
    """How a call failed, for its span, before anything is raised."""

    reason: str
    duration_ms: int


async def ask(model: Model, prompt: str, *, timeout: float) -> Completion:
    """One call of `model`, cut off after `timeout` seconds whatever the adapter does. Raises ModelFailed alone."""
    with tracer.start_as_current_span(f"chat {model.name}") as span:
        span.set_attribute("gen_ai.operation.name", "chat")
        span.set_attribute("gen_ai.request.model", model.name)
        answer = await _answer(model, prompt, timeout)
        _tell(span, answer)
    # Raised out here: a span notes the words of every exception that leaves it and of what caused it, and those of an
    # adapter's own fault may quote the prompt.
    if isinstance(answer, _Failure):
        raise ModelFailed(answer.reason, answer.duration_ms)
    return answer


async def _answer(model: Model, prompt: str, timeout: float) -> Completion | _Failure:
    started = time.monotonic()
    try:
        async with asyncio.timeout(timeout):
            completion = await model.complete(prompt, timeout=timeout)
    except TimeoutError:
        return _Failure("timed out", _since(started))
    except ModelFailed as error:
        return _Failure(error.reason, _since(started))
    except Exception as error:  # an adapter's own bug costs one decision, never the seat
        return _Failure(f"adapter error: {type(error).__name__}", _since(started))
    return replace(completion, duration_ms=_since(started))


def _tell(span: trace.Span, answer: Completion | _Failure) -> None:
    """Names and counts, or the reason that the ledger has as well."""
    if isinstance(answer, _Failure):
        span.set_attribute("error.type", answer.reason)
        span.set_status(trace.StatusCode.ERROR, answer.reason)
        return
    span.set_attribute("gen_ai.response.model", answer.model)
    for name, count in (("input", answer.input_tokens), ("output", answer.output_tokens)):
        if count is not None:
            span.set_attribute(f"gen_ai.usage.{name}_tokens", count)


def _since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
