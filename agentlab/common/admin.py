"""The audit trail, for operators."""

from django.contrib import admin

from agentlab.common.admin_lists import SearchesIds, when
from agentlab.common.models import AuditEntry
from agentlab.common.readonly_admin import ReadOnlyAdmin

admin.site.site_header = admin.site.site_title = "agentlab, for operators"
admin.site.index_title = "What is stored"


@admin.register(AuditEntry)
class AuditEntryAdmin(SearchesIds, ReadOnlyAdmin):
    list_display = ("at", "actor_name", "deed", "agent_id", "table_id", "hand_number", "detail")
    list_filter = ("deed", when("at"))
    sortable_by = ("at",)
    search_fields = id_fields = ("actor_name", "agent_id", "table_id")
    search_help_text = "A person, an agent or a table by its whole id, or one hand as table:hand"
    ordering = ("-at", "-id")
