"""What the pages say about a turn: why something is absent, what changed on the way out. Pure, and never guessing."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

from agentlab.agents.models import LOST
from agentlab.common.numbers import counted, duration
from capture.reading import Hand, TurnView

UNREACHABLE = "The capture Redis does not answer, so it cannot be told what was recorded here."


def age_limit(ttl: timedelta) -> str:
    """How long a capture lives, in words: `24 hours`, `1 hour`, `90 seconds`."""
    seconds = int(ttl.total_seconds())
    for unit, name in ((3600, "hour"), (60, "minute")):
        if seconds % unit == 0:
            return counted(seconds // unit, name)
    return counted(seconds, "second")


def absence_of_its_own(view: TurnView) -> str:
    """Why the four things of this turn are not here, where that is this turn's own story and not its whole hand's."""
    if view.is_fallback:
        reason = f": {view.fallback_reason}" if view.fallback_reason else ""
        sent = "The agent sent a safe action" if view.action else "The agent sent no action"
        return f"No decision was made{reason}. {sent}, and nothing was recorded."
    if view.capture_outcome in LOST:
        reason = f": {view.capture_reason}" if view.capture_reason else ""
        return f"A decision was made, but its record was lost ({view.capture_outcome}{reason})."
    if view.damaged:
        return f"Its record is there but cannot be rebuilt: {view.damaged}."
    return ""


def absence(view: TurnView, *, now: datetime, ttl: timedelta, buffer_answered: bool) -> str:
    """Why the four things of this turn are not here."""
    if own := absence_of_its_own(view):
        return own
    if not buffer_answered:
        return UNREACHABLE
    expired = view.played_at is not None and now - view.played_at >= ttl
    if expired:
        return f"Expired: captured turns live {age_limit(ttl)}, and this one was not kept."
    if view.capture_outcome == "pending":
        return "Nothing has been recorded yet: its record is still on its way, or was lost without a word."
    return "It was recorded, but it is in the buffer no more, though its time is not over."


def outcome_counts(views: Sequence[TurnView], *, buffer_answered: bool) -> list[str]:
    """`8 recorded`, `2 fallback`, `1 damaged`, `1 gone`: what became of a hand's turns. The lost have a callout. Where
    the buffer is silent nothing is known to be gone."""
    counts = [
        (sum(view.turn is not None for view in views), "recorded"),
        (sum(view.is_fallback for view in views), "fallback"),
        (sum(is_damaged(view) for view in views), "damaged"),
        (sum(_gone(view) for view in views), "gone" if buffer_answered else "out of reach"),
    ]
    return [f"{count} {word}" for count, word in counts if count]


def unknown_actions(views: Sequence[TurnView]) -> str:
    """`nothing known of action 2`, among all agents' turns of a hand: the table itself acts for one that is away."""
    seen = {view.action_index for view in views}
    count = max(seen, default=-1) + 1 - len(seen)
    if count > 3:
        return f"nothing known of {count} actions"
    missing = [str(index) for index in range(max(seen, default=0)) if index not in seen]
    return f"nothing known of action{'' if count == 1 else 's'} {', '.join(missing)}" if missing else ""


def is_damaged(view: TurnView) -> bool:
    """Its record is there and cannot be shown. One that the ledger calls lost is lost."""
    return view.turn is None and bool(view.damaged) and view.capture_outcome not in LOST


def _gone(view: TurnView) -> bool:
    shown_otherwise = view.is_fallback or view.capture_outcome in LOST or is_damaged(view)
    return view.turn is None and not shown_otherwise


def losses(views: Sequence[TurnView]) -> str:
    """`7 of 8 turns recorded, 1 dropped: buffer full`, or nothing where nothing was lost. A record may be there all the
    same: the store took it and its answer was late, or an earlier one has the same key."""
    decisions = [view for view in views if not view.is_fallback]
    missed = [view for view in decisions if view.capture_outcome in LOST]
    if not missed:
        return ""
    others = (view for view in decisions if view.capture_outcome not in LOST)
    recorded = sum(view.turn is not None or view.capture_outcome == "recorded" for view in others)
    lost = Counter((view.capture_outcome, view.capture_reason) for view in missed)
    parts = [f"{n} {outcome}{f': {reason}' if reason else ''}" for (outcome, reason), n in lost.items()]
    said = f"{recorded} of {len(decisions)} turns recorded, {', '.join(parts)}"
    here = sum(view.turn is not None for view in missed)
    return f"{said}; a record of {here} of these is here all the same" if here else said


def empty_hand(hand: Hand, *, now: datetime, ttl: timedelta) -> str:
    """Why a hand opens to a stream without one recorded turn; nothing where it has one."""
    if any(view.turn is not None for view in hand.turns):
        return ""
    if not hand.buffer_answered:
        return "The capture Redis does not answer. Kept hands still load; of this one nothing is kept."
    if not hand.turns:
        recorded = "nothing of it is recorded" if hand.lists_whole else "what is recorded of it cannot be told"
        return f"No such hand in the ledger, and {recorded}."
    if all(view.is_fallback for view in hand.turns):
        return "Every turn of this hand was a fallback: no decision was made, so nothing was captured."
    turns = counted(len(hand.turns), "turn")
    if damaged := sum(is_damaged(view) for view in hand.turns):
        are = "is" if damaged == 1 else "are"
        return f"No turn of this hand can be read: of its {turns} {damaged} {are} there, but damaged."
    played = max((view.played_at for view in hand.turns if view.played_at), default=None)
    if played is not None and now - played >= ttl:
        return (
            f"Played {_age(now - played)} ago and not kept: captures live {age_limit(ttl)}. "
            f"The ledger still has its {turns}."
        )
    if all(view.is_fallback or view.capture_outcome in LOST for view in hand.turns):
        return "No turn of this hand was captured: each was a fallback, or its record was lost."
    return f"Nothing of this hand is in the buffer. The ledger has its {turns}."


def _age(age: timedelta) -> str:
    hours = int(age.total_seconds() // 3600)
    if hours >= 48:
        return f"{hours // 24} days"
    return f"{hours} h" if hours else duration(age.total_seconds() * 1000)


def kept(views: Sequence[TurnView]) -> str:
    """`kept 3 of 4 turns`, of those in which a decision was made; nothing where none is."""
    count, decided = sum(view.kept for view in views), sum(not view.is_fallback for view in views)
    return f"kept {count} of {counted(decided, 'turn')}" if count else ""


def remaining(hand: Hand, *, now: datetime, ttl: timedelta) -> str:
    """`expires in 21 h` for the first turn that will go, `the rest expires …` where others are kept; nothing where all
    that is recorded is kept."""
    leaving = [v.played_at for v in hand.turns if v.turn is not None and not v.kept and v.played_at is not None]
    left = min(leaving) + ttl - now if leaving else timedelta(0)
    what = "the rest expires" if any(view.kept for view in hand.turns) else "expires"
    return f"{what} in {_age(left)}" if left > timedelta(0) else ""


def silent(trouble: str) -> str:
    """Why the lists of hands warn: they come from the ledger, and would look as ever until a turn is lost."""
    return (
        f"The capture Redis does not work right now: {trouble}. Turns that are played meanwhile may be lost, and hands "
        "open to what is kept of them and to what the ledger knows."
    )
