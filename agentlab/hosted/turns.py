"""Which answer belongs to which `your_turn`: by hand number and action index, once, from the seat that was asked."""

import asyncio
from dataclasses import dataclass, field

from agentlab.hosted.frames import Action


@dataclass
class Turn:
    """An open question to one seat. `answer` is None where the seat left the game instead."""

    seat: int
    action_index: int
    ends_at_ms: int
    answer: "asyncio.Future[Action | None]"


@dataclass
class Turns:
    """The turns of the hand that is being played."""

    hand_number: int = 0
    open: Turn | None = None
    asked: list[int] = field(default_factory=list)
    """The seat that each action index of this hand belonged to."""
    answered: set[int] = field(default_factory=set)
    """Action indices that an agent answered itself."""

    @property
    def action_index(self) -> int:
        """The index of the decision that is due, or, between hands, how many there were."""
        return self.open.action_index if self.open else len(self.asked)

    def begin(self, hand_number: int) -> None:
        self.hand_number, self.open = hand_number, None
        self.asked.clear()
        self.answered.clear()

    def ask(self, seat: int, ends_at_ms: int) -> Turn:
        answer: asyncio.Future[Action | None] = asyncio.get_running_loop().create_future()
        self.open = Turn(seat, len(self.asked), ends_at_ms, answer)
        self.asked.append(seat)
        return self.open

    def close(self) -> int:
        """Ends the open turn, answered or not; gives its action index."""
        assert self.open is not None
        index, self.open = self.open.action_index, None
        return index

    def refusal(self, seat: int | None, action: Action) -> str | None:
        """Why an answer does not belong to the open turn, as the reason of a `rejected`, or None where it does."""
        index = action.action_index
        if action.hand_number != self.hand_number:
            if action.hand_number < self.hand_number:
                return "late: that hand is over"
            return "other_hand: there is no such hand yet"
        if seat is None or index >= len(self.asked) or self.asked[index] != seat:
            return "out_of_turn: it is not your turn"
        if index in self.answered:
            return "doubled: that turn has been answered"
        if self.open is None or self.open.action_index != index or self.open.answer.done():
            return "late: that turn is over"
        return None

    def accept(self, action: Action) -> None:
        """Takes an answer that `refusal` has nothing against."""
        assert self.open is not None
        self.answered.add(action.action_index)
        self.open.answer.set_result(action)

    def leave(self, seat: int) -> None:
        """The seat stands up: if it is being asked, the question is over."""
        if self.open and self.open.seat == seat and not self.open.answer.done():
            self.open.answer.set_result(None)
