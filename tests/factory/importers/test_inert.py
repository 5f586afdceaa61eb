"""Sessions full of markup: every string of every record carries a tag, and every page shows it as text."""

import json
import re
import zipfile
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from factory.models import FactoryRun
from tests.factory.importers.reading import SESSIONS

pytestmark = pytest.mark.django_db

TAG = "<img src=x onerror=alert(1)>"
FILES = [
    "pi/v1-linear-head.jsonl",
    "pi/v3-retries/session.jsonl",
    "pi/v3-compaction.jsonl",
    "pi/v3-malformed-and-unknown.jsonl",
    "pi/v3-retries/run2-parse-retry.stdout.jsonl",
    "claude-code/tool-heavy.jsonl",
    "claude-code/edge-cases.jsonl",
    "claude-code/compact-boundary-slice.jsonl",
    "claude-code/web-session.json",
    "inspect/image-attachment.json",
    "inspect/small-deflate.eval",
    "inspect/message-pool.eval",
]
# What a reader goes by: a file in which these were changed would be another file, or none.
STRUCTURE = {
    "type",
    "subtype",
    "role",
    "timestamp",
    "created",
    "stopReason",
    "version",
    "data",
    "encoding",
    "event",
    "status",
}


def tagged(value: object, name: str = "") -> object:
    """The value with the tag in every string that is not structure. Ids change alike wherever they stand."""
    if isinstance(value, dict):
        return {key: tagged(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [tagged(inner, name) for inner in value]
    if isinstance(value, str) and name not in STRUCTURE:
        return value + TAG
    return value


def tagged_copy(source: Path, target: Path) -> Path:
    if source.suffix == ".eval":
        with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
            for name in old.namelist():
                new.writestr(name, json.dumps(tagged(json.loads(old.read(name)))))
    elif source.suffix == ".json":
        target.write_text(json.dumps(tagged(json.loads(source.read_text()))))
    else:
        lines = source.read_text(encoding="utf-8").split("\n")
        target.write_text("\n".join(map(tagged_line, lines)), encoding="utf-8")
    return target


def tagged_line(line: str) -> str:
    try:
        return json.dumps(tagged(json.loads(line)))
    except ValueError:
        return line


def pages(client: Client, start: str) -> Iterator[tuple[str, str]]:
    """Every page of a run that can be reached by links, raw texts left out: they are not pages."""
    waiting, seen = [start], set()
    while waiting:
        address = waiting.pop()
        if address in seen:
            continue
        seen.add(address)
        answer = client.get(address)
        if not answer.headers["Content-Type"].startswith("text/html"):
            continue
        assert answer.status_code == 200, address
        page = answer.content.decode()
        yield address, page
        waiting += [
            link for link in re.findall(r'(?:href|hx-get)="(/factory/[^"#?]+)', page) if not link.endswith("/raw")
        ]


@pytest.mark.parametrize("name", FILES)
def test_markup_in_every_string_of_every_record_is_text_on_every_page(  # IM-1 AI-7 SF-2
    name: str, tmp_path: Path, client: Client
) -> None:
    owner = User.objects.create_user("ada")
    path = tagged_copy(SESSIONS / name, tmp_path / Path(name).name)
    call_command("factory", "import", str(path), "--owner", "ada", stdout=StringIO())
    run = FactoryRun.objects.get()
    assert run.attempts.exists()
    client.force_login(owner)
    walked = list(pages(client, f"/factory/runs/{run.pk}"))
    assert len(walked) > 2
    for address, page in [("/factory", client.get("/factory").content.decode()), *walked]:
        assert "<img src=x" not in page, address
        assert "onerror=alert(1)>" not in page, address
    assert any("&lt;img src=x" in page for _, page in walked)
