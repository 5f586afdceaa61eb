"""Who did what with recorded turns."""

from django.conf import settings
from django.db import models
from django.db.models import Q


class Deed(models.TextChoices):
    KEPT = "kept"
    UNKEPT = "unkept"
    WHISPERED = "whispered"
    WITHDREW = "withdrew"  # a whisper
    DELETED = "deleted"  # a study
    OPENED = "opened"  # an operator looked at this agent's turns


class AuditEntry(models.Model):
    """One deed, written once and never changed. Names are copied, so that they outlast the account."""

    actor = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    actor_name = models.CharField(
        max_length=150, help_text="the user's name then, “service” for the internal API, or “command line”"
    )
    deed = models.CharField(max_length=10, choices=Deed)
    agent_id = models.CharField(max_length=200, help_text="whose turns: an agent's id, or “study 3”")
    table_id = models.CharField(max_length=200, blank=True)
    hand_number = models.BigIntegerField(null=True)
    detail = models.CharField(max_length=200, blank=True, help_text="counts and outcomes, never content")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "audit_entries"
        ordering = ["-at", "-id"]
        verbose_name_plural = "audit entries"
        constraints = [models.CheckConstraint(condition=Q(deed__in=Deed.values), name="audit_deed_known")]
        indexes = [
            models.Index(fields=["-at", "-id"], name="audit_recent"),
            models.Index(fields=["agent_id", "-at"], name="audit_of_agent"),
            models.Index(fields=["actor_name", "-at", "-id"], name="audit_of_actor"),
            models.Index(fields=["deed", "-at", "-id"], name="audit_of_deed"),
            models.Index(fields=["table_id", "hand_number"], name="audit_of_hand"),  # was this look noted already?
        ]

    def __str__(self) -> str:
        return f"{self.actor_name} {self.deed} {self.agent_id}"
