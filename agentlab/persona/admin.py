"""Runs and personas for operators to look up; the trace has pages of its own, and a key that the admin cannot show."""

from django.contrib import admin

from agentlab.common.readonly_admin import ReadOnlyAdmin
from agentlab.persona.models import StudyPersona, StudyRun


@admin.register(StudyRun)
class StudyRunAdmin(ReadOnlyAdmin):
    list_display = ["id", "name", "owner", "status", "turns", "replay", "started_at"]
    list_filter = ["status", "replay"]
    search_fields = ["name", "study_sha256", "trace_sha256", "owner__username"]
    list_select_related = ["owner"]


@admin.register(StudyPersona)
class StudyPersonaAdmin(ReadOnlyAdmin):
    list_display = ["name", "key", "run", "failed"]
    search_fields = ["name", "key", "run__name"]
    list_select_related = ["run"]
