"""No-limit betting by tournament rules, as a thin layer over PokerKit's state.

PokerKit 0.7.7 departs from the rules of the Tournament Directors Association in five places; this corrects them:

- A big blind that is all-in for less still makes the others call the whole big blind, and raise from there.
- An all-in for less than a full bet or raise does not let a player raise who has acted already, unless what he faces
  (several such all-ins together) is a full bet or raise. PokerKit forgets the big blind and checks as first bets, and
  forgets earlier short all-ins once a full raise's worth of them has passed.
- A player who owes nothing and may not raise (all others all-in) is not asked.
- With two players the button acts first before the flop, also where both blinds are equal.
- Every side pot is split by itself. PokerKit joins pots once the hands that kept them apart have lost, so that an odd
  chip of each becomes an even one of both.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from pokerkit import CompletionBettingOrRaisingTo, Pot, State


@dataclass
class TournamentState(State):
    """A hand. `full_raise` is the least size of the next raise; `acted` holds who has acted on this street."""

    full_raise: int = field(default=0, init=False)
    acted: set[int] = field(default_factory=set, init=False)
    contested: list[Pot] = field(default_factory=list, init=False)
    """The pots as they stood when the showdown began."""

    @property
    def pots(self) -> Iterator[Pot]:
        yield from self.contested if sum(self.statuses) > 1 and self.contested else super().pots

    @property
    def price(self) -> int:
        """The street total that a player must reach to stay in."""
        highest: int = max(self.bets)
        if self.street_index == 0 and self.actor_indices:
            forced = max(self.blinds_or_straddles)
            others = (i for i in self.player_indices if i != self.actor_indices[0])
            if highest < forced and any(self.statuses[i] and self.stacks[i] for i in others):
                return int(forced)
        return highest

    @property
    def may_raise(self) -> bool:
        return bool(self.can_complete_bet_or_raise_to())

    @property
    def is_free(self) -> bool:
        """Whether the player to act owes nothing."""
        return self.checking_or_calling_amount == 0

    # What PokerKit asks before it lets a player act ------------------------------------------------------------
    @property
    def checking_or_calling_amount(self) -> int | None:
        if not self.actor_indices:
            return None
        actor = self.actor_indices[0]
        return int(min(self.stacks[actor], self.price - self.bets[actor]))

    @property
    def min_completion_betting_or_raising_to_amount(self) -> int | None:
        try:
            self._verify_completion_betting_or_raising()
        except ValueError:
            return None
        actor = self.actor_indices[0]
        return int(min(self.stacks[actor] + self.bets[actor], self.price + self.full_raise))

    def verify_folding(self) -> None:
        if not self.checking_or_calling_amount:
            raise ValueError("nobody is to act, or checking is free")

    def _verify_completion_betting_or_raising(self) -> None:
        if not self.actor_indices:
            raise ValueError("nobody is to act")
        actor, price = self.actor_indices[0], self.price
        owed = price - self.bets[actor]
        if self.stacks[actor] <= owed:
            raise ValueError("the call takes the whole stack")
        if actor in self.acted and owed < self.full_raise:
            raise ValueError("no full bet or raise has been made since this player acted")
        others = (i for i in self.player_indices if i != actor)
        if not any(self.statuses[i] and self.stacks[i] + self.bets[i] > price for i in others):
            raise ValueError("nobody is left who could call a raise")

    # What PokerKit does, watched --------------------------------------------------------------------------------
    def _begin_betting(self) -> None:
        assert self.street is not None
        self.full_raise = self.street.min_completion_betting_or_raising_amount
        self.acted.clear()
        super()._begin_betting()
        heads_up = self.player_count == len(self.actor_indices) == 2
        if heads_up and self.street_index == 0 and self.bets[0] == self.bets[1]:
            self.opener_index = 1
            self.actor_indices = deque((1, 0))

    def _begin_showdown(self) -> None:
        self.contested = list(super().pots)
        super()._begin_showdown()

    def _pop_actor_index(self) -> int:
        actor = int(super()._pop_actor_index())
        self.acted.add(actor)
        return actor

    def complete_bet_or_raise_to(
        self, amount: int | None = None, *, commentary: str | None = None
    ) -> CompletionBettingOrRaisingTo:
        price = self.price
        done = super().complete_bet_or_raise_to(amount, commentary=commentary)
        self.full_raise = max(self.full_raise, done.amount - price)
        return done
