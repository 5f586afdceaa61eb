"""`{% load attempts %}`: how the factory's pages name an attempt of a run, and what its tools were called with."""

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agentlab.common.numbers import amount
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


@register.simple_tag
def tokens(into: int | None, out: int | None, cached: int | None = None) -> SafeString:
    """`182,768 in / 753 out`, and how much of the input went through a cache. What is not known is a "?", and where
    nothing is: `–`."""
    if into is None and out is None:
        return SafeString('<span class="soft">–</span>')
    said = format_html("{} in / {} out", *("?" if one is None else amount(one) for one in (into, out)))
    title = "of the tokens in: those that the provider read from or wrote to its cache"
    part = format_html(' <span class="soft cached" title="{}">({} cached)</span>', title, amount(cached))
    return said + part if cached else said


def _phase(run: FactoryRun, attempt: AgentAttempt | AttemptFacts) -> SafeString:
    """Importers call what has no phase of its own a turn: as a name beside a number it says nothing."""
    return SafeString("") if run.source_format and attempt.phase == TURN else visible(attempt.phase)
