"""An owner in a browser: from the first version to a flagged hand, with script and without."""

import pytest
import redis
from django.contrib.auth.models import User
from playwright.sync_api import expect

from agentlab.agents.models import Agent, AgentVersion
from agentlab.agents.services import Draft, publish, whisper
from capture.models import AgentCallRecord
from tests.browser.site import Site, assert_accessible, assert_no_sideways_scroll
from tests.capture import hands

HAND = "/agents/rocky/hand?table=T-4&hand=184"


@pytest.fixture
def story(capture_redis: redis.Redis, owner: User) -> None:
    rocky = Agent.objects.create(id="rocky", name="Rocky", owner=owner)
    skills = [{"name": "Odds", "text": "Count outs."}]
    publish(rocky, Draft("Play.", "Be tight.\nNever bluff.", skills, "house"))
    publish(rocky, Draft("Play.", "Be tight.\nBluff often.", [], "house"))
    whisper(rocky, author=owner, text="Fold more.")
    hands.store(capture_redis, hands.story())


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without"])
def test_from_the_cards_to_a_flagged_hand_and_back(site: Site, owner: User, story: None, script: bool) -> None:
    # VW-7 VW-10
    page = site.open("/agents", owner, script=script)
    page.get_by_role("link", name="Rocky").click()
    page.get_by_role("link", name="T-4:184").click()
    expect(page.locator("article")).to_have_count(4)  # three decisions and a fallback
    page.get_by_role("button", name="Flag this hand").click()
    expect(page.locator("main")).to_contain_text("Rocky: kept 3 turns")
    assert AgentCallRecord.objects.count() == 3
    page.get_by_role("link", name="Kept", exact=True).click()
    page.get_by_role("link", name="T-4:184").click()
    page.get_by_role("link", name="Stop keeping it").click()
    page.get_by_role("button", name="Let go of 3 turns").click()
    expect(page.locator("main")).to_contain_text("3 turns no longer kept.")
    assert AgentCallRecord.objects.count() == 0


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without"])
def test_a_new_agent_is_named_written_and_whispered_to(site: Site, owner: User, script: bool) -> None:  # VW-7 HA-12
    page = site.open("/agents", owner, script=script)
    page.get_by_role("link", name="New agent").click()
    page.get_by_label("Name").fill("Duke")
    page.get_by_role("button", name="Make it").click()
    page.get_by_label("Strategy").fill("Be loose.")
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_role("heading", level=2)).to_have_text("v1")
    assert AgentVersion.objects.get().strategy == "Be loose."
    page.get_by_role("link", name="Whispers").click()
    page.get_by_label("Whisper").fill("Watch the river.")
    page.get_by_role("button", name="Whisper").click()
    expect(page.locator("main")).to_contain_text("Watch the river.")


PAGES = ["/agents", "/agents/new", "/agents/rocky", "/agents/rocky/kept", HAND, "/agents/rocky/versions"]
PAGES += ["/agents/rocky/versions/rocky-v2", "/agents/rocky/versions/new", "/agents/rocky/whispers"]
PAGES += [HAND.replace("hand?", "unkeep?")]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("narrow", [False, True], ids=["wide", "narrow"])
def test_every_page_is_accessible_and_fits(site: Site, owner: User, story: None, narrow: bool, dark: bool) -> None:
    # VW-7
    page = site.open("/", owner, narrow=narrow, dark=dark, policy=False)
    for path in PAGES:
        page.goto(site.url + path)
        assert_accessible(page)
        assert_no_sideways_scroll(page)
