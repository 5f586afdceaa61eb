"""A run as lines of JSON: first the run, then every event in order, readable without this program."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from agentlab.common.text import in_json
from agentlab.persona.events import read_payload
from agentlab.persona.models import StudyPersona, StudyRun, TraceEvent
from agentlab.persona.runs import RunError, study_of
from agentlab.persona.values import Invalid


def lines(run: StudyRun) -> Iterator[str]:
    """One JSON object a line. Bytes (vectors) are base64; what each event means stands in `events`."""
    yield _line(
        {
            "study": run.pk,
            "study_sha256": run.study_sha256,
            "trace_sha256": run.trace_sha256 or None,
            "embedder": run.embedder,
            "model": run.model or None,
            "status": run.status,
            "failed": dict(StudyPersona.objects.filter(run=run).exclude(failed="").values_list("key", "failed")),
            **_definition(run),
        }
    )
    keys = dict(StudyPersona.objects.filter(run=run).values_list("number", "key"))
    rows = TraceEvent.objects.filter(run=run).order_by("persona", "turn", "sequence")
    for row in rows.iterator(chunk_size=1000):
        yield _line(
            {
                "persona": keys.get(row.persona, row.persona),
                "turn": row.turn,
                "sequence": row.sequence,
                "kind": row.kind,
                "sha256": bytes(row.seal).hex(),
                **_told(bytes(row.payload)),
            }
        )


def _definition(run: StudyRun) -> dict[str, Any]:
    """What the study was made of. Where that is lost or altered the trace can be had all the same, and it says so."""
    try:
        return {"definition": msgspec.to_builtins(study_of(run))}
    except (RunError, Invalid) as error:
        return {"definition": None, "problem": str(error)}


def _told(payload: bytes) -> dict[str, Any]:
    """What the event says; its bytes in hexadecimal where it cannot be read."""
    try:
        told: dict[str, Any] = _named(read_payload(payload))
    except Invalid:
        return {"unreadable": payload.hex()}
    return told


def _named(value: Any) -> Any:
    """Structs that are stored as arrays, with their fields' names."""
    if isinstance(value, msgspec.Struct):
        return {name: _named(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, tuple | list):
        return [_named(item) for item in value]
    return msgspec.to_builtins(value, order="deterministic")


def _line(value: dict[str, Any]) -> str:
    return in_json(json.dumps(value, ensure_ascii=False))
