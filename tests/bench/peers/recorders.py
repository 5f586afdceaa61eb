"""The recorders that are compared, each in the cheapest way that its own documentation offers for keeping a whole turn,
content included, with everything else at its defaults.

Only the standard library is imported here: each class imports its own packages, in an environment of its own.
"""

import json
import os
from collections import Counter
from typing import Any, ClassVar

from tests.bench.turn_workload import Workload

MODEL, INPUT_TOKENS, OUTPUT_TOKENS = "house-1", 2104, 88


class Recorder:
    """Made with the place of its store; `watch` asks for whatever makes it count what it loses."""

    store = "sink"
    asked = ""  # how a program can ask it what was lost

    def __init__(self, place: str, *, watch: bool = False) -> None:
        raise NotImplementedError

    def record(self, name: str, turn: Workload) -> None:
        """What the agent waits for. `name` must be found in the store afterwards."""
        raise NotImplementedError

    def flush(self) -> None:
        """Return once all that was recorded has been handed over."""

    def losses(self) -> dict[str, int] | None:
        """How many turns it says it has lost, by reason; None where it cannot be asked."""
        return None


class RedisSet(Recorder):
    """The floor: the turn as JSON, in one SET."""

    store = "redis"

    def __init__(self, place: str, *, watch: bool = False) -> None:
        import redis

        self.client = redis.Redis.from_url(place)

    def record(self, name: str, turn: Workload) -> None:
        self.client.set(name, turn.as_json(), ex=86_400)


class Agentlab(Recorder):
    store = "redis"
    asked = "`TurnRecorder.stats`, and `on_outcome` for each turn"

    def __init__(self, place: str, *, watch: bool = False) -> None:
        from tests.bench.recording import Recording

        self.lost: Counter[str] = Counter()
        self.ours = Recording(place, on_outcome=self._count if watch else None)

    def _count(self, _key: object, outcome: str, reason: str) -> None:
        if outcome != "recorded":
            self.lost[reason] += 1

    def record(self, name: str, turn: Workload) -> None:
        self.ours.record(turn)

    def flush(self) -> None:
        self.ours.recorder.flush(60)

    def losses(self) -> dict[str, int]:
        return dict(self.lost)


class _Spans(Recorder):
    """What all that are built on OpenTelemetry's SDK have in common: it counts what it drops, once told to."""

    asked = "OpenTelemetry's metrics about itself, which this part switches on; off by default"
    counters: ClassVar = ("otel.sdk.processor.span.processed", "otel.sdk.exporter.span.exported")

    def __init__(self, place: str, *, watch: bool = False) -> None:
        self.reader: Any = None
        if watch:
            os.environ["OTEL_PYTHON_SDK_INTERNAL_METRICS_ENABLED"] = "true"
            from opentelemetry import metrics
            from opentelemetry.sdk.metrics import MeterProvider
            from opentelemetry.sdk.metrics.export import InMemoryMetricReader

            self.reader = InMemoryMetricReader()
            metrics.set_meter_provider(MeterProvider([self.reader]))
        self.start(place)

    def start(self, place: str) -> None:
        raise NotImplementedError

    def losses(self) -> dict[str, int] | None:
        data = self.reader and self.reader.get_metrics_data()
        if not data:
            return None
        lost: Counter[str] = Counter()
        scopes = (scope for resource in data.resource_metrics for scope in resource.scope_metrics)
        for metric in (metric for scope in scopes for metric in scope.metrics):
            for point in metric.data.data_points if metric.name in self.counters else ():
                if "error.type" in point.attributes:
                    lost[point.attributes["error.type"]] += point.value
        return dict(lost)


class OpenTelemetry(_Spans):
    """The SDK's batching processor and its OTLP/HTTP exporter; attributes named as the GenAI conventions name them."""

    def start(self, place: str) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        self.provider = TracerProvider()
        self.provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{place}/v1/traces")))
        self.tracer = self.provider.get_tracer("comparison")

    def record(self, name: str, turn: Workload) -> None:
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": MODEL,
            "gen_ai.usage.input_tokens": INPUT_TOKENS,
            "gen_ai.usage.output_tokens": OUTPUT_TOKENS,
            "gen_ai.agent.id": turn.agent_id,
            "gen_ai.conversation.id": f"{turn.table_id}:{turn.hand_number}",
            "gen_ai.input.messages": _message("user", f"{turn.envelope}\n{turn.remainder}"),
            "gen_ai.output.messages": _message("assistant", turn.response),
            "turn.name": name,
            "turn.action_index": turn.action_index,
            "turn.cost": turn.cost,
            "turn.decision": json.dumps(turn.message),
            "turn.knowledge": json.dumps(_knowledge(turn)),
        }
        with self.tracer.start_as_current_span("turn", attributes=attributes):
            pass

    def flush(self) -> None:
        self.provider.force_flush(60_000)


class Phoenix(_Spans):
    """`register(batch=True)`: as it comes, each turn would wait for a request of its own."""

    def start(self, place: str) -> None:
        from phoenix.otel import register

        self.provider = register(
            endpoint=f"{place}/v1/traces",
            protocol="http/protobuf",
            project_name="comparison",
            batch=True,
            verbose=False,
        )
        self.tracer = self.provider.get_tracer("comparison")

    def record(self, name: str, turn: Workload) -> None:
        attributes = {
            "openinference.span.kind": "LLM",
            "session.id": f"{turn.table_id}:{turn.hand_number}",
            "user.id": turn.agent_id,
            "llm.model_name": MODEL,
            "llm.token_count.prompt": INPUT_TOKENS,
            "llm.token_count.completion": OUTPUT_TOKENS,
            "llm.cost.total": turn.cost,
            "input.value": f"{turn.envelope}\n{turn.remainder}",
            "output.value": turn.response,
            "metadata": json.dumps(_rest(name, turn)),
        }
        with self.tracer.start_as_current_span("turn", attributes=attributes):
            pass

    def flush(self) -> None:
        self.provider.force_flush(60_000)


class Langfuse(_Spans):
    """One generation a turn."""

    def start(self, place: str) -> None:
        from langfuse import Langfuse as Client

        self.client = Client(public_key="pk-lf-none", secret_key="sk-lf-none", base_url=place)

    def record(self, name: str, turn: Workload) -> None:
        self.client.start_observation(
            name="turn",
            as_type="generation",
            model=MODEL,
            input=[{"role": "user", "content": f"{turn.envelope}\n{turn.remainder}"}],
            output={"role": "assistant", "content": turn.response},
            usage_details={"input": INPUT_TOKENS, "output": OUTPUT_TOKENS},
            cost_details={"total": turn.cost},
            metadata=_rest(name, turn),
        ).end()

    def flush(self) -> None:
        self.client.flush()


class Logfire(_Spans):
    """Its own exporter, sent to the loopback; console, metrics and the inspection of arguments off."""

    def start(self, place: str) -> None:
        import logfire

        logfire.configure(
            token="none",
            send_to_logfire=True,
            advanced=logfire.AdvancedOptions(base_url=place),
            console=False,
            metrics=False,
            inspect_arguments=False,
        )
        self.logfire = logfire

    def record(self, name: str, turn: Workload) -> None:
        with self.logfire.span(
            "turn",
            model=MODEL,
            input_tokens=INPUT_TOKENS,
            output_tokens=OUTPUT_TOKENS,
            prompt=f"{turn.envelope}\n{turn.remainder}",
            response=turn.response,
            **_rest(name, turn),
        ):
            pass

    def flush(self) -> None:
        self.logfire.force_flush(60_000)


class MLflow(Recorder):
    """Asynchronous logging, which is its default, into a SQLite file."""

    store = "files"

    def __init__(self, place: str, *, watch: bool = False) -> None:
        import mlflow

        mlflow.set_tracking_uri(f"sqlite:///{place}/mlflow.db")
        mlflow.set_experiment("comparison")
        self.mlflow = mlflow

    def record(self, name: str, turn: Workload) -> None:
        with self.mlflow.start_span(name="turn", span_type="LLM") as span:
            span.set_inputs({"prompt": f"{turn.envelope}\n{turn.remainder}"})
            span.set_outputs({"response": turn.response})
            span.set_attributes(
                {"mlflow.llm.model": MODEL, "input": INPUT_TOKENS, "output": OUTPUT_TOKENS, **_rest(name, turn)}
            )

    def flush(self) -> None:
        self.mlflow.flush_trace_async_logging()


RECORDERS: dict[str, type[Recorder]] = {
    "redis": RedisSet,
    "agentlab": Agentlab,
    "opentelemetry": OpenTelemetry,
    "phoenix": Phoenix,
    "langfuse": Langfuse,
    "mlflow": MLflow,
    "logfire": Logfire,
}


def _message(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def _knowledge(turn: Workload) -> dict[str, Any]:
    return {
        "state": turn.state,
        "actionLog": turn.action_log,
        "handHistory": turn.hand_history,
        "notes": turn.notes,
    }


def _rest(name: str, turn: Workload) -> dict[str, Any]:
    """What a turn has beside prompt and response, for those that take plain values."""
    return {
        "turn_name": name,
        "agent": turn.agent_id,
        "table": turn.table_id,
        "hand": turn.hand_number,
        "action_index": turn.action_index,
        "decision": turn.message,
        "knowledge": _knowledge(turn),
    }
