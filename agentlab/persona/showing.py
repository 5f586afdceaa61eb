"""Charts, and the tables of the same numbers, out of what `reading` found."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from agentlab.common.charts import LineChart, Marker, Series
from agentlab.common.numbers import amount, counted, date_and_time
from agentlab.persona.events import Probed, Reacted
from agentlab.persona.importance import acted, by_rule, moved
from agentlab.persona.models import StudyRun
from agentlab.persona.probes import beyond
from agentlab.persona.reaction import Appraisal, Grounds, choose, grounds, odds
from agentlab.persona.reading import Trajectories
from agentlab.persona.rules import Rules
from agentlab.persona.turn_reading import TurnPage
from agentlab.persona.values import draw

ROWS = 200  # of a table beside a chart; the CSV has them all


@dataclass(frozen=True)
class Table:
    """Numbers as text, "–" where there is none; `clipped` says how many rows are left out."""

    columns: list[str]
    rows: list[list[str]]
    clipped: int = 0


def belief_chart(
    topic: str, found: Trajectories, names: dict[int, str], chosen: int | None, markers: Sequence[Marker] = ()
) -> LineChart:
    """Every drawn persona faint, the median and the chosen one strong, on a scale of -1 … 1."""
    lines = found.lines[topic]
    several = len(lines) > 1
    series = [Series(names.get(n, str(n)), points(found.turns, line), "faint") for n, line in lines.items() if several]
    middle = found.over_personas(topic, median)
    if several:
        series.append(Series("median", points(found.turns, middle), "strong"))
    if chosen in lines:
        series.append(Series(names.get(chosen, ""), points(found.turns, lines[chosen]), "chosen"))
    elif not several:
        series += [Series(names.get(n, str(n)), points(found.turns, line)) for n, line in lines.items()]
    last = next((value for value in reversed(middle) if not math.isnan(value)), math.nan)
    about = (
        f"Stance of {len(lines)} personas by turn, from -1 against to 1 for; the median ends at {stance_shown(last)}."
    )
    if not several:
        about = f"Stance by turn, from -1 against to 1 for; it ends at {stance_shown(last)}."
    return LineChart(topic, series, about, (-1.0, 1.0), (0.0, float(found.turns[-1] or 1)), "turn", "stance", markers)


def belief_table(found: Trajectories, chosen: int | None, name: str) -> Table:
    """For each turn and topic: lowest, median, highest, and the chosen persona's own; of a single one its own alone."""
    columns = ["turn"]
    values: list[list[float]] = []
    for topic in sorted(found.lines):
        lines = found.lines[topic]
        if len(lines) > 1:
            columns += [f"{topic}, lowest", f"{topic}, median", f"{topic}, highest"]
            values += [found.over_personas(topic, reduce) for reduce in _SPREAD]
        if chosen in lines:
            columns.append(f"{topic}, {name}")
            values.append(lines[chosen])
        elif len(lines) == 1:
            columns.append(topic)
            values += lines.values()
    rows = [[str(turn), *map(stance_shown, of_turn)] for turn, *of_turn in zip(found.turns, *values, strict=True)]
    return Table(columns, rows[:ROWS], max(0, len(rows) - ROWS)) if values else Table(columns, [])


_SPREAD: tuple[Callable[[list[float]], float], ...] = (min, median, max)


def reaction_charts(counted: dict[str, dict[int, int]], turns: Sequence[int]) -> list[LineChart]:
    """One small chart an action, all on one scale; where turns are thinned out, each point sums those since the
    last."""
    binned = {action: _binned(counts, turns) for action, counts in sorted(counted.items())}
    most = max((max(counts) for counts in binned.values()), default=0) or 1  # a scale has a length
    charts = []
    for action, counts in binned.items():
        total = sum(counts)
        points = [(float(turn), float(count)) for turn, count in zip(turns[1:], counts, strict=True)]
        about = f"How many did this, by turn: {total:,} in all, {most:,} the most of any action in a point."
        x_range = (0.0, float(turns[-1] or 1))
        charts.append(
            LineChart(
                f"{action} · {total:,}",
                [Series(action, points)],
                about,
                (0.0, float(most)),
                x_range,
                "turn",
                "reactions",
            )
        )
    return charts


def reaction_table(counted: dict[str, dict[int, int]], turns: Sequence[int]) -> Table:
    actions = sorted(counted)
    binned = [_binned(counted[action], turns) for action in actions]
    rows = [[str(turn), *map(amount, counts)] for turn, *counts in zip(turns[1:], *binned, strict=True)]
    return Table(["turn", *actions], rows[:ROWS], max(0, len(rows) - ROWS)) if actions else Table(["turn"], [])


@dataclass(frozen=True)
class Draw:
    """How arithmetic came to an action: each action's share of the chances, and the `chance` in [0, 1) that fell."""

    shares: dict[str, float]
    chance: float


def drawn(reacted: Reacted, rules: Rules, study_sha256: str, key: str) -> Draw | None:
    """The draw that decided a reaction, made again from what is recorded of it. None where the model decided, and where
    it does not give the recorded action: then it is not what decided."""
    felt = Appraisal(reacted.arousal, reacted.appraisal, influence=0.0)
    chance = draw(study_sha256, key, reacted.shown.turn)
    if reacted.tier != "A" or choose(rules, felt, chance).name != reacted.action:
        return None
    return Draw(odds(rules, felt), chance)


@dataclass(frozen=True)
class Derived:
    """How arousal and appraisal came about, and importance where a rule gave it: `acted` and `moved` are what action
    and change of beliefs weigh by themselves, None where a model rated or the study's rules are not known."""

    grounds: Grounds
    felt: list[tuple[float, float]]  # of each memory that came to mind: its score, and how it had felt
    acted: float | None = None
    moved: float | None = None


def derived(page: TurnPage, rules: Rules | None) -> Derived | None:
    """The formulas again, over what the trace holds. None where they do not give the recorded numbers: then it was not
    they that gave them."""
    if page.reacted is None or page.before is None:
        return None
    one, minds = page.reacted, {memory.id: memory for memory in page.before.memories}
    if any(each.memory not in minds for each in one.recalled):
        return None
    found = grounds(page.before.beliefs, one.shown, one.recalled, minds)
    if (found.arousal, found.valence) != (one.arousal, one.appraisal):
        return None
    felt = [(each.score, minds[each.memory].valence) for each in one.recalled]
    action = rules.action(one.action) if rules and one.rated_by == "rule" else None
    change = sum(abs(row.change) for row in page.beliefs)
    if action is None or not page.beliefs or by_rule(action, change) != one.importance:
        return Derived(found, felt)
    return Derived(found, felt, acted(action), moved(change))


def told_apart(run: StudyRun) -> str:
    """A study in a menu, where many have one name: `5 · Levy · seed 7 · begun 29 Nov 2026 14:02:11 UTC`."""
    seed = [] if run.seed is None else [f"seed {run.seed}"]
    return " · ".join([str(run.pk), run.name, *seed, f"begun {date_and_time(run.started_at)}"])


def model_calls(run: StudyRun) -> str:
    """How many of the model's calls were of use, where any was not; "" where each was."""
    if not run.fallbacks:
        return ""
    asked = counted(run.model_calls, "model call")
    if not run.answered:
        return f"None of {asked} was answered with a reaction: every reaction is arithmetic alone"
    rest = (
        f"{counted(run.fallbacks, 'reaction')} meant for the model {'is' if run.fallbacks == 1 else 'are'} arithmetic"
    )
    return f"{run.answered:,} of {asked} {'was' if run.answered == 1 else 'were'} answered with a reaction: {rest}"


def distance(value: float, limit: float | None) -> str:
    """A probe's distance, `0.15`; with as many more digits as it takes to see whether it is beyond the limit."""
    for digits in range(2, 10):  # `beyond` looks no further
        text = f"{value:.{digits}f}"
        if limit is None or (float(text) > limit) == beyond(value, limit):
            return text
    return repr(value)


def measured(probed: Probed, limit: float | None) -> str:
    """A probe's distance. One at the very limit that an older trace counts as drift, for what binary fractions added to
    it, says so."""
    text = distance(probed.distance, limit)
    at_limit = limit is not None and probed.drifted and not beyond(probed.distance, limit)
    return f"just beyond {text}" if at_limit else text


def signed(value: float, digits: int = 2) -> str:
    """`+0.36`; a change too small for so many digits keeps more."""
    is_seen = abs(value) >= 0.5 * 10**-digits or not value
    return f"{value or 0.0:+.{digits}f}" if is_seen else f"{value:+.1g}"  # 0 has no sign of its own


def _binned(counts: dict[int, int], turns: Sequence[int]) -> list[int]:
    """Sums over (turns[i], turns[i + 1]]."""
    sums = []
    for low, high in pairwise(turns):
        sums.append(sum(counts.get(turn, 0) for turn in range(low + 1, high + 1)))
    return sums


def points(turns: Sequence[int], line: Iterable[float]) -> list[tuple[float, float]]:
    return [(float(turn), value) for turn, value in zip(turns, line, strict=True)]


def stance_shown(value: float) -> str:
    return "–" if math.isnan(value) else f"{round(value, 3) or 0.0:+.3f}"  # never -0.000
