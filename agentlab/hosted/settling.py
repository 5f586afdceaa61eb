"""The books of a hand: who put in, got back and won what, read from PokerKit's operations.

PokerKit moves an uncalled bet back into the stack without a word, or pays it out with the pot where all others
folded. Here it is *returned*, never *won*.
"""

from collections.abc import Iterable

from pokerkit import Operation
from pokerkit import state as operations


class Book:
    """Chips by player index: `put_in` and, of those, `returned`."""

    def __init__(self, count: int, done: Iterable[Operation]) -> None:
        self.put_in = [0] * count
        self.returned = [0] * count
        self._bets = [0] * count
        self._pushed: dict[int, dict[int, int]] = {}
        for operation in done:
            self._enter(operation)

    def _enter(self, operation: Operation) -> None:
        match operation:
            case (
                operations.AntePosting(player_index=index, amount=amount)
                | operations.BlindOrStraddlePosting(player_index=index, amount=amount)
                | operations.CheckingOrCalling(player_index=index, amount=amount)
            ):
                self._bet(index, amount)
            case operations.CompletionBettingOrRaisingTo(player_index=index, amount=total):
                self._bet(index, total - self._bets[index])
            case operations.BetCollection(bets=taken):
                self._collect(taken)
            case operations.ChipsPushing(amounts=amounts, pot_index=pot):
                shares = self._pushed.setdefault(pot, {})
                for index, amount in enumerate(amounts):
                    if amount:
                        shares[index] = shares.get(index, 0) + amount

    def _bet(self, index: int, amount: int) -> None:
        self._bets[index] += amount
        self.put_in[index] += amount

    def _collect(self, taken: tuple[int, ...]) -> None:
        """What is not taken into the pot goes back, as far as it is more than the next highest bet: where all others
        folded, the winner's whole last bet is left with him, and part of it was called."""
        called = sorted(self._bets)[-2]
        for index, bet in enumerate(self._bets):
            self.returned[index] += min(bet - taken[index], max(bet - called, 0))
        self._bets = [0] * len(self._bets)

    def pots(self, live: list[int]) -> list[dict[int, int]]:
        """Shares by player index, main pot first. `live`: who has not folded."""
        if len(live) == 1:
            return [{live[0]: sum(self.put_in) - sum(self.returned)}]
        return [self._pushed[pot] for pot in sorted(self._pushed)]
