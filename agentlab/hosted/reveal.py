"""The one answer to "who may see what" at a table.

Private to a seat: its hole cards, what it would have to call, and which of its deployments plays. Everything else is
on the table for all to see. No other module makes a `GameState` or a `HandResult`; each frame is made here, for one
viewer, out of what the table knows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentlab.hosted.frames import GameState, HandResult, PotResult, PotView, SeatResult, SeatView
from agentlab.hosted.game import Hand, HandView

VIEWER_PRIVATE = ("hole_cards", "to_call", "deployment_id")
"""Fields of a `game_state` that carry something of the viewer's alone. Others' hole cards appear in `seats[].cards`
when they were shown, and never otherwise."""


@dataclass(frozen=True)
class SeatFacts:
    """A seat between hands, as the table keeps it."""

    seat: int
    agent_id: str
    stack: int
    connected: bool
    deployment_id: int | None


@dataclass(frozen=True)
class TableFacts:
    """What a table is, and where it stands."""

    table_id: str
    hand_number: int
    action_index: int
    button: int | None
    small_blind: int
    big_blind: int
    ante: int
    seats: Sequence[SeatFacts]


def game_state(facts: TableFacts, hand: HandView | None, viewer: int | None) -> GameState:
    """The table for the viewer in seat `viewer` (None: somebody without a seat). `hand`: the latest one, if any."""
    players = hand.players if hand else {}
    mine = players.get(viewer) if viewer is not None else None
    return GameState(
        table_id=facts.table_id,
        hand_number=facts.hand_number,
        action_index=facts.action_index,
        street=hand.street if hand else "preflop",
        board=list(hand.board) if hand else [],
        pot=hand.pot if hand else 0,
        pots=[PotView(amount=amount, seats=list(seats)) for amount, seats in hand.pots] if hand else [],
        current_bet=hand.current_bet if hand else 0,
        button=facts.button,
        small_blind=facts.small_blind,
        big_blind=facts.big_blind,
        ante=facts.ante,
        seats=[_seat(seat, hand) for seat in facts.seats],
        to_act=hand.to_act if hand else None,
        your_seat=viewer,
        hole_cards=list(mine.cards) if mine else None,
        to_call=hand.to_call if hand and mine and hand.to_act == viewer else None,
        deployment_id=next((seat.deployment_id for seat in facts.seats if seat.seat == viewer), None),
    )


def _seat(facts: SeatFacts, hand: HandView | None) -> SeatView:
    player = hand.players.get(facts.seat) if hand else None
    return SeatView(
        seat=facts.seat,
        agent_id=facts.agent_id,
        stack=player.stack if player else facts.stack,
        bet=player.bet if player else 0,
        status=player.status if player else "out",
        connected=facts.connected,
        cards=list(player.cards) if player and player.shown else None,
    )


def hand_result(facts: TableFacts, hand: Hand, agents: Mapping[int, str]) -> HandResult:
    """The end of a hand; the same for every viewer. `agents`: seat to agent id, of those who were dealt in."""
    view, settled = hand.view(), hand.settlement()
    return HandResult(
        table_id=facts.table_id,
        hand_number=facts.hand_number,
        action_index=facts.action_index,
        board=list(view.board),
        showdown=settled.showdown,
        pots=[PotResult(amount=amount, shares=shares) for amount, shares in settled.pots],
        seats=[
            SeatResult(
                seat=seat,
                agent_id=agents[seat],
                net=outcome.net,
                won=outcome.won,
                returned=outcome.returned,
                stack=outcome.stack,
                status=view.players[seat].status,
                cards=list(view.players[seat].cards) if view.players[seat].shown else None,
            )
            for seat, outcome in sorted(settled.outcomes.items())
        ],
    )
