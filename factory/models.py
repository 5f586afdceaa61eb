"""Runs, attempts, their inputs and their tool calls.

`tracing.py` is the only module that writes these rows. Migration 0001 is the shape that shipped first; 0002 adds
the attempt columns from `task_prompt` on, and the table of inputs. A row that older code wrote reads as
`not_recorded`, and its counts as unknown: never as zero.
"""

from django.conf import settings
from django.db import models
from django.db.models import Q

from factory.calls import KIND_WORDS
from factory.fields import ExactTextField


class State(models.TextChoices):
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class AttemptState(models.TextChoices):
    """A run's states, and that of an attempt which no model was asked to answer: a command of the tool itself."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    NOT_ASKED = "not_asked", "not asked of a model"


class Failure(models.TextChoices):
    """Why an attempt did not succeed."""

    PARSE = "parse", "reply could not be read"
    CHECK = "check", "check failed"
    PROVIDER = "provider", "provider failed"
    INTERRUPTED = "interrupted", "the factory's process ended"


class SendKind(models.TextChoices):
    INITIAL = "initial", KIND_WORDS["initial"]
    PARSE_RETRY = "parse_retry", KIND_WORDS["parse_retry"]
    GATE_RETRY = "gate_retry", KIND_WORDS["gate_retry"]


class Coverage(models.TextChoices):
    COMPLETE = "complete"
    PARTIAL = "partial"
    NOT_RECORDED = "not_recorded"


class FactoryRun(models.Model):
    """One work request carried through a workflow's phases. Without an owner only operators see it."""

    id = models.BigAutoField(primary_key=True)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="factory_runs"
    )
    workflow = models.CharField(max_length=40)
    provider = models.CharField(max_length=200)
    task = ExactTextField(blank=True)
    request_kind = models.CharField(max_length=20, blank=True, help_text="inline_text or prompt_file")
    request_path = ExactTextField(null=True, blank=True)
    request_bytes = models.BigIntegerField(null=True, blank=True)
    request_sha256 = models.CharField(max_length=64, blank=True)
    workspace = ExactTextField(blank=True)
    state = models.CharField(max_length=12, choices=State, default=State.RUNNING)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    process = models.CharField(max_length=32, blank=True, help_text="the token whose lock file its process holds")
    # A run that was read from somebody's file: the format, and (owner, format, session id) as a hash. Null here.
    source_format = models.CharField(max_length=40, blank=True)
    import_identity = models.CharField(max_length=64, null=True, blank=True, unique=True)
    imported_at = models.DateTimeField(null=True, blank=True, help_text="first; null too where it is not recorded")

    class Meta:
        db_table = "factory_runs"
        ordering = ["-id"]
        indexes = [models.Index(fields=["owner", "-id"], name="factory_run_owner")]

    def __str__(self) -> str:
        return f"run {self.pk}"


class RunNote(models.Model):
    """Something the reader of a run must know: an orphan that could not be removed, a budget that was hit."""

    run = models.ForeignKey(FactoryRun, on_delete=models.CASCADE, related_name="notes")
    text = ExactTextField()
    is_error = models.BooleanField(default=False)
    at = models.DateTimeField()
    source = ExactTextField(default="", db_default="", help_text="which imported file of the run's says it, of several")

    class Meta:
        db_table = "factory_run_notes"
        ordering = ["id"]

    def __str__(self) -> str:
        return str(self.text)


class AgentAttempt(models.Model):
    """One send to a coding agent and what came of it. `number` counts within the run and never changes."""

    attempt_id = models.CharField(primary_key=True, max_length=32)
    run = models.ForeignKey(FactoryRun, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()
    phase = models.CharField(max_length=80)
    provider = models.CharField(max_length=200)
    model = models.CharField(max_length=200, blank=True)
    session_id = ExactTextField(null=True, blank=True)
    system_prompt = ExactTextField(null=True, blank=True)
    user_prompt = ExactTextField(null=True, blank=True)
    launch_command = ExactTextField(blank=True)
    reply = ExactTextField(null=True, blank=True)
    state = models.CharField(max_length=12, choices=AttemptState, default=AttemptState.RUNNING)
    failure = models.CharField(max_length=12, choices=Failure, blank=True)
    error = ExactTextField(blank=True)
    check_command = ExactTextField(null=True, blank=True, help_text="the check that failed after it; null: none did")
    check_output = ExactTextField(null=True, blank=True, help_text="the end of what that check printed")
    input_tokens = models.BigIntegerField(null=True, blank=True)
    cached_input_tokens = models.BigIntegerField(
        null=True,
        blank=True,
        help_text="of the input tokens: those read from or written to the provider's cache; null: not recorded",
    )
    output_tokens = models.BigIntegerField(null=True, blank=True)
    cost = models.DecimalField(max_digits=20, decimal_places=10, null=True, blank=True, help_text="US dollars")
    duration_ms = models.BigIntegerField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    task_prompt = ExactTextField(null=True, blank=True)
    send_kind = models.CharField(max_length=12, choices=SendKind, null=True, blank=True)  # noqa: DJ001 - unknown
    turn_index = models.PositiveIntegerField(null=True, blank=True)
    previous_turn_attempt = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    retry_of_attempt = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    input_packet_version = models.PositiveIntegerField(null=True, blank=True)
    input_coverage = models.CharField(
        max_length=12, choices=Coverage, default=Coverage.NOT_RECORDED, db_default=Coverage.NOT_RECORDED
    )
    declared_input_count = models.PositiveIntegerField(null=True, blank=True)
    captured_input_count = models.PositiveIntegerField(null=True, blank=True)
    omitted_input_count = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        db_table = "agent_attempts"
        ordering = ["run", "number"]
        constraints = [models.UniqueConstraint(fields=["run", "number"], name="attempt_number_once")]
        indexes = [models.Index(fields=["started_at", "attempt_id"], name="attempt_oldest_first")]

    def __str__(self) -> str:
        return f"attempt {self.number} of run {self.run_id}"


class AgentToolCall(models.Model):
    """What the agent did with a tool. Files it found this way are tool use, never inputs."""

    attempt = models.ForeignKey(AgentAttempt, on_delete=models.CASCADE, related_name="tool_calls")
    seq = models.PositiveIntegerField()
    name = ExactTextField()
    arguments = ExactTextField(blank=True, help_text="as the agent wrote them, JSON where it was JSON")
    output = ExactTextField(null=True, blank=True, help_text="null: no result was recorded")
    output_bytes = models.BigIntegerField(null=True, blank=True, help_text="size before it was cut")
    masked = models.PositiveIntegerField(default=0, help_text="secrets replaced in the output")
    is_error = models.BooleanField(default=False)
    started_at = models.DateTimeField(null=True, blank=True)
    duration_ms = models.BigIntegerField(null=True, blank=True)
    reply_offset = models.PositiveIntegerField(
        null=True, blank=True, help_text="characters of the attempt's reply before it; null: their order is not known"
    )

    class Meta:
        db_table = "agent_tool_calls"
        ordering = ["attempt", "seq"]
        constraints = [models.UniqueConstraint(fields=["attempt", "seq"], name="tool_call_seq_once")]

    def __str__(self) -> str:
        return str(self.name)


class SourceKind(models.TextChoices):
    PROMPT_FILE = "prompt_file"
    PREVIOUS_ENVELOPE = "previous_envelope"
    CONTEXT_HANDOFF = "context_handoff"
    EXPLICIT_ATTACHMENT = "explicit_attachment"


class DeliveryMode(models.TextChoices):
    INLINE = "inline"
    SESSION_HISTORY = "session_history"
    PATH_REFERENCE = "path_reference"
    PROVIDER_ATTACHMENT = "provider_attachment"


class PreviewKind(models.TextChoices):
    TEXT = "text"
    IMAGE = "image"
    NONE = "none"


class CaptureStatus(models.TextChoices):
    CAPTURED = "captured"
    MISSING = "missing"
    UNREADABLE = "unreadable"
    LIMIT_EXCEEDED = "limit_exceeded"
    CHANGED_DURING_CAPTURE = "changed_during_capture"
    ENUMERATION_INCOMPLETE = "enumeration_incomplete"
    NOT_APPLICABLE = "not_applicable"


class ArtifactStatus(models.TextChoices):
    AVAILABLE = "available"
    EVICTED = "evicted"
    NEVER_CAPTURED = "never_captured"


class AgentAttemptInput(models.Model):
    """One explicit input of one attempt. Where it came from, how it was delivered, what it is, whether its bytes
    were captured and whether they are still here are five separate facts.

    The snapshot lies at `<snapshot root>/<attempt_id>/<seq>`; `snapshot_path` says so for people, and no code
    opens what it says.
    """

    input_id = models.BigAutoField(primary_key=True)
    attempt = models.ForeignKey(AgentAttempt, on_delete=models.CASCADE, related_name="inputs")
    seq = models.PositiveIntegerField()
    label = ExactTextField()
    source_kind = models.CharField(max_length=24, choices=SourceKind)
    delivery_mode = models.CharField(max_length=24, choices=DeliveryMode)
    source_path = ExactTextField(null=True, blank=True)
    snapshot_path = ExactTextField(null=True, blank=True)
    media_type = models.CharField(max_length=80, null=True, blank=True)  # noqa: DJ001 - unknown is not ""
    preview_kind = models.CharField(max_length=8, choices=PreviewKind, default=PreviewKind.NONE)
    size_bytes = models.BigIntegerField(null=True, blank=True)
    sha256 = models.CharField(max_length=64, null=True, blank=True)  # noqa: DJ001 - unknown is not ""
    capture_status = models.CharField(max_length=24, choices=CaptureStatus)
    artifact_status = models.CharField(max_length=16, choices=ArtifactStatus)
    detail = ExactTextField(null=True, blank=True)
    captured_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "agent_attempt_inputs"
        ordering = ["attempt", "seq"]
        constraints = [
            models.UniqueConstraint(fields=["attempt", "seq"], name="input_seq_once"),
            models.CheckConstraint(
                condition=Q(artifact_status="never_captured")
                | Q(capture_status="captured", sha256__isnull=False, size_bytes__isnull=False),
                name="input_bytes_were_captured",
            ),
        ]
        indexes = [
            # What retention walks: everything still on disk.
            models.Index(fields=["attempt", "seq"], name="input_available", condition=Q(artifact_status="available")),
        ]

    def __str__(self) -> str:
        return str(self.label)
