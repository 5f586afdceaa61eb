"""A run of a study as it is stored: who takes part, the trace, and the checkpoints. Only the runner writes the trace.

*Study* is the SHA-256 of the validated file; a *run* of it has a number of its own, which is in no hashed byte. A
persona's number is its place in the study file, so that the order of a trace is the order of its key.
"""

from datetime import timedelta

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

QUIET = timedelta(minutes=1)  # of silence, after which pages no longer call a run running
STALE = timedelta(minutes=2)  # of silence, after which a verification counts as cut off


class StudyDefinition(models.Model):
    """A validated study's canonical bytes, once for all runs of it. In a table of its own: a run's row is written with
    every batch, and SQLite writes a row as a whole, megabytes of personas and all."""

    sha256 = models.CharField(primary_key=True, max_length=64)
    data = models.BinaryField()

    class Meta:
        db_table = "study_definitions"

    def __str__(self) -> str:
        return self.sha256


class StudyRun(models.Model):
    """One run. `study_sha256` names its definition. `epoch` fences: a runner writes only while the
    row still holds the epoch that it claimed."""

    class Status(models.TextChoices):
        RUNNING = "running"
        STOPPED = "stopped"
        COMPLETE = "complete"
        INCOMPLETE = "incomplete", "complete but for failed personas"

    class Replay(models.TextChoices):
        NOT_VERIFIED = "not_verified", "not verified"
        RUNNING = "running", "verification is running"
        SAME = "same"
        DIFFERS = "differs"

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="study_runs"
    )
    name = models.CharField(max_length=100)
    study_sha256 = models.CharField(max_length=64)
    seed = models.BigIntegerField(null=True, editable=False, help_text="of its file; null where that cannot be read")
    embedder = models.CharField(max_length=200, help_text="identity of the embedder; resuming with another is refused")
    model = models.CharField(max_length=200, blank=True, help_text="identity of the model of tier B")
    executor = models.CharField(max_length=200)
    personas = models.PositiveIntegerField()
    turns_each = models.PositiveIntegerField()
    status = models.CharField(max_length=12, choices=Status.choices, default=Status.RUNNING)
    turns = models.PositiveBigIntegerField(default=0, help_text="turns in the trace")
    events = models.PositiveBigIntegerField(default=0, help_text="events in the trace")
    answered = models.PositiveBigIntegerField(default=0, help_text="turns that the model decided")
    fallbacks = models.PositiveBigIntegerField(default=0, help_text="turns meant for the model that arithmetic decided")
    reacted = models.JSONField(
        null=True,
        editable=False,
        help_text="how often each action was taken, by turns of the chart; null in older runs",
    )
    late_results = models.PositiveIntegerField(default=0, help_text="results of jobs that had been given again")
    trace_sha256 = models.CharField(max_length=64, blank=True)
    runner = models.CharField(max_length=300, blank=True, help_text="host:process:its start")
    epoch = models.PositiveIntegerField(default=1)
    started_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now_add=True)
    replay = models.CharField(max_length=12, choices=Replay.choices, default=Replay.NOT_VERIFIED)
    replayed_at = models.DateTimeField(null=True, blank=True)
    difference = models.JSONField(null=True, blank=True, help_text="persona, turn, sequence and what")

    class Meta:
        db_table = "study_runs"
        ordering = ["-id"]
        verbose_name, verbose_name_plural = "study", "studies"

    def __str__(self) -> str:
        return f"{self.id} {self.name}"

    @property
    def model_calls(self) -> int:
        """How often the model was asked for a reaction. Probes ask it beside that."""
        return self.answered + self.fallbacks

    @property
    def silent(self) -> bool:
        """Has its runner, which writes something every few seconds, been still for some time? It is gone, or waits for
        a model."""
        return self.status == self.Status.RUNNING and timezone.now() - self.updated_at > QUIET

    @property
    def cut_off(self) -> bool:
        """Is a verification marked as under way whose process is gone?"""
        silent = self.replayed_at is None or timezone.now() - self.replayed_at > STALE
        return self.replay == self.Replay.RUNNING and silent


class StudyPersona(models.Model):
    """One persona of a run. `failed` says why it stopped, "" where it did not."""

    run = models.ForeignKey(StudyRun, on_delete=models.CASCADE, related_name="people")
    number = models.PositiveIntegerField(help_text="its place in the study, from 0")
    key = models.CharField(max_length=100, help_text="its id in the study")
    name = models.CharField(max_length=100)
    failed = models.CharField(max_length=500, blank=True)

    class Meta:
        db_table = "study_personas"
        ordering = ["run", "number"]
        verbose_name = "persona"
        constraints = [
            models.UniqueConstraint(fields=["run", "number"], name="study_persona_number_once"),
            models.UniqueConstraint(fields=["run", "key"], name="study_persona_key_once"),
        ]

    def __str__(self) -> str:
        return self.name


class Checkpoint(models.Model):
    """A persona's state after its last committed turn, as the worker serialised it."""

    pk = models.CompositePrimaryKey("run", "persona")
    run = models.ForeignKey(StudyRun, on_delete=models.CASCADE, related_name="checkpoints", db_index=False)
    persona = models.PositiveIntegerField(help_text="the persona's number")
    turn = models.PositiveIntegerField()
    state = models.BinaryField()

    class Meta:
        db_table = "study_checkpoints"

    def __str__(self) -> str:
        return f"{self.run_id}:{self.persona} at {self.turn}"


class TraceEvent(models.Model):
    """One event of the trace: the only store of what happened. `label` is what lists count by, taken from the
    payload."""

    pk = models.CompositePrimaryKey("run", "persona", "turn", "sequence")
    run = models.ForeignKey(StudyRun, on_delete=models.CASCADE, related_name="trace", db_index=False)
    persona = models.PositiveIntegerField(help_text="the persona's number")
    turn = models.PositiveIntegerField()
    sequence = models.PositiveIntegerField()
    kind = models.CharField(max_length=12)
    label = models.CharField(max_length=100, blank=True)
    payload = models.BinaryField()
    seal = models.BinaryField(max_length=32)

    class Meta:
        db_table = "study_trace"
        ordering = ["run", "persona", "turn", "sequence"]
        indexes = [  # what a study's page counts of them, without reading every event of the study
            models.Index(
                fields=["run", "kind", "label", "turn", "persona"],
                condition=Q(kind="probed"),
                name="study_trace_probed",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.run_id}:{self.persona}:{self.turn}:{self.sequence} {self.kind}"
