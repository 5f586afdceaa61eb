"""Agents and what they played, for operators. Only an agent's name and owner can be changed here."""

import re
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html

from agentlab.agents.models import Agent, AgentDeployment, AgentVersion, InferenceCharge, Whisper
from agentlab.common.readonly_admin import ReadOnlyAdmin, SearchableAdmin

HAND = re.compile(r"(?P<table>.+):(?P<hand>\d{1,18})")


@admin.register(Agent)
class AgentAdmin(SearchableAdmin):
    """An agent passes to another owner here. Its id is in every recorded turn's key and never changes."""

    list_display = ("name", "id", "owner", "created_at")
    list_select_related = ("owner",)
    search_fields = ("id", "name", "owner__username")
    autocomplete_fields = ("owner",)
    ordering = ("name", "id")

    def get_readonly_fields(self, request: HttpRequest, obj: Agent | None = None) -> tuple[str, ...]:
        return ("id", "created_at") if obj else ("created_at",)


@admin.register(AgentVersion)
class AgentVersionAdmin(ReadOnlyAdmin):
    list_display = ("id", "agent", "number", "model", "published_at")
    list_select_related = ("agent",)
    list_filter = ("model",)
    search_fields = ("id", "agent__name", "strategy")
    ordering = ("-published_at", "id")


@admin.register(AgentDeployment)
class AgentDeploymentAdmin(ReadOnlyAdmin):
    list_display = ("table_id", "agent", "version_id", "model", "seated_at", "left_at")
    list_select_related = ("agent",)
    search_fields = ("table_id", "agent__id", "agent__name")
    ordering = ("-seated_at", "-id")


@admin.register(Whisper)
class WhisperAdmin(ReadOnlyAdmin):
    list_display = ("agent", "author", "text", "created_at")
    list_select_related = ("agent", "author")
    search_fields = ("agent__id", "agent__name", "author__username", "text")
    ordering = ("-created_at", "-id")


@admin.register(InferenceCharge)
class InferenceChargeAdmin(ReadOnlyAdmin):
    """The ledger. It holds no content: a row leads to its hand."""

    list_display = (
        "played_at",
        "hand",
        "agent_id",
        "action_index",
        "action",
        "amount",
        "fallback",
        "capture_outcome",
        "agent_version_id",
        "model",
        "cost",
    )
    list_filter = ("is_fallback", "capture_outcome", "played_at")
    search_fields = ("agent_id", "table_id", "agent_version_id")
    search_help_text = "An agent, a table, a version, or one hand as table:hand"
    ordering = ("-played_at", "-id")

    @admin.display(description="hand", ordering="table_id")
    def hand(self, row: InferenceCharge) -> str:
        query = urlencode({"table": row.table_id, "hand": row.hand_number})
        return format_html('<a href="/agent-capture?{}">{}:{}</a>', query, row.table_id, row.hand_number)

    @admin.display(description="fallback", ordering="is_fallback")
    def fallback(self, row: InferenceCharge) -> str:
        """The reason, and nothing for a turn that was decided: a red cross on all of those would be an alarm."""
        return (row.fallback_reason or "yes") if row.is_fallback else ""

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """`table:hand` is one hand, which the unique key finds at once; anything else is Django's own search."""
        if hand := HAND.fullmatch(search_term.strip()):
            found = queryset.filter(table_id=hand["table"], hand_number=int(hand["hand"]))
            if found.exists():  # a table's own id may look like a hand
                return found, False
        return super().get_search_results(request, queryset, search_term)
