"""Somebody at a browser of their own: what they do, in words, and what must hold of every page they pass through."""

import re
from urllib.parse import urljoin, urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Request, Response, expect

from tests.browser.site import WIDE, assert_accessible, assert_no_sideways_scroll

PATIENCE = 60_000  # milliseconds, on a machine that has other things to do
# What a page leads to: links, parts that load on opening, pictures; and where its forms are sent.
ADDRESSES = """() => Array.from(document.querySelectorAll("main [href], main [hx-get], main [src]"))
    .flatMap((one) => ["href", "hx-get", "src"].map((name) => one.getAttribute(name)))
    .filter((address) => address)"""
FORMS = """() => Array.from(document.querySelectorAll("main form[method=post]"))
    .map((form) => form.getAttribute("action") || location.href)"""


class Person:
    """Their `page` says nothing on its console, nothing that it asks for fails, axe has nothing against it, and it does
    not scroll sideways. `seen` are the addresses that it led to, `forms` those that its forms are sent to."""

    def __init__(self, browser: Browser, url: str, name: str) -> None:
        self.name, self.url = name, url
        self.seen: set[str] = set()
        self.forms: set[str] = set()
        self._complaints: list[str] = []
        self._context = browser.new_context(viewport=WIDE)  # type: ignore[arg-type]
        self._context.set_default_timeout(PATIENCE)
        self.page: Page = self._context.new_page()
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self._complaints.append(f"error: {error}"))
        self.page.on("requestfailed", self._failed)
        self.page.on("response", self._answered)

    def _hear(self, message: ConsoleMessage) -> None:
        self._complaints.append(f"{message.type}: {message.text}")

    def _failed(self, request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # a part that was on its way when they went to another page
            self._complaints.append(f"{request.failure}: {request.url}")

    def _answered(self, response: Response) -> None:
        if response.status >= 400:
            self._complaints.append(f"{response.status}: {response.url}")

    def leaves(self) -> None:
        self._context.close()

    # What they do ---------------------------------------------------------------------------------------------------

    def signs_in(self, password: str) -> None:
        self.opens("/")
        self.follows("Sign in", within=self.page.get_by_role("main"))
        self.page.get_by_label("Username").fill(self.name)
        self.page.get_by_label("Password").fill(password)
        self.presses("Sign in")
        expect(self.page.get_by_role("banner")).to_contain_text(self.name)

    def signs_out(self) -> None:
        self.presses("Sign out", within=self.page.get_by_role("banner"))
        expect(self.page.get_by_role("banner").get_by_role("link", name="Sign in")).to_be_visible()

    def opens(self, path: str) -> None:
        self.page.goto(self.url + path)
        self.looks_around()

    def goes_to(self, room: str) -> None:
        self.follows(room, within=self.page.get_by_role("navigation", name="Main"))

    def follows(self, link: str | re.Pattern[str], *, within: Locator | None = None) -> None:
        exact = isinstance(link, str)
        self._goes((within or self.main).get_by_role("link", name=link, exact=exact))

    def presses(self, button: str | re.Pattern[str], *, within: Locator | None = None) -> None:
        """A button that leads to a page."""
        exact = isinstance(button, str)
        self._goes((within or self.main).get_by_role("button", name=button, exact=exact))

    def _goes(self, where: Locator) -> None:
        with self.page.expect_event("load"):
            where.click()
        self.looks_around()

    def looks_around(self) -> None:
        """At the page as it stands."""
        expect(self.page.get_by_role("heading", level=1)).to_be_visible()
        assert_no_sideways_scroll(self.page)
        assert_accessible(self.page)
        assert not self._complaints, f"{self.name} at {self.page.url}: {self._complaints}"
        self.seen |= {self._path(address) for address in self.page.evaluate(ADDRESSES)} - {""}
        self.forms |= {self._path(address) for address in self.page.evaluate(FORMS)} - {""}

    # What they see --------------------------------------------------------------------------------------------------

    @property
    def main(self) -> Locator:
        return self.page.get_by_role("main")

    def reads(self, *words: str | re.Pattern[str], where: Locator | None = None) -> None:
        for some in words:
            expect(where or self.main).to_contain_text(some)

    def reads_nothing_of(self, *words: str | re.Pattern[str], where: Locator | None = None) -> None:
        for some in words:
            expect(where or self.main).not_to_contain_text(some)

    def row(self, words: str) -> Locator:
        return self.main.get_by_role("row").filter(has_text=words)

    def links(self) -> list[str]:
        """The words of the first link of each row."""
        rows = self.main.get_by_role("row").filter(has=self.page.get_by_role("link")).all()
        return [row.get_by_role("link").first.inner_text() for row in rows]

    # What they get --------------------------------------------------------------------------------------------------

    def status_of(self, path: str) -> int:
        return self._context.request.get(self.url + path, max_redirects=0).status

    def status_of_sending(self, path: str) -> int:
        """An empty form, with this browser's own token."""
        token = next(one["value"] for one in self._context.cookies() if one["name"] == "csrftoken")
        answer = self._context.request.post(self.url + path, headers={"x-csrftoken": token}, max_redirects=0)
        return answer.status

    def text_of(self, path: str) -> str:
        answer = self._context.request.get(self.url + path, max_redirects=0)
        assert answer.status == 200, f"{path}: {answer.status}"
        return answer.text()

    def _path(self, address: str) -> str:
        """Path and query of an address of this site; empty for any other."""
        full = urlsplit(urljoin(self.page.url, address))
        here = f"{full.scheme}://{full.netloc}" == self.url
        return f"{full.path}{'?' if full.query else ''}{full.query}" if here else ""
