"""The audit trail: who kept, un-kept, whispered, withdrew, and which operator opened whose hand, and who deleted a
study."""

from collections.abc import Iterable
from datetime import timedelta

from django.utils import timezone

from agentlab.common.access import User
from agentlab.common.models import AuditEntry, Deed

SERVICE = "service"
COMMAND = "command line"


def record(
    actor: User | None,
    deed: Deed,
    agent_ids: Iterable[str],
    *,
    table_id: str = "",
    hand_number: int | None = None,
    detail: str = "",
    nobody: str = SERVICE,
) -> None:
    """One entry for each agent (or `study 3`), in one statement. `actor` is None where `nobody` did it: another process
    with the service key, or a command."""
    person = actor if actor is not None and actor.is_authenticated else None
    AuditEntry.objects.bulk_create(
        AuditEntry(
            actor_id=person.pk if person else None,
            actor_name=person.get_username() if person else nobody,
            deed=deed,
            agent_id=agent_id,
            table_id=table_id,
            hand_number=hand_number,
            detail=detail,
        )
        for agent_id in sorted(set(agent_ids))
    )


def record_once(
    actor: User, deed: Deed, agent_ids: Iterable[str], within: timedelta, *, table_id: str, hand_number: int
) -> None:
    """As `record`, but not for an agent whose same entry is younger than `within`. Two statements."""
    noted = AuditEntry.objects.filter(
        actor_id=actor.pk, deed=deed, table_id=table_id, hand_number=hand_number, at__gt=timezone.now() - within
    ).values_list("agent_id", flat=True)
    record(actor, deed, set(agent_ids) - set(noted), table_id=table_id, hand_number=hand_number)
