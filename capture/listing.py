"""The list of recent hands as a page shows it, and the news since it was shown."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from urllib.parse import urlencode

from django.conf import settings

from agentlab.common.paging import Pager
from capture.links import TurnLinks
from capture.recent import OF_NEWER_ROWS, ONLY, RecentHand, RecentHands, known_of_all
from capture.sources import HandSource

# Hands that may still be in play when a page is drawn: one that goes on is no news.
STILL_MOVING = 8

KEPT = "kept"  # a list of its own, by when they were kept; beside what ONLY narrows to

NONE_SUCH = {  # why a narrowed list is empty
    "clamped": "No turn is known to have been clamped.",
    "reconnected": "No agent is known to have come back in the middle of a hand.",
    "fallback": "Every turn was decided: none fell back.",
    "lost": "No recorded turn was lost.",
    "kept": "No hand is kept. Keep one on its page, within a day of its being played.",
}


NOT_KNOWN = " Of the oldest turns it is not known."


@dataclass(frozen=True)
class Mark:
    """A word on a hand's line, and the first turn that it is about; `url` is "" where that is not known."""

    word: str
    kind: str
    url: str


@dataclass(frozen=True)
class Row:
    hand: RecentHand
    url: str
    agents: str
    open: bool
    marks: list[Mark]


@dataclass(frozen=True)
class Shown:
    """What a list was asked for: hands older than a cursor, of which kind alone, of which agent alone; empty: the
    newest, and all."""

    before: str = ""
    only: str = ""
    agent_id: str = ""


@dataclass(frozen=True)
class Choice:
    """A link to the list of one kind of hands."""

    word: str
    url: str
    chosen: bool


@dataclass(frozen=True)
class RecentList:
    hands: list[Row]
    pager: Pager
    choices: list[Choice]
    none: str  # what an empty list says
    agent: str  # whose hands alone these are; "": anybody's


def present_recent(
    recent: RecentHands,
    links: TurnLinks,
    names: Mapping[str, str],
    shown: Shown,
    *,
    open_hand: tuple[str, int] | None,
) -> RecentList:
    rows = [_row(hand, links, names, shown, (hand.table_id, hand.hand_number) == open_hand) for hand in recent.hands]
    return RecentList(
        rows,
        pager_of(links.base, recent, shown),
        choices_of(links.base, shown, kept=True),
        "" if rows else none_such(shown.only),
        names.get(shown.agent_id, shown.agent_id),
    )


def pager_of(path: str, recent: RecentHands, shown: Shown) -> Pager:
    older = list_url(path, replace(shown, before=recent.next_before)) if recent.next_before else ""
    return Pager(list_url(path, replace(shown, before="")) if shown.before else "", older, "", "newest")


def choices_of(path: str, shown: Shown, *, kept: bool = False) -> list[Choice]:
    """`kept`: with the kept hands among them."""
    words = ("", *ONLY, KEPT) if kept else ("", *ONLY)
    return [
        Choice(word or "all", list_url(path, replace(shown, only=word, before="")), word == shown.only)
        for word in words
    ]


def none_such(only: str) -> str:
    """Why a list narrowed to `only` is empty; another host's ledger may begin with anything."""
    is_known = not (settings.HOSTED_AGENT_URL and only in OF_NEWER_ROWS) and known_of_all(only)
    return NONE_SUCH.get(only, "") + ("" if is_known else NOT_KNOWN)


def ask_for(source: HandSource, shown: Shown) -> RecentHands:
    """The hands of anybody's that such a list shows. Raises what `source` does."""
    agent_ids = [shown.agent_id] if shown.agent_id else None
    if shown.only == KEPT:
        return source.recent_hands(shown.before or None, agent_ids=agent_ids, kept=True)
    return source.recent_hands(shown.before or None, agent_ids=agent_ids, only=shown.only)


def list_url(path: str, shown: Shown) -> str:
    query = {"agent": shown.agent_id, "only": shown.only, "before": shown.before}
    query = {name: value for name, value in query.items() if value}
    return f"{path}?{urlencode(query)}" if query else path


def _row(hand: RecentHand, links: TurnLinks, names: Mapping[str, str], shown: Shown, is_open: bool) -> Row:
    agents = ", ".join(names.get(agent_id, agent_id) for agent_id in hand.agent_ids)
    return Row(hand, hand_url(hand, links, shown.only), agents, is_open, marks_of(hand, lambda agent_id: links))


def hand_url(hand: RecentHand, links: TurnLinks, only: str = "") -> str:
    """In a list that is narrowed to `only`, straight to the first turn that put the hand there."""
    if only in hand.first:
        action_index, agent_id = hand.first[only]
        return links.turn(hand.table_id, hand.hand_number, agent_id, action_index)
    return links.hand(hand.table_id, hand.hand_number)


def marks_of(hand: RecentHand, links_of: Callable[[str], TurnLinks]) -> list[Mark]:
    """`links_of` an agent: where that agent's turns are shown to this reader."""
    fallback = "FALLBACK ONLY" if hand.fallback_only else f"{hand.fallbacks} FALLBACK"
    words = (
        ("fallback", hand.fallbacks, fallback),
        ("clamped", hand.clamped, f"{hand.clamped} CLAMPED"),
        ("reconnected", hand.reconnected, f"{hand.reconnected} RECONNECTED?"),
        ("lost", hand.lost, f"{hand.lost} LOST"),
    )
    marks = []
    for kind, count, word in words:
        place = hand.first.get(kind)
        if count:
            marks.append(Mark(word, kind, hand_url(hand, links_of(place[1]), kind) if place else ""))
    return marks


def news_query(recent: RecentHands, shown: Shown) -> str:
    """What a page that shows these hands asks with, to hear of newer ones."""
    newest = max((hand.last_played_at for hand in recent.hands), default=datetime.now(UTC))
    seen = [hand.title for hand in recent.hands[:STILL_MOVING]]
    query = {"since": newest.isoformat(), "seen": seen, "only": shown.only, "agent": shown.agent_id}
    return urlencode(query, doseq=True)


def count_news(recent: RecentHands, since: datetime, seen: set[str]) -> int:
    """How many of these hands are newer than what a page shows."""
    return sum(hand.last_played_at > since and hand.title not in seen for hand in recent.hands)
