"""The list of recent hands as a page shows it, and the news since it was shown."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlencode

from agentlab.common.paging import Pager
from capture.links import TurnLinks
from capture.recent import RecentHand, RecentHands

# Hands that may still be in play when a page is drawn: one that goes on is no news.
STILL_MOVING = 8


@dataclass(frozen=True)
class Row:
    title: str
    url: str
    played_at: datetime
    turns: int
    agents: str
    fallbacks: int
    fallback_only: bool
    clamped: int | None
    lost: int
    kept: int
    open: bool


@dataclass(frozen=True)
class RecentList:
    hands: list[Row]
    pager: Pager


def present_recent(
    recent: RecentHands, links: TurnLinks, names: Mapping[str, str], *, before: str, open_hand: tuple[str, int] | None
) -> RecentList:
    rows = [_row(hand, links, names, (hand.table_id, hand.hand_number) == open_hand) for hand in recent.hands]
    older = f"{links.base}?{urlencode({'before': recent.next_before})}" if recent.next_before else ""
    return RecentList(rows, Pager(links.base if before else "", older, "", "newest"))


def _row(hand: RecentHand, links: TurnLinks, names: Mapping[str, str], is_open: bool) -> Row:
    return Row(
        f"{hand.table_id}:{hand.hand_number}",
        links.hand(hand.table_id, hand.hand_number),
        hand.last_played_at,
        hand.turns,
        ", ".join(names.get(agent_id, agent_id) for agent_id in hand.agent_ids),
        hand.fallbacks,
        hand.fallback_only,
        hand.clamped,
        hand.lost,
        hand.kept,
        is_open,
    )


def news_query(recent: RecentHands) -> str:
    """What a page that shows these hands asks with, to hear of newer ones."""
    newest = max((hand.last_played_at for hand in recent.hands), default=datetime.now(UTC))
    seen = [f"{hand.table_id}:{hand.hand_number}" for hand in recent.hands[:STILL_MOVING]]
    return urlencode({"since": newest.isoformat(), "seen": seen}, doseq=True)


def count_news(recent: RecentHands, since: datetime, seen: set[str]) -> int:
    """How many of these hands are newer than what a page shows."""
    return sum(
        hand.last_played_at > since and f"{hand.table_id}:{hand.hand_number}" not in seen for hand in recent.hands
    )
