"""Medians over the repetitions, and the table that they make."""

import os
import platform
import re
import statistics
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import redis

from agentlab.private_redis import find_binary
from tests.bench.peers.environments import PINS
from tests.bench.peers.measuring import AT_EXIT, FLOOR
from tests.bench.peers.recorders import RECORDERS
from tests.bench.peers.stores import FileStore, RedisStore, SinkStore

Run = dict[str, Any]
TITLES = {
    "redis": "plain Redis `SET` of the JSON",
    "agentlab": "**agentlab**",
    "opentelemetry": "OpenTelemetry SDK",
    "phoenix": "Phoenix",
    "langfuse": "Langfuse",
    "mlflow": "MLflow",
    "logfire": "Logfire",
}
UNITS = {"redis": RedisStore.unit, "sink": SinkStore.unit, "files": FileStore.unit}
HEAD = (
    "recorder",
    "record, median",
    "record, 99th percentile",
    "CPU a turn",
    "lost",
    "stored",
    "overrun: lost",
    "overrun: it counted",
    "store hangs: record",
    "store hangs: process ends after",
)


def summary(runs: list[Run]) -> list[dict[str, Any]]:
    """One row for each recorder: ratios against the SET of the same repetition, counts and seconds, all medians."""
    return [_row(name, runs) for name in RECORDERS if any(run["recorder"] == name for run in runs)]


def _row(name: str, runs: list[Run]) -> dict[str, Any]:
    mine = [run for run in runs if run["recorder"] == name and "failed" not in run]
    part = {kind: [run for run in mine if run["part"] == kind] for kind in ("burst", "overrun", "hang")}
    floors = {run["repetition"]: run for run in runs if (run["recorder"], run["part"]) == (FLOOR, "burst")}
    row: dict[str, Any] = {"recorder": name, "failed": [run["failed"] for run in runs if _failed(run, name)]}
    for key in ("p50", "p99", "cpu"):
        pairs = [(run[key], floors.get(run["repetition"], {}).get(key)) for run in part["burst"]]
        row[f"{key}_ratio"] = _median(mine / floor for mine, floor in pairs if floor)
        row[f"{key}_us"] = _median(mine * 1e6 for mine, _ in pairs)
    for kind in ("burst", "overrun"):
        row[f"{kind}_turns"] = max((run["turns"] for run in part[kind]), default=None)
        row[f"{kind}_lost"] = sorted(run["lost"] for run in part[kind])
    row["bytes"] = _median(run["bytes"] for run in part["burst"])
    row["counted"] = sorted(sum(run["losses"].values()) for run in part["overrun"] if run["losses"] is not None)
    row["reasons"] = sorted({reason for run in part["overrun"] for reason in run["losses"] or ()})
    row["said"] = {kind: next((run["said"] for run in part[kind] if run["said"]), []) for kind in part}
    row["hang_ratio"] = _median(run["ill"] / run["well"] for run in part["hang"])
    row["exit"] = [run["exit"] for run in part["hang"]]
    return row


def _failed(run: Run, name: str) -> bool:
    return run["recorder"] == name and "failed" in run


def _median(values: Iterable[float]) -> float | None:
    found = list(values)
    return statistics.median(found) if found else None


def markdown(rows: list[dict[str, Any]], about: dict[str, Any]) -> str:
    lines = [_line(HEAD), _line("---" for _ in HEAD)]
    lines += [_line(_cells(row)) for row in rows]
    lines += ["", _about(rows, about), "", *_notes(rows)]
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(row: dict[str, Any]) -> list[str]:
    name = row["recorder"]
    title = f"{TITLES[name]} {PINS[name][0].partition('==')[2]}" if name in PINS else TITLES[name]
    if row["failed"] and row["bytes"] is None:
        return [title, f"failed: {row['failed'][0][:80]}", *["–"] * (len(HEAD) - 2)]
    stored = "–" if row["bytes"] is None else f"{row['bytes'] / 1e6:.1f} MB {UNITS[RECORDERS[name].store]}"
    return [
        title,
        *(_ratio(row[f"{key}_ratio"]) for key in ("p50", "p99", "cpu")),
        _counts(row["burst_lost"]),
        stored,
        _counts(row["overrun_lost"]),
        _counted(row),
        _ratio(row["hang_ratio"]),
        _seconds(row["exit"]),
    ]


def _ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}" if value < 9.5 else f"{value:.0f}"


def _counts(values: list[int]) -> str:
    """The median, and the range where there is one."""
    if not values:
        return "–"
    middle = f"{statistics.median(values):,.0f}"
    return middle if values[0] == values[-1] else f"{middle} ({values[0]:,} – {values[-1]:,})"


def _counted(row: dict[str, Any]) -> str:
    if not any(row["overrun_lost"]):
        return "–"
    if row["counted"]:
        return _counts(row["counted"])
    return "no; it logged" if row["said"]["overrun"] else "no"


def _seconds(values: list[float | None]) -> str:
    if not values:
        return "–"
    if None in values:
        return f"> {AT_EXIT:.0f} s, ended"
    return f"{statistics.median(value for value in values if value is not None):.1f} s"


def _about(rows: list[dict[str, Any]], about: dict[str, Any]) -> str:
    counts = [
        f"{turns:,} turns in the {part}"
        for part in ("burst", "overrun")
        if (turns := next((row[f"{part}_turns"] for row in rows if row[f"{part}_turns"]), 0))
    ]
    floor = next((row["p50_us"] for row in rows if row["recorder"] == FLOOR), None)
    took = f", which took {floor:.0f} µs" if floor else ""
    return (
        f"Medians of {about['repetitions']}, each in a process of its own, by turns; {', '.join(counts)}. Times are "
        f"ratios to the `SET`{took}; where the store hangs, to the recorder's own time before. "
        f"{about['machine']}. `{about['command']}`"
    )


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    notes = []
    for row in rows:
        title, kind = TITLES[row["recorder"]].strip("*"), RECORDERS[row["recorder"]]
        if row["counted"] and any(row["overrun_lost"]):
            notes.append(f"- {title} can be asked by {kind.asked}: {', '.join(row['reasons']) or 'nothing lost'}.")
        for part, lines in row["said"].items():
            if lines:
                notes.append(f"- {title}, {part}, logged {len(lines)} such lines in a run, the first: {lines[0][:160]}")
        notes += [f"- {title} failed: {line[:160]}" for line in row["failed"][:1]]
    return notes


def machine() -> str:
    """This machine in a few words."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        names = [line.partition(":")[2].strip() for line in info.read_text().split("\n") if "model name" in line]
        model = names[0] if names else model
    said = subprocess.run([find_binary(), "--version"], capture_output=True, text=True, check=True).stdout
    server = re.search(r"v=(\S+)", said)
    versions = f"Python {platform.python_version()}, Redis {server[1] if server else '?'}, redis-py {redis.__version__}"
    return f"{os.cpu_count()} cores of {model}, {platform.system()}, {versions}"
