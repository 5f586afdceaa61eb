"""Playing cards as small glyphs, from PokerKit's spelling (`Ah`, `Td`, `??`)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_RANKS = dict(
    zip(
        "23456789TJQKA",
        ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "jack", "queen", "king", "ace"),
        strict=True,
    )
)
_SUITS = {"s": ("♠", "spades"), "h": ("♥", "hearts"), "d": ("♦", "diamonds"), "c": ("♣", "clubs")}
_CARD = re.compile(r"[2-9TJQKA][shdc]|\?\?")
_TEXT_GLYPH = "\ufe0e"  # asks for the plain glyph, not the emoji


@dataclass(frozen=True)
class Card:
    text: str  # `A♥︎`; `??` where it is not known
    name: str  # `ace of hearts`
    suit: str  # s h d c, or x


def read_cards(value: object) -> list[Card] | None:
    """Cards from `"AhKd"`, `"Ah Kd"` or `["Ah", "Kd"]`; None where anything of it is not a card (then show it as it
    is). Nothing at all is no cards: an empty board."""
    parts = [value] if isinstance(value, str) else list(value) if isinstance(value, Iterable) else None
    if parts is None or not all(isinstance(part, str) for part in parts):
        return None
    spelt = "".join("".join(part.split()) for part in parts)
    found = _CARD.findall(spelt)
    return [_card(text) for text in found] if "".join(found) == spelt else None


def _card(text: str) -> Card:
    if text == "??":
        return Card(text, "unknown card", "x")
    glyph, suit = _SUITS[text[1]]
    return Card(text[0] + glyph + _TEXT_GLYPH, f"{_RANKS[text[0]]} of {suit}", text[1])
