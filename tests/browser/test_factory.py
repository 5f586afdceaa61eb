"""The factory's pages in a real browser: an owner opens a run, reads the task, previews what was given."""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Page, Route, expect

from factory.models import AgentAttempt, AgentAttemptInput, FactoryRun
from factory.providers.rehearsal import Rehearsal
from factory.resolve import resolve_request
from factory.retention import SnapshotStore
from factory.running import make_job, run_job
from factory.workflows import WORKFLOWS
from tests.browser.site import Site, assert_accessible, assert_no_sideways_scroll
from tests.conftest import SHARED_DATA
from tests.factory.conftest import make_store

TASK = "Write a command `slugify TEXT`.\n\nIt keeps letters of every script."


@pytest.fixture
def store(tmp_path: Path, settings: Any) -> SnapshotStore:
    settings.STATE_DIR = tmp_path / "state"
    store = make_store(tmp_path / "snapshots")
    settings.FACTORY_SNAPSHOT_ROOT = store.root
    return store


@pytest.fixture
def run_id(owner: User, store: SnapshotStore, tmp_path: Path) -> int:
    """What the public command makes: a prompt file through `build`, with one parse retry in each phase."""
    (tmp_path / "task.md").write_text(TASK)
    context = tmp_path / "context"
    context.mkdir()
    (context / "notes.md").write_text("Use hyphens.\n")
    (context / "link").symlink_to("/etc/passwd")
    provider = Rehearsal(frozenset({"parse"}))
    image = SHARED_DATA / "media/pillow/hopper.png"
    job = make_job(resolve_request(str(tmp_path / "task.md")), provider, context=str(context), attach=[str(image)])
    number, end = run_job(WORKFLOWS["build"], job, provider, store, owner_id=owner.pk)
    assert end.state == "succeeded"
    return number


def sections(page: Page) -> list[str]:
    return page.locator("#inputs > section h2").all_inner_texts()


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_the_owner_opens_a_run_and_reads_what_each_attempt_had(
    site: Site, owner: User, run_id: int, script: bool
) -> None:  # AI-1 AI-2 AI-4 AI-6
    page = site.open("/factory", owner, script=script)
    page.get_by_role("link", name=str(run_id), exact=True).click()
    page.goto(f"{site.url}/factory/runs/{run_id}/attempts/1")
    expect(page.locator("#task")).to_contain_text("slugify TEXT")
    expect(page.locator("#task")).to_be_visible()
    assert sections(page) == [
        *("Task instructions", "This dispatch", "Inherited context"),
        *("Files available", "Attachments delivered", "Exact model messages"),
    ]
    expect(page.get_by_text("from task.md")).to_be_visible()

    page.locator("#dispatch-title").click()
    expect(page.locator("#dispatch")).to_contain_text("Included in message")
    expect(page.locator("#files")).to_contain_text("Available by path")
    expect(page.locator("#files")).not_to_contain_text("passwd")
    expect(page.locator("#attachments")).to_contain_text("Attached to request")

    page.goto(f"{site.url}/factory/runs/{run_id}/attempts/3")
    page.locator("#inherited-title").click()
    expect(page.locator("#inherited")).to_contain_text("In the session's history")
    expect(page.locator("#inherited")).to_contain_text("cannot be listed in full")
    expect(page.locator("#task")).to_contain_text("slugify TEXT")
    page.locator("#inherited").get_by_role("link", name="Attempt 2, plan").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Attempt 2, plan")


@pytest.mark.parametrize("narrow", [False, True], ids=["wide", "narrow"])
def test_every_column_of_the_list_is_in_sight(site: Site, owner: User, run_id: int, narrow: bool) -> None:  # VW-10
    long_ago = datetime(2026, 1, 1, tzinfo=UTC)
    FactoryRun.objects.filter(pk=run_id).update(
        task="Look at every word of a request that is long enough to fill its column and go on", state="cancelled",
        provider="Claude Code session", source_format="Claude Code session", started_at=long_ago, imported_at=long_ago,
    )  # fmt: skip
    AgentAttempt.objects.filter(run=run_id).update(model="claude-opus-4-5-20251101", input_tokens=123_456_789)
    page = site.open("/factory", owner, narrow=narrow)
    box = page.locator("main .scroll")
    assert box.evaluate("box => box.scrollWidth <= box.clientWidth")
    expect(page.get_by_role("cell", name="begun")).to_be_visible()
    assert_no_sideways_scroll(page)


def test_a_text_and_an_image_are_previewed_in_place(site: Site, owner: User, run_id: int) -> None:  # AI-6
    page = site.open(f"/factory/runs/{run_id}/attempts/1", owner)
    notes = page.locator("ol.inputs > li", has_text="notes.md")
    notes.locator("summary").click()
    expect(notes.locator("pre")).to_have_text("Use hyphens.\n")
    row = AgentAttemptInput.objects.filter(attempt__run_id=run_id, label="notes.md").order_by("pk")[0]
    expect(notes).to_contain_text(row.sha256 or "")

    image = page.locator("#attachments ol.inputs > li")
    image.locator("summary").click()
    picture = image.locator("img")
    expect(picture).to_be_visible()
    page.wait_for_function("image => image.complete && image.naturalWidth === 128", arg=picture.element_handle())


def test_without_script_a_preview_is_a_page(site: Site, owner: User, run_id: int) -> None:  # AI-6 VW-10
    page = site.open(f"/factory/runs/{run_id}/attempts/1", owner, script=False)
    notes = page.locator("ol.inputs > li", has_text="notes.md")
    notes.locator("summary").click()
    notes.get_by_role("link", name="Open the preview on its own page").click()
    expect(page.locator("pre")).to_have_text("Use hyphens.\n")


def test_a_changed_copy_is_refused_in_place(site: Site, owner: User, run_id: int, store: SnapshotStore) -> None:  # AI-6
    row = AgentAttemptInput.objects.filter(attempt__run_id=run_id, label="notes.md").order_by("pk")[0]
    (store.root / row.attempt_id / str(row.seq)).write_text("Use Hyphens.\n")
    page = site.open(f"/factory/runs/{run_id}/attempts/1", owner)
    notes = page.locator("ol.inputs > li", has_text="notes.md")
    notes.locator("summary").click()
    expect(notes).to_contain_text("The stored copy no longer matches its hash.")
    expect(notes).not_to_contain_text("Use Hyphens")
    site.said.clear()  # the browser remarks on the status


def test_an_attempt_opens_beside_its_run_and_closing_returns_to_its_row(
    site: Site, owner: User, run_id: int
) -> None:  # AI-1 AI-7
    page = site.open(f"/factory/runs/{run_id}", owner)
    row = page.get_by_role("link", name="2 plan")
    row.focus()
    page.keyboard.press("Enter")
    drawer = page.get_by_role("complementary", name="Attempt")
    expect(drawer).to_contain_text("Parse correction")
    expect(drawer).to_be_focused()
    assert sections(page)[0] == "Task instructions"
    assert page.url.endswith(f"/factory/runs/{run_id}/attempts/2")
    assert_no_sideways_scroll(page)
    drawer.get_by_role("link", name="close").click()
    expect(row).to_be_focused()
    assert page.url.endswith(f"/factory/runs/{run_id}")
    assert drawer.inner_text() == ""


def test_the_attempt_that_was_asked_for_last_is_the_one_that_stays(
    site: Site, owner: User, run_id: int
) -> None:  # AI-1
    page = site.open(f"/factory/runs/{run_id}", owner)
    late: list[Route] = []
    page.route("**/attempts/1", lambda route: late.append(route))
    with page.expect_request("**/attempts/1"):
        page.get_by_role("link", name="1 plan").click()
    page.get_by_role("link", name="2 plan").click()
    drawer = page.get_by_role("complementary", name="Attempt")
    expect(drawer.get_by_role("heading", name="Attempt 2, plan")).to_be_visible()
    with suppress(PlaywrightError):  # whoever asked for it may have given up
        late[0].continue_()
    page.wait_for_load_state("networkidle")
    expect(drawer.get_by_role("heading", name="Attempt 2, plan")).to_be_visible()
    assert page.url.endswith(f"/factory/runs/{run_id}/attempts/2")
    site.said.clear()  # htmx's own word on the request that it gave up


def printed(page: Page, words: str) -> int:
    """In how many places of the page these words are on paper."""
    page.emulate_media(media="print")
    texts = page.locator("#inputs .verbatim", has_text=words)
    return sum(one.bounding_box() is not None for one in texts.all())


@pytest.mark.parametrize("opened", [False, True], ids=["as it is", "opened"])
def test_the_message_is_printed_once(site: Site, owner: User, opened: bool) -> None:  # AI-1
    row = FactoryRun.objects.create(owner=owner, workflow="imported", provider="pi", source_format="pi session")
    add = AgentAttempt.objects.create
    add(attempt_id="a" * 32, run=row, number=1, phase="turn", provider="pi", user_prompt="Mend the parser")
    add(attempt_id="b" * 32, run=row, number=2, phase="turn", provider="pi", user_prompt="Sent with", task_prompt="A")
    for number, words in ((1, "Mend the parser"), (2, "Sent with")):
        page = site.open(f"/factory/runs/{row.pk}/attempts/{number}", owner)
        if opened:
            page.locator("#messages-title").click()
            page.locator("#messages summary", has_text="User message").click()
            expect(page.locator("#exact-user .verbatim")).to_have_text(words)
        assert printed(page, words) == 1


def test_on_a_phone_the_attempt_is_a_page(site: Site, owner: User, run_id: int) -> None:  # AI-1
    page = site.open(f"/factory/runs/{run_id}", owner, narrow=True)
    page.get_by_role("link", name="2 plan").click()
    page.wait_for_url(f"**/factory/runs/{run_id}/attempts/2")
    expect(page.get_by_role("heading", level=1)).to_have_text("Attempt 2, plan")


def test_a_running_run_shows_news_without_moving_what_is_read_and_can_be_paused(
    site: Site, owner: User, run_id: int
) -> None:  # VW-10
    FactoryRun.objects.filter(pk=run_id).update(state="running")
    page = site.open(f"/factory/runs/{run_id}", owner)
    expect(page.get_by_text("RUNNING", exact=True)).to_be_visible()
    page.get_by_label("Pause updates").check()
    FactoryRun.objects.filter(pk=run_id).update(state="succeeded")
    expect(page.get_by_text("RUNNING", exact=True)).to_be_visible()
    page.get_by_label("Pause updates").uncheck()
    expect(page.locator("#live").get_by_text("SUCCEEDED")).to_be_visible()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("narrow", [False, True], ids=["wide", "narrow"])
def test_the_pages_are_accessible_and_fit(
    site: Site, owner: User, run_id: int, narrow: bool, dark: bool
) -> None:  # AI-7
    row = AgentAttemptInput.objects.filter(attempt__run_id=run_id, label="notes.md").order_by("pk")[0]
    base = f"/factory/runs/{run_id}"
    for path in ("/factory", base, f"{base}/attempts/1", f"{base}/attempts/1/tools/1", f"/factory/inputs/{row.pk}"):
        page = site.open(path, owner, narrow=narrow, dark=dark, policy=False)
        assert_no_sideways_scroll(page)
        page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
        page.wait_for_load_state("networkidle")
        assert_accessible(page)
        assert_no_sideways_scroll(page)


def opened_by_keys(page: Page, reached: Callable[[], bool]) -> bool:
    """Tab until it is reached; the whole page has fewer stops than this."""
    for _ in range(80):
        if reached():
            return True
        page.keyboard.press("Tab")
    return False


def test_everything_can_be_done_from_the_keyboard(site: Site, owner: User, run_id: int) -> None:  # AI-7
    page = site.open(f"/factory/runs/{run_id}/attempts/1", owner)
    preview = page.locator("ol.inputs > li", has_text="notes.md").locator("summary")
    assert opened_by_keys(page, lambda: preview.evaluate("it => it === document.activeElement"))
    outline = preview.evaluate("it => getComputedStyle(it).outlineStyle")
    assert outline == "solid", "the focus is visible"
    page.keyboard.press("Enter")
    expect(page.locator("ol.inputs pre")).to_have_text("Use hyphens.\n")
