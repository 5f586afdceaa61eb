"""Kept turns, for operators: to look at and search, never to change. Content is inert text."""

import json
from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agentlab.agents.admin import TurnsAdmin
from agentlab.common.admin_lists import when
from agentlab.common.text import ON_DEMAND_BYTES, visible
from capture.durable import from_row
from capture.frozen import json_form
from capture.knowledge import read_knowledge
from capture.models import AgentCallRecord
from capture.turns import Turn, TurnError

CONTENT = ("envelope", "remainder", "response", "reasoning", "knowledge", "decision", "facts")


def _shown(name: str, part: Callable[[Turn], str | None]) -> Any:
    @admin.display(description=name)
    def shown(_: TurnsAdmin, row: AgentCallRecord) -> SafeString:
        try:
            text = part(from_row(row))
        except (TurnError, ValueError) as error:
            return format_html("cannot be shown: {}", str(error))
        if text is None:
            return SafeString("not captured")
        rest = len(text) - ON_DEMAND_BYTES
        more = format_html("<p>{} characters more; the hand's own page has them.</p>", rest) if rest > 0 else ""
        return format_html('<pre dir="auto">\n{}</pre>{}', visible(text[:ON_DEMAND_BYTES]), more)

    return shown


def _json(value: Any) -> str:
    return json.dumps(json_form(value), ensure_ascii=False, indent=2)


@admin.register(AgentCallRecord)
class AgentCallRecordAdmin(TurnsAdmin):
    list_display = ("hand", "agent", "action_index", "agent_version_id", "model", "captured_at", "pinned_at")
    list_display_links = ("action_index",)
    list_filter = (when("pinned_at"),)
    sortable_by = ("pinned_at",)
    search_fields = id_fields = ("agent_id", "table_id", "hand_number", "agent_version_id")
    search_help_text = "An agent, a table, a version or a hand by its whole id, or an agent by its name"
    ordering = ("-pinned_at", "-id")
    fields = (
        *("hand", "agent", "action_index", "agent_version_id", "model", "captured_at", "pinned_at"),
        *("envelope_hash", "prompt", "response_text", "reasoning_text", "knew", "sent"),
    )
    readonly_fields = fields

    prompt = _shown("prompt", lambda turn: turn.prompt.text)
    response_text = _shown("response", lambda turn: turn.response)
    reasoning_text = _shown("reasoning", lambda turn: turn.reasoning)
    knew = _shown(
        "what it knew", lambda turn: _json(read_knowledge(turn.knowledge)) if turn.knowledge is not None else None
    )
    sent = _shown("what it sent", lambda turn: None if turn.decision is None else _json(turn.decision))

    def get_queryset(self, request: HttpRequest) -> QuerySet[AgentCallRecord]:
        """A list shows no content, so it fetches none."""
        rows = super().get_queryset(request)
        one = request.resolver_match is not None and "object_id" in request.resolver_match.kwargs
        return rows if one else rows.defer(*CONTENT)
