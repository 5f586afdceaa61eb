"""`{% load site %}`: how every page shows texts, sizes, amounts, times, cards, icons and charts."""

from datetime import UTC, datetime

from django import template
from django.templatetags.static import static
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from agentlab.common import cards as card_reading
from agentlab.common import charts, numbers, text

register = template.Library()

register.filter("size", numbers.size)
register.filter("amount", numbers.amount)
register.filter("money", numbers.money)
register.filter("signed", numbers.signed)
register.filter("chips", numbers.chips)
register.filter("duration", numbers.duration)
register.simple_tag(charts.line_chart)
register.simple_tag(charts.bar)
register.simple_tag(charts.time_bar)


@register.filter
def visible(value: object, find: str = "") -> SafeString:
    """Model text, labels, paths: escaped, with odd characters made visible."""
    return text.visible(str(value), find)


@register.filter
def in_line(value: object, limit: int = 400) -> SafeString:
    """A name, as `visible`, on one line: its line breaks are seen, and of a very long one the middle is left out."""
    name = str(value)
    if len(name) > limit:
        name = f"{name[: limit // 2]}…{name[-(limit // 2) :]}"
    return SafeString(text.visible(name).replace("\n", '<span class="ctl" title="U+000A">␊</span>'))


@register.filter
def plain(value: object) -> str:
    """As `visible`, without markup: for a title or an aria-label."""
    return text.plain(str(value))


@register.filter
def first_line(value: str, limit: int = 80) -> SafeString:
    return text.visible(text.first_line(value, limit))


@register.filter
def bytes_of(value: str) -> int:
    """How many bytes the text takes."""
    return len(text.encoded(value))


@register.filter
def when(moment: datetime | None) -> SafeString:
    """`29 Nov 2026 14:02:11 UTC`, as a `<time>`."""
    return _time(moment, numbers.date_and_time(moment)) if moment else SafeString("time unknown")


@register.filter
def clock(moment: datetime | None) -> SafeString:
    """`14:02:11`, with date and zone in its title."""
    return _time(moment, numbers.clock(moment)) if moment else SafeString("time unknown")


@register.filter
def ago(moment: datetime | None) -> SafeString:
    """`4 min ago`, with date and zone in its title."""
    return _time(moment, numbers.ago(moment, datetime.now(UTC))) if moment else SafeString("time unknown")


def _time(moment: datetime, words: str) -> SafeString:
    exact = moment.astimezone(UTC)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        exact.isoformat(timespec="seconds"),
        numbers.date_and_time(moment),
        words,
    )


@register.filter
def cards(value: object) -> SafeString:
    """`Ah Kd` or `["Ah", "Kd"]` as cards; what is not cards stays as it was written."""
    found = card_reading.read_cards(value)
    if found is None:
        return visible(value)
    return format_html_join(
        " ",
        '<span class="card card-{}" role="img" aria-label="{}">{}</span>',
        ((card.suit, card.name, card.text) for card in found),
    )


@register.simple_tag
def icon(name: str) -> SafeString:
    """One of `static/icons.svg`. An icon never stands without a word or a label beside it."""
    return format_html(
        '<svg class="icon" aria-hidden="true" focusable="false"><use href="{}#{}"></use></svg>',
        static("icons.svg"),
        name,
    )
