"""One recorded input: the values of a row of `agent_attempt_inputs`."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from factory.media import PreviewKind

SourceKind = Literal["prompt_file", "previous_envelope", "context_handoff", "explicit_attachment"]
DeliveryMode = Literal["inline", "session_history", "path_reference", "provider_attachment"]
CaptureStatus = Literal[
    "captured",
    "missing",
    "unreadable",
    "limit_exceeded",
    "changed_during_capture",
    "enumeration_incomplete",
    "not_applicable",
]
ArtifactStatus = Literal["available", "evicted", "never_captured"]


@dataclass(frozen=True, slots=True)
class PacketItem:
    """Provenance, delivery, media type, preview, capture and retention of one input, each apart from the others.

    `source_path` is a path as `os.fsdecode` gives it (it may hold lone surrogates); `label` is fit for display.
    `size_bytes` and `sha256` are of the captured bytes.
    """

    seq: int
    label: str
    source_kind: SourceKind
    delivery_mode: DeliveryMode
    source_path: str | None = None
    snapshot_path: str | None = None
    media_type: str | None = None
    preview_kind: PreviewKind = "none"
    size_bytes: int | None = None
    sha256: str | None = None
    capture_status: CaptureStatus = "not_applicable"
    artifact_status: ArtifactStatus = "never_captured"
    detail: str | None = None
    captured_at: datetime | None = None
