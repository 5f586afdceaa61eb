"""Real hands to deal, from PHH files (Poker Hand History, TOML: https://arxiv.org/abs/2312.11753).

Taken from a hand: stacks, blinds, antes, least bet, and the cards. What was played is left to the agents. Where a file
has cents, every amount of that hand is counted in cents. Cards that a file does not tell are completed from the seed.
"""

import random
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from agentlab.hosted.frames import MAX_CHIPS
from agentlab.hosted.game import BOARD_SIZES, DECK, MOST_SEATS, Deal

MAX_FILE = 8 * 1024 * 1024
"""Bytes."""
CENTS = 100
UNKNOWN = "??"
DEALT = re.compile(r"d dh p(\d{1,2}) (\S+)")
BOARD = re.compile(r"d db (\S+)")
SHOWN = re.compile(r"p(\d{1,2}) sm (\S+)")
RUNS = re.compile(r"p(\d{1,2}) rc [2-9]")


class DealsError(Exception):
    """Says in one line why a path holds nothing to deal."""


class Unplayable(ValueError):
    """Says why a hand cannot be dealt here."""


@dataclass(frozen=True)
class Dealt:
    """A hand from a file, ready to be dealt, or why it cannot be."""

    source: str
    """The file's name, with the hand's key in it where it holds several."""
    deal: Deal | None
    refused: str = ""


class Deals:
    """Every hand of a file, or of the `.phh` and `.phhs` files in a folder in the order of their names. It can be
    gone through many times, and holds one file at a time."""

    def __init__(self, path: Path, seed: str | int | None) -> None:
        """Raises DealsError where there is nothing to read."""
        if path.is_dir():
            self._files = sorted(file for file in path.iterdir() if file.suffix in (".phh", ".phhs"))
        else:
            self._files = [path] if path.is_file() else []
        if not self._files:
            raise DealsError(f"{path} is no PHH file, and no folder of .phh files")
        self._seed = seed

    def __iter__(self) -> Iterator[Dealt]:
        for file in self._files:
            yield from _read_file(file, self._seed)


def _read_file(file: Path, seed: str | int | None) -> Iterator[Dealt]:
    name = file.name.encode(errors="replace").decode()
    try:
        if file.stat().st_size > MAX_FILE:
            raise Unplayable(f"larger than {MAX_FILE // 1024**2} MiB")
        hands = tomllib.loads(file.read_text(encoding="utf-8"), parse_float=Decimal)
    except OSError as error:
        yield Dealt(name, None, error.strerror or "cannot be read")
        return
    except (ValueError, RecursionError) as error:
        yield Dealt(name, None, str(error) if isinstance(error, Unplayable) else "not a TOML file in UTF-8")
        return
    several = "variant" not in hands and bool(hands) and all(isinstance(hand, dict) for hand in hands.values())
    for key, hand in hands.items() if several else [("", hands)]:
        source = f"{name}#{key}" if several else name
        try:
            yield Dealt(source, to_deal(hand, random.Random(f"{seed}:{source}")))  # noqa: S311 - cards to play with
        except ValueError as error:
            yield Dealt(source, None, str(error))


def to_deal(hand: dict[str, Any], rng: random.Random) -> Deal:
    """A parsed hand as a deal; `rng` completes the cards. Raises ValueError (Unplayable) with the reason."""
    if hand.get("variant") != "NT":
        raise Unplayable(f"variant {str(hand.get('variant'))[:20]!r} is not no-limit hold'em")
    stacks, blinds, antes = (_amounts(hand, name) for name in ("starting_stacks", "blinds_or_straddles", "antes"))
    least = _amounts({"min_bet": [hand.get("min_bet")]}, "min_bet")
    scale = _scale([*stacks, *blinds, *antes, *least])
    known = _known_cards(hand.get("actions"), len(stacks))
    hole_cards, board = _complete(known, rng)
    return Deal(
        stacks=_scaled(stacks, scale),
        blinds=_scaled(blinds, scale),
        antes=_scaled(antes, scale),
        min_bet=_scaled(least, scale)[0],
        hole_cards=hole_cards,
        board=board,
        ante_trimming=hand.get("ante_trimming_status") is True,
    )


def _amounts(hand: dict[str, Any], name: str) -> list[Decimal]:
    values = hand.get(name)
    if not isinstance(values, list) or not values:
        raise Unplayable(f"{name} is missing")
    if not all(_is_amount(value) for value in values):
        raise Unplayable(f"{name} holds something that is no amount of chips")
    return [Decimal(value) for value in values]


def _is_amount(value: object) -> bool:
    if type(value) is int or (isinstance(value, Decimal) and value.is_finite()):
        return -MAX_CHIPS < value < MAX_CHIPS
    return False


def _scale(amounts: list[Decimal]) -> int:
    """1, or 100 where there are cents."""
    if all(amount == amount.to_integral_value() for amount in amounts):
        return 1
    if any(amount * CENTS != (amount * CENTS).to_integral_value() for amount in amounts):
        raise Unplayable("amounts have fractions of a cent")
    return CENTS


def _scaled(amounts: list[Decimal], scale: int) -> tuple[int, ...]:
    return tuple(int(amount * scale) for amount in amounts)


@dataclass
class _Known:
    """Cards that a file tells; `??` for those it does not."""

    hands: list[list[str]]
    board: list[str] = field(default_factory=list)


def _known_cards(actions: object, count: int) -> _Known:
    if not isinstance(actions, list) or count > MOST_SEATS:
        raise Unplayable("actions are missing" if count <= MOST_SEATS else f"{count} players are too many")
    known = _Known([[UNKNOWN, UNKNOWN] for _ in range(count)])
    for action in actions:
        text = action if isinstance(action, str) else ""
        if found := BOARD.match(text):
            known.board += _cards(found[1])
        elif found := DEALT.match(text) or SHOWN.match(text):
            player, cards = int(found[1]) - 1, _cards(found[2])
            if not 0 <= player < count or len(cards) != len(known.hands[player]):
                raise Unplayable(f"hole cards cannot be read: {text[:40]!r}")
            pairs = zip(cards, known.hands[player], strict=True)
            known.hands[player] = [old if new == UNKNOWN else new for new, old in pairs]
        elif RUNS.match(text):
            raise Unplayable("the board is run more than once")
    if len(known.board) > BOARD_SIZES[-1]:
        raise Unplayable("the board is run more than once")
    return known


def _cards(text: str) -> list[str]:
    if text == "-":
        return [UNKNOWN, UNKNOWN]
    cards = [text[start : start + 2] for start in range(0, len(text), 2)]
    if any(card != UNKNOWN and card not in DECK for card in cards):
        raise Unplayable(f"cards cannot be read: {text[:40]!r}")
    return cards


def _complete(known: _Known, rng: random.Random) -> tuple[tuple[tuple[str, str], ...], tuple[str, str, str, str, str]]:
    """Hole cards and a whole board; what is not known comes from what the file leaves in the deck."""
    told = sum(known.hands, known.board)
    rest = [card for card in DECK if card not in told]
    rng.shuffle(rest)
    hands = tuple((_or_next(first, rest), _or_next(second, rest)) for first, second in known.hands)
    board = [_or_next(card, rest) for card in known.board] + rest
    return hands, (board[0], board[1], board[2], board[3], board[4])


def _or_next(card: str, rest: list[str]) -> str:
    return rest.pop() if card == UNKNOWN else card
