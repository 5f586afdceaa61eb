"""The rows of an owner's lists."""

from datetime import UTC, datetime

from capture.agent_cards import hand_rows
from capture.recent import RecentHand


def test_a_mark_leads_to_turns_of_the_readers_own_agents_alone() -> None:  # RD-3, VW-7
    first = {"fallback": (3, "rocky"), "lost": (1, "a/rival")}
    hand = RecentHand("main", 1, 2, 1, 0, 1, ["rocky"], ["fold"], datetime(2026, 1, 1, tzinfo=UTC), first=first)
    for only in ("", "lost"):
        [row] = hand_rows([hand], {"rocky": "Rocky"}, only)
        assert [(mark.kind, bool(mark.url)) for mark in row.marks] == [("fallback", True), ("lost", False)]
        assert row.players[0].url == "/agents/rocky/hand?table=main&hand=1"
