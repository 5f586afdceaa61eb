"""The pages say how a number came about, and what it means."""

import re
from itertools import accumulate
from pathlib import Path

import msgspec
import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from agentlab.persona.events import Probed, Reacted
from agentlab.persona.executors import Inline
from agentlab.persona.models import StudyDefinition, StudyRun, TraceEvent
from agentlab.persona.reading import Trajectories, readable
from agentlab.persona.rules import Rules
from agentlab.persona.runner import Runner
from agentlab.persona.runs import create, head_of
from agentlab.persona.showing import belief_table, distance, drawn, measured, reaction_charts, reaction_table
from agentlab.persona.state import stance_text
from agentlab.persona.study import read_study
from tests.pages import assert_valid_html

from .making import study, written

pytestmark = pytest.mark.django_db
LIMIT = 0.001
CONTENT = study(
    probes={"every": 2, "opinions": ["levy"], "drift_above": LIMIT},
    schedule={"turns": 6},
    stimuli=[{"text": "The levy passes", "social_proof": 80, "stances": {"levy": 0.8}}, {"text": "Weather"}],
)


@pytest.fixture
def olga() -> User:
    return User.objects.create_user("olga")


@pytest.fixture
def run(tmp_path: Path, olga: User) -> StudyRun:
    return Runner(create(read_study(written(tmp_path, CONTENT)), executor="inline", owner_id=olga.pk), Inline()).go()


def page(user: User, run: StudyRun, name: str, *rest: object) -> str:
    client = Client()
    client.force_login(user)
    response = client.get(reverse(name, args=[run.pk, *rest]))
    assert response.status_code == 200
    assert_valid_html(response)
    return " ".join(response.content.decode().split())


@pytest.mark.parametrize(
    ("value", "limit", "text"),
    [
        (0.25, 0.15, "0.25"),
        (0.1512, 0.15, "0.151"),
        (0.15, 0.15, "0.15"),
        (0.1499999, 0.15, "0.15"),
        (0.0000049, 0.0, "0.000005"),
        (0.1512, None, "0.15"),
        (0.15000000000000002, 0.15, "0.15"),
        (0.1500001, 0.15, "0.1500001"),
    ],
)
def test_a_distance_has_the_digits_that_show_on_which_side_of_the_limit_it_lies(  # PE-11
    value: float, limit: float | None, text: str
) -> None:
    assert distance(value, limit) == text


def test_what_an_older_trace_counts_as_drift_at_the_very_limit_says_that_it_is_beyond_it() -> None:  # PE-11
    at = Probed("opinion:levy", "?", "+0.40", "+0.10", 0.15000000000000002, drifted=True)
    assert measured(at, 0.15) == "just beyond 0.15"
    assert measured(msgspec.structs.replace(at, drifted=False), 0.15) == "0.15"
    assert measured(at, None) == "0.15"


def test_a_number_that_rounds_to_nothing_has_no_sign_of_its_own() -> None:  # PE-11
    assert [stance_text(value) for value in (-0.004, 0.0, -0.0, -0.006, 0.4)] == [
        *("+0.00", "+0.00", "+0.00", "-0.01", "+0.40")
    ]
    drawn = belief_table(Trajectories([0, 1], {"levy": {0: [-0.0001, -0.4]}}), None, "")
    assert drawn.rows == [["0", "+0.000"], ["1", "-0.400"]]


def test_counts_of_many_reactions_are_written_with_thousands_apart() -> None:  # PE-3
    counted = {"dislike": {1: 28_000, 2: 28_542}}
    (chart,) = reaction_charts(counted, [0, 1, 2])
    assert (chart.title, chart.y_label) == ("dislike · 56,542", "reactions")
    assert reaction_table(counted, [0, 1, 2]).rows == [["1", "28,000"], ["2", "28,542"]]


def test_the_distance_on_every_page_agrees_with_its_mark_and_its_scale_is_said(run: StudyRun, olga: User) -> None:
    # PE-11
    drifted = TraceEvent.objects.filter(run=run, kind="probed", label="drifted")
    assert drifted.exists()
    key = run.people.get(number=drifted[0].persona).key
    for name, rest in (("study", []), ("study-persona", [key]), ("study-turn", [key, drifted[0].turn])):
        html = page(olga, run, name, *rest)
        assert "half of the difference between the two stances" in html, name
        assert "Beyond 0.001 an answer counts as drift, at exactly 0.001 it does not." in html, name
        found = re.findall(r"([0-9.]+) (?:<strong class=\"differs\">)?drift ⚠", html)
        assert found and all(float(number) > LIMIT for number in found), name


def test_a_turn_that_arithmetic_decided_shows_the_chances_and_the_draw(run: StudyRun, olga: User) -> None:  # PE-1
    html = page(olga, run, "study-turn", "ada", 1)
    chances = re.search(r"laid end to end: (.+?)\. The draw fell at ([0-9.]+) %, which is (\w+)\.", html)
    assert chances
    shares = [(name, float(share)) for name, share in re.findall(r"(\w+) ([0-9.]+) %", chances[1])]
    assert sum(share for _, share in shares) == pytest.approx(100, abs=0.05)
    ends = accumulate(share for _, share in shares)
    assert next(name for (name, _), end in zip(shares, ends, strict=True) if float(chances[2]) < end) == chances[3]
    assert "What these words mean" in html


def test_a_draw_that_does_not_give_the_recorded_action_is_not_shown_as_what_decided(run: StudyRun) -> None:  # PE-3
    reacted = readable(TraceEvent.objects.filter(run=run, kind="reacted", turn=1).first().payload)
    made = head_of(run)
    assert isinstance(reacted, Reacted) and made is not None
    key = run.people.order_by("number")[0].key
    assert drawn(reacted, made.rules, run.study_sha256, key) is not None
    other = next(action for action in made.rules.actions if action.name != reacted.action)
    assert drawn(reacted, Rules(actions=(other,)), run.study_sha256, key) is None


def test_without_the_studys_rules_the_pages_stay_and_claim_no_limit(run: StudyRun, olga: User) -> None:  # SF-4
    StudyDefinition.objects.update(data=b"?")
    key = run.people.order_by("number")[0].key
    for name, rest in (("study", []), ("study-persona", [key]), ("study-turn", [key, 2])):
        html = page(olga, run, name, *rest)
        assert "an answer counts as drift" not in html
        assert "The draw fell" not in html


def test_a_study_says_how_many_of_the_drifts_it_lists(run: StudyRun, olga: User) -> None:  # PE-11
    drifted = TraceEvent.objects.filter(run=run, kind="probed", label="drifted")
    assert f"All {drifted.count()} that drifted" in page(olga, run, "study")
    one = drifted.first()
    drifted.exclude(pk=one.pk).update(label="kept")
    html = page(olga, run, "study")
    assert "The answer that drifted" in html
    assert "Reactions of all personas in each turn" in html
