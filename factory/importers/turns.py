"""Sorting the records of a session file into turns, by parent link and never by time.

A turn begins at a record that the format calls a start; every other record belongs to the turn of its parent, else
(no link, or to a record that is not in the file) to the turn that the file is in. Records that are not shown are
walked through all the same, since others hang on them. What lies beside the messages makes no turn: where there is none
yet, it waits for the next that begins.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Literal

from factory.importers import jsonl
from factory.importers.found import Counts
from factory.values import lacks_offset, mapping

Kind = Literal["start", "member", "beside", "shown", "hidden", "unknown", "damaged"]


@dataclass(frozen=True, slots=True)
class Place:
    """What the index needs to know of a record: its kind, its id and its parent's id (None: the format has none)."""

    kind: Kind
    record_id: str | None = None
    parent_id: str | None = None


@dataclass(slots=True)
class Turn:
    """A start record and its members, as places in the file."""

    record_id: str
    previous: "Turn | None"
    index: int
    places: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class Index:
    """Where the turns of a file lie. Small: a few dozen bytes a record, whatever the records hold."""

    turns: list[Turn] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)
    unreachable: int = 0  # records whose parent is not in the file
    unfinished: bool = False
    without_offset: bool = False  # are there times whose zone is not said?


def build_index(file: BinaryIO, place: Callable[[object], Place], hear: Callable[[dict[str, Any]], None]) -> Index:
    """Reads the file once and says which records make up each turn. `hear` is told each record on the way, for facts
    of the session that lie among them."""
    index = Index()
    owner: dict[str, Turn | None] = {}
    names: dict[str, int] = {}
    current: Turn | None = None
    waiting: list[tuple[int, int]] = []
    for line in jsonl.scan(file):
        if line.unfinished:
            index.unfinished = True
            continue
        hear(mapping(line.value))
        index.without_offset = index.without_offset or lacks_offset(mapping(line.value).get("timestamp"))
        found = Place("damaged") if line.damaged else place(line.value)
        _count(index.counts, found.kind)
        missing = found.parent_id is not None and found.parent_id not in owner
        index.unreachable += missing
        turn = current if found.parent_id is None or missing else owner[found.parent_id]
        # A file that begins in the middle of a turn: what precedes the first message is a turn without one.
        headless = found.kind == "member" and turn is None
        if found.kind == "start" or headless:
            previous = turn
            name = told_apart(found.record_id or f"turn-{len(index.turns) + 1}", names)
            turn = Turn(name, previous, previous.index + 1 if previous else 1, waiting)
            waiting = []
            index.turns.append(turn)
            current = turn
        if found.kind in {"start", "member", "beside"}:
            (waiting if turn is None else turn.places).append((line.offset, line.length))
        if found.record_id is not None:
            owner[found.record_id] = turn
    index.counts.shown -= len(waiting)  # no turn came
    index.counts.hidden += len(waiting)
    return index


def _count(counts: Counts, kind: Kind) -> None:
    name = kind if kind in {"hidden", "unknown", "damaged"} else "shown"
    setattr(counts, name, getattr(counts, name) + 1)


def told_apart(name: str, names: dict[str, int]) -> str:
    """The same id twice in one file is two records; the second is told apart by its number."""
    names[name] = names.get(name, 0) + 1
    return name if names[name] == 1 else f"{name}~{names[name]}"
