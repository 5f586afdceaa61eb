"""Which turns are given out next: pure bookkeeping over the personas' committed turns."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Stretch:
    """Turns first…last of one persona; `first` is 1 for one that arrives with them."""

    number: int
    first: int
    last: int
    arrives: bool


class Plan:
    """Stretch by stretch, and within a stretch persona by persona: no persona runs ahead of the others by more than
    one stretch, and never has two jobs at once. `committed` is each persona's last turn in the trace, -1 before it
    arrived."""

    def __init__(self, personas: int, turns: int, stretch: int, committed: Mapping[int, int]) -> None:
        self._turns, self._stretch = turns, stretch
        self._committed = [committed.get(number, -1) for number in range(personas)]
        self._closed: set[int] = set()
        self._given: set[int] = set()
        self._end, self._at = min(stretch, turns), 0

    def take(self, most: int) -> list[Stretch]:
        """The next stretches to give out, in order; none while the next in order is still being worked on."""
        taken: list[Stretch] = []
        while len(taken) < most and self._find():
            number = self._at
            if number in self._given:
                break
            self._given.add(number)
            done = self._committed[number]
            taken.append(Stretch(number, max(1, done + 1), self._end, done < 0))
            self._at += 1
        return taken

    def close(self, number: int, turn: int, failed: bool) -> None:
        """A stretch has been written, up to `turn`."""
        self._given.discard(number)
        self._committed[number] = max(turn, self._committed[number])
        if failed:
            self._closed.add(number)

    def turn(self, number: int) -> int:
        return self._committed[number]

    @property
    def failed(self) -> int:
        return len(self._closed)

    def _find(self) -> bool:
        """Move on to the next persona with something left to do in this stretch or a later one."""
        while True:
            while self._at < len(self._committed):
                if self._at not in self._closed and self._committed[self._at] < self._end:
                    return True
                self._at += 1
            if self._end >= self._turns:
                return False
            self._end, self._at = min(self._end + self._stretch, self._turns), 0
