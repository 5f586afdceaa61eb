"""What outlives a table's process: which hand numbers are taken."""

from django.db import models
from django.db.models import Q


class HostedTable(models.Model):
    """A table that was opened, and the last hand number that it reserved.

    A number is reserved before its hand is dealt and never given again, so that (table, hand) names one hand for ever.
    A hand that was cut off by a kill leaves a gap, not a second hand under its number.
    """

    id = models.CharField(primary_key=True, max_length=200)
    opened_at = models.DateTimeField(auto_now_add=True)
    last_hand_number = models.BigIntegerField(default=0)

    class Meta:
        db_table = "hosted_tables"
        ordering = ["-opened_at", "id"]
        constraints = [models.CheckConstraint(condition=Q(last_hand_number__gte=0), name="hand_numbers_from_one")]

    def __str__(self) -> str:
        return self.id
