"""An owner in a browser: from the first version to a kept hand, with script and without."""

from datetime import timedelta

import pytest
import redis
from django.contrib.auth.models import User
from playwright.sync_api import expect

from agentlab.agents.charge import Charge
from agentlab.agents.ledger_rows import write
from agentlab.agents.models import Agent, AgentDeployment, AgentVersion, InferenceCharge, Whisper
from agentlab.agents.services import Draft, publish, whisper
from agentlab.agents.spool import Batch
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
def test_from_the_cards_to_a_kept_hand_and_back(site: Site, owner: User, story: None, script: bool) -> None:
    # VW-7 VW-10
    page = site.open("/agents", owner, script=script)
    page.get_by_role("link", name="Rocky", exact=True).click()
    page.get_by_role("link", name="T-4:184", exact=True).click()
    expect(page.locator("article")).to_have_count(4)  # three decisions and a fallback
    page.get_by_role("button", name="Keep this hand").click()
    expect(page.locator("main")).to_contain_text("Rocky: kept 3 turns")
    assert AgentCallRecord.objects.count() == 3
    page.get_by_role("link", name="Kept", exact=True).click()
    page.get_by_role("link", name="T-4:184", exact=True).click()
    page.get_by_role("link", name="Delete them").click()
    page.get_by_role("button", name="Delete 3 kept turns").click()
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
    page.get_by_role("link", name="Withdraw").click()
    page.get_by_role("button", name="Withdraw it").click()
    expect(page.locator("main")).to_contain_text("Withdrawn: Duke is not told it again.")
    expect(page.get_by_text("WITHDRAWN", exact=True)).to_be_visible()


def test_a_whisper_is_seen_to_be_heard_without_a_reload_and_leads_to_the_turn(
    site: Site, owner: User, story: None
) -> None:  # HA-12 VW-10
    said = Whisper.objects.get()
    rocky = Agent.objects.get()
    AgentDeployment.objects.create(agent=rocky, version=rocky.versions.first(), table_id="T-4", model="house")
    page = site.open("/agents/rocky/whispers", owner)
    expect(page.get_by_text("WAITING", exact=True)).to_be_visible()
    row = InferenceCharge.objects.filter(agent_id="rocky", is_fallback=False).earliest("action_index")
    charge = Charge("rocky", "T-4", 184, row.action_index, row.played_at, heard=(said.pk,))
    write(Batch({charge.key: charge}))
    expect(page.get_by_text("HEARD", exact=True)).to_be_visible()
    page.get_by_role("link", name="hand T-4:184").click()
    expect(page.locator(":target")).to_have_attribute("id", f"t{row.action_index}-rocky")


def test_keys_lead_from_hand_to_hand_of_this_agent(site: Site, owner: User, story: None) -> None:  # VW-7 VW-10
    newest = InferenceCharge.objects.latest("played_at").played_at
    for minutes, hand in ((1, 190), (2, 197)):
        InferenceCharge.objects.create(
            agent_id="rocky",
            table_id="T-4",
            hand_number=hand,
            action_index=0,
            played_at=newest + timedelta(minutes=minutes),
        )
    page = site.open(HAND, owner)
    for key, hand in (("n", 190), ("n", 197), ("n", 197), ("p", 190), ("p", 184)):
        page.keyboard.press(key)
        expect(page.get_by_role("heading", level=2).first).to_contain_text(f"T-4:{hand}")


PAGES = ["/", "/agents", "/agents/new", "/agents/rocky", "/agents/rocky/kept", HAND, "/agents/rocky/versions"]
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
