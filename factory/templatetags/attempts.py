"""`{% load attempts %}`: how the factory's pages name an attempt of a run, and what its tools were called with."""

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agentlab.common.text import visible
from factory.called import called_with
from factory.importers.found import TURN
from factory.models import AgentAttempt, FactoryRun
from factory.panel import AttemptFacts

register = template.Library()


@register.filter
def attempt_name(run: FactoryRun, attempt: AgentAttempt | AttemptFacts) -> SafeString:
    """`Attempt 4, build`; of a session without phases `Attempt 4`."""
    phase = _phase(run, attempt)
    return format_html("Attempt {}{}", attempt.number, format_html(", {}", phase) if phase else "")


@register.filter
def attempt_short(run: FactoryRun, attempt: AgentAttempt) -> SafeString:
    """`4 build`, or `4`."""
    return (
        format_html("{} {}", attempt.number, phase) if (phase := _phase(run, attempt)) else SafeString(attempt.number)
    )


@register.filter
def called(arguments: str) -> SafeString:
    """What a tool was called with, in one line."""
    return visible(called_with(arguments))


def _phase(run: FactoryRun, attempt: AgentAttempt | AttemptFacts) -> SafeString:
    """Importers call what has no phase of its own a turn: as a name beside a number it says nothing."""
    return SafeString("") if run.source_format and attempt.phase == TURN else visible(attempt.phase)
