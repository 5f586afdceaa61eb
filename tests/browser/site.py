"""The site under test, pages opened on it by a user, and what must hold of every page."""

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


def session_of(user: User, url: str) -> Any:
    """The cookie of a session of this user at `url`, without the form."""
    client = Client()
    client.force_login(user)
    return [{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": url}]


class Site:
    """`said`: what the pages said on their consoles; a test whose page is meant to fail empties it."""

    def __init__(self, browser: Browser, url: str) -> None:
        self.url = url
        self.said: list[str] = []
        self._browser = browser
        self._contexts: list[BrowserContext] = []

    def open(
        self,
        path: str,
        user: User | None = None,
        *,
        narrow: bool = False,
        script: bool = True,
        dark: bool = False,
        policy: bool = True,
        expect: int = 200,
    ) -> Page:
        """A page in a browser of its own. `policy` False lets a tool run its script in the page (axe needs it)."""
        context = self._browser.new_context(
            viewport=NARROW if narrow else WIDE,  # type: ignore[arg-type]
            java_script_enabled=script,
            color_scheme="dark" if dark else "light",
            permissions=["clipboard-read", "clipboard-write"],
            bypass_csp=not policy,
        )
        context.set_default_timeout(15_000)
        self._contexts.append(context)
        if user is not None:
            context.add_cookies(session_of(user, self.url))
        page = context.new_page()
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        answer = page.goto(self.url + path)
        assert answer is not None
        assert answer.status == expect, f"{path}: {answer.status}"
        if expect >= 400:
            self.said.clear()  # the browser itself remarks on the status
        return page

    def _hear(self, message: ConsoleMessage) -> None:
        self.said.append(f"{message.type}: {message.text}")

    def close(self) -> None:
        for context in self._contexts:
            context.close()


def assert_accessible(page: Page) -> None:
    """No rule of axe is broken on the page as it stands."""
    results = Axe().run(page)
    assert results.violations_count == 0, results.generate_report()


def assert_no_sideways_scroll(page: Page) -> None:
    wide, room = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide <= room, f"{page.url} is {wide} px wide in {room} px"
