"""The room's README explains every word of a study file, and the project's says when two studies differ."""

import re
from pathlib import Path

import pytest

from agentlab.persona.rules import Action
from agentlab.persona.study import (
    BeliefEntry,
    MemoryEntry,
    PersonaEntry,
    PersonaLoad,
    ProbesEntry,
    ReadingEntry,
    ReflectionEntry,
    ScheduleEntry,
    StimulusEntry,
    StimulusLoad,
    StudyFile,
    TierEntry,
    read_study,
)
from agentlab.persona.values import draw

from .making import lived, persona, rules, study, written

ROOT = Path(__file__).parent.parent.parent
ROOM = (ROOT / "agentlab" / "persona" / "README.md").read_text()
EXPLAINED = ROOM.partition("## A study file\n")[2].partition("\n## ")[0]
PARTS: list[type] = [StudyFile, PersonaEntry, BeliefEntry, MemoryEntry, PersonaLoad, StimulusEntry, StimulusLoad]
PARTS += [Action, ReadingEntry, ScheduleEntry, ReflectionEntry, TierEntry, ProbesEntry]


@pytest.mark.parametrize("part", PARTS)
def test_the_readme_explains_every_word_of_a_study_file(part: type) -> None:  # PE-3
    named = set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^\|(.*?[^\\])\|", EXPLAINED, re.M))))
    assert set(part.__struct_fields__) - named == set()


def test_the_readme_says_what_a_larger_number_does() -> None:  # PE-3
    rows = [[cell.strip() for cell in row.split(" | ")] for row in re.findall(r"^\| (`.*) \|$", EXPLAINED, re.M)]
    silent = " ".join(row[0] for row in rows if len(row) < 3 or not row[2].strip(" |"))
    for word in ("cap", "k", "tau", "rate", "tolerance", "temperature", "trust", "confidence", "position", "effort"):
        assert f"`{word}`" not in silent
    for word in ("social_proof", "stances", "valence", "importance", "budget", "above", "every", "drift_above", "step"):
        assert f"`{word}`" not in silent
    assert "Tier A is arithmetic" in EXPLAINED and "Tier B asks a model" in EXPLAINED


def test_any_change_of_the_file_draws_anew_and_the_readme_says_so(tmp_path) -> None:  # PE-4
    draws = set()
    for changes in ({}, {"name": "Levy again"}, {"probes": {"every": 3, "opinions": ["levy"]}}):
        made = read_study(written(tmp_path, study(**changes)))
        draws.add(draw(made.sha256, "ada", 1))
    assert len(draws) == 3
    said = (ROOT / "README.md").read_text().partition("## Run a study")[2].partition("\n## ")[0]
    assert "beyond that between two seeds" in " ".join(said.split())


def _lived(**changes: float) -> tuple[list[str], list[float]]:
    """What each persona does, and what it believes in the end."""
    trusted = changes.pop("trusted", 0.5)
    acts, stances = [], []
    for who in (persona("ada"), persona("bo", trust={"Post": trusted})):
        events, state = lived(40, who, by=rules(**changes))
        acts += [event.label for event in events if event.kind == "reacted"]
        stances += [belief.stance for belief in state.beliefs]
    return acts, stances


@pytest.mark.parametrize("changes", [{"k": 0}, {"tau": 0.1}, {"temperature": 0.01}])
def test_memories_and_chance_move_what_is_done_and_not_what_is_believed(changes: dict[str, float]) -> None:  # PE-7
    (acts, stances), (plain_acts, plain_stances) = _lived(**changes), _lived()
    assert stances == plain_stances
    assert acts != plain_acts


@pytest.mark.parametrize("changes", [{"trusted": 0.9}, {"tolerance": 0.3}])
def test_trust_and_tolerance_move_what_is_believed(changes: dict[str, float]) -> None:  # PE-7
    assert _lived(**changes)[1] != _lived()[1]
