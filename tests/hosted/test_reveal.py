"""Who sees what at a table."""

import ast
import random
import re
from pathlib import Path

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from agentlab.hosted import reveal
from agentlab.hosted.frames import encode
from agentlab.hosted.game import Hand, deal, seat_order, shuffled
from agentlab.hosted.reveal import SeatFacts, TableFacts
from tests.hosted.hands import make_hand, play

HOSTED = Path(reveal.__file__).parent


def facts(count: int) -> TableFacts:
    seats = [SeatFacts(seat, f"agent-{seat}", 1000, True, 100 + seat) for seat in range(count)]
    return TableFacts("t1", 5, 0, count - 1, 50, 100, 0, seats)


def cards_in(text: str) -> set[str]:
    """Every card in a frame: a quoted string of a rank and a suit."""
    return set(re.findall(r'"([2-9TJQKA][cdhs])"', text))


@settings(deadline=None, max_examples=100)
@given(seed=st.integers(0, 2**32), count=st.integers(2, 9), choice=st.randoms(use_true_random=False))
def test_no_viewer_is_sent_anothers_hole_cards_before_they_are_shown(
    seed: int, count: int, choice: random.Random
) -> None:  # HA-9
    stacks = [choice.choice([150, 1000, 10_000]) for _ in range(count)]
    hand = Hand(deal(shuffled(seed, 1), stacks, small_blind=50, big_blind=100), seat_order(range(count), count - 1))
    table = facts(count)
    while True:
        view = hand.view()
        public = set(view.board) | {card for player in view.players.values() if player.shown for card in player.cards}
        for viewer in (*range(count), None):
            own = set(view.players[viewer].cards) if viewer is not None else set()
            assert cards_in(encode(reveal.game_state(table, view, viewer))) <= public | own
        if hand.over:
            break
        assert not any(player.shown for player in view.players.values())
        legal = hand.legal()
        move = choice.choice(legal.moves)
        hand.act(move, choice.choice([legal.least, legal.most]) if move == "raise" else None)
    agents = {seat: f"agent-{seat}" for seat in range(count)}
    assert cards_in(encode(reveal.hand_result(table, hand, agents))) <= public
    live = [player for player in view.players.values() if player.status != "folded"]
    assert len(live) > 1 or not any(player.shown for player in view.players.values())


def test_a_viewer_sees_its_own_cards_and_what_it_owes() -> None:  # HA-9
    hand = make_hand([1000] * 3, cards=["2c7d", "AhAs", "KhKs"])
    mine = reveal.game_state(facts(3), hand.view(), 2)
    other = reveal.game_state(facts(3), hand.view(), 0)
    assert (mine.hole_cards, mine.to_call, mine.deployment_id) == (["Kh", "Ks"], 100, 102)
    assert (other.hole_cards, other.to_call, other.deployment_id) == (["2c", "7d"], None, 100)


def test_frames_for_two_viewers_differ_in_the_private_fields_alone() -> None:  # HA-9
    hand = play(make_hand([1000] * 3), "c")
    first, second = (msgspec.structs.asdict(reveal.game_state(facts(3), hand.view(), seat)) for seat in (0, 1))
    differ = {name for name in first if first[name] != second[name]}
    assert differ <= {*reveal.VIEWER_PRIVATE, "your_seat"}
    assert "hole_cards" in differ


def test_somebody_without_a_seat_sees_only_what_lies_open() -> None:  # HA-9
    state = reveal.game_state(facts(3), make_hand([1000] * 3).view(), None)
    assert [getattr(state, name) for name in reveal.VIEWER_PRIVATE] == [None, None, None]
    assert cards_in(encode(state)) == set()


def test_shown_hands_are_shown_to_everybody_and_mucked_ones_to_nobody() -> None:  # HA-9
    # The last to act shows first; a hand that cannot win any more is not shown.
    hand = make_hand([1000] * 3, cards=["KhKs", "2c7d", "AhAs"], board="Qc9d5s4h3c")
    play(hand, "c", "c", "c", *"ccc", *"ccc", "c", "c", 200, "c", "f")
    state = reveal.game_state(facts(3), hand.view(), 1)
    assert {seat.seat: seat.cards for seat in state.seats} == {0: None, 1: None, 2: ["Ah", "As"]}


def test_all_in_hands_are_shown_to_everybody_the_losers_too() -> None:  # HA-9
    hand = make_hand([1000, 1000], cards=["AhAd", "KhQc"], board="As7c7d2s3h")
    play(hand, 1000, "c")
    state = reveal.game_state(facts(2), hand.view(), None)
    result = reveal.hand_result(facts(2), hand, {0: "agent-0", 1: "agent-1"})
    for seats in (state.seats, result.seats):
        assert [seat.cards for seat in seats] == [["Ah", "Ad"], ["Kh", "Qc"]]


def test_folded_all_in_active_and_absent_are_four_words_in_the_frame() -> None:  # HA-9
    hand = play(make_hand([10_000, 10_000, 10_000, 300]), "f", 300)
    state = reveal.game_state(facts(5), hand.view(), 0)
    assert [(seat.status, seat.stack, seat.bet) for seat in state.seats] == [
        ("active", 9950, 50),
        ("active", 9900, 100),
        ("folded", 10_000, 0),
        ("all_in", 0, 300),
        ("out", 1000, 0),
    ]


def test_only_reveal_makes_the_frames_that_hold_cards() -> None:  # HA-9
    makers = set()
    for path in HOSTED.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if name in {"GameState", "HandResult", "SeatView", "SeatResult"}:
                    makers.add(path.name)
    assert makers == {"reveal.py"}
