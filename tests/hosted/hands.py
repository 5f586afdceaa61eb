"""Hands for tests: players by index, 0 left of the button, the last on it (two players: 0 is the big blind)."""

from collections.abc import Sequence

from agentlab.hosted.game import DECK, Deal, Hand, shuffled


def make_hand(
    stacks: Sequence[int],
    *,
    blinds: tuple[int, int] = (50, 100),
    antes: Sequence[int] = (),
    cards: Sequence[str] = (),
    board: str = "",
    seats: Sequence[int] = (),
) -> Hand:
    """A hand of `len(stacks)` players. `cards` ("AhAs" each) and `board` as wanted, the rest from one fixed deck."""
    count = len(stacks)
    told = [text[start : start + 2] for text in (*cards, board) for start in range(0, len(text), 2)]
    rest = [card for card in shuffled(1, 1) if card not in told]
    holes = [(text[:2], text[2:]) for text in cards]
    holes += [(rest.pop(), rest.pop()) for _ in range(count - len(holes))]
    common = [board[start : start + 2] for start in range(0, len(board), 2)]
    common += [rest.pop() for _ in range(5 - len(common))]
    assert set(common) <= set(DECK)
    deal = Deal(
        stacks=tuple(stacks),
        blinds=(*blinds, *(0,) * (count - 2)),
        antes=tuple(antes) or (0,) * count,
        min_bet=blinds[1],
        hole_cards=tuple(holes),
        board=tuple(common),  # type: ignore[arg-type]
    )
    return Hand(deal, tuple(seats) or tuple(range(count)))


def play(hand: Hand, *moves: str | int) -> Hand:
    """Plays moves in turn: "f", "c" (check or call), or a number to raise to."""
    for move in moves:
        legal = hand.legal()
        if move == "f":
            hand.act("fold")
        elif move == "c":
            hand.act("call" if legal.call else "check")
        else:
            assert isinstance(move, int)
            hand.act("raise", move)
    return hand


def stacks(hand: Hand) -> list[int]:
    """The stacks of a finished hand, by index."""
    outcomes = hand.settlement().outcomes
    return [outcomes[seat].stack for seat in hand.seats]
