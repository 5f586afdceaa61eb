"""A real Chromium before the real site: a server of the test's own, pages that may say nothing on their console."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, sync_playwright

from tests.browser.chromium import FLAGS, path_of_chromium
from tests.browser.site import Site

# Playwright's own event loop runs in this thread, and Django's ORM then takes it for async code.
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    try:
        path = path_of_chromium()
    except FileNotFoundError as error:
        pytest.skip(str(error))
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


@pytest.fixture
def site(browser: Browser, live_server: Any) -> Iterator[Site]:
    opened = Site(browser, live_server.url)
    yield opened
    opened.close()
    assert not opened.said, opened.said  # SF-2: neither a fault nor a refusal of the policy
