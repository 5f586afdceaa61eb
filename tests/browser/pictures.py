"""A sheet of pictures of every page, for people to look at: `python -m tests.browser.pictures FOLDER`.

It starts a site of its own, lets agents play, runs a factory job and a study, then walks the links from the home page
and takes each kind of page at 1280 and 390 pixels, light and dark. `FOLDER/index.html` shows them side by side.
`--ready-file FILE` (as `manage.py up` writes it) takes a site that is running instead, as it is.
"""

import argparse
import html
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

from django.urls import Resolver404, resolve
from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.chromium import FLAGS, path_of_chromium

PROJECT = Path(__file__).resolve().parents[2]
MANAGE = [sys.executable, "manage.py"]
SIZES = {"wide": (1280, 900), "narrow": (390, 844)}
EXAMPLES = 2  # of each kind of page
OWNER = "ada"
FIRST = ("/", "/nowhere", *(f"/agent-capture?table=story&hand={number}" for number in (1, 2, 3, 9)))
OUR_ENVIRONMENT = dict(os.environ)  # before the settings for tests add theirs


@contextmanager
def own_site(state: Path) -> Iterator[dict[str, Any]]:
    """A site with something on every page; ends with the block."""
    ready = state / "ready.json"
    env = {name: value for name, value in OUR_ENVIRONMENT.items() if name != "SECRET_KEY"}
    env |= {"AGENTLAB_STATE_DIR": str(state), "MIN_TURN_MS": "0"}
    up = [*MANAGE, "up", "--port", "0", "--hands", "12", "--ready-file", str(ready)]
    site = subprocess.Popen(up, cwd=PROJECT, env=env, stdout=subprocess.DEVNULL)
    try:
        while not ready.exists():
            if site.poll() is not None:
                raise SystemExit("the site did not start; `manage.py up` says why")
            time.sleep(0.2)
        for command in (
            ["factory", "run", "--owner", OWNER, "--text", "Write a command that prints its argument as a slug."],
            ["factory", "run", "--owner", OWNER, "--text", "Say hello.", "--check", "false"],
            ["study", "run", "--owner", OWNER, "agentlab/persona/studies/first.yaml"],
            ["shell", "-c", "from tests.browser.pictures import tell_stories; tell_stories()"],
        ):
            subprocess.run([*MANAGE, *command], cwd=PROJECT, env=env, check=False, stdout=subprocess.DEVNULL)
        yield json.loads(ready.read_text())
    finally:
        site.terminate()
        site.wait(timeout=30)


def tell_stories() -> None:
    """Hands with everything that the page of a hand must tell apart. Runs inside the site's own settings."""
    from django_redis import get_redis_connection

    from tests.capture import hands

    client = get_redis_connection("capture")
    hands.store(client, hands.story(), table="story", hand=1)
    hands.store(client, [hands.fallback("nit", 1), hands.fallback("rocky", 2)], table="story", hand=2)
    hands.store(
        client, [hands.expired("nit", 1), hands.expired("rocky", 2)], table="story", hand=3, at=hands.days_ago(2)
    )


def kind_of(path: str) -> str:
    """Pages of one kind have one route, and say the same of what is asked; a part of a turn is a kind by its name."""
    where = urlsplit(path)
    try:
        route = resolve(where.path).route
    except Resolver404:
        route = where.path
    query = parse_qs(where.query)
    return f"{route}?{','.join(sorted(query))}{query.get('part', '')}"


def walk(page: Page, url: str) -> list[str]:
    """Paths of the site's own pages, a few of each kind, in the order they are met."""
    found: list[str] = []
    kinds: dict[str, int] = {}
    queue = list(FIRST)
    while queue:
        path = queue.pop(0)
        kind = kind_of(path)
        if (
            path in found
            or (kinds.get(kind, 0) >= EXAMPLES and path not in FIRST)
            or path.startswith(("/admin", "/logout"))
        ):
            continue
        answer = page.request.get(url + path)
        if not answer.headers.get("content-type", "").startswith("text/html"):
            continue
        kinds[kind] = kinds.get(kind, 0) + 1
        found.append(path)
        page.goto(url + path)
        links = page.eval_on_selector_all("a[href]", "links => links.map(link => link.getAttribute('href'))")
        queue += [_local(url, path, link) for link in links if urljoin(url + path, link).startswith(url)]
    return found


def _local(url: str, path: str, link: str) -> str:
    return urljoin(url + path, link).removeprefix(url).partition("#")[0] or "/"


def sign_in(browser: Browser, url: str, user: str, password: str) -> Any:
    page = browser.new_page()
    page.goto(f"{url}/login")
    page.get_by_label("Username").fill(user)
    page.get_by_label("Password").fill(password)
    page.locator("main button").click()
    return page.context.storage_state()


def take(browser: Browser, state: Any, url: str, paths: list[str], folder: Path) -> list[tuple[str, list[str]]]:
    """Every path in every size and colour; the names of the files beside each path."""
    taken: list[tuple[str, list[str]]] = [(path, []) for path in paths]
    for size, (width, height) in SIZES.items():
        for colours in ("light", "dark"):
            context = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme=colours,  # type: ignore[arg-type]
                storage_state=state,
            )
            page = context.new_page()
            for number, (path, files) in enumerate(taken):
                page.goto(url + path, wait_until="load")
                name = f"{number:03}-{size}-{colours}.png"
                page.screenshot(path=folder / name, full_page=False)
                files.append(name)
            context.close()
    return taken


def sheet(taken: list[tuple[str, list[str]]], user: str) -> str:
    rows = "".join(
        f"<h2>{html.escape(path)}</h2><p>" + "".join(f'<a href="{f}"><img src="{f}" alt="{f}"></a> ' for f in files)
        for path, files in taken
    )
    style = "body{font:14px sans-serif;margin:1em}img{height:420px;border:1px solid #888;vertical-align:top}"
    return f"<!doctype html><title>Pictures</title><style>{style}</style><h1>As {html.escape(user)}</h1>{rows}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ready-file", type=Path, help="of a site that is running")
    options = parser.parse_args()
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"  # for the routes alone
    import django

    django.setup()
    with tempfile.TemporaryDirectory(prefix="agentlab-pictures-") as state:
        if options.ready_file:
            photograph(json.loads(options.ready_file.read_text()), options.folder)
            return
        with own_site(Path(state)) as ready:
            photograph(ready, options.folder)


def photograph(ready: dict[str, Any], folder: Path) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path_of_chromium(), args=FLAGS)
        for user in ("operator", OWNER):
            state = sign_in(browser, ready["url"], user, ready["users"][user])
            own = folder / user
            own.mkdir(parents=True, exist_ok=True)
            page = browser.new_context(storage_state=state).new_page()
            taken = take(browser, state, ready["url"], walk(page, ready["url"]), own)
            (own / "index.html").write_text(sheet(taken, user))
            sys.stdout.write(f"{own / 'index.html'}: {len(taken)} pages\n")
        browser.close()


if __name__ == "__main__":
    main()
