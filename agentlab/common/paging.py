"""Pages of a list, as plain links."""

from dataclasses import dataclass
from urllib.parse import urlencode


@dataclass(frozen=True)
class Pager:
    """For `parts/_pager.html`: links to the neighbours (empty where there is none) and where we are, in words."""

    newer_url: str = ""
    older_url: str = ""
    label: str = ""
    newer: str = "newer"
    older: str = "older"


def numbered(path: str, number: int, count: int, **query: str) -> Pager:
    """`page 2 of 9` over the pages 1 … count; `query` stays in the links."""

    def link(wanted: int) -> str:
        return f"{path}?{urlencode({**query, 'page': wanted})}" if 1 <= wanted <= count else ""

    return Pager(link(number - 1), link(number + 1), f"page {number} of {count}", "previous", "next")


def page_number(text: str | None, count: int) -> int:
    """The page asked for, held within 1 … count; 1 where it is not a number."""
    if text is None or not text.isascii() or not text.isdigit():
        return 1
    return max(1, min(int(text[:9]), count))
