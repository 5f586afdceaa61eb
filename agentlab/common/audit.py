"""The audit trail: who kept, un-kept, whispered, and which operator opened whose hand."""

from collections.abc import Iterable

from agentlab.common.access import User
from agentlab.common.models import AuditEntry, Deed

SERVICE = "service"


def record(
    actor: User | None,
    deed: Deed,
    agent_ids: Iterable[str],
    *,
    table_id: str = "",
    hand_number: int | None = None,
    detail: str = "",
) -> None:
    """One entry for each agent, in one statement. `actor` is None where another process asked with the service key."""
    person = actor if actor is not None and actor.is_authenticated else None
    AuditEntry.objects.bulk_create(
        AuditEntry(
            actor_id=person.pk if person else None,
            actor_name=person.get_username() if person else SERVICE,
            deed=deed,
            agent_id=agent_id,
            table_id=table_id,
            hand_number=hand_number,
            detail=detail,
        )
        for agent_id in sorted(set(agent_ids))
    )
