"""The collector: the facts of an attempt as JSON, and the stored bytes of its inputs.

It lies under the browser's own origin, behind the same sign-in as the pages; what is not the user's is 404.
"""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from agentlab.common.errors import error
from agentlab.common.paging import page_number
from agentlab.common.text import encoded
from factory.artifacts import Artifact, Refused
from factory.models import AgentAttempt, AgentAttemptInput
from factory.reading import get_attempt_by_id, get_input, load_artifact


@require_safe
def attempt(request: HttpRequest, attempt_id: str) -> JsonResponse:
    """An attempt with its lineage, its packet and its inputs; the messages and the inputs' bytes are left out."""
    return JsonResponse(_attempt(get_attempt_by_id(request.user, attempt_id)))


def _attempt(row: AgentAttempt) -> dict[str, Any]:
    return {
        "attemptId": row.pk,
        "runId": row.run_id,
        "number": row.number,
        "phase": row.phase,
        "provider": row.provider,
        "model": row.model,
        "state": row.state,
        "sessionId": row.session_id,
        "startedAt": row.started_at,
        "endedAt": row.ended_at,
        "taskPrompt": row.task_prompt,
        "systemPromptBytes": _size(row.system_prompt),
        "userPromptBytes": _size(row.user_prompt),
        "sendKind": row.send_kind,
        "turnIndex": row.turn_index,
        "previousTurnAttemptId": row.previous_turn_attempt_id,
        "retryOfAttemptId": row.retry_of_attempt_id,
        "inputPacketVersion": row.input_packet_version,
        "inputCoverage": row.input_coverage,
        "declaredInputCount": row.declared_input_count,
        "capturedInputCount": row.captured_input_count,
        "omittedInputCount": row.omitted_input_count,
        "inputs": [_input(one) for one in row.inputs.order_by("seq")],
    }


def _input(row: AgentAttemptInput) -> dict[str, Any]:
    return {
        "inputId": row.pk,
        "seq": row.seq,
        "label": row.label,
        "sourceKind": row.source_kind,
        "deliveryMode": row.delivery_mode,
        "sourcePath": row.source_path,
        "mediaType": row.media_type,
        "previewKind": row.preview_kind,
        "sizeBytes": row.size_bytes,
        "sha256": row.sha256,
        "captureStatus": row.capture_status,
        "artifactStatus": row.artifact_status,
        "detail": row.detail,
        "capturedAt": row.captured_at,
    }


def _size(text: str | None) -> int | None:
    return None if text is None else len(encoded(text))


@require_safe
def preview(request: HttpRequest, input_id: int) -> HttpResponse:
    """The stored bytes of an input: an image whole, a text page by page (`?page=2`)."""
    try:
        artifact = load_artifact(get_input(request.user, input_id))
        return _artifact(artifact, input_id, request.GET.get("page"))
    except Refused as refusal:
        return error(refusal.status, refusal.sentence)


def _artifact(artifact: Artifact, input_id: int, page: str | None) -> HttpResponse:
    """Every answer with an input's bytes is made here, so that none lacks a header."""
    headers = {
        "Content-Disposition": f'inline; filename="input-{input_id}.bin"',
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "private, no-store",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Accept-Ranges": "none",
        "X-Content-SHA256": artifact.sha256,
    }
    if artifact.media.preview_kind == "image":
        return HttpResponse(artifact.data, content_type=artifact.media.media_type, headers=headers)
    count = artifact.page_count
    number = page_number(page, count)
    if page is not None and page != str(number):
        raise Http404
    headers |= {"X-Page": str(number), "X-Page-Count": str(count)}
    return HttpResponse(artifact.page(number).encode(), content_type="text/plain; charset=utf-8", headers=headers)
