"""Keeping a hand: one agent's turns out of the buffer into the durable table, with the truth about what came over."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from django.db import connection, transaction
from django.utils import timezone

from agentlab.agents.models import CaptureOutcome, InferenceCharge
from agentlab.common import audit
from agentlab.common.access import User
from agentlab.common.models import Deed
from agentlab.common.numbers import counted
from capture.buffer import DamagedKey
from capture.durable import to_row
from capture.models import AgentCallRecord
from capture.reading import check_hand, hot_buffer


class Outcome(StrEnum):
    PINNED = "pinned"
    ALREADY_PINNED = "already_pinned"
    NOTHING_TO_CAPTURE = "nothing_to_capture"


@dataclass(frozen=True, slots=True)
class PinResult:
    """What a pin did, counted in this agent's own turns of the hand; fallbacks, which made no decision, not among them.

    turns = kept + expired + damaged + lost + pending.
    """

    outcome: Outcome
    pinned: int  # rows that this pin inserted
    kept: int  # rows there are now
    turns: int
    expired: int  # were recorded, and the buffer has let go of them
    lost: int  # were never recorded: dropped or failed
    pending: int  # whether they were recorded is not known
    damaged: int = 0  # their record is there and cannot be rebuilt; 0 also from a host that does not tell them apart


def pin(table_id: str, hand_number: int, *, agent_id: str, actor: User | None) -> PinResult:
    """Keeps what the buffer still has of this agent's turns. Pinning again adds what is new and nothing else.

    Raises ValueError (`check_hand`), BufferUnavailable where Redis does not answer, and the database's own errors,
    after which nothing was kept or all of it: the rows come in one transaction. `actor` is None for the service.
    """
    check_hand(table_id, hand_number, agent_id)
    scope = {"table_id": table_id, "hand_number": hand_number, "agent_id": agent_id}
    # The ledger first: what it calls recorded was in the buffer by then, and is not found to have expired.
    charges = {charge.action_index: charge for charge in InferenceCharge.objects.filter(**scope)}
    decided = [index for index, charge in charges.items() if not charge.is_fallback]
    turns = hot_buffer().hand_turns(table_id, hand_number, agent_id=agent_id, known=decided)
    if turns.unlisted and not decided:
        raise DamagedKey("its list of turns is damaged, and the ledger has none")
    now = timezone.now()
    rows = []
    for turn in turns:
        charge = charges.get(turn.key.action_index)
        version = turn.agent_version_id or (charge.agent_version_id if charge else None)
        rows.append(to_row(turn, agent_version_id=version, pinned_at=now))
    with transaction.atomic():
        pinned = _insert_new(rows)
        if pinned:
            audit_turns(actor, Deed.KEPT, table_id, hand_number, agent_id, pinned)
    kept = set(AgentCallRecord.objects.filter(**scope).values_list("action_index", flat=True))
    return _result(pinned, kept, {key.action_index for key in turns.damaged} - kept, charges)


def unpin(table_id: str, hand_number: int, *, agent_id: str, actor: User | None) -> int:
    """Lets go of this agent's kept turns of a hand; how many rows there were. Raises ValueError (`check_hand`)."""
    check_hand(table_id, hand_number, agent_id)
    scope = {"table_id": table_id, "hand_number": hand_number, "agent_id": agent_id}
    with transaction.atomic():
        removed, _ = AgentCallRecord.objects.filter(**scope).delete()
        if removed:
            audit_turns(actor, Deed.UNKEPT, table_id, hand_number, agent_id, removed)
    return removed


def _insert_new(rows: Sequence[AgentCallRecord]) -> int:
    """Inserts the rows that are not there yet and says how many that were. Django's own `ignore_conflicts` does not
    tell, and asking before or after would count another pin's rows as ours."""
    if not rows:
        return 0
    fields = [field for field in AgentCallRecord._meta.concrete_fields if not field.primary_key]
    names = ", ".join(connection.ops.quote_name(str(field.column)) for field in fields)
    places = ", ".join(["%s"] * len(fields))
    statement = (
        f"INSERT INTO {AgentCallRecord._meta.db_table} ({names}) VALUES ({places}) "  # noqa: S608 - names are ours
        "ON CONFLICT (table_id, hand_number, agent_id, action_index) DO NOTHING"
    )
    values = [[field.get_db_prep_save(getattr(row, field.attname), connection) for field in fields] for row in rows]
    with connection.cursor() as cursor:
        cursor.executemany(statement, values)
        return int(cursor.rowcount)


def _result(pinned: int, kept: set[int], damaged: set[int], charges: dict[int, InferenceCharge]) -> PinResult:
    unkept = [charge.capture_outcome for index, charge in charges.items() if index not in kept | damaged]
    expired = unkept.count(CaptureOutcome.RECORDED)
    pending = unkept.count(CaptureOutcome.PENDING)
    lost = unkept.count(CaptureOutcome.DROPPED) + unkept.count(CaptureOutcome.FAILED)
    outcome = Outcome.PINNED if pinned else Outcome.ALREADY_PINNED if kept else Outcome.NOTHING_TO_CAPTURE
    turns = len(kept) + len(damaged) + expired + lost + pending
    return PinResult(outcome, pinned, len(kept), turns, expired, lost, pending, len(damaged))


def audit_turns(actor: User | None, deed: Deed, table_id: str, hand_number: int, agent_id: str, turns: int) -> None:
    """Who kept or un-kept how many turns of whose hand."""
    audit.record(actor, deed, [agent_id], table_id=table_id, hand_number=hand_number, detail=counted(turns, "turn"))
