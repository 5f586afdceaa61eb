"""A real Chromium before the real site: a server of the test's own, pages that may say nothing on their console."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright

# Playwright's own event loop runs in this thread, and Django's ORM then takes it for async code.
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")

FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
Visit = Callable[..., Page]


def chromium() -> str:
    named = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    if not Path(named).exists():
        pytest.skip("no Chromium here (CHROMIUM names one)")
    return named


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = chromium()
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield running
        running.close()


@pytest.fixture
def operator(transactional_db: None) -> User:
    return User.objects.create_user("operator", password="only for tests", is_staff=True)


@pytest.fixture
def owner(transactional_db: None) -> User:
    return User.objects.create_user("ada", password="only for tests")


def signed_in(user: User, url: str) -> list[dict[str, str]]:
    """The cookie of a session of this user at the site `url`, without the form."""
    client = Client()
    client.force_login(user)
    return [{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": url}]


class Site:
    """The site under test, and the pages opened on it. What a page said on its console is in `said`."""

    def __init__(self, browser: Browser, url: str) -> None:
        self.browser, self.url = browser, url
        self.said: list[str] = []
        self._contexts: list[BrowserContext] = []

    def open(
        self,
        path: str,
        user: User | None = None,
        *,
        narrow: bool = False,
        script: bool = True,
        dark: bool = False,
        expect: int = 200,
    ) -> Page:
        # bypass_csp is for axe alone: violations are still reported on the console by the report of the page itself.
        context = self.browser.new_context(
            viewport=NARROW if narrow else WIDE,
            java_script_enabled=script,
            color_scheme="dark" if dark else "light",
            permissions=["clipboard-read", "clipboard-write"],
        )
        self._contexts.append(context)
        if user is not None:
            context.add_cookies(signed_in(user, self.url))  # type: ignore[arg-type]
        page = context.new_page()
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        answer = page.goto(self.url + path)
        assert answer is not None
        assert answer.status == expect, f"{path}: {answer.status}"
        return page

    def _hear(self, message: ConsoleMessage) -> None:
        self.said.append(f"{message.type}: {message.text}")

    def close(self) -> None:
        for context in self._contexts:
            context.close()


@pytest.fixture
def site(browser: Browser, live_server: "object") -> Iterator[Site]:
    opened = Site(browser, live_server.url)  # type: ignore[attr-defined]
    yield opened
    opened.close()


def assert_accessible(page: Page) -> None:
    """No rule of axe is broken on the page as it stands."""
    results = Axe().run(page)
    assert results.violations_count == 0, results.generate_report()


def assert_no_sideways_scroll(page: Page) -> None:
    wide, room = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide <= room, f"{page.url} is {wide} px wide in {room} px"
