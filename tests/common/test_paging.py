"""Pages of a list, as plain links."""

import pytest

from agentlab.common.paging import numbered, page_number


def test_neighbours_are_links_that_keep_the_query() -> None:
    pager = numbered("/x", 2, 3, q="a b&c")
    assert pager.newer_url == "/x?q=a+b%26c&page=1"
    assert pager.older_url == "/x?q=a+b%26c&page=3"
    assert pager.label == "page 2 of 3"


def test_the_ends_have_no_neighbour() -> None:
    assert numbered("/x", 1, 1).newer_url == numbered("/x", 1, 1).older_url == ""


@pytest.mark.parametrize(("text", "page"), [(None, 1), ("2", 2), ("99", 5), ("0", 1), ("-1", 1), ("²", 1), ("x", 1)])
def test_a_page_that_is_asked_for_is_held_within_what_there_is(text: str | None, page: int) -> None:  # SF-4
    assert page_number(text, 5) == page
