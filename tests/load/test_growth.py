"""A database that grows costs no page another query: the quick half of `python -m tests.load`, without its times."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib.contenttypes.models import ContentType

from agentlab.common.schema import is_current
from tests.load.counting import counted
from tests.load.pages import FINE, Page, all_pages
from tests.load.sizes import SMALL
from tests.load.world import World, fill, grow

pytestmark = pytest.mark.django_db

FIRST = replace(SMALL, turns=3_000, kept=600, studies=30, runs=40, audits=200, whispers=120, hot=200, opened=(4, 6))
MORE = replace(FIRST, turns=20_000, days=40, kept=2_000, studies=40, runs=60, audits=2_000, whispers=600)


def some_pages(world: World) -> list[Page]:
    """All but most of the admin's: each list of it is leafed through and searched once."""
    admin = ("first page", "last full page", "search of an agent", "a row", "when, a day")
    return [page for page in all_pages(world) if ": admin, " not in page.name or page.name.endswith(admin)]


def statements_of(pages: list[Page]) -> dict[str, list[str]]:
    """What each page sends."""
    return {page.name: visited(page) for page in pages}


def visited(page: Page) -> list[str]:
    """A first look at a hand leaves a line in the audit; then a second look counts."""
    with counted() as statements:
        assert page.visit() in FINE, page.name
    return visited(page) if any("INSERT" in statement for statement in statements) else statements


@pytest.mark.usefixtures("capture_redis")
def test_every_page_takes_as_many_queries_when_there_is_more(settings: Any, tmp_path: Path) -> None:
    # VW-1, VW-7, VW-8, VW-10, RD-1, RD-2, RD-6
    world = fill(FIRST, tmp_path, print)
    ContentType.objects.get_for_models(*apps.get_models())  # what a process asks once is no page's
    assert is_current()
    before = statements_of(some_pages(world))
    grow(world, MORE, print)
    after = statements_of(some_pages(world))
    shared = before.keys() & after.keys()
    assert len(shared) > 200
    grown = {name: (len(before[name]), len(after[name])) for name in shared if len(before[name]) != len(after[name])}
    assert not grown
