"""PF-6: what a persona's turn costs, how large its state is, and how a study grows on two workers.

pytest tests/bench/test_personas.py -m bench -s
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agentlab.persona.ports import Ports
from agentlab.persona.retrieval import rank
from agentlab.persona.rules import Rules
from agentlab.persona.state import PersonaState, Presentation, read_state
from agentlab.persona.turn import turn
from agentlab.persona.vectors import quantise
from tests.persona.making import DATA, PLAIN, lived, persona, rules, shown, study, written

pytestmark = pytest.mark.bench

ROOT = Path(__file__).parent.parent.parent
STATE_LIMIT = 32 * 1024
STUDY = {"personas": 10_000, "turns": 20}
RUNS = 2  # of each size; the better one counts, as noise only ever adds


class Ready:
    """An embedder whose answer is there already: PF-6 counts a turn without its embedder."""

    id = PLAIN.embed.id

    def __init__(self, text: str) -> None:
        self._row = PLAIN.embed.embed([text])

    def embed(self, texts: list[str]) -> Any:
        return np.repeat(self._row, len(texts), axis=0)


def _median_us(work: Callable[[], object], calls: int = 400, rounds: int = 5) -> float:
    """Microseconds of the median call, in the quietest of some rounds."""
    found = []
    for _ in range(rounds):
        took = []
        for _ in range(calls):
            began = time.perf_counter()
            work()
            took.append(time.perf_counter() - began)
        found.append(statistics.median(took))
    return min(found) * 1e6


def _aged(count: int) -> tuple[Rules, PersonaState]:
    """A state with exactly so many memories, of real claims."""
    claims = [json.loads(line)["text"] for line in (DATA / "oasis" / "claims.jsonl").read_text().splitlines()]
    by = rules(cap=count, reflect_at=1e9, actions=rules().actions[1:])
    who = persona()
    _, state = lived(0, who, by=by)
    number = 0
    while len(state.memories) < count:
        number += 1
        seen = shown(number, f"{claims[number % len(claims)]} ({number})", stances={"levy": 0.1})
        state = turn(who, seen, state, PLAIN, by).state
    return by, state


@pytest.mark.parametrize(("memories", "limit_us"), [(64, 1_000), (500, 5_000)])
def test_a_turn_from_bytes_to_bytes(memories: int, limit_us: int) -> None:  # PF-6
    by, state = _aged(memories)
    data, who = state.to_bytes(), persona()
    seen: Presentation = shown(state.counters.turns + 1, "The levy passes committee", social_proof=40)
    ports = Ports(Ready(seen.text))
    took = _median_us(lambda: turn(who, seen, read_state(data), ports, by).state.to_bytes())
    print(f"\na turn at {memories} memories, read and written: {took:.0f} µs (limit {limit_us})")
    assert took <= limit_us


def test_ranking_64_memories() -> None:  # PF-6
    _, state = _aged(64)
    query = quantise(PLAIN.embed.embed(["The levy passes committee"])[0])
    took = _median_us(lambda: rank(state.memories, query, 99.0, 20.0, 8), calls=2_000)
    print(f"\nranking 64 memories: {took:.1f} µs (limit 50)")
    assert took <= 50


def test_the_state_of_64_memories() -> None:  # PF-6
    _, young = _aged(64)
    _, old = lived(3_000, by=rules(cap=64), text="A claim of an ordinary length about the levy and the pool, number {}")
    sizes = [len(state.to_bytes()) for state in (young, old)]
    print(
        f"\nthe state of 64 memories: {sizes[0]} bytes of originals, {sizes[1]} after 3,000 turns (limit {STATE_LIMIT})"
    )
    assert max(sizes) <= STATE_LIMIT


def _crowd(folder: Path, personas: int, turns: int) -> Path:
    """Real profiles, as often as needed, before real claims."""
    profiles = [json.loads(line) for line in (DATA / "gss" / "personas.jsonl").read_text().splitlines()]
    people = []
    for number in range(personas):
        fields = {**profiles[number % len(profiles)]}
        name = f"{fields.pop('first_name')} {fields.pop('last_name')}"
        fields.pop("id")
        held = {"truth": (number % 21 - 10) / 10, "place": (number % 13 - 6) / 6}
        people.append({"id": f"p{number}", "name": name, "profile": fields, "beliefs": held})
    claims = [json.loads(line)["text"] for line in (DATA / "oasis" / "claims.jsonl").read_text().splitlines()][:20]
    stimuli = [
        {"text": text, "source": "Feed", "social_proof": 7 * n, "stances": {"truth": 0.8 - n / 12, "place": n / 20}}
        for n, text in enumerate(claims)
    ]
    content = study(
        name="Claims", topics=["truth", "place"], personas=people, stimuli=stimuli, schedule={"turns": turns}
    )
    return written(folder, content)


def _ran(path: Path, shape: str, state: Path) -> dict[str, Any]:
    environment = {key: value for key, value in os.environ.items() if key not in ("SECRET_KEY", "DATABASE_URL")}
    environment |= {
        "AGENTLAB_STATE_DIR": str(state),
        "AGENTLAB_LOCAL": "1",
        "PYTHONPATH": str(ROOT),
        "DJANGO_SETTINGS_MODULE": "agentlab.settings",
    }
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "study_run.py"), str(path), shape],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_a_study_on_one_worker_and_on_two(tmp_path) -> None:  # PF-6
    path = _crowd(tmp_path, **STUDY)
    best: dict[str, dict[str, Any]] = {}
    for attempt in range(RUNS):
        for shape in ("processes:1", "processes:2"):
            found = _ran(path, shape, tmp_path / f"{shape[-1]}-{attempt}")
            if shape not in best or found["seconds"] < best[shape]["seconds"]:
                best[shape] = found
    one, two = best.values()
    ratio = one["seconds"] / two["seconds"]
    print(f"\n{STUDY['personas']:,} personas × {STUDY['turns']} turns:")
    for shape, found in best.items():
        rate = found["turns"] / found["seconds"]
        each = f"runner {found['runner_us']:.0f}, workers {found['worker_us']:.0f} µs a turn"
        print(f"  {shape}: {found['seconds']:.1f} s, {rate:,.0f} turns/s; {each}")
    print(f"  two workers are {ratio:.2f} × as fast as one (at least 1.6)")
    assert one["trace_sha256"] == two["trace_sha256"]
    assert ratio >= 1.6


def test_the_runners_memory_does_not_grow_with_turns(tmp_path) -> None:  # PF-6
    few, many = (_ran(_crowd(tmp_path, 100, turns), "processes:2", tmp_path / str(turns)) for turns in (100, 800))
    grown = (many["peak_kib"] - few["peak_kib"]) / 1024  # states are at their cap in both
    print(f"\nthe runner's memory at 100 turns: {few['peak_kib'] / 1024:.0f} MiB; at 800 turns: {grown:+.1f} MiB")
    assert many["turns"] == 8 * few["turns"]
    assert grown <= 5  # the events of the 70,000 turns more are 80 MiB
