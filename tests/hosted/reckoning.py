"""A second engine of no-limit hold'em, written apart from the first: what tests compare it with.

By tournament rules, in index order (0 is left of the button). Only the strength of hands is PokerKit's.
"""

from pokerkit import StandardHighHand

from agentlab.hosted.frames import Move
from agentlab.hosted.game import Deal, Legal


class Reckoning:
    """One hand. `to_act` is None once it is over, and `stacks` then are the final ones."""

    def __init__(self, dealt: Deal) -> None:
        self.dealt, self.count = dealt, len(dealt.stacks)
        self.stacks, self.put_in, self.bets = list(dealt.stacks), [0] * self.count, [0] * self.count
        self.live, self.acted = set(range(self.count)), set[int]()
        self.street, self.price, self.full_raise = 0, max(dealt.blinds), dealt.min_bet
        for index, ante in enumerate(dealt.antes):
            self._pay(index, min(ante, self.stacks[index]))
        self.bets = [0] * self.count
        for index, blind in enumerate(dealt.blinds if self.count > 2 else dealt.blinds[::-1]):
            self._pay(index, min(blind, self.stacks[index]))
        self.to_act: int | None = None
        self._find(2 if self.count > 2 else 1)

    def legal(self) -> Legal:
        index = self._actor()
        price, owed = self._price(index), min(self.stacks[index], self._price(index) - self.bets[index])
        moves: tuple[Move, ...] = ("fold", "call") if owed else ("check",)
        if not self._may_raise(index):
            return Legal(moves, owed, None, None)
        most = self.stacks[index] + self.bets[index]
        return Legal((*moves, "raise"), owed, min(most, price + self.full_raise), most)

    def act(self, move: Move, amount: int | None) -> None:
        index = self._actor()
        price = self._price(index)
        if move == "fold":
            self.live.discard(index)
        elif amount is None:
            self._pay(index, min(self.stacks[index], price - self.bets[index]))
        else:
            self._pay(index, amount - self.bets[index])
            self.full_raise, self.price = max(self.full_raise, amount - price), amount
        self.acted.add(index)
        self._find(index + 1)

    def _actor(self) -> int:
        assert self.to_act is not None
        return self.to_act

    def _pay(self, index: int, chips: int) -> None:
        self.stacks[index] -= chips
        self.bets[index] += chips
        self.put_in[index] += chips

    def _price(self, index: int) -> int:
        """The whole big blind counts, however short it is, unless nobody else has chips to play for it."""
        rivals = any(self.stacks[other] for other in self.live - {index})
        return max(self.price, *self.bets) if rivals else max(self.bets)

    def _may_raise(self, index: int) -> bool:
        price = self._price(index)
        owed = price - self.bets[index]
        payers = (other for other in self.live - {index} if self.stacks[other])
        answered = any(self.stacks[other] + self.bets[other] > price for other in payers)
        return self.stacks[index] > owed and answered and not (index in self.acted and owed < self.full_raise)

    def _is_asked(self, index: int) -> bool:
        if index not in self.live or not self.stacks[index]:
            return False
        if index in self.acted:
            return self.bets[index] < self._price(index)
        return self.bets[index] < self._price(index) or self._may_raise(index)

    def _find(self, first: int) -> None:
        while len(self.live) > 1 and self.street < 4:
            around = ((first + step) % self.count for step in range(self.count))
            if (index := next(filter(self._is_asked, around), None)) is not None:
                self.to_act = index
                return
            self.street, self.price, self.full_raise, first = self.street + 1, 0, self.dealt.min_bet, 0
            self.bets, self.acted = [0] * self.count, set()
        self.to_act = None
        self._settle()

    def _settle(self) -> None:
        most, called = sorted(self.put_in)[-1], sorted(self.put_in)[-2]
        if most > called:
            self.stacks[self.put_in.index(most)] += most - called
        paid = [min(chips, called) for chips in self.put_in]
        pots: list[tuple[list[int], int]] = []
        low = 0
        for high in sorted({paid[index] for index in self.live}):
            chips = sum(min(each, high) - min(each, low) for each in paid)
            pots.append(([index for index in sorted(self.live) if paid[index] >= high], chips))
            low = high
        pots[-1] = (pots[-1][0], pots[-1][1] + sum(each - min(each, low) for each in paid))
        for players, chips in pots:
            self._share(players, chips)

    def _share(self, players: list[int], chips: int) -> None:
        best = max(self._hand(index) for index in players)
        winners = [index for index in players if self._hand(index) == best]
        for index in winners:
            self.stacks[index] += chips // len(winners)
        self.stacks[winners[0]] += chips % len(winners)

    def _hand(self, index: int) -> StandardHighHand:
        return StandardHighHand.from_game("".join(self.dealt.hole_cards[index]), "".join(self.dealt.board))
