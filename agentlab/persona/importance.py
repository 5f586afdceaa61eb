"""How much a memory weighs, in [0, 1]: a rule, or, where a model answered anyway, the rating in the same answer.

Real streams of rated memories show why the rule comes first: one text, several ratings. The rule gives equal events
equal weight.
"""

import re

from agentlab.persona.rules import Action

IDLE_WEIGHT = 0.1
CHANGE_GAIN = 2.5  # a stance that moves by 0.4 is as weighty as can be
RATING_TEXT = 200  # characters of a rating that are read: a model may repeat one digit for ever

_SCALED = re.compile(r"(-?\d+(?:\.\d+)?)\s*(?:/|out of)\s*(10|100)(?!\d|\.\d)", re.IGNORECASE)
_BARE = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w]|\.\d)")


def by_rule(action: Action, change: float) -> float:
    """From the action taken and the size of the belief change (sum of |Δ stance|).

    A noisy-or (Pearl, 1988): either alone can make it weighty. Doing nothing weighs 0.1, anything else 0.2 and more, by
    effort.
    """
    return 1.0 - (1.0 - acted(action)) * (1.0 - moved(change))


def acted(action: Action) -> float:
    """What the action alone weighs."""
    return IDLE_WEIGHT if action.idle else 0.2 + 0.6 * action.effort


def moved(change: float) -> float:
    """What the belief change alone weighs."""
    return min(1.0, CHANGE_GAIN * change)


def read_rating(value: object) -> float | None:
    """A model's rating of 1 to 10 as importance: 8, "8", "8/10", "Rating: 8", "8 - because …", "8 out of 10".

    None where it cannot be read or lies outside the scale: then the rule answers.
    """
    if isinstance(value, str):
        return _rating_in(value[:RATING_TEXT])
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) / 10 if 1 <= value <= 10 else None  # compared first: not every whole number fits a float


def _rating_in(words: str) -> float | None:
    if scaled := _SCALED.search(words):
        return _scaled(float(scaled[1]), int(scaled[2]))
    numbers = _BARE.findall(words)
    return _scaled(float(numbers[0]), 10) if numbers else None


def _scaled(rating: float, most: int) -> float | None:
    return rating / most if most / 10 <= rating <= most else None
