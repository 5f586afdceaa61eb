"""Two studies side by side: how beliefs went and what was done in each, and where their files differ.

What is drawn is what each study's own page draws, so that the two agree; a persona that is asked for stands over the
medians and is not counted in them unless it is among those drawn anyway. Of the files, everything is compared, and no
more is shown than a person reads.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import msgspec
from django.db.models import QuerySet

from agentlab.common.charts import LineChart, Series
from agentlab.persona.models import StudyDefinition, StudyPersona, StudyRun
from agentlab.persona.reading import Trajectories, drawn_numbers, reactions, trajectories
from agentlab.persona.showing import ROWS, Table, points, stance_shown
from agentlab.persona.values import UNREADABLE, cut, sha256

LINES = 200  # of differences; who changed more than that reads the files themselves
NAMED = 3  # ids that a line names; of more it says how many
LONGEST = 300  # characters of a line


@dataclass(frozen=True)
class Side:
    """One of the two. `medians[topic]`, and `own[topic]` of the persona that was asked for, have a value for each of
    `found.turns`."""

    run: StudyRun
    found: Trajectories
    medians: dict[str, list[float]]
    actions: dict[str, int]
    own: dict[str, list[float]] = field(default_factory=dict)


def side(run: StudyRun, who: StudyPersona | None = None) -> Side:
    """The study, and how the beliefs of one of its personas went."""
    found = trajectories(run, drawn_numbers(run, None))
    medians = {topic: found.over_personas(topic, median) for topic in sorted(found.lines)}
    lines = trajectories(run, [who.number]).lines if who else {}
    own = {topic: line for topic, of in lines.items() for line in of.values()}
    return Side(run, found, medians, {action: sum(of.values()) for action, of in reactions(run).items()}, own)


def charts(a: Side, b: Side, name: str = "") -> list[LineChart]:
    """A chart for each topic that both have: medians, and over them the persona's own lines where both have it."""
    last = float(max(a.found.turns[-1], b.found.turns[-1]) or 1)
    made = []
    for topic in sorted(a.medians.keys() & b.medians.keys()):
        is_own = topic in a.own and topic in b.own
        series = _series(a, b, "median", [one.medians[topic] for one in (a, b)], " behind" if is_own else "")
        about = "Median stance by turn of two studies, from -1 against to 1 for; it ends at "
        about += f"{_ends(a, b, a.medians[topic], b.medians[topic])}."
        if is_own:
            series += _series(a, b, name, [one.own[topic] for one in (a, b)])
            about += f" {name} ends at {_ends(a, b, a.own[topic], b.own[topic])}."
        made.append(LineChart(topic, series, about, (-1.0, 1.0), (0.0, last), "turn", "stance"))
    return made


def _series(a: Side, b: Side, name: str, lines: list[list[float]], behind: str = "") -> list[Series]:
    return [
        Series(f"study {one.run.pk}, {name}", points(one.found.turns, line), kind + behind)
        for one, line, kind in zip((a, b), lines, ("strong", "chosen"), strict=True)
    ]


def _ends(a: Side, b: Side, first: list[float], second: list[float]) -> str:
    ends = ((a, first), (b, second))
    return " and ".join(f"{stance_shown(_final(line))} in study {one.run.pk}" for one, line in ends)


def _final(line: list[float]) -> float:
    """The stance after the last turn that is known; NaN where none is."""
    known = [value for value in line if not math.isnan(value)]
    return known[-1] if known else math.nan


def by_turn(a: Side, b: Side, name: str = "") -> Table:
    """The same lines as numbers; "–" in turns that only the other study's chart has."""
    columns: list[str] = []
    lines: list[dict[int, float]] = []
    for topic in sorted(a.medians.keys() & b.medians.keys()):
        is_own = topic in a.own and topic in b.own
        for of, whose in [("medians", ""), *([("own", f" {name},")] if is_own else [])]:
            columns += [f"{topic},{whose} study {one.run.pk}" for one in (a, b)]
            lines += [dict(zip(one.found.turns, getattr(one, of)[topic], strict=True)) for one in (a, b)]
    turns = sorted({*a.found.turns, *b.found.turns}) if lines else []
    rows = [[str(turn), *(stance_shown(line.get(turn, math.nan)) for line in lines)] for turn in turns]
    return Table(["turn", *columns], rows[:ROWS], max(0, len(rows) - ROWS))


def finals(a: Side, b: Side) -> list[list[str]]:
    """[topic, a's final median, b's, b's minus a's]"""
    return _finals(a.medians, b.medians)


def own_finals(a: Side, b: Side) -> list[list[str]]:
    """The same of the persona that was asked for."""
    return _finals(a.own, b.own)


def _finals(a: Mapping[str, list[float]], b: Mapping[str, list[float]]) -> list[list[str]]:
    rows = []
    for topic in sorted(a.keys() & b.keys()):
        first, second = _final(a[topic]), _final(b[topic])
        rows.append([topic, *map(stance_shown, (first, second, second - first))])
    return rows


def shared(a: StudyRun, b: StudyRun) -> QuerySet[StudyPersona]:
    """The personas of the first study whose ids the second one has too."""
    return a.people.filter(key__in=b.people.values("key"))


def only(a: Side, b: Side) -> list[str]:
    """Topics that the first alone has."""
    return sorted(a.medians.keys() - b.medians.keys())


@dataclass(frozen=True)
class Action:
    """How often it was taken in each study, and which share of all reactions that is."""

    name: str
    first: int
    first_share: float
    second: int
    second_share: float


def actions(a: Side, b: Side) -> list[Action]:
    totals = [sum(one.actions.values()) or 1 for one in (a, b)]
    found = []
    for name in sorted(a.actions.keys() | b.actions.keys()):
        first, second = a.actions.get(name, 0), b.actions.get(name, 0)
        found.append(Action(name, first, first / totals[0], second, second / totals[1]))
    return found


# What differs in the two files -------------------------------------------------------------------------------


class _Named(msgspec.Struct):
    id: str


class _File(msgspec.Struct):
    """A study as it is stored; personas and stimuli stay bytes until they are known to differ."""

    personas: list[msgspec.Raw]
    stimuli: list[msgspec.Raw]


@dataclass(frozen=True)
class Change:
    """A setting that is not the same; None where that study has none of the kind."""

    path: str
    first: str | None
    second: str | None


@dataclass(frozen=True)
class Changes:
    """The first of them, and whether there are more."""

    shown: list[Change]
    more: bool


def changes(a: StudyRun, b: StudyRun) -> Changes | None:
    """What differs in the two studies' files, in their order; None where one cannot be read. One query."""
    names = {a.study_sha256, b.study_sha256}
    stored = dict(StudyDefinition.objects.filter(pk__in=names).values_list("sha256", "data"))
    try:
        first, second = bytes(stored[a.study_sha256]), bytes(stored[b.study_sha256])
        return _changes(first, second) if first != second else Changes([], more=False)
    except (KeyError, *UNREADABLE):
        return None


def _changes(first: bytes, second: bytes) -> Changes:
    """What many entries have changed alike, such as a topic that is new to everybody, is said once."""
    found = list(_unequal(_settings(first), _settings(second)))
    files = msgspec.msgpack.decode(first, type=_File), msgspec.msgpack.decode(second, type=_File)
    more = False
    for kind in ("personas", "stimuli"):
        entries = [_by_id(getattr(file, kind)) for file in files]
        found += _order(kind, *entries)
        alike: dict[Change, list[str]] = {}
        for id, change in _entries(*entries):
            if change in alike or len(alike) < LINES:
                alike.setdefault(change, []).append(id)
            else:
                more = True
        found += [Change(f"{kind}[{_named_ids(ids)}]{one.path}", one.first, one.second) for one, ids in alike.items()]
    return Changes(found[:LINES], more or len(found) > LINES)


def _named_ids(ids: list[str]) -> str:
    return ", ".join(ids[:NAMED]) + (f", … {len(ids):,} in all" if len(ids) > NAMED else "")


def _settings(data: bytes) -> dict[str, str]:
    """Everything but personas and stimuli, by path."""
    names = ("name", "seed", "rules", "turns", "step", "order", "embedder", "model", "budget")
    head = msgspec.msgpack.decode(data, type=msgspec.defstruct("_Head", [(name, Any) for name in names]))
    return dict(_flat({name: getattr(head, name) for name in names}, ""))


def _by_id(entries: list[msgspec.Raw]) -> dict[str, msgspec.Raw]:
    return {msgspec.msgpack.decode(entry, type=_Named).id: entry for entry in entries}


def _order(kind: str, first: Mapping[str, msgspec.Raw], second: Mapping[str, msgspec.Raw]) -> list[Change]:
    both = [[id for id in one if id in first and id in second] for one in (first, second)]
    return [Change(f"order of {kind}", *(_line(one) for one in both))] if both[0] != both[1] else []


def _entries(first: Mapping[str, msgspec.Raw], second: Mapping[str, msgspec.Raw]) -> Iterator[tuple[str, Change]]:
    """(id, what is not the same within its entry); entries are decoded one pair at a time."""
    for id in [*first, *(id for id in second if id not in first)]:
        entries = first.get(id), second.get(id)
        if entries[0] is None or entries[1] is None or bytes(entries[0]) != bytes(entries[1]):
            for change in _unequal(*(_entry(one) for one in entries)):
                yield id, change


def _entry(entry: msgspec.Raw | None) -> dict[str, str]:
    if entry is None:
        return {}
    value = msgspec.msgpack.decode(entry)
    value.pop("id")  # it stands before the path
    value.pop("calls", None)  # a persona's share of the budget, which is said above
    return {f".{path}": text for path, text in _flat(value, "")}


def _unequal(first: Mapping[str, str], second: Mapping[str, str]) -> Iterator[Change]:
    for path in [*first, *(path for path in second if path not in first)]:
        if first.get(path) != second.get(path):
            yield Change(path, first.get(path), second.get(path))


def _flat(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Each leaf with its path; an entry of a list goes by its name, or by its topic, or by its place."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(item, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list) and value and isinstance(value[0], dict | list):
        for place, item in enumerate(value):
            yield from _flat(*_named(item, path, place))
    else:
        yield path, _line(value)


def _named(item: Any, path: str, place: int) -> tuple[Any, str]:
    if isinstance(item, dict) and isinstance(item.get("name"), str):
        return {key: one for key, one in item.items() if key != "name"}, f"{path}[{item['name']}]"
    if isinstance(item, list) and len(item) == 3 and isinstance(item[0], str):  # a belief
        return {"stance": item[1], "confidence": item[2]}, f"{path}[{item[0]}]"
    return item, f"{path}[{place}]"


def _line(value: Sequence[Any] | Any) -> str:
    """The value as JSON; a long one cut short, with a mark that tells it from another of the same beginning."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    if len(text) <= LONGEST:
        return text
    return f"{cut(text, LONGEST)} ({len(text):,} characters, {sha256(text.encode())[:8]})"
