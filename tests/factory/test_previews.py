"""The collector: an attempt's facts as JSON, and the bytes of its inputs."""

import hashlib
import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from factory.models import AgentAttempt, AgentAttemptInput, FactoryRun
from factory.retention import SnapshotStore

from .visiting import IMAGE, input_of, page

pytestmark = pytest.mark.django_db


def assert_contained(response: Any) -> None:
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Cache-Control"] == "private, no-store"
    assert response.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert response.headers["Accept-Ranges"] == "none"
    assert not response.headers.get("ETag")


def test_a_text_preview_is_the_captured_bytes_with_their_hash(owner: Client, built: int) -> None:  # AI-6
    row = input_of(built, label="notes.md")
    response = owner.get(f"/api/collector/inputs/{row.pk}")
    assert response.content == b"Use hyphens."
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert response.headers["X-Content-SHA256"] == row.sha256 == hashlib.sha256(b"Use hyphens.").hexdigest()
    assert_contained(response)


def test_an_image_preview_is_of_the_type_its_bytes_have(owner: Client, built: int) -> None:  # AI-6
    row = input_of(built, label="hopper.png")
    response = owner.get(f"/api/collector/inputs/{row.pk}")
    assert (response.content, response.headers["Content-Type"]) == (IMAGE.read_bytes(), "image/png")
    assert_contained(response)


def test_a_range_is_ignored(owner: Client, built: int) -> None:  # AI-6
    row = input_of(built, label="hopper.png")
    response = owner.get(f"/api/collector/inputs/{row.pk}", headers={"Range": "bytes=0-3", "If-None-Match": "*"})
    assert (response.status_code, len(response.content)) == (200, IMAGE.stat().st_size)
    for asked in ({"Range": "bytes=9-3", "If-Range": '"old"'}, {"Range": "bytes=" + "0-1," * 5000}):
        response = owner.get(f"/api/collector/inputs/{row.pk}", headers=asked)
        assert (response.status_code, response.headers["Accept-Ranges"]) == (200, "none")


def test_what_lies_beside_a_copy_is_never_served_for_it(
    owner: Client, built: int, store: SnapshotStore
) -> None:  # AI-6
    row = input_of(built, label="notes.md")
    copy = store.root / row.attempt_id / str(row.seq)
    for suffix in (".gz", ".br"):
        copy.with_name(copy.name + suffix).symlink_to("/etc/passwd")
    response = owner.get(f"/api/collector/inputs/{row.pk}", headers={"Accept-Encoding": "gzip, br"})
    assert response.content == copy.read_bytes()
    assert "Content-Encoding" not in response.headers


def test_a_drawing_with_a_script_is_text(owner: Client, built: int) -> None:  # AI-6
    row = input_of(built, label="drawing.svg")
    response = owner.get(f"/api/collector/inputs/{row.pk}")
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert "&lt;script&gt;" in page(owner, f"/factory/inputs/{row.pk}")


@pytest.mark.parametrize("path", ["/api/collector/inputs/{}", "/factory/inputs/{}"])
def test_refusals_are_sentences_with_their_status(
    owner: Client, built: int, store: SnapshotStore, path: str
) -> None:  # AI-6
    blob, link = input_of(built, label="blob.bin"), input_of(built, label="link")
    kind = 415 if "api" in path else 422
    assert "no preview for this kind" in page(owner, path.format(blob.pk), kind)
    assert "never captured" in page(owner, path.format(link.pk), 404)
    notes = input_of(built, label="notes.md")
    copy = store.root / notes.attempt_id / str(notes.seq)
    copy.write_bytes(b"Use Hyphens.")
    assert "no longer matches its hash" in page(owner, path.format(notes.pk), 409)
    AgentAttemptInput.objects.filter(pk=notes.pk).update(artifact_status="evicted", detail="evicted: disk budget")
    assert "Evicted: disk budget. Hash and size remain." in page(owner, path.format(notes.pk), 410)


def test_a_long_text_is_paged_and_each_page_is_checked_whole(
    owner: Client, built: int, store: SnapshotStore
) -> None:  # AI-6
    row = input_of(built, label="notes.md")
    text = "".join(f"line {number}\n" for number in range(20_000))
    (store.root / row.attempt_id / str(row.seq)).write_text(text)
    AgentAttemptInput.objects.filter(pk=row.pk).update(sha256=hashlib.sha256(text.encode()).hexdigest())
    first = owner.get(f"/api/collector/inputs/{row.pk}")
    count = int(first.headers["X-Page-Count"])
    pages = [owner.get(f"/api/collector/inputs/{row.pk}?page={number}").content for number in range(1, count + 1)]
    assert b"".join(pages).decode() == text
    for wrong in ("0", str(count + 1), "x", "-1", "1e9"):
        page(owner, f"/api/collector/inputs/{row.pk}?page={wrong}", 404)
    assert f"page 2 of {count}" in page(owner, f"/factory/inputs/{row.pk}?page=2")


@pytest.mark.parametrize("wrong", ["0", "99999999", "../1", "1/../2", "%2e%2e", "a" * 32, "99999999999999999999999"])
def test_an_input_id_that_is_none_is_not_there(owner: Client, built: int, wrong: str) -> None:  # AI-6 SF-4
    page(owner, f"/api/collector/inputs/{wrong}", 404)


@pytest.mark.parametrize("method", ["post", "put", "delete", "patch"])
def test_previews_are_only_read(owner: Client, built: int, method: str) -> None:  # AI-6
    row = input_of(built, label="notes.md")
    assert getattr(owner, method)(f"/api/collector/inputs/{row.pk}").status_code in {403, 405}


# The collector ---------------------------------------------------------------------------------------------------


def test_the_collector_gives_the_contracts_names_and_leaves_bodies_out(owner: Client, built: int) -> None:  # AI-5
    row = AgentAttempt.objects.get(run_id=built, number=2)
    facts = json.loads(page(owner, f"/api/collector/attempts/{row.pk}"))
    assert facts["taskPrompt"] == "Write a slugify command.\n"
    assert (facts["sendKind"], facts["turnIndex"]) == ("parse_retry", 2)
    assert facts["retryOfAttemptId"] == facts["previousTurnAttemptId"] == row.previous_turn_attempt_id
    assert (facts["inputPacketVersion"], facts["inputCoverage"]) == (1, "complete")
    assert (facts["declaredInputCount"], facts["capturedInputCount"], facts["omittedInputCount"]) == (0, 0, 0)
    assert [one["seq"] for one in facts["inputs"]] == list(range(1, len(facts["inputs"]) + 1))
    assert set(facts["inputs"][0]) == {
        *("inputId", "seq", "label", "sourceKind", "deliveryMode", "sourcePath", "mediaType", "previewKind"),
        *("sizeBytes", "sha256", "captureStatus", "artifactStatus", "detail", "capturedAt"),
    }
    assert "userPrompt" not in facts and "reply" not in facts


def test_unknown_counts_are_null_in_the_collector(owner: Client, ada: User) -> None:  # AI-5 FA-11
    row = FactoryRun.objects.create(owner=ada, workflow="old", provider="pi")
    AgentAttempt.objects.create(attempt_id="a" * 32, run=row, number=1, phase="plan", provider="pi")
    facts = json.loads(page(owner, f"/api/collector/attempts/{'a' * 32}"))
    assert (facts["inputCoverage"], facts["declaredInputCount"], facts["taskPrompt"]) == ("not_recorded", None, None)


def test_a_name_that_is_not_utf8_survives_the_collector(owner: Client, built: int) -> None:  # FA-6
    row = input_of(built, label="notes.md")
    AgentAttemptInput.objects.filter(pk=row.pk).update(source_path="/x/\udcff")
    body = page(owner, f"/api/collector/attempts/{row.attempt_id}")
    assert '"/x/\\udcff"' in body
