"""Every page of the site in a real browser: accessible, within its window, and with nothing to say on the console."""

from pathlib import Path
from typing import Any

import pytest
import redis
from django.contrib.auth.models import User
from django.test import Client

from tests.browser.site import Site, assert_accessible, assert_no_sideways_scroll
from tests.site import world
from tests.site.routes import ROUTES, Ask
from tests.site.test_every_route import ask, url_of


def pages(client: Client, ids: world.World, person: str) -> list[str]:
    """The addresses that answer this person with a page of their own."""
    asked = [one for route in ROUTES.values() for one in route if one.method == "get" and not one.headers]
    return [url_of(one, ids) for one in asked if _is_page(client, one, ids, person)]


def _is_page(client: Client, one: Ask, ids: world.World, person: str) -> bool:
    if getattr(one, person) != 200:
        return False
    response = ask(client, one, ids)
    return response["Content-Type"].startswith("text/html") and b"<!doctype html>" in response.getvalue()[:100].lower()


@pytest.mark.parametrize(
    ("person", "narrow", "dark"),
    [("nobody", True, False), ("owner", True, True), ("operator", False, False)],
    ids=["nobody, narrow", "owner, narrow and dark", "operator, wide"],
)
def test_every_page_can_be_used_by_everybody(
    site: Site,
    owner: User,
    operator: User,
    capture_redis: redis.Redis,
    settings: Any,
    tmp_path: Path,
    person: str,
    narrow: bool,
    dark: bool,
) -> None:  # VW-10 AI-7
    settings.FACTORY_SNAPSHOT_ROOT = tmp_path
    ids = world.build(owner, tmp_path)
    user = {"nobody": None, "owner": owner, "operator": operator}[person]
    client = Client()
    if user is not None:
        client.force_login(user)
    page = site.open("/", user, narrow=narrow, dark=dark, policy=False)
    for path in pages(client, ids, person):
        page.goto(site.url + path)
        assert_no_sideways_scroll(page)
        assert_accessible(page)


@pytest.mark.parametrize("person", ["owner", "operator"])
def test_no_page_breaks_the_policy(
    site: Site, owner: User, operator: User, capture_redis: redis.Redis, settings: Any, tmp_path: Path, person: str
) -> None:  # SF-2
    settings.FACTORY_SNAPSHOT_ROOT = tmp_path
    ids = world.build(owner, tmp_path)
    user = {"owner": owner, "operator": operator}[person]
    client = Client()
    client.force_login(user)
    page = site.open("/", user)
    for path in [*pages(client, ids, person), *(["/admin/"] if person == "operator" else [])]:
        page.goto(site.url + path)
        assert not site.said, (path, site.said)
