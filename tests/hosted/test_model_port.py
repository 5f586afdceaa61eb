"""How a turn asks a model: whatever an adapter does is one failure with a reason, and a span that quotes nothing."""

import asyncio
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import INVALID_SPAN_CONTEXT, NonRecordingSpan

from agentlab.hosted import model_port
from agentlab.hosted.model_port import Completion, ModelFailed, ask

SECRET = "As Kd in the hole"


class Kept(NonRecordingSpan):
    """A span that keeps all that it is told, exceptions with their causes as an SDK does."""

    def __init__(self) -> None:
        super().__init__(INVALID_SPAN_CONTEXT)
        self.told: list[str] = []

    def is_recording(self) -> bool:
        return True

    def set_attribute(self, key: str, value: Any) -> None:
        self.told.append(f"{key}={value}")

    def set_status(self, status: Any, description: str | None = None) -> None:
        code = getattr(status, "status_code", status)
        self.told.append(f"{code.name} {description or getattr(status, 'description', '')}")

    def record_exception(self, exception: BaseException, *args: Any, **options: Any) -> None:
        self.told += traceback.format_exception(exception)


class Kind:
    """A model whose answer is `said`, or whose fault is."""

    name, routing = "tiny", "here"

    def __init__(self, said: Completion | Exception) -> None:
        self.said = said

    async def complete(self, prompt: str, *, timeout: float) -> Completion:
        if isinstance(self.said, Exception):
            raise self.said
        return self.said

    async def close(self) -> None: ...


@pytest.fixture
def span(monkeypatch: pytest.MonkeyPatch) -> Kept:
    kept = Kept()

    class Tracer:
        @contextmanager
        def start_as_current_span(self, name: str, **options: Any) -> Iterator[Kept]:
            with trace.use_span(kept, **options):  # the API's own, which is what notes an exception that leaves
                yield kept

    monkeypatch.setattr(model_port, "tracer", Tracer())
    return kept


def test_an_adapters_own_fault_is_a_failure_and_its_words_are_on_no_span(span: Kept) -> None:
    # CAP-13, HA-5
    fault = ValueError(f"cannot read {SECRET!r}")
    with pytest.raises(ModelFailed) as failed:
        asyncio.run(ask(Kind(fault), SECRET, timeout=5))
    assert failed.value.reason == "adapter error: ValueError"
    assert "error.type=adapter error: ValueError" in span.told
    assert any(told.startswith("ERROR") for told in span.told)
    assert SECRET not in "".join(span.told)


@pytest.mark.parametrize("said", [Completion(SECRET, reasoning=SECRET, input_tokens=3), ModelFailed("timed out")])
def test_a_span_has_names_and_counts_or_the_reason(span: Kept, said: Completion | Exception) -> None:
    # CAP-13
    try:
        assert asyncio.run(ask(Kind(said), SECRET, timeout=5)).text == SECRET
        assert "gen_ai.usage.input_tokens=3" in span.told
    except ModelFailed:
        assert "error.type=timed out" in span.told
    assert SECRET not in "".join(span.told)


def test_no_failure_brings_the_words_of_what_caused_it_along() -> None:
    # HA-5
    with pytest.raises(ModelFailed) as failed:
        asyncio.run(ask(Kind(KeyError(SECRET)), "x", timeout=5))
    assert SECRET not in "".join(traceback.format_exception(failed.value))
