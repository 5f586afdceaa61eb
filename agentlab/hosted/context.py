"""The first door: everything an agent knows reaches its prompt through `build_turn_context`, and is captured there.

Pure: the arguments in, text out. What is not an argument cannot reach the prompt, so a new source of memory becomes
an argument here and stands in every trace from then on.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capture.knowledge import captures_knowledge
from capture.prompt import Prompt

Frame = dict[str, Any]

RENDERER = "turn-context " + hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]
"""Names this file's exact text: a prompt recorded under the same name must come out the same from the same memory."""

STREETS = ("preflop", "flop", "turn", "river")
BOARD_CARDS = {"preflop": 0, "flop": 3, "turn": 4, "river": 5}
# Names of seats counted from the button, by how many are dealt in. https://en.wikipedia.org/wiki/Position_(poker)
POSITIONS = {
    2: ("BTN/SB", "BB"),
    3: ("BTN", "SB", "BB"),
    4: ("BTN", "SB", "BB", "UTG"),
    5: ("BTN", "SB", "BB", "UTG", "CO"),
    6: ("BTN", "SB", "BB", "UTG", "HJ", "CO"),
    7: ("BTN", "SB", "BB", "UTG", "MP", "HJ", "CO"),
    8: ("BTN", "SB", "BB", "UTG", "UTG+1", "MP", "HJ", "CO"),
    9: ("BTN", "SB", "BB", "UTG", "UTG+1", "MP", "MP+1", "HJ", "CO"),
}


@captures_knowledge
def build_turn_context(
    *,
    state: Frame,
    turn: Frame,
    action_log: Sequence[Frame] = (),
    hand_history: Sequence[Frame] = (),
    notes: Sequence[str] = (),
    whispers: Sequence[Frame] = (),
) -> str:
    """The part of the prompt that belongs to one turn.

    `state` and `turn` are the latest `game_state` and the `your_turn`; `action_log` and `hand_history` the
    `player_action`s of this hand and the latest `hand_result`s, oldest first; all with the names on the wire.
    A whisper is {"author": str, "at": "YYYY-MM-DD HH:MM", "text": str}.
    """
    sections = [
        ("Table", _table(state)),
        ("Seats", _seats(state)),
        ("This hand", _actions(state, action_log)),
        ("Recent hands", [_past(hand, state) for hand in hand_history] or ["None seen since you joined."]),
        ("Notes", [f"- {_line(note)}" for note in notes]),
        ("Whispers", [f"- {_line(w['author'])}, {w['at']} UTC: {_line(w['text'])}" for w in whispers]),
        ("Your turn", _turn(state, turn)),
    ]
    return "\n\n".join("\n".join([f"[{title}]", *lines]) for title, lines in sections if lines)


def _table(state: Frame) -> list[str]:
    stakes = f"blinds {state['smallBlind']}/{state['bigBlind']}"
    if state["ante"]:
        stakes += f", ante {state['ante']}"
    board = " ".join(state["board"]) or "none yet"
    lines = [f"Hand {state['handNumber']}, {stakes}.", f"Street: {state['street']}. Board: {board}."]
    lines.append(f"Pot: {state['pot']}.")
    if len(state["pots"]) > 1:
        pots = (f"{pot['amount']} (seats {', '.join(map(str, pot['seats']))})" for pot in state["pots"])
        lines.append(f"Collected so far, main pot first: {', '.join(pots)}.")
    return lines


def _seats(state: Frame) -> list[str]:
    places = _positions(state)
    return [_seat(seat, places.get(seat["seat"], "–"), state) for seat in state["seats"]]


def _seat(seat: Frame, place: str, state: Frame) -> str:
    you = " (you)" if seat["seat"] == state["yourSeat"] else ""
    facts = [f"stack {seat['stack']}", f"bet {seat['bet']}", seat["status"].replace("_", "-")]
    if not seat["connected"]:
        facts.append("disconnected")
    if seat["cards"]:
        facts.append("shows " + " ".join(seat["cards"]))
    return f"seat {seat['seat']} {place} {_name(seat)}{you}: {', '.join(facts)}"


def _positions(state: Frame) -> dict[int, str]:
    """Seat number to position, for the seats that were dealt in. Empty where the button is not among them."""
    dealt = [seat["seat"] for seat in state["seats"] if seat["status"] != "out"]
    if state["button"] not in dealt or len(dealt) not in POSITIONS:
        return {}
    first = dealt.index(state["button"])
    return dict(zip(dealt[first:] + dealt[:first], POSITIONS[len(dealt)], strict=True))


def _actions(state: Frame, log: Sequence[Frame]) -> list[str]:
    if not log:
        return ["No action heard yet."]
    lines = []
    for street in STREETS:
        if heard := [_action(action, state) for action in log if action["street"] == street]:
            board = " ".join(state["board"][: BOARD_CARDS[street]])
            lines.append(f"{street}{f' ({board})' if board else ''}: {', '.join(heard)}")
    return lines


def _action(action: Frame, state: Frame) -> str:
    verb, amount = action["action"], action["amount"]
    words = f"{_name(action)}{' (you)' if action['seat'] == state['yourSeat'] else ''} "
    words += {"raise": f"raises to {amount}", "call": f"calls {amount}"}.get(verb, f"{verb}s")
    if action["allIn"]:
        words += " and is all-in"
    return words if action["cause"] == "chosen" else f"{words} ({action['cause']})"


def _past(hand: Frame, state: Frame) -> str:
    """One earlier hand in a line: the board, who gained and lost what, and the cards that were shown."""
    board = " ".join(hand["board"]) or "no flop"
    results = []
    for seat in hand["seats"]:
        shown = f" with {' '.join(seat['cards'])}" if seat["cards"] else ""
        you = " (you)" if seat["seat"] == state["yourSeat"] else ""
        if seat["net"] or shown:
            results.append(f"{_name(seat)}{you} {seat['net']:+d}{shown}")
    return f"hand {hand['handNumber']} [{board}]: {', '.join(results) or 'nobody won or lost'}"


def _turn(state: Frame, turn: Frame) -> list[str]:
    mine = next((seat for seat in state["seats"] if seat["seat"] == state["yourSeat"]), None)
    lines = []
    if state["holeCards"]:
        lines.append(f"You hold {' '.join(state['holeCards'])}.")
    if mine is not None:
        place = _positions(state).get(mine["seat"], "no position")
        lines.append(f"Position: {place}. You have {mine['stack']} behind and {mine['bet']} in front of you.")
    lines.append(f"To call: {state['toCall'] or 0}.")
    lines.append(f"Legal actions: {', '.join(turn['legalActions'])}.")
    if limits := turn["chipRange"]:
        lines.append(f"Raise to: least {limits['min']}, most {limits['max']} (all-in).")
    return lines


def _name(who: Frame) -> str:
    return _line(who["agentId"])


def _line(text: str) -> str:
    """Somebody else's words on one line of ours: a line break in them must not begin a section."""
    return " ".join(str(text).split())


@dataclass(frozen=True, slots=True)
class Script:
    """What a deployment says about how to play: the part of the prompt that stays the same from turn to turn."""

    base_prompt: str
    strategy: str
    skills: tuple[tuple[str, str], ...] = ()

    @property
    def envelope(self) -> str:
        """Base prompt, strategy and skill sections."""
        sections = [self.base_prompt, f"[Strategy]\n{self.strategy}"]
        sections += [f"[Skill: {name}]\n{text}" for name, text in self.skills]
        return "\n\n".join(sections)


def assemble(script: Script, context: str) -> Prompt:
    """The prompt of one turn: the script's envelope, a line break, the turn's context."""
    return Prompt(script.envelope, context)
