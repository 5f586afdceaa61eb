"""How the house model reads a prompt: the style that its words ask for, and the facts of the turn."""

import re
from dataclasses import dataclass

NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
COY, EAGER = 0.02, 0.9  # as far as a mood goes; only who is told to raises never, or every time
RAISES = {"never raise": 0.0, "raise every": 1.0, "always raise": 1.0}


@dataclass(frozen=True, slots=True)
class Style:
    """How a strategy wants to be played: the share of hands to enter, the will to raise, the will to bluff; 0 to 1."""

    enter: float
    raises: float
    bluffs: float

    @property
    def insists_on_raising(self) -> bool:
        """“Raise every hand”: whoever was told so is the first to raise, whatever they hold."""
        return self.raises > EAGER

    @property
    def refuses_to_raise(self) -> bool:
        """“Never raise”, which is never to bluff either."""
        return self.raises < COY


def read_style(script: str, turn: str = "") -> Style:
    """The style that a strategy asks for, shifted by the whispers of this turn."""
    strategy = section(script, "Strategy").lower()
    enter = _share(strategy, _first(strategy, {"tight": 0.2, "patient": 0.2, "loose": 0.5}, 0.3))
    raises = _first(strategy, {"aggressive": 0.75, "passive": 0.15} | RAISES, 0.45)
    bluffs = _first(strategy, {"bluff often": 0.3, "bluff seldom": 0.06, "never bluff": 0.0}, 0.1)
    whispers = section(turn, "Whispers").lower()
    enter *= _first(whispers, {"tight": 0.6, "patien": 0.6, "loose": 1.5}, 1.0)
    enter = _share(whispers, enter)
    shift = _first(whispers, {"aggress": 0.25, "passive": -0.3, "careful": -0.3}, 0.0)
    raises = _first(whispers, RAISES, min(max(raises + shift, COY), EAGER) if shift else raises)
    return Style(min(enter, 1.0), raises, bluffs)


def _share(text: str, otherwise: float) -> float:
    """“One hand in five”, “20 %” and “every hand” as a share."""
    words = "|".join(NUMBERS)
    if found := re.search(rf"\b({words}) hands? in ({words})\b", text):
        return min(NUMBERS[found[1]] / NUMBERS[found[2]], 1.0)
    if found := re.search(r"\b(\d{1,2}) ?%", text):
        return int(found[1]) / 100
    return _first(text, {"fold every": 0.0, "every hand": 1.0, "any hand": 1.0, "any two cards": 1.0}, otherwise)


def _first(text: str, meanings: dict[str, float], otherwise: float) -> float:
    """The meaning of the word that comes first in the text."""
    places = [(text.index(word), value) for word, value in meanings.items() if word in text]
    return min(places)[1] if places else otherwise


def section(text: str, title: str) -> str:
    """A section's lines, up to the next line that begins one; empty where there is none."""
    found = re.search(rf"^\[{title}\]\n(.*?)(?=^\[|\Z)", text, re.M | re.S)
    return found[1].strip() if found else ""


@dataclass(frozen=True, slots=True)
class Spot:
    """A turn as the prompt tells it. Chips; `least` and `most` are raise-to totals, 0 where no raise is offered."""

    cards: tuple[str, ...]
    board: tuple[str, ...]
    pot: int
    to_call: int
    stack: int
    bet: int
    big_blind: int
    position: str
    opponents: int
    legal: frozenset[str]
    least: int
    most: int
    raisers: tuple[str, ...]
    is_unheard: bool
    """Chips in the pot beyond the blinds that nobody was heard to bet."""


class NoTurn(ValueError):
    """The text does not describe a turn."""


def read_spot(turn: str) -> Spot:
    """The turn's facts. Raises NoTurn."""
    heard = section(turn, "This hand")
    big_blind = int(_one(r"blinds \d+/(\d+)", turn)[1])
    pot = int(_one(r"^Pot: (\d+)", turn)[1])
    place = _one(r"^Position: (.+)\. You have (\d+) behind and (\d+) in front", turn)
    limits = re.search(r"^Raise to: least (\d+), most (\d+)", turn, re.M)
    seats = section(turn, "Seats").splitlines()
    return Spot(
        cards=tuple(_cards(r"^You hold (.+)\.$", turn)),
        board=tuple(_cards(r"Board: (.+)\.$", turn)),
        pot=pot,
        to_call=int(_one(r"^To call: (\d+)", turn)[1]),
        stack=int(place[2]),
        bet=int(place[3]),
        big_blind=big_blind,
        position=place[1],
        opponents=sum(bool(re.search(r"(?<!\(you\)): .*\b(active|all-in)\b", seat)) for seat in seats),
        legal=frozenset(_one(r"^Legal actions: (.+)\.$", turn)[1].split(", ")),
        least=int(limits[1]) if limits else 0,
        most=int(limits[2]) if limits else 0,
        raisers=tuple(re.findall(r"([^\s,]+) raises to", heard)),
        is_unheard=heard.startswith("No action") and pot > 2 * big_blind + big_blind // 2,
    )


def _one(pattern: str, text: str) -> "re.Match[str]":
    if (found := re.search(pattern, text, re.M)) is None:
        raise NoTurn(f"no {pattern!r} in the prompt")
    return found


def _cards(pattern: str, text: str) -> list[str]:
    return re.findall(r"\b[2-9TJQKA][cdhs]\b", _one(pattern, text)[1])
