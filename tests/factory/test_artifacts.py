"""Stored bytes: contained, checked, and never what a row merely says."""

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from factory.artifacts import TEXT_PAGE_BYTES, Artifact, Refused, StoredCopy, load
from factory.media import recognise
from tests.conftest import SHARED_DATA

ATTEMPT = "a" * 32
TEXT = b"Use hyphens.\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "snapshots" / ATTEMPT).mkdir(parents=True)
    (tmp_path / "snapshots" / ATTEMPT / "1").write_bytes(TEXT)
    return tmp_path / "snapshots"


def stored(data: bytes = TEXT, **facts: Any) -> StoredCopy:
    values = {
        "attempt_id": ATTEMPT,
        "seq": 1,
        "sha256": hashlib.sha256(data).hexdigest(),
        "preview_kind": "text",
        "artifact_status": "available",
    } | facts
    return StoredCopy(**values)  # type: ignore[arg-type]


def refusal(root: Path, copy: StoredCopy) -> tuple[int, str]:
    with pytest.raises(Refused) as refused:
        load(root, copy)
    return refused.value.status, refused.value.sentence


def test_the_copy_is_what_was_captured(root: Path) -> None:  # AI-6
    artifact = load(root, stored())
    assert (artifact.data, artifact.sha256) == (TEXT, hashlib.sha256(TEXT).hexdigest())


def test_a_changed_byte_is_a_refusal_and_not_the_new_byte(root: Path) -> None:  # AI-6
    (root / ATTEMPT / "1").write_bytes(b"Use Hyphens.\n")
    assert refusal(root, stored()) == (409, "The stored copy no longer matches its hash.")


@pytest.mark.parametrize("status", ["never_captured", "anything else"])
def test_what_is_not_available_is_not_opened(root: Path, status: str) -> None:  # AI-6
    assert refusal(root, stored(artifact_status=status))[0] == 404


def test_an_evicted_copy_says_why_and_when(root: Path) -> None:  # AI-6 FA-9
    detail = "2 hard links; evicted to stay within the disk budget (budget of 1 MiB) on 30 Nov 2026"
    assert refusal(root, stored(artifact_status="evicted", detail=detail)) == (
        410,
        "Evicted to stay within the disk budget (budget of 1 MiB) on 30 Nov 2026. Hash and size remain.",
    )


@pytest.mark.parametrize("attempt_id", ["..", ".", "../snapshots", "a" * 31, "A" * 32, f"{'a' * 32}\n", "", "/etc"])
def test_an_id_that_is_not_one_of_ours_is_no_path(root: Path, attempt_id: str) -> None:  # AI-6
    assert refusal(root, stored(attempt_id=attempt_id)) == (404, "The stored copy is gone.")


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_link_in_the_snapshots_is_not_followed(root: Path, tmp_path: Path, kind: str) -> None:  # AI-6
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "1").write_bytes(TEXT)
    if kind == "file":
        (root / ATTEMPT / "1").unlink()
        (root / ATTEMPT / "1").symlink_to(tmp_path / "outside" / "1")
    else:
        (root / ATTEMPT / "1").unlink()
        (root / ATTEMPT).rmdir()
        (root / ATTEMPT).symlink_to(tmp_path / "outside")
    assert refusal(root, stored())[0] == 404


def test_a_fifo_in_the_snapshots_is_not_waited_for(root: Path) -> None:  # AI-6
    (root / ATTEMPT / "1").unlink()
    os.mkfifo(root / ATTEMPT / "1")
    assert refusal(root, stored())[0] == 404


def test_a_copy_larger_than_the_limit_is_refused(root: Path) -> None:  # AI-6
    with (root / ATTEMPT / "1").open("wb") as file:
        file.truncate(10 * 1024**2 + 1)
    assert refusal(root, stored())[0] == 413


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("made/html-named.png", "image"),  # the row says image, the bytes say text
        ("made/png-named.txt", "text"),
        ("made/png-50000x50000.png", "image"),
        ("pillow/decompression_bomb.gif", "image"),
        ("pillow/avif_hopper.avif", "image"),
        ("made/latin1.txt", "text"),
        ("pillow/hopper.png", "none"),
    ],
)
def test_no_row_makes_of_bytes_what_they_are_not(root: Path, name: str, kind: str) -> None:  # AI-6
    data = (SHARED_DATA / "media" / name).read_bytes()
    (root / ATTEMPT / "1").write_bytes(data)
    assert refusal(root, stored(data, preview_kind=kind))[0] == 415


@pytest.mark.parametrize("unit", ["x", "é", "€", "\U0001f600", "line\n", "a very long line " * 400 + "\n"])
def test_the_pages_of_a_text_are_the_text(unit: str) -> None:  # AI-6
    text = unit * (3 * TEXT_PAGE_BYTES // len(unit.encode()) + 1)
    artifact = Artifact(text.encode(), recognise(text.encode()), "")
    pages = [artifact.page(number) for number in range(1, artifact.page_count + 1)]
    assert "".join(pages) == text
    assert all(len(page.encode()) <= TEXT_PAGE_BYTES for page in pages)
    assert artifact.page_count >= 3


def test_pages_end_with_a_line_where_they_can() -> None:  # AI-6
    text = "".join(f"{number}\n" for number in range(40_000))
    artifact = Artifact(text.encode(), recognise(text.encode()), "")
    assert all(artifact.page(number).endswith("\n") for number in range(1, artifact.page_count + 1))


@pytest.mark.parametrize("preview_kind", ["text", "image", "none", "", "html"])
@pytest.mark.parametrize("artifact_status", ["available", "evicted", "never_captured", "trusted"])
def test_no_value_of_a_row_relaxes_the_containment(
    root: Path, tmp_path: Path, artifact_status: str, preview_kind: str
) -> None:  # AI-6
    (tmp_path / "snapshots_old").mkdir()
    (tmp_path / "snapshots_old" / "1").write_bytes(TEXT)
    for attempt_id in ("../snapshots_old", str(tmp_path / "snapshots_old"), "snapshots_old"):
        copy = stored(attempt_id=attempt_id, artifact_status=artifact_status, preview_kind=preview_kind)
        refusal(root, copy)
    for seq in (0, -1, 2):
        refusal(root, stored(seq=seq, artifact_status=artifact_status, preview_kind=preview_kind))
