"""Times and statements of both worlds, side by side, as a Markdown table."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median


@dataclass
class Row:
    """One page. `ratio` and `noise` are of medians: the big world's, and another small one's, over the small one's."""

    name: str
    queries: tuple[int, int]  # small, big
    times: dict[str, list[float]] = field(default_factory=lambda: {"small": [], "again": [], "big": []})

    def milliseconds(self, world: str) -> float:
        return median(self.times[world]) * 1000

    @property
    def ratio(self) -> float:
        return self.milliseconds("big") / self.milliseconds("small")

    @property
    def noise(self) -> float:
        return self.milliseconds("again") / self.milliseconds("small")

    def trouble(self, bound: float) -> str:
        """What is above the bound; "" where nothing is."""
        if self.queries[0] != self.queries[1]:
            return f"{self.queries[0]} queries became {self.queries[1]}"
        return f"{self.ratio:.2f} x the time" if self.ratio > bound else ""

    def as_json(self) -> dict[str, object]:
        facts: dict[str, object] = {"page": self.name, "queries_small": self.queries[0], "queries_big": self.queries[1]}
        facts |= {f"ms_{world}": round(self.milliseconds(world), 3) for world in self.times}
        return facts | {"ratio": round(self.ratio, 3), "noise": round(self.noise, 3)}


def table(rows: Iterable[Row]) -> str:
    lines = [
        "| page | queries small/big | small, ms | big, ms | ratio | noise |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        small, big = row.milliseconds("small"), row.milliseconds("big")
        queries = f"{row.queries[0]}/{row.queries[1]}"
        lines.append(f"| {row.name} | {queries} | {small:.1f} | {big:.1f} | {row.ratio:.2f} | {row.noise:.2f} |")
    return "\n".join(lines)


def summary(rows: list[Row], bound: float) -> str:
    """In a few lines: how many, how much, and what is above the bound."""
    same = sum(row.queries[0] == row.queries[1] for row in rows)
    worst = max(rows, key=lambda row: row.ratio)
    noises = sorted(row.noise for row in rows)
    lines = [
        f"{len(rows)} pages; the same number of queries in both worlds for {same} of them.",
        f"Time, big over small: {median(row.ratio for row in rows):.2f} in the middle, {worst.ratio:.2f} at most"
        f" ({worst.name}).",
        f"Noise, small over small: {noises[len(noises) // 20]:.2f} to {noises[-1 - len(noises) // 20]:.2f}"
        f" for nine in ten, {noises[0]:.2f} to {noises[-1]:.2f} for all.",
    ]
    return "\n".join(lines + [f"ABOVE: {row.name}: {said}" for row in rows if (said := row.trouble(bound))])
