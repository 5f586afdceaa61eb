"""Who plays: agents, what they published, what is seated, what their owners whisper, the ledger of their turns and
what their hands came to."""

from django.conf import settings
from django.db import models
from django.db.models import Q


class Agent(models.Model):
    """An agent and its owner. `id` is a slug that never changes: it is in every captured turn's key."""

    id = models.SlugField(primary_key=True, max_length=64)
    name = models.CharField(max_length=80)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="agents")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "agents"
        ordering = ["name", "id"]

    def __str__(self) -> str:
        return self.name


class AgentVersion(models.Model):
    """What an owner published: never changed afterwards, so that a turn's version says what it really played."""

    id = models.CharField(primary_key=True, max_length=80, help_text="agent id + “-v” + number")
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    base_prompt = models.TextField(max_length=20_000)
    strategy = models.TextField(max_length=20_000)
    skills = models.JSONField(default=list, help_text='[{"name": …, "text": …}, …] in the order of the prompt')
    model = models.CharField(max_length=120, default="house")
    published_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "agent_versions"
        ordering = ["agent", "-number"]
        constraints = [models.UniqueConstraint(fields=["agent", "number"], name="agent_version_number_once")]

    def __str__(self) -> str:
        return f"{self.agent_id} v{self.number}"


class AgentDeployment(models.Model):
    """A seat at a table and the snapshot of the version that plays it: its own copy, not a reference."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="deployments")
    version = models.ForeignKey(AgentVersion, on_delete=models.CASCADE, related_name="deployments")
    table_id = models.CharField(max_length=80)
    base_prompt = models.TextField()
    strategy = models.TextField()
    skills = models.JSONField(default=list)
    model = models.CharField(max_length=120)
    seated_at = models.DateTimeField(auto_now_add=True)
    left_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "agent_deployments"
        ordering = ["-seated_at", "-id"]
        indexes = [models.Index(fields=["agent", "left_at"], name="deployment_seated_now")]

    def __str__(self) -> str:
        return f"{self.version_id} at {self.table_id}"


class Whisper(models.Model):
    """A short message from an owner to an agent, heard at its next turn and from then on, until it is withdrawn.

    What `heard_…` names is the earliest turn whose agent reported that it decided with this whisper in its memory; all
    four are None where none did. Of a whisper that is older than these columns it is not known whether turns before
    that one heard it, and `hearing_noted` is false.
    """

    MAX_LENGTH = 500
    IN_MEMORY = 20  # the newest ones that are not withdrawn; older ones have left an agent's memory

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="whispers")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    text = models.CharField(max_length=MAX_LENGTH)
    created_at = models.DateTimeField(auto_now_add=True)
    hearing_noted = models.BooleanField(default=True, db_default=False)
    heard_at = models.DateTimeField(null=True, blank=True)
    heard_table_id = models.CharField(max_length=200, null=True, blank=True)  # noqa: DJ001 - not heard is not ""
    heard_hand_number = models.BigIntegerField(null=True, blank=True)
    heard_action_index = models.BigIntegerField(null=True, blank=True)
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "agent_whispers"
        ordering = ["created_at", "id"]
        constraints = [
            models.CheckConstraint(
                name="whisper_heard_whole",
                condition=Q(heard_at=None, heard_table_id=None, heard_hand_number=None, heard_action_index=None)
                | Q(
                    heard_at__isnull=False,
                    heard_table_id__isnull=False,
                    heard_hand_number__isnull=False,
                    heard_action_index__isnull=False,
                ),
            )
        ]
        indexes = [
            models.Index(  # asked at every turn
                fields=["agent", "-created_at", "-id"], name="whisper_in_memory", condition=Q(withdrawn_at=None)
            )
        ]

    def __str__(self) -> str:
        return f"to {self.agent_id}: {self.text[:40]}"


class CaptureOutcome(models.TextChoices):
    """What became of a turn's capture. A fallback turn has none: no decision was made."""

    PENDING = "pending"
    RECORDED = "recorded"
    DROPPED = "dropped"
    FAILED = "failed"
    NONE = "none"


class ChoiceChange(models.TextChoices):
    """What became of a model's choice on its way to the table. None beside it is not known: rows of before."""

    NOTHING = "", "nothing"
    RENAME = "rename"  # another word for the same
    ALL_IN = "all_in"  # the whole stack that was left, given as a number
    VERB = "verb"  # another action was the legal one
    CLAMP = "clamp"  # more, less or something else than was legal


class TurnNote(models.TextChoices):
    """What is odd about what an agent knew, in its own word. None beside it is not known."""

    NOTHING = "", "nothing"
    RECONNECTED = "reconnected", "reconnected?"  # actions of the hand are missing, and so is all from before it
    LOG_GAP = "log_gap", "log gap"  # actions of the hand are missing; it was connected all the while


LOST = (CaptureOutcome.DROPPED, CaptureOutcome.FAILED)
MARKS = {  # turns that lists of hands mark, and may be narrowed to
    "clamped": Q(change=ChoiceChange.CLAMP),
    "fallback": Q(is_fallback=True),
    "lost": Q(capture_outcome__in=[*LOST]),
    "reconnected": Q(note=TurnNote.RECONNECTED),
}
# A query for one of the four is served by an index over all of them.
MARKED = MARKS["clamped"] | MARKS["reconnected"] | MARKS["fallback"] | MARKS["lost"]


class InferenceCharge(models.Model):
    """The ledger: one row for every inference turn, fallback included, kept for ever. No content.

    Ids are plain text, not foreign keys: the ledger outlives an agent that is deleted, and its writer must never
    fail because of another table.
    """

    agent_id = models.CharField(max_length=200)
    table_id = models.CharField(max_length=200)
    hand_number = models.BigIntegerField()
    action_index = models.BigIntegerField()
    agent_version_id = models.CharField(max_length=200, null=True, blank=True)  # noqa: DJ001 - unknown is not ""
    deployment_id = models.BigIntegerField(null=True, blank=True)
    model = models.CharField(max_length=200, blank=True)
    routing = models.CharField(max_length=200, blank=True)
    input_tokens = models.BigIntegerField(null=True, blank=True)
    output_tokens = models.BigIntegerField(null=True, blank=True)
    cost = models.DecimalField(max_digits=20, decimal_places=10, null=True, blank=True, help_text="US dollars")
    duration_ms = models.BigIntegerField(null=True, blank=True)
    played_at = models.DateTimeField()
    action = models.CharField(max_length=40, blank=True)
    amount = models.BigIntegerField(null=True, blank=True)
    # Without a constraint: a later version may have another word, and a row shall not be lost for it.
    change = models.CharField(  # noqa: DJ001 - unknown is not ""
        max_length=20, null=True, blank=True, choices=ChoiceChange
    )
    note = models.CharField(max_length=20, null=True, blank=True, choices=TurnNote)  # noqa: DJ001 - the same
    is_fallback = models.BooleanField(default=False)
    fallback_reason = models.CharField(max_length=200, blank=True)
    capture_outcome = models.CharField(max_length=10, choices=CaptureOutcome, default=CaptureOutcome.PENDING)
    capture_reason = models.CharField(max_length=200, blank=True)

    class Meta:
        db_table = "agent_inference_charges"
        constraints = [
            models.UniqueConstraint(
                # Also serves every read of a hand, and of one agent's part in it.
                fields=["table_id", "hand_number", "agent_id", "action_index"],
                name="charge_once_per_turn",
            ),
            models.CheckConstraint(condition=Q(capture_outcome__in=CaptureOutcome.values), name="charge_outcome_known"),
            models.CheckConstraint(
                condition=Q(is_fallback=True, capture_outcome="none")
                | Q(is_fallback=False) & ~Q(capture_outcome="none"),
                name="charge_fallback_has_no_capture",
            ),
        ]
        indexes = [
            models.Index(fields=["-played_at", "-id"], name="charge_recent"),  # recent hands
            models.Index(fields=["agent_id", "-played_at", "-id"], name="charge_recent_of_agent"),  # /agents
            models.Index(fields=["-played_at", "-id"], name="charge_marked", condition=MARKED),  # lists of such hands
            models.Index(  # … of an agent
                fields=["agent_id", "-played_at", "-id"], name="charge_marked_of_agent", condition=MARKED
            ),
            # Is there a later turn of the same hand? Asked of every row that a list of hands walks over.
            models.Index(
                fields=["table_id", "hand_number", "agent_id", "-played_at", "-id"], name="charge_last_of_hand"
            ),
            # What the admin searches and filters by. What is rare has an index of its own, which is small.
            models.Index(fields=["agent_version_id", "-played_at", "-id"], name="charge_recent_of_version"),
            models.Index(fields=["table_id", "-played_at", "-id"], name="charge_recent_of_table"),
            models.Index(
                fields=["capture_outcome", "-played_at", "-id"],
                name="charge_not_recorded",
                condition=Q(capture_outcome__in=["pending", "dropped", "failed", "none"]),
            ),
            models.Index(fields=["-played_at", "-id"], name="charge_fallback", condition=Q(is_fallback=True)),
            models.Index(
                fields=["change", "-played_at", "-id"],
                name="charge_changed",
                condition=Q(change__in=["rename", "all_in", "verb", "clamp"]),
            ),
            models.Index(
                fields=["note", "-played_at", "-id"],
                name="charge_noted",
                condition=Q(note__in=["reconnected", "log_gap"]),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.table_id}:{self.hand_number} {self.agent_id} {self.action_index}"


class HandResult(models.Model):
    """What a hand came to for an agent that was dealt in, as the table told it; kept for ever, like the ledger. An
    agent that was not connected when the hand ended has no row: its result is not known."""

    agent_id = models.CharField(max_length=200)
    table_id = models.CharField(max_length=200)
    hand_number = models.BigIntegerField()
    net = models.BigIntegerField(help_text="chips: the stack after the hand less the stack before it")
    ended_at = models.DateTimeField()

    class Meta:
        db_table = "agent_hand_results"
        constraints = [
            models.UniqueConstraint(fields=["table_id", "hand_number", "agent_id"], name="result_once_per_hand"),
        ]
        indexes = [
            models.Index(fields=["-ended_at", "-id"], name="result_recent"),
            models.Index(fields=["agent_id", "-ended_at", "-id"], name="result_recent_of_agent"),
            models.Index(fields=["table_id", "-ended_at", "-id"], name="result_recent_of_table"),
        ]

    def __str__(self) -> str:
        return f"{self.table_id}:{self.hand_number} {self.agent_id} {self.net:+}"
