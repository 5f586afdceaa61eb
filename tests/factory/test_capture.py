"""What a packet records of a context folder, and each bound on the way."""

import hashlib
import os
import socket
from pathlib import Path

import pytest

from factory import snapshots
from factory.packets import AgentInputPacket
from factory.snapshots import Deadline
from tests.factory.making import ATTEMPT, Clock, call_with, capture, rows, statuses


@pytest.fixture
def context(tmp_path: Path) -> Path:
    folder = tmp_path / "context"
    folder.mkdir()
    return folder


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "kept"


def counts(packet: AgentInputPacket) -> tuple[str, int | None, int | None, int | None]:
    return packet.coverage, packet.declared, packet.captured, packet.omitted


UNKNOWN = None


def test_each_file_is_copied_hashed_and_named_by_its_path(context: Path, kept: Path) -> None:  # FA-6
    (context / "notes.md").write_bytes(b"# Notes\r\n")
    packet = capture(kept, call_with(context))
    (item,) = packet.items
    assert (item.seq, item.label, item.source_path) == (1, "notes.md", f"{context}/notes.md")
    assert (item.source_kind, item.delivery_mode) == ("context_handoff", "path_reference")
    assert (item.size_bytes, item.sha256) == (9, hashlib.sha256(b"# Notes\r\n").hexdigest())
    assert (item.media_type, item.preview_kind) == ("text/plain", "text")
    assert (item.capture_status, item.artifact_status, item.snapshot_path) == (
        "captured",
        "available",
        f"{ATTEMPT}/1",
    )
    assert item.captured_at is not None
    assert (kept / "1").read_bytes() == b"# Notes\r\n"
    assert counts(packet) == ("complete", 1, 1, 0)


def test_the_order_is_that_of_path_components_by_their_bytes(context: Path, kept: Path) -> None:  # FA-6
    for name in ("b.txt", "a/z.txt", "a.txt", "a-b.txt", "Z.txt", "é.txt", "a/b/c.txt"):
        (context / name).parent.mkdir(parents=True, exist_ok=True)
        (context / name).write_text(name)
    labels = [item.label for item in capture(kept, call_with(context)).items]
    assert labels == ["Z.txt", "a/b/c.txt", "a/z.txt", "a-b.txt", "a.txt", "b.txt", "é.txt"]


def test_composed_and_decomposed_names_are_two_files(context: Path, kept: Path) -> None:  # FA-6
    for name in ("\u00e9", "e\u0301"):
        (context / name).write_text(name)
    packet = capture(kept, call_with(context))
    assert [item.label for item in packet.items] == ["e\u0301", "\u00e9"]
    assert counts(packet) == ("complete", 2, 2, 0)


def test_a_name_that_is_not_utf8_is_kept_reversibly_and_shown_as_text(context: Path, kept: Path) -> None:  # FA-6
    (context / os.fsdecode(b"\xff\xfe")).write_bytes(b"x")
    (item,) = capture(kept, call_with(context)).items
    assert item.label == "\\xff\\xfe"
    assert os.fsencode(item.source_path or "") == os.fsencode(context) + b"/\xff\xfe"
    assert item.capture_status == "captured"


def test_an_empty_folder_is_a_complete_packet_of_nothing(context: Path, kept: Path) -> None:  # FA-6
    assert counts(capture(kept, call_with(context))) == ("complete", 0, 0, 0)


def test_links_are_never_followed_but_accounted_for(context: Path, kept: Path, tmp_path: Path) -> None:  # FA-6
    (tmp_path / "secret").write_text("outside")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "inner").write_text("outside")
    (context / "file").symlink_to(tmp_path / "secret")
    (context / "folder").symlink_to(tmp_path / "outside")
    (context / "loop").symlink_to(context)
    packet = capture(kept, call_with(context))
    assert rows(packet) == [(name, "unreadable", "symbolic link, not followed") for name in ("file", "folder", "loop")]
    assert counts(packet) == ("partial", 3, 0, 3)
    assert list(kept.iterdir()) == []


def test_what_is_not_a_file_is_neither_opened_nor_waited_for(context: Path, kept: Path) -> None:  # FA-6
    os.mkfifo(context / "fifo")
    os.mknod(context / "null", 0o600 | 0o020000, os.makedev(1, 3)) if os.geteuid() == 0 else None
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(context / "socket"))
        packet = capture(kept, call_with(context))
    assert set(statuses(packet).values()) == {"unreadable"}
    assert {detail for _, _, detail in rows(packet)} == {"not a regular file"}
    assert packet.omitted == packet.declared == len(packet.items)


def test_a_fifo_that_takes_a_files_place_is_not_waited_for(context: Path) -> None:  # FA-6
    os.mkfifo(context / "fifo")
    folder = os.open(context, os.O_RDONLY)
    with pytest.raises(snapshots.CaptureFailed, match="not a regular file"):
        snapshots.open_regular(folder, "fifo")
    os.close(folder)


def test_more_files_than_the_bound_end_in_one_sentinel(context: Path, kept: Path) -> None:  # FA-6
    for number in range(101):
        (context / f"{number:03}").write_text("x")
    packet = capture(kept, call_with(context))
    assert len(packet.items) == 101
    assert [item.label for item in packet.items[:100]] == [f"{number:03}" for number in range(100)]
    sentinel = packet.items[-1]
    assert (sentinel.capture_status, sentinel.artifact_status) == ("enumeration_incomplete", "never_captured")
    assert sentinel.detail == "stopped: 100 files"
    assert counts(packet) == ("partial", UNKNOWN, 100, UNKNOWN)


def test_exactly_as_many_files_as_the_bound_are_complete(context: Path, kept: Path) -> None:  # FA-6
    for number in range(100):
        (context / f"{number:03}").write_text("x")
    assert counts(capture(kept, call_with(context))) == ("complete", 100, 100, 0)


def test_a_folder_of_links_is_bounded_too(context: Path, kept: Path) -> None:  # FA-6
    for number in range(150):
        (context / f"{number:03}").symlink_to("nowhere")
    assert len(capture(kept, call_with(context)).items) == 101


def test_a_folder_deeper_than_the_bound_ends_the_listing(context: Path, kept: Path) -> None:  # FA-6
    deepest = context.joinpath(*"12345678")
    deepest.mkdir(parents=True)
    (deepest / "file").write_text("x")
    assert counts(capture(kept, call_with(context))) == ("complete", 1, 1, 0)
    (deepest / "9").mkdir()
    packet = capture(kept.with_name("again"), call_with(context))
    assert packet.items[-1].detail == "stopped: depth 8"
    assert counts(packet) == ("partial", UNKNOWN, 0, UNKNOWN)


def test_a_file_over_its_limit_is_named_and_the_next_one_is_kept(context: Path, kept: Path) -> None:  # FA-6
    with (context / "big").open("wb") as file:
        file.truncate(10 * 1024**2 + 1)
    (context / "small").write_text("x")
    packet = capture(kept, call_with(context))
    assert rows(packet) == [("big", "limit_exceeded", "larger than 10 MiB"), ("small", "captured", None)]
    assert counts(packet) == ("partial", 2, 1, 1)


def test_a_sparse_file_is_judged_by_its_size_without_being_read(context: Path, kept: Path) -> None:  # FA-6
    with (context / "sparse").open("wb") as file:
        file.truncate(10 * 1024**3)
    assert rows(capture(kept, call_with(context))) == [("sparse", "limit_exceeded", "larger than 10 MiB")]


def test_a_file_at_its_limit_is_kept(context: Path, kept: Path) -> None:  # FA-6
    with (context / "full").open("wb") as file:
        file.truncate(10 * 1024**2)
    assert counts(capture(kept, call_with(context))) == ("complete", 1, 1, 0)


def test_the_total_ends_the_listing_and_names_the_file_that_passed_it(context: Path, kept: Path) -> None:  # FA-6
    for number in range(7):
        with (context / str(number)).open("wb") as file:
            file.truncate(9 * 1024**2)
    packet = capture(kept, call_with(context))
    assert rows(packet)[5:] == [
        ("5", "limit_exceeded", "more than 50 MiB in total"),
        ("more inputs may exist", "enumeration_incomplete", "stopped: 50 MiB in total"),
    ]
    assert counts(packet) == ("partial", UNKNOWN, 5, UNKNOWN)
    assert sorted(path.name for path in kept.iterdir()) == ["1", "2", "3", "4", "5"]


def test_time_ends_the_listing(context: Path, kept: Path) -> None:  # FA-6
    for number in range(50):
        (context / f"{number:02}").write_text("x")
    packet = capture(kept, call_with(context), deadline=Deadline(Clock(step=0.1)))
    assert packet.items[-1].detail == "stopped: 5 seconds"
    assert packet.coverage == "partial"
    assert packet.declared is UNKNOWN
    assert 0 < (packet.captured or 0) < 50


def test_time_that_ends_in_the_middle_of_a_file_leaves_none_of_it(context: Path, kept: Path) -> None:  # FA-6
    (context / "slow").write_bytes(b"x" * 3 * 1024**2)
    clock = Clock(step=1.0)
    packet = capture(kept, call_with(context), deadline=Deadline(clock, seconds=6.0))
    assert rows(packet) == [
        ("slow", "limit_exceeded", "more than 5 seconds"),
        ("more inputs may exist", "enumeration_incomplete", "stopped: 5 seconds"),
    ]
    assert list(kept.iterdir()) == []


def test_a_huge_folder_is_listed_within_the_time(context: Path, kept: Path) -> None:  # FA-6
    for number in range(2000):
        (context / str(number)).touch()
    clock = Clock()
    deadline = Deadline(clock)
    clock.step = 2.0
    packet = capture(kept, call_with(context), deadline=deadline)
    assert clock.looks < 10
    assert packet.items[-1].detail == "stopped: 5 seconds"


def test_a_context_folder_that_is_gone_is_named(context: Path, kept: Path) -> None:  # FA-6 FA-8
    context.rmdir()
    packet = capture(kept, call_with(context))
    assert rows(packet)[0] == ("context/", "missing", "no longer there")
    assert packet.items[-1].capture_status == "enumeration_incomplete"
    assert counts(packet) == ("partial", UNKNOWN, 0, UNKNOWN)


@pytest.mark.parametrize("path", ["http://h/x", "/no\x00name", "/dev/null"])
def test_a_path_that_is_no_folder_is_a_row_and_no_error(path: str, kept: Path) -> None:  # FA-6
    packet = capture(kept, call_with(path))
    assert packet.items[0].capture_status in {"missing", "unreadable"}
    assert packet.coverage == "partial"


def test_a_context_folder_reached_through_a_link_is_not_followed(context: Path, kept: Path) -> None:  # FA-6
    (context / "file").write_text("x")
    link = context.with_name("link")
    link.symlink_to(context)
    packet = capture(kept, call_with(link))
    assert packet.items[0].capture_status == "unreadable"
    assert packet.captured == 0


def test_a_file_with_several_links_is_copied_and_says_so(context: Path, kept: Path) -> None:  # FA-6
    (context / "one").write_text("x")
    (context / "two").hardlink_to(context / "one")
    assert rows(capture(kept, call_with(context))) == [
        ("one", "captured", "2 hard links"),
        ("two", "captured", "2 hard links"),
    ]
    assert (kept / "1").stat().st_nlink == 1


def test_a_file_whose_size_is_only_known_by_reading_is_kept_whole(kept: Path) -> None:  # FA-6
    folder = os.open("/proc/self", os.O_RDONLY)
    from tests.factory.making import open_snapshots

    with open_snapshots(kept) as snapshots_folder:
        copy = snapshots_folder.keep_file(1, folder, "mounts", Deadline())
    os.close(folder)
    assert copy.size == (kept / "1").stat().st_size > 0


def test_an_endless_file_is_read_to_the_limit_and_no_further(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # FA-6
    reads = []

    def endless(handle: int, size: int) -> bytes:
        reads.append(size)
        return b"x" * size

    folder = os.open("/proc/self", os.O_RDONLY)
    from tests.factory.making import open_snapshots

    with open_snapshots(kept) as snapshots_folder:
        monkeypatch.setattr(snapshots.os, "read", endless)
        with pytest.raises(snapshots.CaptureFailed, match="larger than 10 MiB"):
            snapshots_folder.keep_file(1, folder, "status", Deadline())
    os.close(folder)
    assert sum(reads) <= 11 * 1024**2
    assert list(kept.iterdir()) == []


def test_a_refusal_of_the_disk_budget_is_a_row(context: Path, kept: Path) -> None:  # FA-9
    (context / "file").write_text("x")
    packet = capture(kept, call_with(context), refuse=lambda size: "budget of 1 MiB")
    assert rows(packet) == [("file", "limit_exceeded", "budget of 1 MiB")]
    assert counts(packet) == ("partial", 1, 0, 1)


def test_a_full_disk_is_a_row(context: Path, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # FA-6 FA-8
    (context / "file").write_text("x")
    monkeypatch.setattr(snapshots, "_write", _no_space)
    packet = capture(kept, call_with(context))
    assert rows(packet) == [("file", "limit_exceeded", "cannot be kept: No space left on device")]
    assert list(kept.iterdir()) == []


def _no_space(handle: int, data: bytes) -> None:
    raise OSError(28, "No space left on device")
