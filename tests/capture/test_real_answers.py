"""The parser held against what a person read in real answers (tests/data/responses/READINGS.md)."""

import json
from pathlib import Path

import pytest

from capture.choice import parse_choice

DATA = Path(__file__).parents[1] / "data" / "responses"
FILES = ("agent_poker", "llm_poker_arena", "live_poker_bench")
ANSWERS = {
    answer["id"]: answer
    for name in FILES
    for answer in map(json.loads, (DATA / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")[:-1])
}
READINGS = [json.loads(line) for line in (DATA / "readings.jsonl").read_text().splitlines()]


def read(answer_id: str) -> tuple[str, object] | None:
    answer = ANSWERS[answer_id]
    choice = parse_choice(answer["text"] or "", answer.get("reasoning_channel"), answer.get("tool_call"))
    if choice is None:
        return None
    return {"bet": "raise"}.get(choice.action, choice.action), choice.amount  # the readings call a bet a raise


def labelled(kind: str) -> list[object]:
    return [pytest.param(reading, id=reading["id"]) for reading in READINGS if reading["kind"] == kind]


@pytest.mark.parametrize("reading", labelled("explicit"))
def test_an_explicit_choice_is_read_as_a_person_reads_it(reading: dict[str, object]) -> None:  # HA-6
    assert read(str(reading["id"])) == (reading["action"], reading["amount"])


@pytest.mark.parametrize("reading", labelled("none"))
def test_where_a_person_finds_no_choice_none_is_read(reading: dict[str, object]) -> None:  # HA-6
    assert read(str(reading["id"])) is None


@pytest.mark.parametrize("reading", labelled("stated"))
def test_a_decision_in_prose_is_left_alone_or_read_rightly(reading: dict[str, object]) -> None:  # HA-6
    found = read(str(reading["id"]))
    assert found is None or found == (reading["action"], reading["amount"])


def test_every_real_answer_is_read_without_an_error_and_most_are_labelled() -> None:  # HA-6
    for answer_id in ANSWERS:
        read(answer_id)
    assert len(ANSWERS) == 317
    assert len(READINGS) >= 150
