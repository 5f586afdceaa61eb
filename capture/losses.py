"""What capture lost lately: the counter on top of the captured hands, from the ledger alone."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Max, Min

from agentlab.agents.models import LOST, CaptureOutcome, InferenceCharge
from capture.recent import DAY


@dataclass(frozen=True)
class Loss:
    outcome: str  # dropped or failed
    reason: str
    turns: int
    first: datetime
    last: datetime


@dataclass(frozen=True)
class Losses:
    """Of the window's turns with a decision: how many were recorded, are on the way, and were lost, and why."""

    recorded: int
    pending: int
    reasons: list[Loss]

    @property
    def lost(self) -> int:
        return sum(loss.turns for loss in self.reasons)

    @property
    def decisions(self) -> int:
        return self.recorded + self.pending + self.lost


def lately(now: datetime) -> Losses:
    """One query over a day of the ledger, however long the ledger is."""
    rows = (
        InferenceCharge.objects.filter(played_at__gt=now - DAY, is_fallback=False)
        .values_list("capture_outcome", "capture_reason")
        .annotate(turns=Count("id"), first=Min("played_at"), last=Max("played_at"))
        .order_by("-turns")
    )
    counts = dict.fromkeys(CaptureOutcome.values, 0)
    reasons = []
    for outcome, reason, turns, first, last in rows:
        counts[outcome] += turns
        if outcome in LOST:
            reasons.append(Loss(outcome, reason, turns, first, last))
    return Losses(counts[CaptureOutcome.RECORDED], counts[CaptureOutcome.PENDING], reasons)
