"""Rows that the admin shows and nobody changes there: what was recorded stays as it was recorded."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.db.models import Model
from django.http import HttpRequest

from agentlab.common.admin_lists import BoundedList, BoundedPages

if TYPE_CHECKING:
    Admin = admin.ModelAdmin[Any]
else:
    Admin = admin.ModelAdmin  # generic for the type checker alone

LONGEST = 500  # characters of a search


class SearchableAdmin(Admin):
    """A list that answers whatever is asked of it."""

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """NUL is in no row, and PostgreSQL takes the question for an error; SQLite does where it has many words."""
        asked = [value for name, values in request.GET.lists() for value in (name, *values)]
        if any("\0" in value or len(value) > LONGEST for value in asked):
            raise IncorrectLookupParameters
        return super().get_changelist_instance(request)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """The same of an address: there is no such row."""
        return None if "\0" in object_id else super().get_object(request, object_id, from_field)


class ReadOnlyAdmin(SearchableAdmin):
    """Operators may look and search; adding, changing and deleting are refused, in bulk as well."""

    paginator = BoundedPages
    show_full_result_count = False  # that would count the whole table after all
    actions = None
    list_per_page = 50

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return BoundedList

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False
