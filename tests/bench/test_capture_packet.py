"""PF-5: a packet of 100 files and 50 MiB against `cp` and `sha256sum` of the same files."""

import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.factory.making import call_with, capture

ROUNDS = 7
FILES = 100
SIZE = 50 * 1024**2 // FILES


@pytest.mark.bench
def test_a_full_packet_costs_at_most_twice_cp_and_sha256sum(tmp_path: Path) -> None:  # PF-5
    context = tmp_path / "context"
    context.mkdir()
    for number in range(FILES):
        (context / f"{number:03}").write_bytes(os.urandom(SIZE))
    names = [str(path) for path in sorted(context.iterdir())]

    def ours(to: Path) -> None:
        assert capture(to, call_with(context)).captured == FILES

    def theirs(to: Path) -> None:
        to.mkdir()
        subprocess.run(["cp", *names, str(to)], check=True)
        subprocess.run(["sha256sum", *names], check=True, stdout=subprocess.DEVNULL)

    ratios = []
    for number in range(ROUNDS):  # side by side, so that what else this machine does weighs on both
        a, b = (seconds(act, tmp_path / f"{number}-{act.__name__}") for act in (ours, theirs))
        ratios.append(a / b)
        print(f"capture {a * 1000:.0f} ms, cp + sha256sum {b * 1000:.0f} ms, ratio {a / b:.2f}")
    print(f"PF-5: median ratio {statistics.median(ratios):.2f} (at most 2)")
    assert statistics.median(ratios) <= 2


def seconds(act: Callable[[Path], None], to: Path) -> float:
    began = time.perf_counter()
    act(to)
    took = time.perf_counter() - began
    shutil.rmtree(to)
    return took
