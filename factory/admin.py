"""Runs, attempts and inputs for operators: to search and to read, never to change."""

from django.contrib import admin

from agentlab.common.readonly_admin import ReadOnlyAdmin
from factory.models import AgentAttempt, AgentAttemptInput, FactoryRun


@admin.register(FactoryRun)
class FactoryRunAdmin(ReadOnlyAdmin):
    list_display = ("id", "workflow", "provider", "state", "owner", "started_at")
    list_filter = ("state", "workflow", "source_format")
    search_fields = ("task", "provider", "owner__username")
    list_select_related = ("owner",)


@admin.register(AgentAttempt)
class AgentAttemptAdmin(ReadOnlyAdmin):
    list_display = ("attempt_id", "run", "number", "phase", "send_kind", "model", "state", "input_coverage")
    list_filter = ("state", "send_kind", "input_coverage")
    search_fields = ("attempt_id", "phase", "model", "session_id")
    list_select_related = ("run",)

    def get_queryset(self, request):  # type: ignore[no-untyped-def]
        return super().get_queryset(request).defer("system_prompt", "user_prompt", "reply")


@admin.register(AgentAttemptInput)
class AgentAttemptInputAdmin(ReadOnlyAdmin):
    list_display = ("input_id", "label", "source_kind", "delivery_mode", "capture_status", "artifact_status")
    list_filter = ("source_kind", "delivery_mode", "capture_status", "artifact_status")
    search_fields = ("label", "sha256")
