"""Who sits where at a table, with what, and whether a hand may be dealt to them."""

from collections.abc import Iterator
from dataclasses import dataclass

from agentlab.hosted.connections import Connection
from agentlab.hosted.game import MOST_SEATS
from agentlab.hosted.reveal import SeatFacts


class TableFull(Exception):
    """No seat is left."""


@dataclass
class Seat:
    """A seat and its agent, from its first `sit` to the table's end. Chips stay with it while the agent is away."""

    number: int
    agent_id: str
    stack: int
    deployment_id: int | None
    connection: Connection | None
    sitting: bool = True
    pays_blinds: bool = False

    @property
    def ready(self) -> bool:
        """Whether it may be dealt into the next hand."""
        return self.sitting and self.pays_blinds and self.connection is not None

    @property
    def facts(self) -> SeatFacts:
        return SeatFacts(self.number, self.agent_id, self.stack, self.connection is not None, self.deployment_id)


class Seats:
    """The seats of one table, numbered from 0 in the order in which agents first sat down."""

    def __init__(self, count: int = MOST_SEATS) -> None:
        self._count = count
        self._by_agent: dict[str, Seat] = {}

    def __iter__(self) -> Iterator[Seat]:
        return iter(self._by_agent.values())

    def __len__(self) -> int:
        return len(self._by_agent)

    def of(self, agent_id: str | None) -> Seat | None:
        return self._by_agent.get(agent_id) if agent_id else None

    def number_of(self, agent_id: str | None) -> int | None:
        seat = self.of(agent_id)
        return seat.number if seat else None

    def at(self, number: int) -> Seat:
        return next(seat for seat in self if seat.number == number)

    def sit(self, connection: Connection, *, stack: int) -> Seat:
        """The agent's own seat, or a new one with `stack` chips. Raises TableFull."""
        agent_id = connection.agent_id
        assert agent_id is not None
        seat = self._by_agent.get(agent_id)
        if seat is None:
            if len(self) >= self._count:
                raise TableFull
            seat = Seat(len(self), agent_id, stack, connection.deployment_id, connection)
            self._by_agent[agent_id] = seat
        seat.sitting = True
        return seat

    def ready(self) -> list[Seat]:
        return [seat for seat in self if seat.ready]

    def facts(self) -> list[SeatFacts]:
        return [seat.facts for seat in self]
