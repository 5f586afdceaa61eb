"""From what the model chose to what may be sent: rename a synonym, read an all-in, clamp to the legal range.

Pure. Nothing is ever replaced by a move that the model had discarded: an illegal choice becomes the nearest legal
one (a raise that is not offered becomes a call, a call with nothing to call a check, a free fold a check), and the
decision says so.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from agentlab.hosted.frames import Move

Amount = int | float | Decimal
Change = Literal["rename", "all_in", "verb", "clamp"]

# What an action becomes where it is not legal, nearest first: never more chips than asked for, and no free fold,
# which gives chips away for nothing and which the table refuses.
NEAREST: dict[str, tuple[Move, ...]] = {
    "raise": ("call", "check", "fold"),
    "call": ("call", "check", "fold"),
    "check": ("check", "fold"),
    "fold": ("check", "fold"),
}
MEANINGS = {"bet": "raise", "all_in": "raise"}


@dataclass(frozen=True, slots=True)
class Legal:
    """What `your_turn` offers, beside what the state says of the actor. Chips; `least` and `most` are raise-to totals
    for the street, None where no raise is offered."""

    actions: frozenset[str]
    least: int | None = None
    most: int | None = None
    to_call: int = 0
    stack: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """What is sent (`action`, and `amount` of a raise), what was asked for, and what changed between the two.

    `action` is "" where nothing at all was sent. `chips` is the amount that the record and the ledger show: a raise's
    total for the street, the chips that a call adds, None for the rest.
    """

    action: Move | Literal[""]
    amount: int | None = None
    chips: int | None = None
    asked_action: str | None = None
    asked_amount: Amount | None = None
    change: Change | None = None


def safe_action(legal: Legal) -> Decision:
    """What is sent where no decision was made: check where it is free, else fold."""
    return Decision("check" if "check" in legal.actions else "fold")


def clamp(asked: str, amount: Amount | None, legal: Legal) -> Decision:
    """The nearest legal action to a choice: fold, check, call, bet, raise or all_in, and for a raise its total.

    A number beside a fold, a check or a call is no amount. Raises ValueError for any other verb.
    """
    verb = MEANINGS.get(asked, asked)
    if verb not in NEAREST:
        raise ValueError(f"no poker action: {asked!r}")
    if verb == "raise" and "raise" in legal.actions and legal.least is not None and legal.most is not None:
        sent, change = _raise_to(asked, amount, legal.least, legal.most, legal.stack)
        return Decision("raise", sent, sent, asked, amount, change)
    action: Move = next((move for move in NEAREST[verb] if move in legal.actions), "fold")
    chips = legal.to_call if action == "call" else None
    return Decision(action, None, chips, asked, amount if verb == "raise" else None, _change(asked, action))


def _raise_to(asked: str, amount: Amount | None, least: int, most: int, stack: int) -> tuple[int, Change | None]:
    """The total that is sent for a raise that is offered."""
    renamed: Change | None = None if asked == "raise" else "rename"
    if asked == "all_in":
        return most, renamed
    if amount is None or _is_nan(amount):  # the least is the nearest to nothing
        return least, "clamp"
    if amount == most:
        return most, renamed
    if amount == stack:
        # All that is left, by somebody who counts the stack where the table counts the street's total.
        return most, "all_in"
    sent = int(min(max(amount, least), most))
    return sent, renamed if sent == amount else "clamp"


def _is_nan(amount: Amount) -> bool:
    return amount.is_nan() if isinstance(amount, Decimal) else amount != amount  # a signalling NaN cannot be compared


def _change(asked: str, sent: str) -> Change | None:
    if asked == sent:
        return None
    if asked == "all_in" and sent == "call":  # the call takes all there is to bet
        return "rename"
    return "clamp" if asked in {"raise", "bet", "all_in"} else "verb"
