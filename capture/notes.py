"""Notes beside a turn, by whoever knows what it was about. Capture knows no poker: a room that does registers its
note makers when it starts (`AppConfig.ready`).
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from capture.reading import TurnView
from capture.turns import Turn


@dataclass(frozen=True, slots=True)
class Note:
    """What there is to say beside a turn, and the one word of it that stands at the turn's head, in capitals."""

    text: str
    word: str = "NOTE"


NoteMaker = Callable[[Turn], Note | str | None]
_makers: list[NoteMaker] = []
_log = logging.getLogger(__name__)


def register(maker: NoteMaker) -> NoteMaker:
    """From now on `maker` is asked about every turn that is shown: a note, or None where it has nothing to say.

    A note must be certain: a wrong one is worse than none. Usable as a decorator; registering twice changes nothing.
    """
    if maker not in _makers:
        _makers.append(maker)
    return maker


def notes_on(view: TurnView) -> list[Note]:
    """What the makers say of a recorded turn; nothing of one that is not. A maker that fails says nothing."""
    said = [_asked(maker, view.turn) for maker in _makers if view.turn]
    return [note if isinstance(note, Note) else Note(note) for note in said if note]


def _asked(maker: NoteMaker, turn: Turn) -> Note | str | None:
    try:
        return maker(turn)
    except Exception as error:  # a note is no reason to lose the page; the record may be of an older agent
        _log.warning("note maker %s failed: %s", maker.__name__, type(error).__name__)
        return None
