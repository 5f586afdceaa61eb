"""Spans tell which turn and how much, and nothing of what was in it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, Tracer

from capture import spans
from capture.buffer import Encoded
from capture.frozen import freeze
from capture.prompt import Prompt
from capture.recorder import TurnRecorder
from capture.turns import Turn, TurnKey


class Recorded(NonRecordingSpan):
    """A span that keeps what it was given."""

    def __init__(self, name: str, parent: SpanContext) -> None:
        super().__init__(SpanContext(1, 2, is_remote=False))
        self.name, self.parent = name, parent
        self.attributes: dict[str, Any] = {}
        self.ended = False

    def is_recording(self) -> bool:
        return not self.ended

    def set_attribute(self, key: str, value: Any) -> None:
        self.attributes[key] = value

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        self.attributes |= attributes

    def end(self, end_time: int | None = None) -> None:
        self.ended = True


class Spans(Tracer):
    """A tracer that keeps its spans in memory."""

    def __init__(self) -> None:
        self.spans: list[Recorded] = []

    def start_span(self, name: str, context: Context | None = None, *args: Any, **options: Any) -> Recorded:
        self.spans.append(Recorded(name, trace.get_current_span(context).get_span_context()))
        return self.spans[-1]

    @contextmanager
    def start_as_current_span(self, *args: Any, **options: Any) -> Iterator[Recorded]:
        yield self.start_span(*args, **options)


class Store:
    def __init__(self, reason: str | None = None) -> None:
        self.reason = reason

    def store(self, batch: list[Encoded]) -> list[str | None]:
        return [self.reason] * len(batch)


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> Spans:
    spans_in_memory = Spans()
    monkeypatch.setattr(spans, "_tracer", spans_in_memory)
    return spans_in_memory


SECRET = "As Kd in the hole"
TURN = Turn(
    TurnKey("rocky", "T-1", 7, 4),
    Prompt(f"envelope {SECRET}", f"remainder {SECRET}"),
    f"response {SECRET}",
    reasoning=SECRET,
    knowledge=freeze({"hole": SECRET}),
    decision=[{"action": "raise", "note": SECRET}],
    action="raise",
    amount=200,
    model="house-1",
    agent_version_id="rocky-v3",
    input_tokens=2104,
    output_tokens=88,
)


def recorded(turn: Turn, reason: str | None = None) -> None:
    recorder = TurnRecorder(Store(reason))  # type: ignore[arg-type]
    recorder.record(turn)
    assert recorder.close(10)


def test_a_turn_has_one_span_with_its_ids_and_counts(traced: Spans) -> None:  # CAP-13
    recorded(TURN)
    (span,) = traced.spans
    assert span.ended
    assert span.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.agent.id": "rocky",
        "gen_ai.conversation.id": "T-1:7",
        "gen_ai.request.model": "house-1",
        "gen_ai.usage.input_tokens": 2104,
        "gen_ai.usage.output_tokens": 88,
        "capture.table_id": "T-1",
        "capture.hand_number": 7,
        "capture.action_index": 4,
        "capture.agent_version_id": "rocky-v3",
        "capture.prompt.characters": len(f"envelope {SECRET}remainder {SECRET}"),
        "capture.response.characters": len(f"response {SECRET}"),
        "capture.knowledge.bytes": len(freeze({"hole": SECRET})),
        "capture.decision.messages": 1,
        "capture.outcome": "recorded",
    }


def test_no_content_is_on_the_spans_of_a_whole_hand_however_it_ends(traced: Spans) -> None:  # CAP-13 E-AFT-6
    for turn in (TURN, Turn(TURN.key, TURN.prompt, SECRET, knowledge={"a": SECRET})):  # type: ignore[arg-type]
        recorded(turn)
        recorded(turn, "Redis is down")
    assert len(traced.spans) == 4
    said = repr([(span.name, span.attributes) for span in traced.spans])
    for content in (SECRET, "raise", "200", "envelope", "remainder"):
        assert content not in said


def test_what_is_on_the_span_of_one_turn_is_not_on_the_next(traced: Spans) -> None:  # CAP-13
    recorder = TurnRecorder(Store())  # type: ignore[arg-type]
    recorder.record(TURN)
    recorder.record(Turn(TurnKey("nit", "T-1", 7, 5), Prompt("e"), ""))
    assert recorder.close(10)
    assert traced.spans[1].attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.agent.id": "nit",
        "gen_ai.conversation.id": "T-1:7",
        "gen_ai.request.model": "",
        "capture.table_id": "T-1",
        "capture.hand_number": 7,
        "capture.action_index": 5,
        "capture.prompt.characters": 1,
        "capture.response.characters": 0,
        "capture.outcome": "recorded",
    }


def test_a_loss_is_on_the_span_with_its_reason(traced: Spans) -> None:  # CAP-13
    recorded(TURN, "Redis is down")
    (span,) = traced.spans
    assert (span.attributes["capture.outcome"], span.attributes["capture.reason"]) == ("failed", "Redis is down")


def test_what_was_not_captured_has_no_count(traced: Spans) -> None:  # CAP-7
    recorded(Turn(TURN.key, TURN.prompt, ""))
    (span,) = traced.spans
    assert not {"capture.knowledge.bytes", "capture.decision.messages"} & span.attributes.keys()


def test_the_span_hangs_under_the_one_in_which_the_turn_was_recorded(traced: Spans) -> None:  # CAP-13
    outer = NonRecordingSpan(SpanContext(77, 88, is_remote=False, trace_flags=TraceFlags(1)))
    with trace.use_span(outer):
        recorded(TURN)
    assert (traced.spans[0].parent.trace_id, traced.spans[0].parent.span_id) == (77, 88)


def test_a_tracer_that_breaks_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:  # CAP-10
    monkeypatch.setattr(spans, "_tracer", object())
    recorder = TurnRecorder(Store())  # type: ignore[arg-type]
    recorder.record(TURN)
    assert recorder.close(10)
    assert recorder.stats.written == 1
