"""One span for each recorded turn: ids and counts, never content (a turn carries hole cards).

Names are those of OpenTelemetry's GenAI conventions (https://opentelemetry.io/docs/specs/semconv/gen-ai/) where they
have one, else `capture.`. Without an SDK in the host this costs next to nothing.
"""

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.util.types import AttributeValue

from capture.turns import Turn

_tracer = trace.get_tracer("agentlab.capture")


def turn_span(turn: Turn, outcome: str, reason: str, context: Context) -> None:
    """A finished span under the one that was current when the turn was recorded."""
    span = _tracer.start_span("capture turn", context)
    if span.is_recording():
        span.set_attributes({name: value for name, value in _attributes(turn).items() if value is not None})
        span.set_attribute("capture.outcome", outcome)
        if reason:
            span.set_attribute("capture.reason", reason)
    span.end()


def _attributes(turn: Turn) -> dict[str, AttributeValue | None]:
    key = turn.key
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.agent.id": key.agent_id,
        "gen_ai.conversation.id": f"{key.table_id}:{key.hand_number}",
        "gen_ai.request.model": turn.model,
        "gen_ai.usage.input_tokens": turn.input_tokens,
        "gen_ai.usage.output_tokens": turn.output_tokens,
        "capture.table_id": key.table_id,
        "capture.hand_number": key.hand_number,
        "capture.action_index": key.action_index,
        "capture.agent_version_id": turn.agent_version_id,
        "capture.prompt.characters": len(turn.prompt.envelope) + len(turn.prompt.remainder),
        "capture.response.characters": len(turn.response),
        "capture.knowledge.bytes": None if turn.knowledge is None else len(turn.knowledge),
        "capture.decision.messages": None if turn.decision is None else len(turn.decision),
    }
