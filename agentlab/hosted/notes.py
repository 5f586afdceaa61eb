"""What somebody who knows poker can say beside a recorded turn (registered with capture when Django starts).

Certain or silent: a turn of another kind of agent, or of an older shape, gets no note.
"""

from agentlab.common.numbers import amount
from agentlab.hosted.context import RENDERER, Frame, build_turn_context
from agentlab.hosted.memory import gap, heard_before
from capture.knowledge import read_knowledge
from capture.notes import Note
from capture.turns import Turn


def memory_gap(turn: Turn) -> Note | None:
    """Its log lacks actions that the table had counted. Which of the two it is (`memory.gap`), the ledger says as well:
    the agent asked the same of what it knew when its turn began."""
    knowledge = _knowledge(turn)
    if knowledge is None:
        return None
    state, log = knowledge["state"], knowledge["action_log"]
    found = gap(state, log, knowledge["hand_history"])
    if not found:
        return None
    due, heard = state["actionIndex"], heard_before(state, log)
    if heard:
        told = f"It had heard {heard} of the {due} actions before this turn"
    else:
        told = (
            f"{_pot(state)} and its log of this hand is empty, though {due} action{'s' * (due > 1)} came before this "
            "turn"
        )
    if found == "log_gap":
        return Note(f"{told}. It still knows how an earlier hand ended, so it was connected all the while.", "LOG GAP")
    blind = "" if heard else " It could see the pot, not who built it."
    return Note(
        f"{told}: it seems to have reconnected in the middle of the hand.{blind}{_lost_too(knowledge)}", "RECONNECTED?"
    )


def _lost_too(knowledge: Frame) -> str:
    """What else is empty. That it had any before is not known: the hand may be its first."""
    empty = [name for name, part in (("recent hands", "hand_history"), ("notes", "notes")) if not knowledge[part]]
    if not empty:
        return ""
    return f" Its {' and its '.join(empty)} are empty too: if it had any, they went with the connection."


def renders_otherwise(turn: Turn) -> Note | None:
    """The same renderer, given the recorded memory, does not give the recorded prompt: a fault between the two."""
    knowledge = _knowledge(turn)
    if knowledge is None or turn.renderer != RENDERER:
        return None
    if build_turn_context(**knowledge).value == turn.prompt.remainder:
        return None
    return Note(
        "The recorded memory, rendered again, does not give the recorded prompt: it was told something else.",
        "PROMPT DIFFERS",
    )


def _knowledge(turn: Turn) -> Frame | None:
    """The recorded arguments of our `build_turn_context`; None where it was not ours that rendered the turn."""
    if turn.knowledge is None or not (turn.renderer or "").startswith(RENDERER.partition(" ")[0] + " "):
        return None
    return read_knowledge(turn.knowledge)


def _pot(state: Frame) -> str:
    """“1,640 chips are in the pot, 1,490 of them more than blinds and antes”, as far as that is so."""
    dealt = sum(seat["status"] != "out" for seat in state["seats"])
    forced = state["smallBlind"] + state["bigBlind"] + state["ante"] * dealt
    beyond = state["pot"] - forced
    more = f", {amount(beyond)} of them beyond blinds and antes," if beyond > 0 else ""
    return f"{amount(state['pot'])} chips are in the pot{more}"
