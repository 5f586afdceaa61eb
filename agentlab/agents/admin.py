"""Agents and what they played, for operators. Only an agent's name and owner can be changed here."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.html import format_html

from agentlab.agents.models import (
    Agent,
    AgentDeployment,
    AgentVersion,
    CaptureOutcome,
    HandResult,
    InferenceCharge,
    Whisper,
)
from agentlab.agents.services import agents_called
from agentlab.common.admin_lists import SearchesIds, SearchesWords, when
from agentlab.common.numbers import amount, signed
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
class AgentVersionAdmin(SearchesWords, ReadOnlyAdmin):
    list_display = ("id", "agent", "number", "model", "published_at")
    list_select_related = ("agent",)
    list_filter = ("model",)
    search_fields = ("id", "agent__name", "strategy")
    search_help_text = "Words of a strategy, a version's id or an agent's name"
    ordering = ("-published_at", "id")

    def meant(self, word: str) -> Q:
        """A version's id begins with its agent's, so a name is all that only another table knows."""
        return Q(agent_id__in=agents_called(word)) | Q(id__icontains=word) | Q(strategy__icontains=word)


@admin.register(AgentDeployment)
class AgentDeploymentAdmin(ReadOnlyAdmin):
    list_display = ("table_id", "agent", "version_id", "model", "seated_at", "left_at")
    list_select_related = ("agent",)
    search_fields = ("table_id", "agent__id", "agent__name")
    ordering = ("-seated_at", "-id")


@admin.register(Whisper)
class WhisperAdmin(SearchesWords, ReadOnlyAdmin):
    list_display = ("agent", "author", "text", "created_at", "heard_at", "withdrawn_at")
    list_select_related = ("agent", "author")
    search_fields = ("agent__id", "agent__name", "author__username", "text")
    search_help_text = "Words of a whisper, an agent or who whispered"
    ordering = ("-id",)  # as they were said; by their time there is no index

    def meant(self, word: str) -> Q:
        people = list(User.objects.filter(username__icontains=word).values_list("pk", flat=True))
        return Q(agent_id__in=agents_called(word)) | Q(author_id__in=people) | Q(text__icontains=word)


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
        "turn",
        "agent",
        "did",
        "odd",
        "agent_version_id",
        "model",
        "cost",
    )
    list_filter = ("is_fallback", "change", "note", "capture_outcome", when("played_at"))
    sortable_by = ("played_at",)
    search_fields = id_fields = ("agent_id", "table_id", "agent_version_id")
    search_help_text = "An agent, a version or a table by its whole id, an agent by its name, or one hand as table:hand"
    ordering = ("-played_at", "-id")

    @admin.display(description="turn")
    def turn(self, row: InferenceCharge) -> int:
        return row.action_index

    @admin.display(description="did")
    def did(self, row: InferenceCharge) -> str:
        return f"{row.action} {amount(row.amount)}" if row.amount is not None else row.action

    @admin.display(description="what is odd")
    def odd(self, row: InferenceCharge) -> str:
        """Why nobody decided, what became of the choice, what it knew, what its record came to; nothing for a turn
        like any other: a red cross on all of those would be an alarm."""
        said = [f"fallback: {row.fallback_reason or 'no reason given'}"] if row.is_fallback else []
        said += [str(word).lower() for word in (row.get_change_display(), row.get_note_display()) if word]
        if row.capture_outcome not in (CaptureOutcome.RECORDED, CaptureOutcome.NONE):
            said.append(f"{row.capture_outcome}: {row.capture_reason}" if row.capture_reason else row.capture_outcome)
        return "; ".join(word for word in said if word != "nothing")


@admin.register(HandResult)
class HandResultAdmin(TurnsAdmin):
    """What hands came to, for those who were told: a row leads to its hand."""

    list_display = ("ended_at", "hand", "agent", "chips")
    list_filter = (when("ended_at"),)
    sortable_by = ("ended_at",)
    search_fields = id_fields = ("agent_id", "table_id")
    search_help_text = "An agent or a table by its whole id, an agent by its name, or one hand as table:hand"
    ordering = ("-ended_at", "-id")

    @admin.display(description="chips")
    def chips(self, row: HandResult) -> str:
        return signed(row.net)
