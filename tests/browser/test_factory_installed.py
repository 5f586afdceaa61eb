"""The owner's flow on the installed site: `manage.py up`, the public command, a browser, with script and without."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.site.test_up import ROOT, Up

TASK = "Write a command `slugify TEXT`.\n\nIt keeps letters of every script.\n"


@dataclass
class Installed:
    url: str
    password: str
    run: int
    attempts: list[dict[str, Any]]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """The local site, and a prompt-file request that the public command has carried through `build` for ada."""
    folder = tmp_path_factory.mktemp("installed")
    ready = folder / "ready.json"
    up = Up(folder / "up.out", folder / "state", "--no-play", "--port", "0", "--ready-file", str(ready))
    try:
        up.wait_for(ready.exists)
        facts = json.loads(ready.read_text())
        (folder / "task.md").write_text(TASK)
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
        done = subprocess.run(
            [sys.executable, ROOT / "manage.py", "factory", "run", "--file", "task.md", "--owner", "ada", "--json"],
            cwd=folder,
            env={**kept, "AGENTLAB_STATE_DIR": str(folder / "state")},
            capture_output=True,
            text=True,
            check=True,
        )
        report = json.loads(done.stdout.splitlines()[-1])
        yield Installed(facts["url"].rstrip("/"), facts["users"]["ada"], report["run"], report["attempts"])
    finally:
        up.end()


@pytest.fixture(params=[True, False], ids=["script", "no script"])
def page(request: pytest.FixtureRequest, browser: Browser, installed: Installed) -> Iterator[Page]:
    context = browser.new_context(java_script_enabled=request.param)
    opened = context.new_page()
    opened.goto(f"{installed.url}/factory")
    opened.get_by_label("Username").fill("ada")
    opened.get_by_label("Password").fill(installed.password)
    opened.get_by_role("button", name="Sign in").click()
    yield opened
    context.close()


def raw(page: Page, place: str) -> str:
    return page.request.get(f"{page.url.split('/factory')[0]}{place}").text()


def test_the_owner_sees_what_each_attempt_really_had(page: Page, installed: Installed) -> None:  # AI-1 AI-2 AI-4 AI-6
    page.get_by_role("link", name=str(installed.run), exact=True).click()
    base = f"/factory/runs/{installed.run}/attempts"
    facts = [json.loads(raw(page, f"/api/collector/attempts/{attempt['id']}")) for attempt in installed.attempts]

    # 1 The full task, without opening the messages. 2 The prompt file: inline first, history later.
    page.goto(f"{installed.url}{base}/1")
    expect(page.locator("#task")).to_be_visible()
    expect(page.locator("#task")).to_contain_text("It keeps letters of every script.")
    page.locator("#dispatch-title").click()
    expect(page.locator("#dispatch ol")).to_contain_text("task.md")
    expect(page.locator("#dispatch ol")).to_contain_text("Included in message")
    page.goto(f"{installed.url}{base}/2")
    page.locator("#inherited-title").click()
    expect(page.locator("#inherited ol")).to_contain_text("task.md")
    expect(page.locator("#inherited ol")).to_contain_text("In the session's history")

    # 3 The previous phase's envelope is in the message of the turn that has it.
    page.locator("#dispatch-title").click()
    expect(page.locator("#dispatch ol")).to_contain_text("result of an earlier phase")
    [envelope] = [one for one in facts[1]["inputs"] if one["sourceKind"] == "previous_envelope"]
    message = raw(page, f"{base}/2/user/raw")
    stored = raw(page, f"/api/collector/inputs/{envelope['inputId']}")
    assert (envelope["deliveryMode"], stored in message) == ("inline", True)

    # 4 Text snapshots open and agree with their hash.
    [prompt_file] = facts[0]["inputs"]
    assert raw(page, f"/api/collector/inputs/{prompt_file['inputId']}") == TASK
    assert prompt_file["sha256"] == hashlib.sha256(TASK.encode()).hexdigest()
    page.goto(f"{installed.url}/factory/inputs/{prompt_file['inputId']}")
    expect(page.locator("main")).to_contain_text(prompt_file["sha256"])

    # 5 The exact messages are those of the trace.
    assert TASK in raw(page, f"{base}/1/user/raw")
    assert len(raw(page, f"{base}/1/user/raw").encode()) == facts[0]["userPromptBytes"]
    assert len(raw(page, f"{base}/1/system/raw").encode()) == facts[0]["systemPromptBytes"]

    # 6 A later turn links what it inherits and keeps the task.
    page.goto(f"{installed.url}{base}/3")
    expect(page.locator("#task")).to_contain_text("It keeps letters of every script.")
    page.locator("#inherited-title").click()
    page.locator("#inherited").get_by_role("link", name="Attempt 2, build").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Attempt 2, build")

    # 7 Nothing that merely lay in a folder is called an input.
    assert {one["label"] for attempt in facts for one in attempt["inputs"]} == {"task.md", "plan", "build"}


def test_the_first_day_has_a_run_and_an_imported_session_to_look_at(page: Page, installed: Installed) -> None:  # IM-1
    expect(page.locator("tr", has_text="imported")).to_have_count(1)
    expect(page.locator("tr", has_text="build")).to_have_count(2)  # the site's own, and the one of this test


def test_the_list_leads_to_the_collectors_facts_of_an_older_kind_too(page: Page, installed: Installed) -> None:  # AI-2
    page.locator("tr", has_text="imported").get_by_role("link").click()
    page.goto(page.url + "/attempts/1")
    expect(page.locator("main")).to_contain_text("Attachment accounting was not recorded for this attempt.")
