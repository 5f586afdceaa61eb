"""Lists of tables that only grow: what a page of one costs does not depend on how long the table is.

Three things of Django's own read a whole table: counting it, sorting it by a column without an index, and searching it
for a part of a word. Here a list is counted up to MOST rows and says where there are more, sorts by what an index
sorts by, is searched for whole ids, and has a calendar by which every row is reached.
"""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property
from django.utils.text import smart_split, unescape_string_literal

MOST = 2_000  # rows that a list can be leafed through; a page further back reads all before it
HAND = re.compile(r"(?P<table>.+):(?P<hand>[0-9]{1,18})", re.DOTALL)
NUMBER = re.compile(r"[0-9]{1,18}")
PERIOD = re.compile(r"([0-9]{4})(?:-([0-9]{2}))?(?:-([0-9]{2}))?")

if TYPE_CHECKING:
    Pages = Paginator[Any]
    Admin = admin.ModelAdmin[Any]
else:
    Pages, Admin = Paginator, object  # generic for the type checker alone; a mixin at run time


class BoundedPages(Pages):
    """Pages over the first MOST rows; `more` where there are others."""

    @cached_property
    def _counted(self) -> int:
        rows: Any = self.object_list
        return int(rows.order_by().values("pk")[: MOST + 1].count())

    @cached_property
    def count(self) -> int:
        return min(MOST, self._counted)

    @property
    def more(self) -> bool:
        return self._counted > MOST


class BoundedList(ChangeList):
    """A list that sorts by its `sortable_by` alone, whatever an address asks for."""

    def get_ordering_field(self, field_name: Any) -> Any:
        known = self.sortable_by is None or field_name in self.sortable_by
        return super().get_ordering_field(field_name) if known else None

    def get_results(self, request: HttpRequest) -> None:
        """`more` is for `admin/pagination.html`. A count that is no count is not called one beside the search."""
        super().get_results(request)
        if not self.result_count:
            self.result_list = self.queryset.none()  # or a search that finds nothing would read everything twice
        self.more = isinstance(self.paginator, BoundedPages) and self.paginator.more
        if self.more:
            self.full_result_count = self.result_count


class When(admin.SimpleListFilter):
    """Years, then months, then days, out of the calendar between the oldest row and the newest.

    Django's own date hierarchy asks which of them have rows, and reads every row for it.
    """

    title = "when"
    parameter_name = "when"
    column = ""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        times = model_admin.model._default_manager.values_list(self.column, flat=True)
        ends = [times.order_by(order).first() for order in (self.column, f"-{self.column}")]
        if None in ends:
            return []
        oldest, newest = (end.astimezone(UTC).date() for end in ends)
        return list(_calendar(self.value() or "", oldest, newest))

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if not (value := self.value()):
            return queryset
        try:
            first, after = _period(value)
        except (ValueError, OverflowError):
            raise IncorrectLookupParameters from None
        return queryset.filter(**{f"{self.column}__gte": first, f"{self.column}__lt": after})


def when(column: str) -> type[When]:
    """The filter over this column, which must have an index."""
    return type("When", (When,), {"column": column})


def _period(text: str) -> tuple[datetime, datetime]:
    """A year, a month or a day in UTC, and the first moment after it. Raises ValueError."""
    if not (found := PERIOD.fullmatch(text)):
        raise ValueError(text)
    year, month, day = found.groups()
    first = datetime(int(year), int(month or 1), int(day or 1), tzinfo=UTC)
    if day:
        return first, first + timedelta(days=1)
    if month:
        return first, (first + timedelta(days=32)).replace(day=1)
    return first, first.replace(year=first.year + 1)


def _calendar(chosen: str, oldest: date, newest: date) -> Iterator[tuple[str, str]]:
    """What can be chosen, newest first: the years, the months of the chosen year, the days of the chosen month."""
    year, month = chosen[:4], chosen[:7] if len(chosen) >= 7 else ""
    years = range(newest.year, oldest.year - 1, -1)
    if len(years) == 1:
        year = str(newest.year)
    for each in years:
        yield str(each), str(each)
        if str(each) == year:
            yield from _months(each, month, oldest, newest)


def _months(year: int, chosen: str, oldest: date, newest: date) -> Iterator[tuple[str, str]]:
    for month in range(12, 0, -1):
        first = date(year, month, 1)
        if (oldest.year, oldest.month) <= (year, month) <= (newest.year, newest.month):
            yield f"{first:%Y-%m}", f"{first:%B %Y}"
            if f"{first:%Y-%m}" == chosen:
                yield from _days(first, oldest, newest)


def _days(first: date, oldest: date, newest: date) -> Iterator[tuple[str, str]]:
    for day in (first + timedelta(days=n) for n in range(30, -1, -1)):
        if day.month == first.month and oldest <= day <= newest:
            yield str(day), f"{day:%d %B}"


class SearchesWords(Admin):
    """Searches for rows in which every word is `meant`, or every phrase in quotes.

    Django's own joins every table of `search_fields` row by row; names are few, and a room asks for them first.
    """

    def meant(self, word: str) -> Q:
        raise NotImplementedError

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        for word in smart_split(search_term):
            quoted = word[0] in "\"'" and word[-1] == word[0]
            queryset = queryset.filter(self.meant(unescape_string_literal(word) if quoted else word))
        return queryset, False


class SearchesIds(Admin):
    """Searches for one whole id, in each column of `id_fields` in turn, or for one hand as `table:hand`.

    A name that is not an id is left to `named`. A column must have an index that begins with it.
    """

    id_fields: tuple[str, ...] = ()

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        word = search_term.strip()
        return (queryset.filter(self._meant(word)) if word else queryset), False

    def named(self, word: str) -> Q:
        """What a word may mean that is nobody's id; nothing, unless a room knows better."""
        return Q(pk__in=[])

    def _meant(self, word: str) -> Q:
        rows: QuerySet[Model] = self.model._default_manager.order_by()
        return next((one for one in self._meanings(word) if rows.filter(one).exists()), None) or self.named(word)

    def _meanings(self, word: str) -> Iterator[Q]:
        if hand := HAND.fullmatch(word):  # but a table's own id may look like a hand
            yield Q(table_id=hand["table"], hand_number=int(hand["hand"]))
        for name in self.id_fields:
            if name != "hand_number":
                yield Q(**{name: word})
            elif NUMBER.fullmatch(word):
                yield Q(hand_number=int(word))
