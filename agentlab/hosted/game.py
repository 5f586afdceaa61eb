"""One hand of no-limit hold'em: pure, without sockets, clocks or randomness beyond the seed it is given.

PokerKit plays it; `betting` puts its betting right. Inside, players are indices in PokerKit's order: 0 is the first
left of the button and the last is the button (with two players index 0 is the big blind and 1 the button, who posts
the small blind). A hand is given the table's seats in that order and speaks of seats only.
"""

import random
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from pokerkit import Automation, NoLimitTexasHoldem
from pokerkit import state as operations

from agentlab.hosted.betting import TournamentState
from agentlab.hosted.frames import MAX_CHIPS, Move, Status, Street
from agentlab.hosted.settling import Book

# A card dealt twice is only a warning there. `Deal` refuses it first; this is the second lock.
warnings.filterwarnings("error", category=UserWarning, module=r"pokerkit\.")

RANKS, SUITS = "23456789TJQKA", "cdhs"
DECK = tuple(rank + suit for suit in SUITS for rank in RANKS)
STREETS: tuple[Street, ...] = ("preflop", "flop", "turn", "river")
BOARD_SIZES = (0, 3, 4, 5)
LEAST_SEATS, MOST_SEATS = 2, 9
AUTOMATIONS = (
    Automation.ANTE_POSTING,
    Automation.BET_COLLECTION,
    Automation.BLIND_OR_STRADDLE_POSTING,
    Automation.RUNOUT_COUNT_SELECTION,
    Automation.HOLE_CARDS_SHOWING_OR_MUCKING,
    Automation.HAND_KILLING,
    Automation.CHIPS_PUSHING,
    Automation.CHIPS_PULLING,
)


class IllegalMove(ValueError):
    """Says which rule refuses a move. The hand is unchanged."""


def shuffled(seed: str | int | None, hand_number: int) -> list[str]:
    """The 52 cards in the order of (seed, hand number); in an unpredictable order where the seed is None."""
    deck = list(DECK)
    source = random.SystemRandom() if seed is None else random.Random(f"{seed}:{hand_number}")  # noqa: S311
    source.shuffle(deck)
    return deck


@dataclass(frozen=True)
class Deal:
    """All that is fixed before a hand's first decision. Tuples are in index order; chips are integers."""

    stacks: tuple[int, ...]
    blinds: tuple[int, ...]
    antes: tuple[int, ...]
    min_bet: int
    hole_cards: tuple[tuple[str, str], ...]
    board: tuple[str, str, str, str, str]
    ante_trimming: bool = False
    """Whether antes are bets like any other: a stack too short for its ante wins of each other one no more than it has
    put in. Otherwise they are dead money for whoever wins the main pot, as a big blind's ante for all is."""

    def __post_init__(self) -> None:
        """Raises ValueError for what is no deal."""
        count = len(self.stacks)
        if not LEAST_SEATS <= count <= MOST_SEATS:
            raise ValueError(f"a hand has {LEAST_SEATS} to {MOST_SEATS} players, not {count}")
        if not len(self.blinds) == len(self.antes) == len(self.hole_cards) == count:
            raise ValueError("stacks, blinds, antes and hole cards are not of one length")
        if any(type(chips) is not int for chips in (*self.stacks, *self.blinds, *self.antes, self.min_bet)):
            raise ValueError("chips are whole numbers")
        if min(*self.stacks, self.min_bet) <= 0 or min(*self.blinds, *self.antes) < 0:
            raise ValueError("stacks and the least bet are above 0, blinds and antes not below")
        if sum(self.stacks) > MAX_CHIPS:
            raise ValueError("more chips than every reader of a frame can count")
        cards = [card for pair in self.hole_cards for card in pair] + list(self.board)
        if len(self.board) != BOARD_SIZES[-1] or len(set(cards)) != len(cards) or not set(cards) <= set(DECK):
            raise ValueError("cards are unknown, missing or dealt twice")


def deal(deck: Sequence[str], stacks: Sequence[int], *, small_blind: int, big_blind: int, ante: int = 0) -> Deal:
    """A deal from the top of `deck`: two rounds of hole cards, then the board."""
    count = len(stacks)
    board = deck[2 * count : 2 * count + 5]
    return Deal(
        stacks=tuple(stacks),
        blinds=(small_blind, big_blind, *(0 for _ in range(count - 2))),
        antes=(ante,) * count,
        min_bet=big_blind,
        hole_cards=tuple((deck[index], deck[count + index]) for index in range(count)),
        board=(board[0], board[1], board[2], board[3], board[4]),
        ante_trimming=True,
    )


def seat_order(seats: Sequence[int], button: int) -> tuple[int, ...]:
    """The seats of a hand in index order, clockwise from the left of the button; the button is last."""
    ordered = sorted(seats)
    place = ordered.index(button) + 1
    return tuple(ordered[place:] + ordered[:place])


def next_button(seats: Sequence[int], last: int | None) -> int:
    """The first of `seats` clockwise after the last button."""
    ordered = sorted(seats)
    return next((seat for seat in ordered if last is not None and seat > last), ordered[0])


@dataclass(frozen=True)
class Legal:
    """What the seat to act may do. `call` is what calling adds; `least` and `most` are raise-to totals."""

    moves: tuple[Move, ...]
    call: int
    least: int | None
    most: int | None


@dataclass(frozen=True)
class Done:
    """A move as it was carried out: `amount` as in the `player_action` frame."""

    seat: int
    street: Street
    move: Move
    amount: int | None
    all_in: bool


@dataclass(frozen=True)
class Player:
    """A player as the table knows it: `cards` are private, `shown` are not."""

    stack: int
    bet: int
    status: Status
    cards: tuple[str, str]
    shown: bool


@dataclass(frozen=True)
class HandView:
    """Everything about a hand at one moment, private cards included: never sent, only shown through `reveal`."""

    street: Street
    board: tuple[str, ...]
    pot: int
    pots: tuple[tuple[int, tuple[int, ...]], ...]
    """(chips, seats that can win them): collected chips alone."""
    current_bet: int
    players: dict[int, Player]
    to_act: int | None
    to_call: int | None


@dataclass(frozen=True)
class Outcome:
    """What a seat got out of a hand, and its stack afterwards."""

    put_in: int
    won: int
    returned: int
    stack: int

    @property
    def net(self) -> int:
        return self.won + self.returned - self.put_in


@dataclass(frozen=True)
class Settlement:
    """A finished hand."""

    showdown: bool
    pots: tuple[tuple[int, dict[int, int]], ...]
    """(chips, seat to share), main pot first."""
    outcomes: dict[int, Outcome]


class Hand:
    """A hand from its blinds to its end. Chips are conserved; AssertionError would mean a fault of ours."""

    def __init__(self, dealt: Deal, seats: Sequence[int]) -> None:
        """`seats` in index order (see `seat_order`). Plays at once what needs nobody's decision."""
        if len(seats) != len(dealt.stacks) or len(set(seats)) != len(seats):
            raise ValueError("every player has a seat of its own")
        self.dealt = dealt
        self.seats = tuple(seats)
        game = NoLimitTexasHoldem(AUTOMATIONS, dealt.ante_trimming, dealt.antes, dealt.blinds, dealt.min_bet)
        self._state = TournamentState(
            AUTOMATIONS,
            game.deck,
            game.hand_types,
            game.streets,
            game.betting_structure,
            dealt.ante_trimming,
            dealt.antes,
            dealt.blinds,
            0,
            dealt.stacks,
            len(seats),
        )
        self._board_count = 0
        for index, cards in enumerate(dealt.hole_cards):
            self._state.deal_hole("".join(cards), index)
        self._advance()

    # Who, and what may be done ----------------------------------------------------------------------------------
    @property
    def over(self) -> bool:
        return not self._state.status

    @property
    def button(self) -> int:
        return self.seats[-1]

    @property
    def to_act(self) -> int | None:
        index = self._state.actor_index
        return None if index is None else self.seats[index]

    def legal(self) -> Legal:
        """What the seat to act may do. Raises IllegalMove where nobody is to act."""
        state = self._state
        call = state.checking_or_calling_amount
        if call is None:
            raise IllegalMove("nobody is to act")
        moves: tuple[Move, ...] = ("fold", "call") if call else ("check",)
        if not state.may_raise:
            return Legal(moves, call, None, None)
        least = state.min_completion_betting_or_raising_to_amount
        most = state.max_completion_betting_or_raising_to_amount
        return Legal((*moves, "raise"), call, least, most)

    def verify(self, move: str, amount: object = None) -> None:
        """Raises IllegalMove where `move` is not legal now. `amount` is for a raise alone."""
        legal = self.legal()
        if move not in legal.moves:
            why = " (checking is free)" if move == "fold" else ""
            raise IllegalMove(f"{move} is not legal here{why}; {', '.join(legal.moves)} may be played")
        if move != "raise":
            if amount is not None:
                raise IllegalMove(f"{move} takes no amount")
            return
        if type(amount) is not int:
            raise IllegalMove("raise takes a whole number of chips: the total for the street")
        assert legal.least is not None and legal.most is not None
        if not legal.least <= amount <= legal.most:
            raise IllegalMove(f"a raise to {amount} is not between {legal.least} and {legal.most}")

    def safe_move(self) -> Move:
        """What is played for a seat that does not answer: check where it is free, else fold."""
        return "check" if "check" in self.legal().moves else "fold"

    def act(self, move: Move, amount: int | None = None) -> Done:
        """Plays a move for the seat to act. Raises IllegalMove and changes nothing where it is not legal."""
        self.verify(move, amount)
        state, street, seat = self._state, self._street, self.to_act
        assert seat is not None
        index = self.seats.index(seat)
        left = state.stacks[index]
        if move == "raise":
            all_in = amount == left + state.bets[index]
            state.complete_bet_or_raise_to(amount)
        elif move == "fold":
            all_in = False
            state.fold()
        else:
            amount = state.checking_or_calling_amount or None
            all_in = amount == left
            state.check_or_call()
        self._advance()
        return Done(seat, street, move, amount, all_in)

    def _advance(self) -> None:
        """Deals streets, and passes over a player who has nothing to decide, until somebody has or the hand is over."""
        state = self._state
        while state.status:
            if state.can_burn_card():
                state.burn_card("??")  # our deck has no burnt cards
            elif state.can_deal_board():
                first, self._board_count = self._board_count, BOARD_SIZES[STREETS.index(self._street)]
                state.deal_board("".join(self.dealt.board[first : self._board_count]))
            elif state.actor_index is not None and state.is_free and not state.may_raise:
                state.check_or_call()
            else:
                break
        total = sum(state.stacks) + (state.total_pot_amount if state.status else 0)
        assert total == sum(self.dealt.stacks), "chips are not conserved"
        assert state.status == (state.actor_index is not None), "nobody is to act in a hand that is not over"

    # What can be said about it ----------------------------------------------------------------------------------
    @property
    def _street(self) -> Street:
        index = self._state.street_index
        return "over" if index is None else STREETS[index]

    def shown(self) -> dict[int, tuple[str, ...]]:
        """The hands that were shown, by seat."""
        shows = (done for done in self._state.operations if isinstance(done, operations.HoleCardsShowingOrMucking))
        return {self.seats[show.player_index]: tuple(map(repr, show.hole_cards)) for show in shows if show.hole_cards}

    def folded(self) -> set[int]:
        folds = (done for done in self._state.operations if isinstance(done, operations.Folding))
        return {self.seats[fold.player_index] for fold in folds}

    def view(self) -> HandView:
        """Everything about the hand as it stands."""
        state, shown, folded = self._state, self.shown(), self.folded()
        ended = self.settlement().outcomes if self.over else {}
        players = {}
        for index, seat in enumerate(self.seats):
            stack, bet = int(state.stacks[index]), int(state.bets[index])
            staked_all = ended[seat].put_in == self.dealt.stacks[index] if ended else not stack
            status: Status = "folded" if seat in folded else "all_in" if staked_all else "active"
            players[seat] = Player(stack, bet, status, self.dealt.hole_cards[index], seat in shown)
        pots = () if self.over else state.pots
        return HandView(
            street=self._street,
            board=self.dealt.board[: self._board_count],
            pot=0 if self.over else int(state.total_pot_amount),
            pots=tuple((int(pot.unraked_amount), self._seats_of(pot.player_indices)) for pot in pots),
            current_bet=0 if self.over else state.price,
            players=players,
            to_act=self.to_act,
            to_call=state.checking_or_calling_amount,
        )

    def _seats_of(self, indices: Sequence[int]) -> tuple[int, ...]:
        return tuple(self.seats[index] for index in indices)

    def settlement(self) -> Settlement:
        """Who put in, got back and won what. For a finished hand."""
        assert self.over, "the hand is not over"
        live = [index for index, seat in enumerate(self.seats) if seat not in self.folded()]
        book = Book(len(self.seats), self._state.operations)
        pots = book.pots(live)
        outcomes = {}
        for index, seat in enumerate(self.seats):
            won, stack = sum(pot.get(index, 0) for pot in pots), int(self._state.stacks[index])
            outcome = Outcome(book.put_in[index], won, book.returned[index], stack)
            assert stack == self.dealt.stacks[index] + outcome.net, "the books do not agree with the stacks"
            outcomes[seat] = outcome
        named = tuple((sum(pot.values()), {self.seats[index]: chips for index, chips in pot.items()}) for pot in pots)
        return Settlement(showdown=len(live) > 1, pots=named, outcomes=outcomes)
