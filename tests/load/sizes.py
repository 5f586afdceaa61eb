"""How much there is in a world."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    """Rows, but for `days`, over which the turns are spread, the newest of them now."""

    turns: int  # of the ledger
    days: float
    kept: int  # turns
    studies: int
    runs: int  # of the factory
    agents: int
    owners: int
    tables: int
    audits: int
    whispers: int
    hot: int  # turns of the newest hands, in the buffer too
    opened: tuple[int, int] = (26, 52)  # personas and turns of the study that is opened: two pages of each
    old: float = 0.05  # of its time, at the beginning: when the veterans played, at tables that are closed


# A day of the big world is as busy as the small one's only day: what is measured is the weight of the past. Every list
# of the small one has a first, a middle and a last page.
SMALL = Size(5_000, 1, 1_000, 60, 60, 100, 200, 5, 500, 300, 500, old=0.3)  # a veteran's hands fill a page too
BIG = Size(1_000_000, 200, 20_000, 500, 500, 600, 400, 60, 100_000, 5_000, 5_000)
