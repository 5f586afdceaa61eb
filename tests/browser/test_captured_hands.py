"""An operator reads captured hands in a browser: with script, without, by keys, and when something goes wrong."""

import re

import pytest
import redis
from django.contrib.auth.models import User
from playwright.sync_api import Route, expect

from agentlab.agents.models import Agent
from capture.models import AgentCallRecord
from capture.prompt import Prompt
from tests.browser.site import Site, assert_accessible, assert_no_sideways_scroll
from tests.capture import hands

LIST, HAND = "/agent-capture", "/agent-capture?table=T-4&hand=184"
LONG = "Maximilian the Unbeatable of the Long Names Society, Third Chapter, Second Table"


@pytest.fixture
def story(capture_redis: redis.Redis, operator: User) -> None:
    for agent in ("rocky", "bluffy", "nit"):
        Agent.objects.create(id=agent, name=agent.capitalize(), owner=operator)
    hands.store(capture_redis, hands.story())


def test_from_the_list_to_the_prompt_and_to_keeping(site: Site, operator: User, story: None) -> None:  # VW-1 VW-2 VW-5
    page = site.open(LIST, operator)
    page.get_by_role("link", name="T-4:184").click()
    rocky = page.locator("#t3-rocky")
    expect(rocky.get_by_role("heading", level=2)).to_contain_text("raises to 200")
    expect(rocky).to_contain_text("500")
    rocky.get_by_text("Prompt", exact=True).click()
    expect(rocky).to_contain_text("Street: flop. Board: 7h Td 2c.")
    rocky.get_by_text("The part that repeats").click()
    expect(rocky).to_contain_text("You are a no-limit hold'em player")
    page.get_by_role("button", name="Keep this hand for Rocky").click()
    expect(page.locator("#keep")).to_contain_text("Rocky: kept 3 turns")
    expect(page.locator("#status")).to_contain_text("Rocky: kept 3 turns")
    for _ in ("answered", "visited again"):
        expect(page.locator("#hand-facts")).to_contain_text("kept 3 of 10 turns")
        expect(page.locator("#keep")).to_contain_text("3 turns of Rocky")
        page.reload()
    assert AgentCallRecord.objects.filter(agent_id="rocky").count() == 3


def test_the_list_tells_which_hands_matter_and_the_hand_which_turns(
    site: Site, operator: User, story: None, capture_redis: redis.Redis
) -> None:  # VW-1 VW-2 VW-9
    hands.store(capture_redis, [hands.captured("rocky", 1)], hand=183, at=hands.days_ago(0.1))
    page = site.open(LIST, operator)
    marked = page.locator("tbody tr", has_text="T-4:184")
    for mark in ("1 FALLBACK", "1 CLAMPED", "1 LOST"):
        expect(marked).to_contain_text(mark)
    expect(page.locator("tbody tr", has_text="T-4:183").locator(".badge")).to_have_count(0)
    marked.get_by_role("link", name="T-4:184").click()
    expect(page.locator("#t3-rocky .badge")).to_have_text(["CLAMPED"])
    expect(page.locator("#t5-bluffy .badge")).to_have_text(["RECONNECTED?"])
    expect(page.locator("#t5-bluffy")).to_contain_text("Its recent hands and its notes are empty too")
    expect(page.locator(".jump a.hot")).to_have_text([re.compile(number) for number in ("3", "4", "5", "6")])


@pytest.mark.parametrize("narrow", [False, True])
def test_a_mark_in_the_list_lands_on_its_turn_at_once(
    site: Site, operator: User, capture_redis: redis.Redis, narrow: bool
) -> None:
    # VW-1, VW-10
    clamped = hands.captured("rocky", 30, change="clamp", asked_amount=500)
    hands.store(capture_redis, [*(hands.captured("nit", index) for index in range(30)), clamped])
    page = site.open(LIST, operator, narrow=narrow)
    page.get_by_role("link", name="1 CLAMPED").click()
    page.wait_for_url("**#t30-rocky")
    expect(page.locator("#t30-rocky")).to_be_in_viewport()
    assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"  # no rolling


def test_many_players_do_not_push_the_turns_away(site: Site, operator: User, capture_redis: redis.Redis) -> None:
    # VW-5
    players = [f"player-{number}" for number in range(9)]
    hands.store(capture_redis, [hands.captured(name, index) for index, name in enumerate(players)])
    page = site.open(HAND, operator, narrow=True)
    expect(page.locator("#t0-player-0 h2")).to_be_in_viewport()
    page.get_by_text("one of them").click()
    page.get_by_role("button", name="Keep this hand for player-4").click()
    expect(page.locator("#keep")).to_contain_text("player-4: kept 1 turn")
    page.get_by_role("button", name="Keep this hand for all 8").click()
    expect(page.locator("#keep")).to_contain_text("player-8: kept 1 turn")
    page.get_by_role("button", name="Keep this hand for").nth(0).wait_for(state="detached")


def test_an_agents_colour_is_the_same_on_every_hand(
    site: Site, operator: User, story: None, capture_redis: redis.Redis
) -> None:  # VW-2
    hands.store(capture_redis, [hands.captured("rocky", 1)], hand=185)
    hands.store(capture_redis, [hands.captured("nit", 1), hands.captured("rocky", 2)], hand=186)
    edges = "element => getComputedStyle(element).borderInlineStartColor"
    colours = set()
    for number, turn in ((184, "#t3-rocky"), (185, "#t1-rocky"), (186, "#t2-rocky")):
        page = site.open(f"/agent-capture?table=T-4&hand={number}", operator)
        colours.add(page.locator(turn).evaluate(edges))
    assert len(colours) == 1
    assert page.locator("#t1-nit").evaluate(edges) not in colours


def test_a_control_shows_where_it_does_something(site: Site, operator: User, story: None) -> None:
    page = site.open(LIST, operator)
    wrap, keys = page.get_by_label("Wrap long lines"), page.get_by_role("button", name="Keys")
    expect(wrap).to_be_hidden()
    keys.click()  # a list has a search field to go to, and no turns to walk
    expect(page.get_by_role("dialog")).to_contain_text("to the search field")
    expect(page.get_by_text("next, previous turn")).to_be_hidden()
    page.goto(site.url + HAND)
    for control in (wrap, keys):
        expect(control).to_be_visible()
    keys.click()
    expect(page.get_by_text("next, previous turn")).to_be_visible()
    page.goto(site.url + "/agents")
    for control in (wrap, keys):
        expect(control).to_be_hidden()


def test_all_of_it_without_script(site: Site, operator: User, story: None) -> None:  # VW-10
    page = site.open(LIST, operator, script=False)
    page.get_by_role("link", name="T-4:184").click()
    rocky = page.locator("#t3-rocky")
    rocky.get_by_text("Prompt", exact=True).click()
    rocky.get_by_role("link", name="Open the prompt on its own page").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Prompt, turn 3 of Rocky")
    expect(page.locator("main")).to_contain_text("Street: flop. Board: 7h Td 2c.")
    page.get_by_role("link", name="Hand T-4:184").click()
    assert page.url.endswith("#t3-rocky")
    page.get_by_role("button", name="Keep this hand for Rocky").click()
    expect(page.locator("main")).to_contain_text("Rocky: kept 3 turns")
    page.get_by_placeholder("find in this hand").fill("strategy")
    page.get_by_role("button", name="Find").click()
    expect(page.locator("#t3-rocky mark")).to_have_count(1)
    page.locator("#theme").select_option("dark")
    page.get_by_role("button", name="Set").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.locator("[data-copy-raw]:visible, [data-keys-button]:visible").count() == 0


def test_copy_takes_the_stored_text_not_the_pages(
    site: Site, operator: User, capture_redis: redis.Redis
) -> None:  # CAP-9
    said = "\nfirst\r\nsecond\u202e end\t🂡"
    hands.store(capture_redis, [hands.captured("rocky", 1, response=said)])
    page = site.open(HAND, operator)
    page.get_by_role("button", name="Copy Response").click()
    expect(page.locator("#status")).to_have_text(f"Copied {len(said.encode())} B")
    assert page.evaluate("navigator.clipboard.readText()") == said


def test_what_no_clipboard_can_hold_is_said(site: Site, operator: User, capture_redis: redis.Redis) -> None:  # CAP-9
    hands.store(capture_redis, [hands.captured("rocky", 1, response="lone \ud83e")])
    page = site.open(HAND, operator)
    page.get_by_role("button", name="Copy Response").click()
    expect(page.locator("#status")).to_contain_text("not valid UTF-8")


def test_a_hands_id_and_a_turns_link_are_one_click_away(site: Site, operator: User, story: None) -> None:  # VW-1
    page = site.open(HAND, operator)
    page.get_by_role("button", name="Copy T-4:184").click()
    expect(page.locator("#status")).to_have_text("Copied T-4:184")
    assert page.evaluate("navigator.clipboard.readText()") == "T-4:184"
    page.get_by_role("link", name="Link to turn 3 of Rocky").click()
    expect(page.locator("#status")).to_contain_text("#t3-rocky")
    assert page.evaluate("navigator.clipboard.readText()") == f"{site.url}{HAND}#t3-rocky"


def test_a_long_response_loads_when_it_comes_into_view(
    site: Site, operator: User, capture_redis: redis.Redis
) -> None:  # VW-10
    said = "The river changes nothing. " * 300
    hands.store(capture_redis, [hands.captured("rocky", index, response=f"{said} {index}.") for index in range(9)])
    page = site.open(HAND, operator)
    expect(page.locator("#t8-rocky-said")).not_to_contain_text("8.")
    page.locator("#t8-rocky").scroll_into_view_if_needed()
    expect(page.locator("#t8-rocky-said")).to_contain_text("The river changes nothing.")
    plain = site.open(HAND, operator, script=False)
    plain.locator("#t8-rocky").get_by_role("link", name="Open Response").click()
    expect(plain.locator("main")).to_contain_text("The river changes nothing.")


def test_an_answer_that_comes_late_stands_under_its_own_turn(
    site: Site, operator: User, capture_redis: redis.Redis
) -> None:  # VW-10
    told = {"rocky": "what rocky was told", "nit": "what nit was told"}
    played = [hands.captured(agent, index, prompt=Prompt("e", told[agent])) for index, agent in enumerate(told, 1)]
    hands.store(capture_redis, played)
    page = site.open(HAND, operator)
    late: list[Route] = []
    page.route("**/part?*agent=rocky*", lambda route: late.append(route))
    rocky, nit = page.locator("#t1-rocky"), page.locator("#t2-nit")
    with page.expect_request("**/part?*agent=rocky*"):
        rocky.get_by_text("Prompt", exact=True).click()
    nit.get_by_text("Prompt", exact=True).click()
    expect(nit).to_contain_text(told["nit"])
    late[0].continue_()
    expect(rocky).to_contain_text(told["rocky"])
    expect(nit).to_contain_text(told["nit"])
    expect(nit).not_to_contain_text(told["rocky"])


def test_a_link_to_a_closed_part_opens_and_loads_it(site: Site, operator: User, story: None) -> None:  # VW-10
    page = site.open(f"{HAND}#t3-rocky-prompt", operator)
    expect(page.locator("#t3-rocky")).to_contain_text("Street: flop. Board: 7h Td 2c.")
    expect(page.locator("#t2-bluffy")).not_to_contain_text("Street: flop. Board: 7h Td 2c.")


def test_the_keys_walk_the_turns_and_can_be_switched_off(site: Site, operator: User, story: None) -> None:
    page = site.open(HAND, operator)
    page.keyboard.press("j")
    expect(page.locator("#t1-nit")).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    expect(page.locator("#t2-bluffy")).to_be_focused()
    page.keyboard.press("o")
    expect(page.locator("#t2-bluffy")).to_contain_text("Street: flop. Board: 7h Td 2c.")
    page.keyboard.press("/")
    expect(page.get_by_placeholder("find in this hand")).to_be_focused()
    page.keyboard.type("j?")
    expect(page.get_by_placeholder("find in this hand")).to_have_value("j?")
    page.locator("#t3-rocky").focus()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.get_by_label("Use these keys").uncheck()
    page.get_by_role("button", name="Close").click()
    page.locator("#t3-rocky").focus()
    page.keyboard.press("j")
    expect(page.locator("#t3-rocky")).to_be_focused()


def test_every_prompt_opens_at_once(site: Site, operator: User, story: None) -> None:
    page = site.open(HAND, operator)
    page.get_by_role("button", name="All prompts").click()
    for anchor in ("t1-nit", "t3-rocky", "t11-nit"):
        expect(page.locator(f"#{anchor}")).to_contain_text("Street: flop. Board: 7h Td 2c.")


def test_new_hands_are_told_and_never_move_what_is_read(
    site: Site, operator: User, story: None, capture_redis: redis.Redis
) -> None:  # VW-1
    page = site.open(LIST, operator)
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(1)
    hands.store(capture_redis, [hands.captured("rocky", 1)], hand=185, at=hands.days_ago(0))
    expect(page.get_by_role("link", name="1 new hand · show")).to_be_visible(timeout=15_000)
    expect(rows).to_have_count(1)
    page.get_by_role("link", name="1 new hand · show").click()
    expect(rows).to_have_count(2)


def test_updates_can_be_paused(site: Site, operator: User, story: None) -> None:  # VW-1
    page = site.open(LIST, operator)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/news" in request.url else None)
    page.get_by_label("Pause updates").check()
    with page.expect_event("console", predicate=lambda message: message.text == "two polls held back"):
        # Counted in the page, so that nothing here sleeps.
        page.evaluate(
            """() => { let held = 0; document.addEventListener("htmx:beforeRequest", (event) => {
                 if (event.target.matches("[data-live]") && event.defaultPrevented && ++held === 2)
                   console.log("two polls held back"); }); }"""
        )
    site.said.clear()
    assert asked == []


def test_a_part_that_has_gone_says_so_in_its_place(
    site: Site, operator: User, story: None, capture_redis: redis.Redis
) -> None:
    # VW-6
    page = site.open(HAND, operator)
    capture_redis.flushdb()
    page.locator("#t3-rocky").get_by_text("Prompt", exact=True).click()
    expect(page.locator("#t3-rocky-prompt")).to_contain_text("in the buffer no more")
    site.said.clear()  # the browser's own word on the 410


def test_a_server_that_went_away_is_said(site: Site, operator: User, story: None) -> None:  # VW-10
    page = site.open(HAND, operator)
    page.route("**/part*", lambda route: route.abort())
    page.locator("#t3-rocky").get_by_text("Prompt", exact=True).click()
    expect(page.locator("#status")).to_contain_text("The server does not answer.")
    site.said.clear()


def test_a_session_that_ended_leads_to_the_form(site: Site, operator: User, story: None) -> None:  # SF-1
    page = site.open(HAND, operator)
    page.context.clear_cookies()
    page.locator("#t3-rocky").get_by_text("Prompt", exact=True).click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_hostile_text_does_nothing(site: Site, operator: User, capture_redis: redis.Redis) -> None:  # SF-2
    said = "</pre><script>document.title='owned'</script><img src=http://10.0.0.1/x onerror=alert(1)> ![a](http://10.0.0.1/y)"
    hands.store(capture_redis, [hands.captured("rocky", 1, response=said)])
    page = site.open(LIST, operator)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(site.url + HAND)
    expect(page.locator("#t1-rocky-said")).to_contain_text(said)
    assert "owned" not in page.title()
    assert not [url for url in asked if not url.startswith(site.url)]


def test_a_page_leaves_no_prompt_in_the_browsers_storage(
    site: Site, operator: User, story: None, capture_redis: redis.Redis
) -> None:  # SF-2
    hands.store(capture_redis, [hands.captured("rocky", 1)], hand=185)
    page = site.open(HAND, operator)
    page.locator("#t3-rocky").get_by_text("Prompt", exact=True).click()
    expect(page.locator("#t3-rocky")).to_contain_text("Street: flop.")
    page.get_by_role("link", name="185 ›").click()
    kept = page.evaluate("JSON.stringify(sessionStorage) + JSON.stringify(localStorage)")
    assert "Street" not in kept


@pytest.mark.parametrize(("narrow", "dark"), [(False, False), (True, True)], ids=["wide and light", "narrow and dark"])
def test_every_state_of_the_page_is_accessible_and_fits(
    site: Site, operator: User, capture_redis: redis.Redis, narrow: bool, dark: bool
) -> None:  # VW-10
    Agent.objects.create(id="rocky", name=LONG, owner=operator)
    hands.store(capture_redis, hands.story())
    hands.store(capture_redis, [hands.fallback("nit", 1)], hand=182)
    hands.store(capture_redis, [hands.expired("x" * 60, 1)], hand=181, at=hands.days_ago(2))
    hands.store(capture_redis, [hands.captured("rocky", 1, response="w" * 5000)], table="t" * 120, hand=1)
    states = [LIST, HAND, f"{HAND}&q=strategy", f"{HAND}&agent=rocky", "/agent-capture?table=T-4&hand=182"]
    states += [
        "/agent-capture?table=T-4&hand=181",
        "/agent-capture?table=T-4&hand=9",
        f"/agent-capture?table={'t' * 120}&hand=1",
    ]
    part = "/agent-capture/part?table=T-4&hand=184&agent=rocky&turn=3&part="
    for path in [*states, f"{part}prompt", f"{part}knowledge"]:
        page = site.open(path, operator, narrow=narrow, dark=dark, policy=False)
        assert_no_sideways_scroll(page)
        assert_accessible(page)
        page.context.close()


def test_an_open_turn_is_accessible(site: Site, operator: User, story: None) -> None:
    page = site.open(HAND, operator, policy=False)
    page.get_by_role("button", name="All prompts").click()
    page.locator("#t3-rocky .more summary").click()
    expect(page.locator("#t3-rocky")).to_contain_text("deploymentId")
    expect(page.locator("#t11-nit")).to_contain_text("Street: flop.")
    assert_accessible(page)
    assert_no_sideways_scroll(page)


def test_a_picked_colour_holds_at_once_and_after(site: Site, operator: User) -> None:
    page = site.open(LIST, operator)
    with page.expect_response(re.compile("/theme")):
        page.locator("#theme").select_option("dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 21, 25)"
