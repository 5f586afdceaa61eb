"""What an agent knew, arranged for eyes: the arguments of `build_turn_context` under their names on the wire.

Every argument that is recognised, and has the shape it is known by, gets a place of its own; every other one is
listed by its name, so that an argument added tomorrow shows without a change here. Pure, and it never raises for the
shape of a recorded value.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from agentlab.common.cards import read_cards
from agentlab.common.numbers import amount, counted
from capture.recorded import spelt

Frame = Mapping[str, Any]
Names = Mapping[str, str]  # agent id to the name people know it by


@dataclass(frozen=True)
class StreetLine:
    """What was heard on one street, in order."""

    street: str
    actions: list[str]

    @property
    def told(self) -> str:
        return " → ".join(self.actions)


@dataclass(frozen=True)
class Said:
    author: str  # "": nobody is named
    at: str
    text: str


@dataclass(frozen=True)
class PastHand:
    """One earlier hand as it was heard: its number, its board, and who gained or lost what."""

    number: str
    board: list[str]
    results: list[str]


@dataclass(frozen=True, repr=False)
class Knowing:
    """None: that argument was not recorded, or has a shape of its own and is among `others`."""

    board: list[str] | None = None
    hole_cards: list[str] | None = None
    facts: list[tuple[str, str]] = field(default_factory=list)
    limits: tuple[Any, Any] | None = None  # least and most raise-to total
    streets: list[StreetLine] | None = None
    past_hands: list[PastHand] | None = None
    notes: list[str] | None = None
    whispers: list[Said] | None = None
    others: list[tuple[str, Any]] = field(default_factory=list)

    @property
    def latest_whisper(self) -> Said | None:
        return self.whispers[-1] if self.whispers else None

    @property
    def more(self) -> str:
        """What there is besides: `20 recent hands, 2 notes, 3 whispers`."""
        counts = [(self.past_hands, "recent hand"), (self.notes, "note"), (self.whispers, "whisper")]
        return ", ".join(counted(len(kept), name) for kept, name in counts if kept)

    @property
    def heard_nothing(self) -> bool:
        """The action log was recorded, and it was empty."""
        return self.streets == []


def arrange(arguments: Mapping[Any, Any], names: Names) -> Knowing:
    """The arguments by place. Frames keep their names on the wire; agents in them are called by `names`."""
    found: dict[str, Any] = {"others": []}
    at_a_table = "state" in arguments
    for name, value in arguments.items():
        # Of an agent at no table of ours, notes may be all that it knew: no place for what only fills up over hands.
        reader = _READERS.get(name) if name != "notes" or at_a_table else None
        read = reader(value, names) if reader else None
        if read is None:
            found["others"].append((spelt(name), value))
            continue
        facts = found.get("facts", []) + read.pop("facts", [])
        found |= read | {"facts": facts}
    return Knowing(**found)


def action_words(verb: object, chips: object) -> str:
    """`raises to 200`, `calls 24`, `folds`; a verb that is not poker's stays as it is, with its amount."""
    spoken = "" if chips is None else f" {amount(chips)}"
    known = {"raise": f"raises{' to' if spoken else ''}{spoken}", "call": f"calls{spoken}"}
    known |= {"fold": "folds", "check": "checks", "bet": f"bets{spoken}", "all_in": f"is all-in{spoken}"}
    return known.get(str(verb), f"{verb}{spoken}")


def _state(value: Any, names: Names) -> dict[str, Any] | None:
    if not isinstance(value, Mapping):
        return None
    stakes = [spelt(value[key]) for key in ("smallBlind", "bigBlind") if value.get(key) is not None]
    facts = [("Pot", amount(value["pot"]))] if value.get("pot") is not None else []
    facts += [("To call", amount(value["toCall"]))] if value.get("toCall") is not None else []
    facts += [("Blinds", "/".join(stakes))] if stakes else []
    mine = _seat_of(value)
    if mine is not None and mine.get("stack") is not None:
        facts.append(("Stack", amount(mine["stack"])))
    return {
        "board": _cards(value.get("board")),
        "hole_cards": _cards(value.get("holeCards")),
        "facts": facts,
    }


def _seat_of(state: Frame) -> Frame | None:
    seats = state.get("seats")
    mine = state.get("yourSeat")
    if mine is None or not _is_frames(seats):
        return None
    return next((seat for seat in seats if seat.get("seat") == mine), None)


def _turn(value: Any, names: Names) -> dict[str, Any] | None:
    if not isinstance(value, Mapping):
        return None
    facts = []
    between = None
    limits = value.get("chipRange")
    if isinstance(limits, Mapping) and {"min", "max"} <= limits.keys():
        between = (limits["min"], limits["max"])
        facts.append(("May raise to", f"{amount(limits['min'])}–{amount(limits['max'])}"))
    legal = value.get("legalActions")
    if _is_texts(legal):
        facts.append(("Legal", ", ".join(legal)))
    return {"facts": facts, "limits": between}


def _action_log(value: Any, names: Names) -> dict[str, Any] | None:
    if not _is_frames(value) or not all("action" in frame for frame in value):
        return None
    lines: list[StreetLine] = []
    for frame in value:
        street = str(frame.get("street", ""))
        if not lines or lines[-1].street != street:
            lines.append(StreetLine(street, []))
        lines[-1].actions.append(_heard(frame, names))
    return {"streets": lines}


def _heard(frame: Frame, names: Names) -> str:
    who = str(frame.get("agentId", f"seat {frame.get('seat', '?')}"))
    words = f"{names.get(who, who)} {action_words(frame['action'], frame.get('amount'))}"
    if frame.get("allIn") is True:
        words += ", all-in"
    cause = frame.get("cause", "chosen")
    return words if cause == "chosen" else f"{words} ({cause})"


def _hand_history(value: Any, names: Names) -> dict[str, Any] | None:
    hands = _past_hands(value, names)
    return None if hands is None else {"past_hands": hands}


def _past_hands(value: Any, names: Names) -> list[PastHand] | None:
    """The hands of a recorded history, oldest first; None where it has a shape of its own."""
    if not _is_frames(value) or not all(_is_frames(hand.get("seats")) for hand in value):
        return None
    return [
        PastHand(
            spelt(hand.get("handNumber")),
            _cards(hand.get("board")) or [],
            [_result(seat, names) for seat in hand["seats"] if seat.get("net") or seat.get("cards")],
        )
        for hand in value
    ]


def _result(seat: Frame, names: Names) -> str:
    who = str(seat.get("agentId", f"seat {seat.get('seat', '?')}"))
    net = seat.get("net")
    gained = f"{net:+,}".replace("-", "−") if isinstance(net, int) else spelt(net)
    shown = seat.get("cards")
    return f"{names.get(who, who)} {gained}" + (f" with {' '.join(shown)}" if shown and _is_texts(shown) else "")


def _notes(value: Any, names: Names) -> dict[str, Any] | None:
    return {"notes": list(value)} if _is_texts(value) else None


def _whispers(value: Any, names: Names) -> dict[str, Any] | None:
    if not _is_frames(value) or not all("text" in frame for frame in value):
        return None
    said = [Said(str(w.get("author") or ""), str(w.get("at", "")), str(w["text"])) for w in value]
    return {"whispers": said}


_READERS: dict[str, Callable[[Any, Names], dict[str, Any] | None]] = {
    "state": _state,
    "turn": _turn,
    "action_log": _action_log,
    "hand_history": _hand_history,
    "notes": _notes,
    "whispers": _whispers,
}


def _cards(value: Any) -> list[str] | None:
    return list(value) if _is_texts(value) and read_cards(value) is not None else None


def _is_frames(value: Any) -> TypeGuard[Sequence[Frame]]:
    return isinstance(value, list | tuple) and all(isinstance(item, Mapping) for item in value)


def _is_texts(value: Any) -> TypeGuard[Sequence[str]]:
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
