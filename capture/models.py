"""The pinned turn: what is worth keeping longer than the buffer's day."""

from django.db import models
from django.db.models import Q


class AgentCallRecord(models.Model):
    """One turn of one agent, kept until somebody un-keeps it. Rows grow with kept hands, never with turns played.

    What the model saw or said stands in byte columns: text columns refuse NUL and lone surrogates on PostgreSQL, and
    `jsonb` rewrites numbers and keys. Text is UTF-8 with lone surrogates let through; knowledge and decision are
    MessagePack as `capture.turns` writes it. A NULL means *not captured*; an empty value means *captured, and empty*.

    Ids are text, not foreign keys, as in the ledger: a kept turn outlives the deletion of its agent.
    """

    agent_id = models.CharField(max_length=200)
    table_id = models.CharField(max_length=200)
    hand_number = models.BigIntegerField()
    action_index = models.BigIntegerField()
    agent_version_id = models.CharField(max_length=200, null=True, blank=True)  # noqa: DJ001 - unknown is not ""

    envelope = models.BinaryField()
    envelope_hash = models.CharField(max_length=64, help_text="sha256 of the envelope's bytes, checked on every read")
    remainder = models.BinaryField()
    response = models.BinaryField()
    reasoning = models.BinaryField(null=True)
    knowledge = models.BinaryField(null=True)
    decision = models.BinaryField(null=True)
    facts = models.BinaryField(help_text="MessagePack: action, amounts, model, tokens, cost and the like, exactly")

    model = models.CharField(max_length=200, blank=True)
    captured_at = models.DateTimeField()
    pinned_at = models.DateTimeField()

    class Meta:
        db_table = "agent_call_records"
        constraints = [
            models.UniqueConstraint(
                # Also serves every read of a hand, and of one agent's part in it.
                fields=["table_id", "hand_number", "agent_id", "action_index"],
                name="call_record_once_per_turn",
            ),
            models.CheckConstraint(condition=~Q(agent_id=""), name="call_record_has_agent"),
            models.CheckConstraint(condition=~Q(table_id=""), name="call_record_has_table"),
        ]
        indexes = [
            models.Index(fields=["-pinned_at", "-id"], name="call_record_recent"),  # admin, kept hands
            models.Index(fields=["agent_id", "-pinned_at", "-id"], name="call_record_of_agent"),  # /agents
            models.Index(fields=["agent_id", "table_id", "hand_number"], name="call_record_hands_of_agent"),  # counted
            # Is there a later turn of the same hand? Asked of every row that a list of hands walks over.
            models.Index(
                fields=["table_id", "hand_number", "agent_id", "-pinned_at", "-id"], name="call_record_last_of_hand"
            ),
            models.Index(fields=["agent_version_id", "-pinned_at", "-id"], name="call_record_of_version"),  # admin
            models.Index(fields=["hand_number", "-pinned_at", "-id"], name="call_record_of_hand"),  # admin
        ]

    def __str__(self) -> str:
        return f"{self.table_id}:{self.hand_number} {self.agent_id} {self.action_index}"
