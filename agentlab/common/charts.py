"""Small charts as SVG made here: no script, no library, colours from the stylesheet, words for screen readers.

Chart libraries were looked at and left: they bring inline styles and scripts (dead under our policy), fixed colours
(dead in the dark), or a canvas (nothing to read aloud, nothing without JavaScript).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from agentlab.common.text import plain

WIDTH, HEIGHT = 320, 150
LEFT, RIGHT, TOP, BOTTOM = 38, 8, 8, 22
MARGIN = 6  # characters that stand left of the axis
_COLUMNS = WIDTH - LEFT - RIGHT

Point = tuple[float, float]


@dataclass(frozen=True)
class Series:
    """A line. `kind` is its class: `faint` (one of many), `strong` (the median), `chosen` (the one asked for)."""

    name: str
    points: Sequence[Point]
    kind: str = "strong"


@dataclass(frozen=True)
class Marker:
    """A tick on the x axis that says something, and leads to it where `href` is given."""

    x: float
    title: str
    href: str = ""


@dataclass(frozen=True)
class LineChart:
    """`title` names the chart; `about` says in a sentence what it shows, for who cannot see it. Without `y_range` (or
    `x_range`) the axis spans what is drawn. Points that are not finite are gaps, not zeros."""

    title: str
    series: Sequence[Series]
    about: str = ""
    y_range: tuple[float, float] | None = None
    x_range: tuple[float, float] | None = None
    x_label: str = ""
    y_label: str = ""  # a short word beside the axis: what the numbers count
    markers: Sequence[Marker] = field(default=())


def thinned(points: Sequence[Point], columns: int) -> list[Point]:
    """At most two points for each of `columns` pixel columns: the lowest and the highest, in their order."""
    if len(points) <= 2 * columns:
        return list(points)
    low, high = points[0][0], points[-1][0]
    span = (high - low) or 1
    kept: list[Point] = []
    column: list[Point] = []
    at = 0
    for point in points:
        here = min(columns - 1, int((point[0] - low) / span * columns))
        if here != at:
            kept += _extremes(column)
            column, at = [], here
        column.append(point)
    return kept + _extremes(column)


def _extremes(column: list[Point]) -> list[Point]:
    if len(column) < 3:
        return column
    finite = [point for point in column if math.isfinite(point[1])] or column[:1]
    return sorted({min(finite, key=lambda p: p[1]), max(finite, key=lambda p: p[1])})


def line_chart(chart: LineChart) -> SafeString:
    finite = [p for s in chart.series for p in s.points if math.isfinite(p[0]) and math.isfinite(p[1])]
    x_range = chart.x_range or _span([x for x, _ in finite])
    y_range = chart.y_range or _span([y for _, y in finite])
    lines = format_html_join(
        "",
        '<path class="line line-{}" d="{}"><title>{}</title></path>',
        ((s.kind, _path(s.points, x_range, y_range), plain(s.name)) for s in chart.series if s.points),
    )
    return format_html(
        '<svg class="chart" viewBox="0 0 {} {}" role="{}" aria-label="{}">{}{}{}{}</svg>',
        WIDTH,
        HEIGHT,
        "group" if any(marker.href for marker in chart.markers) else "img",  # an image may hold no links
        plain(f"{chart.title}. {chart.about}".strip()),
        _axes(x_range, y_range, chart.x_label, chart.y_label),
        lines,
        _markers(chart.markers, x_range),
        "" if finite else format_html('<text class="tick" x="{}" y="{}">nothing yet</text>', LEFT + 8, HEIGHT // 2),
    )


def _span(values: Iterable[float]) -> tuple[float, float]:
    found = list(values)
    if not found:
        return (0.0, 1.0)
    low, high = min(found), max(found)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _x(value: float, x_range: tuple[float, float]) -> float:
    return round(LEFT + (value - x_range[0]) / (x_range[1] - x_range[0]) * _COLUMNS, 1)


def _y(value: float, y_range: tuple[float, float]) -> float:
    return round(TOP + (y_range[1] - value) / (y_range[1] - y_range[0]) * (HEIGHT - TOP - BOTTOM), 1)


def _path(points: Sequence[Point], x_range: tuple[float, float], y_range: tuple[float, float]) -> str:
    steps = []
    pen = "M"
    for x, y in thinned(points, _COLUMNS):
        if not (math.isfinite(x) and math.isfinite(y)):
            pen = "M"
            continue
        steps.append(f"{pen}{_x(x, x_range):g} {_y(y, y_range):g}")
        pen = "L"
    return "".join(steps) + ("h0.1" if len(steps) == 1 else "")  # a line of one point is a dot


def _axes(x_range: tuple[float, float], y_range: tuple[float, float], x_label: str, y_label: str) -> SafeString:
    bottom = HEIGHT - BOTTOM
    ticks = [
        _beside(TOP + 8, y_range[1]),
        _beside(bottom, y_range[0]),
        (LEFT, HEIGHT - 7, "start", _tick(x_range[0])),
        (WIDTH - RIGHT, HEIGHT - 7, "end", _tick(x_range[1])),
        ((LEFT + WIDTH - RIGHT) // 2, HEIGHT - 7, "middle", x_label),
    ]
    upwards = '<text class="tick" transform="rotate(-90)" x="{}" y="12" text-anchor="middle">{}</text>'
    return (
        format_html('<path class="axis" d="M{} {}V{}H{}"/>', LEFT, TOP, bottom, WIDTH - RIGHT)
        + format_html_join("", '<text class="tick" x="{}" y="{}" text-anchor="{}">{}</text>', ticks)
        + (format_html(upwards, -(TOP + bottom) // 2, plain(y_label)) if y_label else SafeString(""))
    )


def _beside(y: int, value: float) -> tuple[int, int, str, str]:
    """A number beside the y axis; one that is too long for the margin begins at its left and reaches into the chart."""
    text = _tick(value)
    return (LEFT - 5, y, "end", text) if len(text) <= MARGIN else (0, y, "start", text)


def _tick(value: float) -> str:
    """`28,000`, `0.5`: no exponents, which few people read."""
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 1000 else f"{value:.4g}"


def _markers(markers: Sequence[Marker], x_range: tuple[float, float]) -> SafeString:
    bottom = HEIGHT - BOTTOM

    def one(marker: Marker) -> SafeString:
        at = _x(marker.x, x_range)
        tick = format_html(
            '<path class="marker" d="M{} {}v-9"><title>{}</title></path>', f"{at:g}", bottom + 4, marker.title
        )
        return (
            format_html('<a href="{}" aria-label="{}">{}</a>', marker.href, marker.title, tick) if marker.href else tick
        )

    return format_html_join("", "{}", ((one(m),) for m in markers))


def bar(value: float, largest: float, label: str = "") -> SafeString:
    """A bar for a table's cell, `value` of `largest` long. The number itself stands beside it, so it is decoration
    to a screen reader unless it has a label."""
    length = max(0.0, min(1.0, value / largest)) if largest > 0 and math.isfinite(value) else 0.0
    return _bar(0, round(100 * length, 1), "bar", label)


def time_bar(start: float, end: float, total: float, kind: str = "", label: str = "") -> SafeString:
    """A bar from `start` to `end` on a scale of 0 … `total`, all in one unit; at least visible."""
    scale = 100 / total if total > 0 else 0
    left = round(max(0.0, min(99.0, start * scale)), 1)
    width = round(max(1.0, min(100 - left, (end - start) * scale)), 1)
    return _bar(left, width, f"bar {kind}".strip(), label)


def _bar(left: float, width: float, css: str, label: str) -> SafeString:
    spoken = format_html('role="img" aria-label="{}"', label) if label else SafeString('aria-hidden="true"')
    return format_html(
        '<svg class="bar-track" viewBox="0 0 100 8" preserveAspectRatio="none" {}>'
        '<rect class="{}" x="{}" y="0" width="{}" height="8"/></svg>',
        spoken,
        css,
        f"{left:g}",
        f"{width:g}",
    )
