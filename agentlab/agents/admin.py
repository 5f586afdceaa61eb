"""Agents and what they played, for operators. Only an agent's name and owner can be changed here."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.html import format_html

from agentlab.agents.models import Agent, AgentDeployment, AgentVersion, InferenceCharge, Whisper
from agentlab.agents.services import agents_called
from agentlab.common.admin_lists import SearchesIds, when
from agentlab.common.readonly_admin import ReadOnlyAdmin, SearchableAdmin


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
    list_display = ("agent", "author", "text", "created_at", "heard_at", "withdrawn_at")
    list_select_related = ("agent", "author")
    search_fields = ("agent__id", "agent__name", "author__username", "text")
    search_help_text = "Words of a whisper, an agent or who whispered"
    ordering = ("-id",)  # as they were said; by their time there is no index

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Whisper], search_term: str
    ) -> tuple[QuerySet[Whisper], bool]:
        """Django's own joins three tables row by row; names are few, and are asked for first."""
        if not (words := search_term.strip()):
            return queryset, False
        people = list(User.objects.filter(username__icontains=words).values_list("pk", flat=True))
        whose = Q(agent_id__in=agents_called(words)) | Q(author_id__in=people)
        return queryset.filter(whose | Q(text__icontains=words)), False


class TurnsAdmin(SearchesIds, ReadOnlyAdmin):
    """A list of turns: each leads to its hand, says its agent's name, and they are searched by it too."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        named = Agent.objects.filter(pk=OuterRef("agent_id")).values("name")[:1]
        rows: QuerySet[Any] = super().get_queryset(request).annotate(agent_name=Subquery(named))
        return rows

    @admin.display(description="agent")
    def agent(self, row: Any) -> str:
        """By its name, and by the id that is in every key; one that is not known here by its id alone."""
        return f"{row.agent_name} ({row.agent_id})" if row.agent_name else str(row.agent_id)

    @admin.display(description="hand")
    def hand(self, row: Any) -> str:
        query = urlencode({"table": row.table_id, "hand": row.hand_number})
        return format_html('<a href="/agent-capture?{}">{}:{}</a>', query, row.table_id, row.hand_number)

    def named(self, word: str) -> Q:
        return Q(agent_id__in=agents_called(word))


@admin.register(InferenceCharge)
class InferenceChargeAdmin(TurnsAdmin):
    """The ledger. It holds no content: a row leads to its hand."""

    list_display = (
        "played_at",
        "hand",
        "agent",
        "action_index",
        "action",
        "amount",
        "change",
        "note",
        "fallback",
        "capture_outcome",
        "agent_version_id",
        "model",
        "cost",
    )
    list_filter = ("is_fallback", "change", "note", "capture_outcome", when("played_at"))
    sortable_by = ("played_at",)
    search_fields = id_fields = ("agent_id", "table_id", "agent_version_id")
    search_help_text = "An agent, a version or a table by its whole id, an agent by its name, or one hand as table:hand"
    ordering = ("-played_at", "-id")

    @admin.display(description="fallback")
    def fallback(self, row: InferenceCharge) -> str:
        """The reason, and nothing for a turn that was decided: a red cross on all of those would be an alarm."""
        return (row.fallback_reason or "yes") if row.is_fallback else ""
