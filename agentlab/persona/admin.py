"""Studies and personas for operators to look up, never to change; each leads to its page. The trace has pages of its
own, and a key that the admin cannot show."""

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agentlab.common.readonly_admin import ReadOnlyAdmin
from agentlab.common.text import visible
from agentlab.persona.models import StudyPersona, StudyRun


@admin.register(StudyRun)
class StudyRunAdmin(ReadOnlyAdmin):
    list_display = ("id", "study", "owner", "status", "personas", "turns", "replay", "started_at")
    list_filter = ("status", "replay")
    list_select_related = ("owner",)
    search_fields = ("=id", "name", "study_sha256", "trace_sha256", "owner__username")
    search_help_text = "A study's number, name or hash, or its owner"
    ordering = ("-id",)
    fields = (
        *("study", "owner", "status", "personas", "turns_each", "turns", "events", "answered", "fallbacks"),
        *("late_results", "embedder", "model", "executor", "runner", "epoch", "started_at", "updated_at"),
        *("replay", "replayed_at", "difference", "seed", "study_sha256", "trace_sha256"),
    )
    readonly_fields = fields

    @admin.display(description="study")
    def study(self, row: StudyRun) -> SafeString:
        return format_html('<a href="{}">{}</a>', reverse("study", args=[row.pk]), visible(row.name))


@admin.register(StudyPersona)
class StudyPersonaAdmin(ReadOnlyAdmin):
    list_display = ("id", "persona", "key", "study", "failure")
    list_select_related = ("run",)
    search_fields = ("name", "key", "run__name")
    search_help_text = "A persona's name or id, or its study's name"
    ordering = ("-run", "number")
    fields = ("persona", "key", "number", "study", "failure")
    readonly_fields = fields

    @admin.display(description="persona")
    def persona(self, row: StudyPersona) -> SafeString:
        return format_html(
            '<a href="{}">{}</a>', reverse("study-persona", args=[row.run_id, row.key]), visible(row.name)
        )

    @admin.display(description="study")
    def study(self, row: StudyPersona) -> SafeString:
        return format_html('<a href="{}">{}</a>', reverse("study", args=[row.run_id]), visible(str(row.run)))

    @admin.display(description="failed")
    def failure(self, row: StudyPersona) -> SafeString:
        return visible(row.failed)
