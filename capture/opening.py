"""Who looked at whose turns: every operator's look at a hand leaves a line in the audit."""

from datetime import timedelta

from agentlab.agents.models import Agent
from agentlab.common import audit
from agentlab.common.access import User
from agentlab.common.models import Deed
from capture.reading import Hand

# A page loads its parts one by one, and a reader comes back to it: within this time that is one look.
ONE_LOOK = timedelta(hours=1)


def audit_opened(actor: User, hand: Hand) -> None:
    """Notes the agents of this hand that are not the actor's own. Looking at one's own turns is nobody's business."""
    whose = {view.agent_id for view in hand.turns}
    whose -= set(Agent.objects.filter(id__in=whose, owner=actor.pk).values_list("id", flat=True))
    audit.record_once(actor, Deed.OPENED, whose, ONE_LOOK, table_id=hand.table_id, hand_number=hand.hand_number)
