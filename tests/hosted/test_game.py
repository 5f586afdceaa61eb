"""One hand: the rules of poker as the table plays them. The cases are faults that other poker software has had."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentlab.hosted.game import Deal, Hand, IllegalMove, deal, next_button, seat_order, shuffled
from tests.hosted.hands import make_hand, play, stacks
from tests.hosted.reckoning import Reckoning

DEEP = 10_000


# Raises and all-ins -------------------------------------------------------------------------------------------
def test_a_short_all_in_after_a_full_all_in_raise_leaves_call_or_fold_to_who_acted() -> None:  # HA-9
    hand = play(make_hand([19, 200, 16, 200], blinds=(1, 2)), 16, "c", 19, "c")
    assert hand.to_act == 3
    assert hand.legal().moves == ("fold", "call")
    assert hand.legal().call == 3


def test_a_short_big_blind_does_not_lower_the_price() -> None:  # HA-9
    hand = make_hand([DEEP, 60, DEEP])
    assert (hand.to_act, hand.legal().call, hand.legal().least) == (2, 100, 200)
    play(hand, "c")
    assert (hand.legal().call, hand.legal().least) == (50, 200)


def test_a_raise_over_a_short_big_blind_sets_the_next_by_its_real_size() -> None:  # HA-9
    hand = play(make_hand([DEEP, 60, DEEP, DEEP]), 250)
    assert hand.legal().least == 400  # 150 more than the whole blind


def test_a_stack_between_a_short_big_blind_and_the_whole_one_may_call_all_in_for_less() -> None:  # HA-9
    hand = play(make_hand([DEEP, 60, 80, DEEP]), "c")
    assert hand.view().players[2].status == "all_in"
    assert hand.legal().call == 100


def test_against_a_short_big_blind_alone_the_small_blind_owes_only_what_counts() -> None:  # HA-9
    hand = make_hand([60, DEEP])
    assert (hand.to_act, hand.legal().moves, hand.legal().call) == (1, ("fold", "call"), 10)


def test_the_least_raise_is_not_cut_by_the_opponents_stack() -> None:  # HA-9
    hand = play(make_hand([200, 1000], blinds=(10, 20)), 100, 180)
    assert hand.legal().least == 260


def test_once_the_other_is_all_in_the_answer_is_a_call() -> None:  # HA-9
    hand = play(make_hand([500, 500]), 500)
    assert hand.legal().moves == ("fold", "call")
    assert play(hand, "c").over


def test_chips_beyond_the_call_can_be_raised_with_even_below_a_full_raise() -> None:  # HA-9
    hand = play(make_hand([DEEP, DEEP, DEEP, 90], blinds=(5, 10)), 60)
    legal = hand.legal()
    assert (legal.call, legal.least, legal.most) == (60, 90, 90)


@pytest.mark.parametrize("stack", [1000.25, float("nan"), float("inf"), True, "1000", None])
def test_only_whole_chips_come_to_the_table(stack: object) -> None:  # HA-9
    with pytest.raises(ValueError, match="whole numbers"):
        Deal((1000, stack), (50, 100), (0, 0), 100, (("Ah", "As"), ("Kh", "Ks")), ("2c", "3c", "4c", "5d", "6d"))  # type: ignore[arg-type]


def test_all_in_takes_everything() -> None:  # HA-9
    hand = play(make_hand([1001, 1001]), 1001, "c")
    assert sorted(stacks(hand)) in ([0, 2002], [1001, 1001])


def test_a_call_that_takes_the_whole_stack_offers_no_raise() -> None:  # HA-9
    hand = play(make_hand([DEEP, DEEP, DEEP, 200]), 210)
    assert hand.legal().moves == ("fold", "call")
    assert hand.legal().call == 200


def test_the_least_raise_does_not_count_chips_already_in() -> None:  # HA-9
    hand = play(make_hand([DEEP] * 3, blinds=(5, 10)), 30)
    assert hand.legal().least == 50


def test_a_raise_grows_by_the_last_raise_and_need_not_double() -> None:  # HA-9
    hand = play(make_hand([DEEP, DEEP]), 200, 2179)
    assert hand.legal().least == 2179 + 1979
    play(hand, 4200)
    assert hand.legal().call == 4200 - 2179


def test_a_check_against_a_bet_is_refused_and_changes_nothing() -> None:  # HA-9
    hand = play(make_hand([DEEP] * 3, blinds=(10, 20)), "c", "c", "c", 20)
    before = hand.view()
    with pytest.raises(IllegalMove, match="check is not legal"):
        hand.act("check")
    assert hand.view() == before


def test_no_stack_falls_below_nothing() -> None:  # HA-9
    hand = make_hand([DEEP, DEEP, 4], blinds=(1, 2))
    assert hand.legal().most == 4
    with pytest.raises(IllegalMove):
        hand.act("raise", 8)
    play(hand, 4)
    assert hand.view().players[2].stack == 0


@pytest.mark.parametrize("amount", [float("nan"), float("inf"), 200.5, 300.0, True, "300", None, -1, 0, 10**30])
def test_an_amount_that_is_no_legal_whole_number_is_refused(amount: object) -> None:  # HA-9
    hand = make_hand([DEEP] * 3)
    before = hand.view()
    with pytest.raises(IllegalMove):
        hand.act("raise", amount)  # type: ignore[arg-type]
    assert hand.view() == before


def test_a_bet_above_the_stack_is_refused_and_never_becomes_nothing() -> None:  # HA-9
    hand = make_hand([DEEP, DEEP, 800])
    with pytest.raises(IllegalMove, match="between 200 and 800"):
        hand.act("raise", 5000)
    assert hand.view().players[2].bet == 0


def test_an_all_in_below_the_call_is_a_call() -> None:  # HA-9
    hand = play(make_hand([DEEP, DEEP, DEEP, 300]), 500)
    done = hand.act("call")
    assert (done.amount, done.all_in) == (300, True)
    assert hand.view().players[3].status == "all_in"


def test_a_first_short_all_in_does_not_let_a_limper_raise_again_but_the_blinds_may() -> None:  # HA-9
    hand = play(make_hand([DEEP, DEEP, DEEP, 150]), "c", 150)
    assert (hand.to_act, hand.legal().least) == (0, 250)
    play(hand, "c")
    assert (hand.to_act, hand.legal().least) == (1, 250)
    play(hand, "c")
    assert (hand.to_act, hand.legal().moves) == (2, ("fold", "call"))


def test_a_short_bet_does_not_let_a_player_raise_who_checked() -> None:  # HA-9
    hand = play(make_hand([DEEP, 130, DEEP]), "c", "c", "c", "c", 30, "c")
    assert (hand.to_act, hand.legal().moves) == (0, ("fold", "call"))


def test_short_all_ins_that_add_up_to_a_full_raise_let_everybody_raise() -> None:  # HA-9
    # From the flop, with 100 in from everyone before it: bet 100, call, all-in 160, all-in 220, all-in 270.
    hand = play(make_hand([DEEP, DEEP, 260, 320, 370]), *"ccccc", 100, "c", 160, 220, 270)
    assert (hand.to_act, hand.legal().call, hand.legal().least) == (0, 170, 370)
    play(hand, "c")
    assert (hand.to_act, hand.legal().call, hand.legal().least) == (1, 170, 370)


# Pots, blinds, order ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "moves",
    [
        (100, "f", "f", "f", "c", "c", "f"),
        ("c", "f", "f", "f", 100, "c", "f", "c"),
        ("c", "f", "f", "f", "c", 100, "f", "c", "c"),
    ],
    ids=["the loser shows first", "the one shows first", "the other shows first"],
)
def test_an_odd_chip_goes_to_the_first_winner_left_of_the_button_whoever_shows_first(
    moves: tuple[str | int, ...],
) -> None:
    """HA-9: seven antes, three all-ins; indices 0 and 6 tie, and the dead hand between them moves no chip."""
    cards = ["AhKh", "2c7d", "QsJc", "3c8d", "4c9d", "2d7h", "AsKs"]
    hand = make_hand([101] * 7, blinds=(1, 2), antes=[1] * 7, cards=cards, board="AcKc5h6s9s")
    play(hand, *moves)
    assert hand.settlement().pots == ((309, {0: 155, 6: 154}),)
    assert sum(stacks(hand)) == 707


def test_each_pot_is_paid_among_its_own_players() -> None:  # HA-9
    # Index 0 has the best hand for 100; 1 and 2 tie for the side pot of 300; 2's last 250 came back uncalled.
    hand = make_hand([100, 250, 500], cards=["AhAd", "KhQc", "KdQs"], board="As7c7d2s3h")
    play(hand, 500, "c", "c")
    settled = hand.settlement()
    assert settled.pots == ((300, {0: 300}), (300, {1: 150, 2: 150}))
    assert stacks(hand) == [300, 150, 400]
    assert settled.outcomes[2].returned == 250


def test_the_second_winner_of_a_side_pot_gets_his_share_of_an_odd_one() -> None:  # HA-9
    hand = make_hand([101, 250, 251], cards=["AhAd", "KhQc", "KdQs"], board="As7c7d2s3h")
    play(hand, 251, "c", "c")
    assert hand.settlement().pots == ((303, {0: 303}), (298, {1: 149, 2: 149}))


def test_an_all_in_that_all_others_fold_to_gets_the_blinds_and_its_own_chips_back() -> None:  # HA-9
    hand = play(make_hand([1000, 1000]), 1000, "f")
    outcome = hand.settlement().outcomes[1]
    assert (outcome.won, outcome.returned, outcome.net, outcome.stack) == (200, 900, 100, 1100)
    assert hand.settlement().showdown is False


def test_what_nobody_called_is_returned_and_not_won() -> None:  # HA-9
    hand = make_hand([400, 1000], cards=["AhAd", "KhQc"], board="As7c7d2s3h")
    play(hand, 1000, "c")
    loser, winner = hand.settlement().outcomes[1], hand.settlement().outcomes[0]
    assert (loser.put_in, loser.returned, loser.won, loser.stack) == (1000, 600, 0, 600)
    assert (winner.won, winner.returned, winner.stack) == (800, 0, 800)


def test_with_two_players_the_button_posts_small_acts_first_and_then_last() -> None:  # HA-9
    hand = make_hand([DEEP, DEEP], seats=(4, 7))
    assert (hand.button, hand.to_act) == (7, 7)
    assert (hand.view().players[7].bet, hand.view().players[4].bet) == (50, 100)
    play(hand, "c", "c")
    assert (hand.view().street, hand.to_act) == ("flop", 4)


def test_with_two_players_and_equal_blinds_the_button_is_still_first() -> None:  # HA-9
    hand = make_hand([DEEP, DEEP], blinds=(5, 5))
    assert (hand.to_act, hand.legal().moves) == (1, ("check", "raise"))
    play(hand, "c", "c")
    assert (hand.view().street, hand.to_act) == ("flop", 0)


def test_a_stack_too_short_for_its_ante_wins_only_as_much_of_the_others() -> None:  # HA-9
    deck = ["Ah", "7d", "8c", "As", "2c", "3d", "Ac", "Kc", "9h", "6s", "4s"]
    hand = Hand(deal(deck, [1, 300, 300], small_blind=1, big_blind=3, ante=3), (0, 1, 2))
    play(hand, *"cccccccc")
    assert hand.settlement().outcomes[0].stack == 3


def test_each_side_pot_is_split_by_itself_down_to_its_odd_chip() -> None:  # HA-9
    # Five put in 5 and three of them 7 more; indices 1 and 2 tie for both pots.
    cards = ["2c3c", "AhKh", "AdKd", "7d2s", "2h3h"]
    hand = make_hand([5, 12, 12, 500, 500], blinds=(1, 2), cards=cards, board="AcKc5h6s9s")
    play(hand, 5, "c", "c", "c", 12, "c", "c", "f")
    assert hand.settlement().pots == ((25, {1: 13, 2: 12}), (21, {1: 11, 2: 10}))
    assert stacks(hand) == [0, 24, 22, 488, 495]


def test_three_players_that_become_two_keep_the_order() -> None:  # HA-9
    button = next_button([0, 1, 2], None)
    assert seat_order([0, 1, 2], button) == (1, 2, 0)
    button = next_button([0, 2], button)  # seat 1 is out
    assert (button, seat_order([0, 2], button)) == (2, (0, 2))
    hand = make_hand([DEEP, DEEP], seats=seat_order([0, 2], button))
    assert (hand.to_act, hand.view().players[2].bet) == (2, 50)


def test_the_seat_left_of_the_button_is_first_on_the_flop() -> None:  # HA-9
    hand = make_hand([DEEP] * 6, seats=seat_order(range(6), 2))
    assert hand.view().players[3].bet == 50
    assert hand.view().players[4].bet == 100
    assert hand.to_act == 5
    play(hand, *"cccccc")
    assert (hand.view().street, hand.to_act) == ("flop", 3)


def test_a_blind_that_puts_a_player_all_in_gives_him_no_turn() -> None:  # HA-9
    hand = make_hand([DEEP, 15, DEEP], blinds=(10, 20))
    acted = []
    while not hand.over:
        acted.append(hand.to_act)
        play(hand, "c")
    assert 1 not in acted
    assert len(hand.view().board) == 5


def test_two_players_all_in_from_the_blinds_need_no_turn_at_all() -> None:  # HA-9
    hand = make_hand([80, 40])
    assert hand.over
    assert sum(stacks(hand)) == 120


def test_a_player_who_owes_nothing_and_has_nobody_to_raise_is_not_asked() -> None:  # HA-9
    hand = play(make_hand([30, DEEP, DEEP]), "f")  # small blind all-in for 30; the big blind has nothing to decide
    assert hand.over
    assert hand.settlement().outcomes[1].returned == 70


def test_the_last_player_with_chips_is_not_asked_street_after_street() -> None:  # HA-9
    hand = play(make_hand([500, 500, DEEP]), "c", 500, "c", "c")
    assert hand.over
    assert len(hand.view().board) == 5


def test_the_big_blind_has_his_option() -> None:  # HA-9
    hand = play(make_hand([DEEP] * 4), "c", "c", "c")
    assert (hand.to_act, hand.legal().moves) == (1, ("check", "raise"))


def test_a_free_fold_is_not_offered_and_refused_with_the_reason() -> None:  # HA-9
    hand = play(make_hand([DEEP] * 3), "c", "c")
    with pytest.raises(IllegalMove, match="checking is free"):
        hand.act("fold")
    assert hand.safe_move() == "check"


def test_active_folded_and_all_in_are_three_different_states() -> None:  # HA-9
    hand = play(make_hand([DEEP, DEEP, DEEP, 300]), "f", 300)
    players = hand.view().players
    assert [players[seat].status for seat in range(4)] == ["active", "active", "folded", "all_in"]


def test_a_finished_hand_still_tells_who_was_all_in() -> None:  # HA-9
    hand = make_hand([400, 1000], cards=["AhAd", "KhQc"], board="As7c7d2s3h")
    play(hand, 1000, "c")
    assert {seat: player.status for seat, player in hand.view().players.items()} == {0: "all_in", 1: "all_in"}


def test_cards_dealt_twice_are_refused() -> None:  # HA-9
    with pytest.raises(ValueError, match="dealt twice"):
        make_hand([DEEP, DEEP], cards=["AhAs", "AhKs"])


def test_folded_hands_are_kept_at_the_table() -> None:  # HA-9
    hand = make_hand([DEEP] * 3, cards=["2c7d", "AhAs", "KhKs"])
    play(hand, "f", "f")
    assert hand.view().players[2].cards == ("Kh", "Ks")
    assert not any(player.shown for player in hand.view().players.values())


def test_one_seed_deals_the_same_cards_and_leaves_the_global_source_alone() -> None:  # HA-9
    state = random.getstate()
    assert shuffled("a", 3) == shuffled("a", 3)
    assert shuffled("a", 3) != shuffled("a", 4)
    assert random.getstate() == state
    assert shuffled(None, 1) != shuffled(None, 1)


def test_another_engine_finds_the_same_order_the_same_choices_and_the_same_stacks() -> None:  # HA-9
    for seed in range(150):
        source = random.Random(seed)
        least = source.choice([1, 2, 3, 5, 100])
        amounts = [
            source.choice([source.randint(1, 2 * least), source.randint(1, 8 * least), 100 * least])
            for _ in range(source.randint(2, 9))
        ]
        ante = source.choice([0, 0, 1, least])
        dealt = deal(shuffled(seed, 1), amounts, small_blind=max(1, least // 2), big_blind=least, ante=ante)
        hand, other = Hand(dealt, range(len(amounts))), Reckoning(dealt)
        while not hand.over:
            legal = hand.legal()
            assert (hand.to_act, legal) == (other.to_act, other.legal()), seed
            move = source.choice((*legal.moves, "call") if "call" in legal.moves else legal.moves)
            amount = source.choice([legal.least, legal.most]) if move == "raise" else None
            hand.act(move, amount)
            other.act(move, amount)
        assert other.to_act is None, seed
        assert stacks(hand) == other.stacks, seed


# Whatever is played -------------------------------------------------------------------------------------------
chips = st.one_of(st.integers(1, 130), st.integers(1, 2000), st.just(DEEP))


@st.composite
def deals(draw: Callable[..., int]) -> tuple[Deal, int]:
    count = draw(st.integers(2, 9))
    amounts = [draw(chips) for _ in range(count)]
    ante = draw(st.sampled_from([0, 0, 10, 60]))
    deck = shuffled(draw(st.integers(0, 2**32)), 1)
    return deal(deck, amounts, small_blind=50, big_blind=100, ante=ante), draw(st.integers(0, count - 1))


@settings(deadline=None, max_examples=200)
@given(dealt=deals(), choice=st.randoms(use_true_random=False))
def test_whatever_is_played_the_hand_ends_and_no_chip_is_lost(dealt: tuple[Deal, int], choice: random.Random) -> None:
    """HA-9"""
    first, button = dealt
    count = len(first.stacks)
    hand = Hand(first, seat_order(range(count), button))
    turns = 0
    while not hand.over:
        legal = hand.legal()
        assert legal.call >= 0
        assert ("check" in legal.moves) == (legal.call == 0) != ("fold" in legal.moves)
        assert (legal.least is None) == ("raise" not in legal.moves)
        move = choice.choice(legal.moves)
        amount = choice.choice([legal.least, legal.most]) if move == "raise" else None
        hand.act(move, amount)
        view = hand.view()
        if not hand.over:
            assert sum(player.stack for player in view.players.values()) + view.pot == sum(first.stacks)
        turns += 1
        assert turns < 1000
    outcomes = hand.settlement().outcomes.values()
    assert sum(outcome.stack for outcome in outcomes) == sum(first.stacks)
    assert sum(outcome.net for outcome in outcomes) == 0
    assert sum(amount for amount, _ in hand.settlement().pots) == sum(outcome.won for outcome in outcomes)
    assert all(outcome.stack >= 0 for outcome in outcomes)
