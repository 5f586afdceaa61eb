"""Charges and outcomes into `agent_inference_charges`, results into `agent_hand_results`: a batch a transaction, the
same however often it is repeated."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace

from django.db import (
    Error,
    InterfaceError,
    OperationalError,
    ProgrammingError,
    close_old_connections,
    transaction,
)
from django.db.models import Q

from agentlab.agents.charge import HAND, KEY, Charge, Key, Outcome, Result, bare
from agentlab.agents.models import CaptureOutcome, HandResult, InferenceCharge, Whisper
from agentlab.agents.spool import Batch

FACTS = [column.name for column in InferenceCharge._meta.concrete_fields if column.name not in {"id", *KEY}]
AWAY = (OperationalError, InterfaceError, ProgrammingError)  # the last: not migrated yet
REFUSED = (Error, ValueError, TypeError, ArithmeticError)


class Away(Exception):
    """The database took nothing; the same may be written again later."""


@dataclass
class Written:
    """What became of a batch. `waiting`: outcomes whose row is not there yet; `refused`: rows with the reason."""

    waiting: set[Key] = field(default_factory=set)
    refused: list[tuple[Charge | Result, str]] = field(default_factory=list)
    reduced: int = 0


def write(batch: Batch) -> Written:
    """The whole batch; where the database refuses it, each row by itself, so that a bad one costs no neighbour.

    Raises Away.
    """
    close_old_connections()
    try:
        return Written(waiting=_store(batch.charges, batch.outcomes, batch.results.values()))
    except AWAY as error:
        raise Away(type(error).__name__) from error
    except REFUSED:
        return _one_by_one(batch)
    finally:
        close_old_connections()


def _one_by_one(batch: Batch) -> Written:
    written, outcomes = Written(), batch.outcomes
    for key, charge in batch.charges.items():
        mine = {key: outcomes[key]} if key in outcomes else {}
        why = _try({key: charge}, mine)
        if why and not (why := _try({key: bare(charge)}, mine)):
            written.reduced += 1
        elif why:
            written.refused.append((charge, why))
    for result in batch.results.values():
        if why := _try({}, {}, [result]):
            written.refused.append((result, why))
    try:
        written.waiting = _store({}, {key: outcome for key, outcome in outcomes.items() if key not in batch.charges})
    except AWAY as error:
        raise Away(type(error).__name__) from error
    return written


def _try(charges: Mapping[Key, Charge], outcomes: Mapping[Key, Outcome], results: Collection[Result] = ()) -> str:
    """Why the database refuses it, or nothing."""
    try:
        _store(charges, outcomes, results)
    except AWAY as error:
        raise Away(type(error).__name__) from error
    except REFUSED as error:
        return type(error).__name__
    return ""


def _store(
    charges: Mapping[Key, Charge], outcomes: Mapping[Key, Outcome], results: Collection[Result] = ()
) -> set[Key]:
    """All of it or nothing. Returns the keys of the outcomes whose row is not there yet."""
    with transaction.atomic():
        _store_results(results)
        return _store_turns(charges, outcomes) if charges or outcomes else set()


def _store_turns(charges: Mapping[Key, Charge], outcomes: Mapping[Key, Outcome]) -> set[Key]:
    """A row that is written again takes the newer facts and keeps an outcome that is already known: only a newer
    outcome replaces that. A fallback's row takes no outcome."""
    present = _present({**charges, **outcomes})
    rows = [_row(charge, outcomes.get(key), present.get(key)) for key, charge in charges.items()]
    InferenceCharge.objects.bulk_create(rows, update_conflicts=True, unique_fields=KEY, update_fields=FACTS)
    _note_heard(charges)
    alone = {key: outcome for key, outcome in outcomes.items() if key not in charges}
    _update([(present[key], outcome) for key, outcome in alone.items() if key in present])
    return alone.keys() - present.keys()


def _store_results(results: Collection[Result]) -> None:
    """A hand's result is said once; said again, the newer word counts."""
    rows = [HandResult(**asdict(result)) for result in results]
    HandResult.objects.bulk_create(rows, update_conflicts=True, unique_fields=HAND, update_fields=["net", "ended_at"])


def _present(keys: Mapping[Key, object]) -> dict[Key, InferenceCharge]:
    wanted = Q.create([Q(**dict(zip(KEY, key, strict=True))) for key in keys], connector=Q.OR)
    rows = InferenceCharge.objects.select_for_update().filter(wanted)
    return {(row.agent_id, row.table_id, row.hand_number, row.action_index): row for row in rows}


def _row(charge: Charge, outcome: Outcome | None, before: InferenceCharge | None) -> InferenceCharge:
    if not charge.is_fallback:
        if outcome:
            charge = replace(charge, capture_outcome=outcome.outcome, capture_reason=outcome.reason)
        elif before and _is_known(before) and charge.capture_outcome == CaptureOutcome.PENDING:
            charge = replace(charge, capture_outcome=before.capture_outcome, capture_reason=before.capture_reason)
    facts = asdict(charge)
    del facts["heard"]
    return InferenceCharge(**facts)


def _note_heard(charges: Mapping[Key, Charge]) -> None:
    """Which turn heard a whisper, in the transaction that says that the turn was. Of several the earliest counts, in
    whatever order they come; a whisper to another agent is left alone."""
    for charge in charges.values():
        if charge.heard and not charge.is_fallback:
            later = Q(heard_at=None) | Q(heard_at__gt=charge.played_at)
            Whisper.objects.filter(later, pk__in=charge.heard, agent_id=charge.agent_id).update(
                heard_at=charge.played_at,
                heard_table_id=charge.table_id,
                heard_hand_number=charge.hand_number,
                heard_action_index=charge.action_index,
            )


def _is_known(row: InferenceCharge) -> bool:
    return row.capture_outcome not in {CaptureOutcome.PENDING, CaptureOutcome.NONE}


def _update(pairs: list[tuple[InferenceCharge, Outcome]]) -> None:
    changed = []
    for row, outcome in pairs:
        if not row.is_fallback:
            row.capture_outcome, row.capture_reason = outcome.outcome, outcome.reason
            changed.append(row)
    InferenceCharge.objects.bulk_update(changed, ["capture_outcome", "capture_reason"])
