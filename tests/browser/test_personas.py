"""A study in a browser: from the list to a turn, the replay that is watched, with script and without."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from agentlab.persona.executors import Inline
from agentlab.persona.models import StudyRun
from agentlab.persona.runner import Runner
from agentlab.persona.runs import create
from agentlab.persona.study import read_study
from tests.browser.site import Site, assert_accessible, assert_no_sideways_scroll
from tests.persona.making import study, written

PAGES = [
    "/personas",
    "/personas/{run}",
    "/personas/{run}?persona=ada",
    "/personas/{run}/p/ada",
    "/personas/{run}/p/ada/5",
    "/personas/compare?a={run}&b={run}&persona=ada",
]


@pytest.fixture
def run(tmp_path, owner: User) -> StudyRun:
    content = study(
        cap=6,
        reflection={"batch": 3, "at": 3},
        tier_b={"budget": 4, "above": 0.1},
        probes={"every": 4, "fields": ["age"], "opinions": ["levy"], "drift_above": 0.0},
        schedule={"turns": 12},
    )
    made = create(read_study(written(tmp_path, content)), executor="inline", owner_id=owner.pk)
    return Runner(made, Inline()).go()


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without"])
def test_from_the_list_to_a_turn_and_what_came_to_mind(site: Site, owner: User, run: StudyRun, script: bool) -> None:
    page = site.open("/personas", owner, script=script)  # PE-7
    page.get_by_role("link", name="Levy", exact=True).click()
    page.get_by_label("Persona", exact=True).select_option("bo")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("svg.chart .line-chosen").first).to_be_attached()
    page.get_by_role("link", name="Bo’s own page").click()
    page.get_by_role("row").get_by_role("link", name="12", exact=True).first.click()
    expect(page.get_by_role("heading", name="2 What came to mind")).to_be_visible()
    page.get_by_role("link", name="‹ turn 11").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Bo · turn 11")
    expect(page.locator("main")).to_contain_text("the same ✓")


def test_a_verification_is_watched_in_place(site: Site, owner: User, run: StudyRun) -> None:  # PE-6 VW-10
    page = site.open(f"/personas/{run.pk}", owner)
    page.get_by_role("button", name="Verify now").click()
    expect(page.locator("#standing")).to_contain_text("Replay gives the same state", timeout=20_000)
    assert StudyRun.objects.get().replay == "same"


def test_a_verification_without_script(site: Site, owner: User, run: StudyRun) -> None:  # PE-6 VW-10
    page = site.open(f"/personas/{run.pk}", owner, script=False)
    page.get_by_role("button", name="Verify now").click()
    expect(page.locator("main")).to_contain_text("The trace is being replayed.")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("narrow", [False, True], ids=["wide", "narrow"])
def test_pages_are_accessible_and_fit(site: Site, owner: User, run: StudyRun, dark: bool, narrow: bool) -> None:
    for path in PAGES:  # VW-10
        page = site.open(path.format(run=run.pk), owner, dark=dark, narrow=narrow, policy=False)
        page.evaluate("document.querySelectorAll('main details').forEach((one) => (one.open = true))")
        assert_no_sideways_scroll(page)
        assert_accessible(page)


def test_on_a_phone_the_score_of_a_memory_and_how_a_study_stands_are_in_sight(
    site: Site, owner: User, run: StudyRun
) -> None:  # PE-7 VW-10
    seen = [("/personas", "table.studies"), (f"/personas/{run.pk}/p/ada/9", "table.recalled")]
    for path, table in seen:
        page = site.open(path, owner, narrow=True)
        room = "(table) => [table.closest('.scroll').scrollWidth, table.closest('.scroll').clientWidth]"
        needed, there = page.locator(table).evaluate(room)
        assert needed <= there, path
    score = page.locator("table.recalled [data-label=Score]").first
    said = score.evaluate("(cell) => getComputedStyle(cell, '::before').content")
    assert said == '"Score"'
    expect(score).to_be_in_viewport()
