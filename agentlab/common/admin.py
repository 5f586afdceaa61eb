"""The audit trail, for operators."""

from django.contrib import admin

from agentlab.common.models import AuditEntry
from agentlab.common.readonly_admin import ReadOnlyAdmin

admin.site.site_header = admin.site.site_title = "agentlab, for operators"
admin.site.index_title = "What is stored"


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    list_display = ("at", "actor_name", "deed", "agent_id", "table_id", "hand_number", "detail")
    list_filter = ("deed", "at")
    search_fields = ("actor_name", "agent_id", "table_id")
    ordering = ("-at", "-id")
