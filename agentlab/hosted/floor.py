"""What is at a table at this moment, and telling it to everyone who looks on."""

from dataclasses import dataclass, field

from agentlab.hosted import reveal
from agentlab.hosted.connections import Connection
from agentlab.hosted.frames import Cause, ChipRange, PlayerAction, ToAgent, YourTurn
from agentlab.hosted.game import Done, Hand
from agentlab.hosted.seats import Seats
from agentlab.hosted.table_config import Report, TableConfig
from agentlab.hosted.turns import Turns


@dataclass
class Floor:
    """The state that the door (frames in) and the dealer (hands) share; both live on one event loop."""

    config: TableConfig
    seats: Seats
    turns: Turns = field(default_factory=Turns)
    report: Report = field(default_factory=Report)
    connections: set[Connection] = field(default_factory=set)
    hand: Hand | None = None
    dealt_in: dict[int, str] = field(default_factory=dict)
    """Seat to agent id, of the hand that is or was played last."""
    button: int | None = None

    def viewers(self) -> list[Connection]:
        return [connection for connection in self.connections if connection.is_heard]

    def tell(self, frame: ToAgent) -> None:
        """A frame that is the same for everyone."""
        for connection in self.viewers():
            connection.send(frame)

    def show(self) -> None:
        """The table, to everyone, each as it may see it."""
        facts, view = self.facts(), self.hand.view() if self.hand else None
        for connection in self.viewers():
            connection.send(reveal.game_state(facts, view, self.seats.number_of(connection.agent_id)))

    def facts(self) -> reveal.TableFacts:
        forced = self.hand.dealt if self.hand else None
        return reveal.TableFacts(
            table_id=self.config.table_id,
            hand_number=self.turns.hand_number,
            action_index=self.turns.action_index,
            button=self.button,
            small_blind=forced.blinds[0] if forced else self.config.small_blind,
            big_blind=forced.blinds[1] if forced else self.config.big_blind,
            ante=max(forced.antes) if forced else self.config.ante,
            seats=self.seats.facts(),
        )

    def your_turn(self) -> YourTurn:
        """The open question, as its seat is asked."""
        assert self.hand is not None and self.turns.open is not None
        legal = self.hand.legal()
        chips = None if legal.least is None or legal.most is None else ChipRange(min=legal.least, max=legal.most)
        return YourTurn(legal_actions=list(legal.moves), chip_range=chips, turn_ends_at=self.turns.open.ends_at_ms)

    def tell_action(self, done: Done, action_index: int, cause: Cause) -> None:
        self.tell(
            PlayerAction(
                hand_number=self.turns.hand_number,
                action_index=action_index,
                seat=done.seat,
                agent_id=self.dealt_in[done.seat],
                street=done.street,
                action=done.move,
                amount=done.amount,
                all_in=done.all_in,
                cause=cause,
            )
        )

    def tell_result(self) -> None:
        assert self.hand is not None
        self.tell(reveal.hand_result(self.facts(), self.hand, self.dealt_in))
