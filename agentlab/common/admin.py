"""The audit trail, for operators."""

from typing import TYPE_CHECKING

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User

from agentlab.common.admin_lists import SearchesIds, when
from agentlab.common.models import AuditEntry
from agentlab.common.readonly_admin import ReadOnlyAdmin, SearchableAdmin

if TYPE_CHECKING:
    BaseUserAdmin = UserAdmin[User]
else:
    BaseUserAdmin = UserAdmin  # generic for the type checker alone

admin.site.site_header = admin.site.site_title = "agentlab, for operators"
admin.site.index_title = "What is stored"
admin.site.unregister([User, Group])


@admin.register(User)
class PeopleAdmin(SearchableAdmin, BaseUserAdmin):
    """Django's own, which answers whatever is asked of it."""


@admin.register(Group)
class GroupsAdmin(SearchableAdmin, GroupAdmin):
    """The same of groups."""


@admin.register(AuditEntry)
class AuditEntryAdmin(SearchesIds, ReadOnlyAdmin):
    list_display = ("at", "actor_name", "deed", "agent_id", "table_id", "hand_number", "detail")
    list_filter = ("deed", when("at"))
    sortable_by = ("at",)
    search_fields = id_fields = ("actor_name", "agent_id", "table_id")
    search_help_text = "A person, an agent or a table by its whole id, or one hand as table:hand"
    ordering = ("-at", "-id")
