"""Lists of hands and an agent's day, off a ledger that grows for ever."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from agentlab.agents.models import InferenceCharge
from capture.models import AgentCallRecord
from capture.pinning import pin
from capture.recent import AgentDay, Neighbours, RecentHands, last_day, neighbours, recent_hands
from tests.capture.making import TABLE, charge, charge_all, play, result, turn

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("capture_redis")]
START = datetime(2026, 11, 1, tzinfo=UTC)


def hands(page: RecentHands) -> list[int]:
    return [hand.hand_number for hand in page.hands]


def test_a_hand_stands_where_its_last_turn_was_played() -> None:  # RD-6, VW-1
    for hand, minutes in ((1, (0, 30)), (2, (10, 20)), (3, (25, 26))):
        charge_all(*(charge(index=i, hand=hand, played_at=START + timedelta(minutes=m)) for i, m in enumerate(minutes)))
    assert hands(recent_hands()) == [1, 3, 2]


def test_turns_of_one_moment_still_page_without_a_gap_or_a_repeat() -> None:  # RD-6
    charge_all(*(charge(index=index, hand=hand, played_at=START) for hand in range(7) for index in range(3)))
    seen: list[int] = []
    before = None
    for _ in range(4):
        page = recent_hands(before, limit=2)
        seen += hands(page)
        before = page.next_before
    assert (sorted(seen), before) == (list(range(7)), None)


@pytest.mark.parametrize(
    ("only", "found"),
    [("clamped", [5, 2]), ("fallback", [3]), ("lost", [4]), ("reconnected", [6]), ("", [6, 5, 4, 3, 2, 1])],
)
def test_a_list_may_be_narrowed_to_hands_that_have_such_a_turn(only: str, found: list[int]) -> None:  # VW-1, RD-6
    odd = {2: {"change": "clamp"}, 3: {"is_fallback": True}, 4: {"capture_outcome": "failed"}, 5: {"change": "clamp"}}
    odd |= {1: {"note": "log_gap"}, 6: {"note": "reconnected"}}
    for hand in range(1, 7):
        at = START + timedelta(minutes=hand)
        charge_all(charge(index=0, hand=hand), charge(index=1, hand=hand, played_at=at, **odd.get(hand, {})))
    page = recent_hands(only=only)
    assert hands(page) == found
    assert all(hand.turns == 2 for hand in page.hands)  # of all its turns, not of such alone
    assert all(hand.has(only) for hand in page.hands if only)


def test_a_narrowed_list_is_paged_and_may_be_one_agents() -> None:  # RD-6, RD-3
    for hand in range(6):
        name, at = "rocky" if hand % 2 else "nit", START + timedelta(minutes=hand)
        charge_all(charge(name, hand=hand, played_at=at, change="clamp"), charge("rocky", 1, hand=hand, played_at=at))
    first = recent_hands(limit=4, only="clamped")
    assert hands(first) + hands(recent_hands(first.next_before, 4, only="clamped")) == [5, 4, 3, 2, 1, 0]
    assert hands(recent_hands(agent_ids=["rocky"], only="clamped")) == [5, 3, 1]


@pytest.mark.parametrize("asked", [{"only": "odd"}, {"only": "lost", "kept": True}])
def test_a_list_by_another_word_is_refused(asked: dict[str, Any]) -> None:  # SF-4
    with pytest.raises(ValueError, match="not listed by that"):
        recent_hands(**asked)


def test_a_line_counts_turns_fallbacks_losses_and_kept_ones() -> None:  # VW-1
    play([turn("rocky", 0), turn("nit", 1)])
    charge_all(charge("nit", 2, is_fallback=True), charge("rocky", 3, capture_outcome="dropped"))
    pin(TABLE, 7, agent_id="rocky", actor=None)
    (hand,) = recent_hands().hands
    assert (hand.turns, hand.fallbacks, hand.lost, hand.kept, hand.fallback_only) == (4, 1, 1, 1, False)
    assert (hand.agent_ids, hand.actions) == (["rocky", "nit"], ["call", "call", "fold", "call"])


@pytest.mark.parametrize(
    ("words", "clamped"),
    [
        (["", "clamp", "verb", "clamp"], 2),
        (["", "rename", "all_in", "verb"], 0),
        ([None, "clamp"], 1),
        ([None, None], None),
        (["", None], None),
        (["", "a word of later"], 0),
    ],
)
def test_a_line_counts_the_clamped_turns_it_knows_of_and_an_unknown_one_is_not_none(
    words: list[str | None], clamped: int | None
) -> None:  # VW-1, HA-10
    charge_all(*(charge("rocky", index, change=word) for index, word in enumerate(words)))
    charge_all(charge("nit", 9, is_fallback=True))  # whose choice there was none of
    assert recent_hands().hands[0].clamped == clamped
    assert recent_hands(agent_ids=["nit"]).hands[0].clamped == 0


@pytest.mark.parametrize(
    ("words", "reconnected"),
    [
        (["", "reconnected", "log_gap", "reconnected"], 2),
        (["", "log_gap"], 0),
        ([None, "reconnected"], 1),
        (["", None], None),
    ],
)
def test_a_line_counts_the_turns_that_seem_to_have_begun_in_the_middle(
    words: list[str | None], reconnected: int | None
) -> None:  # VW-9, HA-10
    charge_all(*(charge("rocky", index, note=word) for index, word in enumerate(words)))
    assert recent_hands().hands[0].reconnected == reconnected


def test_of_kept_hands_that_outlived_their_ledger_it_is_not_known_what_was_clamped() -> None:  # VW-7
    play([turn("rocky", 0, change="clamp")])
    pin(TABLE, 7, agent_id="rocky", actor=None)
    InferenceCharge.objects.all().delete()
    assert recent_hands(kept=True).hands[0].clamped is None


def test_a_list_for_some_agents_counts_their_turns_alone() -> None:  # SF-1
    charge_all(charge("rocky", 0), charge("nit", 1, is_fallback=True), charge("nit", 0, hand=8))
    (hand,) = recent_hands(agent_ids=["rocky"]).hands
    assert (hand.hand_number, hand.turns, hand.fallbacks, hand.agent_ids) == (7, 1, 0, ["rocky"])
    assert recent_hands(agent_ids=[]).hands == []
    assert hands(recent_hands(agent_ids=["nit"])) == [7, 8]


def test_fallback_only_is_marked() -> None:  # VW-1
    charge_all(charge("rocky", 0, is_fallback=True), charge("nit", 1, is_fallback=True))
    assert recent_hands().hands[0].fallback_only


def test_kept_hands_come_last_kept_first_and_outlive_their_ledger() -> None:  # VW-7, E-AFT-7
    for hand in (1, 2, 3):
        play([turn("rocky", 0, hand=hand)])
    for hand in (2, 3, 1):
        pin(TABLE, hand, agent_id="rocky", actor=None)
    InferenceCharge.objects.all().delete()
    page = recent_hands(kept=True)
    assert hands(page) == [1, 3, 2]
    first = page.hands[0]
    assert (first.agent_ids, first.turns, first.kept, first.fallback_only) == (["rocky"], 0, 1, False)
    assert first.last_played_at == AgentCallRecord.objects.get(hand_number=1).pinned_at


@pytest.mark.parametrize("cursor", ["", "x", "1", "1.", "-1.5", "1.5\n", "٣.٣", "9" * 18 + ".1", "1." + "9" * 19])
def test_a_cursor_that_is_none_of_ours_is_refused(cursor: str) -> None:  # SF-4
    with pytest.raises(ValueError, match="no page"):
        recent_hands(cursor)


@pytest.mark.parametrize(("asked", "given"), [(0, 1), (-5, 1), (3, 3), (10**9, 100)])
def test_the_size_of_a_page_has_bounds(asked: int, given: int) -> None:  # SF-4
    charge_all(*(charge(hand=hand) for hand in range(101)))
    assert len(recent_hands(limit=asked).hands) == given


def test_a_deep_page_begins_at_its_place_and_walks_over_nothing_newer() -> None:  # VW-10, RD-6
    from capture.recent import _cursor, _last_of_each_hand, _of_agents, _older_than

    charge_all(*(charge(index=index, hand=hand) for hand in range(300) for index in range(4)))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE agent_inference_charges" if connection.vendor == "postgresql" else "ANALYZE")
    place = _older_than(_cursor(START, 5), "played_at")
    plan = _last_of_each_hand(_of_agents(InferenceCharge, None), "played_at").filter(place)[:26].explain()
    assert any(bound in plan for bound in ("Index Cond: (played_at <=", "(played_at<?"))


def test_is_there_a_later_turn_is_answered_by_one_look_at_an_index() -> None:  # VW-10
    from capture.recent import _last_of_each_hand, _of_agents

    charge_all(*(charge(index=index, hand=hand) for hand in range(3) for index in range(400)))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        if connection.vendor == "postgresql":  # of so few rows it would read all
            cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off")
            cursor.execute("SET LOCAL enable_mergejoin = off; SET LOCAL enable_bitmapscan = off")
    for agents in (None, ["rocky"]):
        plan = _last_of_each_hand(_of_agents(InferenceCharge, agents), "played_at")[:26].explain()
        assert "charge_last_of_hand" in plan


def test_a_list_of_several_agents_pages_through_each_of_their_hands_once() -> None:  # RD-6, VW-7
    for hand in range(20):
        players = ("rocky", "nit", "rocky") if hand % 3 else ("bluffy", "nit", "bluffy")
        at = START + timedelta(minutes=hand)
        charge_all(*(charge(who, index, hand=hand, played_at=at) for index, who in enumerate(players)))
    seen: list[int] = []
    before = None
    while True:
        page = recent_hands(before, limit=3, agent_ids=["rocky", "bluffy", "rocky", "nobody"])
        seen += hands(page)
        if not (before := page.next_before):
            break
    assert seen == list(range(19, -1, -1))


def test_a_list_walks_an_index_and_never_sorts_the_ledger() -> None:  # VW-1, PF-4
    from capture.recent import _last_of_each_hand, _of_agents

    charge_all(*(charge(index=index, hand=hand) for hand in range(300) for index in range(4)))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE agent_inference_charges" if connection.vendor == "postgresql" else "ANALYZE")
    for agents, index in ((None, "charge_recent"), (["rocky"], "charge_recent")):
        plan = _last_of_each_hand(_of_agents(InferenceCharge, agents), "played_at")[:26].explain()
        assert index in plan
        if connection.vendor == "sqlite":
            assert "USE TEMP B-TREE FOR ORDER BY" not in plan


@pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite does not see that one condition implies the other"
)
@pytest.mark.parametrize("only", ["clamped", "fallback", "lost", "reconnected"])
def test_a_narrowed_list_walks_the_index_of_marked_turns_alone(only: str) -> None:  # VW-1, PF-4
    from capture.recent import ONLY, _last_of_each_hand, _of_agents

    charge_all(*(charge(index=index, hand=hand) for hand in range(500) for index in range(4)))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE agent_inference_charges")
    for agents, index in ((None, "charge_marked"), (["rocky"], "charge_marked")):
        such = _of_agents(InferenceCharge, agents).filter(ONLY[only])
        assert index in _last_of_each_hand(such, "played_at")[:26].explain()


def test_a_day_is_the_last_24_hours_and_an_unknown_cost_is_not_zero() -> None:  # VW-7
    now = timezone.now()
    yesterday = now - timedelta(hours=23, minutes=59)
    charge_all(
        charge("rocky", 0, played_at=yesterday, cost=Decimal("0.1")),
        charge("rocky", 1, played_at=now, cost=None),
        charge("rocky", 2, played_at=now, is_fallback=True, cost=Decimal("0.2")),
        charge("rocky", 3, played_at=now - timedelta(hours=24, seconds=1), cost=Decimal("9")),
        charge("nit", 4, played_at=yesterday, cost=None),
    )
    assert last_day(["rocky", "nit", "bluffy"]) == {
        "rocky": AgentDay(3, 1, Decimal("0.3"), 0, None),
        "nit": AgentDay(1, 0, None, 0, None),
        "bluffy": AgentDay(0, 0, None, 0, 0),
    }


def test_clamped_turns_of_a_day_are_counted_where_it_is_known_of_all_or_of_one() -> None:  # VW-3
    now = timezone.now()
    charge_all(
        charge("rocky", 0, played_at=now, change="clamp"),
        charge("rocky", 1, played_at=now, change=None),
        charge("nit", 2, played_at=now, change=""),
        charge("nit", 3, played_at=now, is_fallback=True),
        charge("bluffy", 4, played_at=now, change="rename"),
        charge("bluffy", 5, played_at=now, change=None),
    )
    days = last_day(["rocky", "nit", "bluffy"])
    assert {agent: day.clamped for agent, day in days.items()} == {"rocky": 1, "nit": 0, "bluffy": None}


def test_a_day_counts_what_was_lost() -> None:  # CAP-10, VW-7
    now = timezone.now()
    for index, outcome in enumerate(("dropped", "failed", "recorded", "pending")):
        charge_all(charge("rocky", index, played_at=now, capture_outcome=outcome))
    assert {agent: day.lost for agent, day in last_day(["rocky", "nit"]).items()} == {"rocky": 2, "nit": 0}


def test_a_hands_neighbours_are_the_agents_own_in_the_order_of_the_list() -> None:  # VW-7
    at = [START + timedelta(minutes=minutes) for minutes in range(5)]
    charge_all(
        charge("rocky", 0, hand=1, played_at=at[0]),
        charge("rocky", 4, hand=1, played_at=at[0]),
        charge("nit", 0, hand=2, played_at=at[1]),
        charge("rocky", 0, table="T-2", hand=1, played_at=at[2]),
        charge("rocky", 0, hand=9, played_at=at[3]),
        charge("rocky", 1, hand=10, played_at=at[3]),  # at the very same time
        charge("nit", 3, hand=9, played_at=at[4]),
    )
    listed = [(hand.table_id, hand.hand_number) for hand in recent_hands(agent_ids=["rocky"]).hands]
    assert listed == [(TABLE, 10), (TABLE, 9), ("T-2", 1), (TABLE, 1)]
    for place, (newer, older) in zip(listed, zip([None, *listed], [*listed[1:], None], strict=False), strict=True):
        assert neighbours(*place, agent_id="rocky") == Neighbours(older=older, newer=newer)
    assert neighbours(TABLE, 2, agent_id="rocky") == Neighbours()


def test_neighbours_are_found_without_sorting_the_ledger(django_assert_num_queries) -> None:  # PF-4
    charge_all(*(charge(index=index, hand=hand) for hand in range(100) for index in range(4)))
    with django_assert_num_queries(3):
        found = neighbours(TABLE, 50, agent_id="rocky")
    assert (found.older, found.newer) != (None, None)


def test_a_hand_knows_the_versions_that_played_it() -> None:  # VW-7
    charge_all(
        charge("rocky", 0, agent_version_id="rocky-v2"),
        charge("nit", 1, agent_version_id="nit-v1"),
        charge("rocky", 2, agent_version_id="rocky-v2"),
        charge("rocky", 3, agent_version_id=None),
        charge("rocky", 4, agent_version_id="rocky-v3"),
    )
    assert recent_hands().hands[0].agent_version_ids == ["rocky-v2", "nit-v1", "rocky-v3"]
    assert recent_hands(agent_ids=["nit"]).hands[0].agent_version_ids == ["nit-v1"]


def test_kept_hands_are_counted_as_hands_and_per_agent() -> None:  # VW-7
    play(
        [turn("rocky", index, hand=hand, table=table) for index in (0, 1) for hand in (1, 11) for table in ("T", "T:1")]
    )
    play([turn("nit", 0, hand=1, table="T")])
    for table, hand in (("T", 1), ("T", 11), ("T:1", 1)):
        pin(table, hand, agent_id="rocky", actor=None)
    assert {agent: day.kept_hands for agent, day in last_day(["rocky", "nit"]).items()} == {"rocky": 3, "nit": 0}


def test_a_hand_says_what_it_came_to_for_the_agents_that_are_asked_for() -> None:  # VW-1, VW-7, SF-1
    charge_all(charge("rocky", 0), charge("nit", 1), charge("rocky", 0, hand=8, played_at=START))
    for agent, net in (("rocky", -48), ("nit", 48)):
        result(agent, net)
    assert [hand.net for hand in recent_hands().hands] == [{"nit": 48, "rocky": -48}, {}]
    assert [hand.net for hand in recent_hands(agent_ids=["rocky"]).hands] == [{"rocky": -48}, {}]


def test_a_list_takes_four_queries_however_many_hands_it_has(django_assert_num_queries) -> None:  # PF-4
    for hand in range(30):
        charge_all(charge("rocky", 0, hand=hand), charge("nit", 1, hand=hand))
        result("rocky", hand, hand=hand)
    for limit in (2, 25):
        with django_assert_num_queries(4):
            assert len(recent_hands(limit=limit).hands) == limit


def test_a_days_chips_are_of_the_hands_whose_result_is_known_and_none_is_not_zero() -> None:  # VW-7
    now = timezone.now()
    result("rocky", 100, hand=1, ended_at=now)
    result("rocky", -148, hand=2, ended_at=now - timedelta(hours=23))
    result("rocky", 999, hand=3, ended_at=now - timedelta(hours=25))
    result("nit", 0, hand=1, ended_at=now)
    days = last_day(["rocky", "nit", "bluffy"])
    assert {agent: (day.net, day.hands) for agent, day in days.items()} == {
        "rocky": (-48, 2),
        "nit": (0, 1),
        "bluffy": (None, 0),
    }
