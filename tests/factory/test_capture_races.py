"""Files that change, move or turn into something else while they are copied."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from factory import snapshots
from factory.snapshots import Deadline
from tests.factory.making import call_with, capture, rows

ROUNDS = 200


@pytest.fixture
def context(tmp_path: Path) -> Path:
    folder = tmp_path / "context"
    folder.mkdir()
    (folder / "file").write_bytes(b"first")
    return folder


def during_the_copy(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None], times: int = 99) -> None:
    """Let `act` happen after the source was read and before it is looked at again."""
    read = snapshots._read_bounded
    left = [times]

    def interfering(source: int, copy: int, deadline: Deadline) -> bytearray:
        data = read(source, copy, deadline)
        if left[0]:
            left[0] -= 1
            act()
        return data

    monkeypatch.setattr(snapshots, "_read_bounded", interfering)


def test_a_rewrite_during_the_copy_is_named_and_nothing_is_kept(
    context: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # FA-6
    during_the_copy(monkeypatch, lambda: (context / "file").write_bytes(b"other"))
    assert rows(capture(tmp_path / "kept", call_with(context))) == [
        ("file", "changed_during_capture", "changed while it was copied")
    ]
    assert list((tmp_path / "kept").iterdir()) == []


def test_a_writer_that_puts_the_time_back_is_noticed(
    context: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # FA-6
    path = context / "file"
    before = path.stat()

    def rewrite() -> None:
        path.write_bytes(b"other")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    during_the_copy(monkeypatch, rewrite)
    packet = capture(tmp_path / "kept", call_with(context))
    assert packet.items[0].capture_status == "changed_during_capture"


def test_a_file_that_is_replaced_during_the_copy_is_noticed(
    context: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # FA-6
    def replace() -> None:
        (context.parent / "new").write_bytes(b"other")
        (context.parent / "new").replace(context / "file")

    during_the_copy(monkeypatch, replace)
    assert rows(capture(tmp_path / "kept", call_with(context)))[0][1:] == (
        "changed_during_capture",
        "changed while it was copied",  # its last link went away, which moves ctime
    )


def test_a_file_that_is_moved_away_during_the_copy_is_noticed(
    context: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # FA-6
    during_the_copy(monkeypatch, lambda: (context / "file").unlink())
    packet = capture(tmp_path / "kept", call_with(context))
    assert packet.items[0].capture_status in {"changed_during_capture", "missing"}
    assert list((tmp_path / "kept").iterdir()) == []


def test_a_file_that_changes_once_is_captured_at_the_second_try(
    context: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # FA-6
    during_the_copy(monkeypatch, lambda: (context / "file").write_bytes(b"final"), times=1)
    packet = capture(tmp_path / "kept", call_with(context))
    assert packet.items[0].capture_status == "captured"
    assert (tmp_path / "kept" / "1").read_bytes() == b"final"


def test_a_file_that_grows_for_ever_is_tried_twice_and_no_more(
    context: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # FA-6
    appended = []

    def append() -> None:
        appended.append(1)
        with (context / "file").open("ab") as file:
            file.write(b"more")

    during_the_copy(monkeypatch, append)
    assert capture(tmp_path / "kept", call_with(context)).items[0].capture_status == "changed_during_capture"
    assert len(appended) == 2


@pytest.fixture
def racer() -> Iterator[Callable[[str, Path], None]]:
    """Starts a second process that keeps doing something to a folder."""
    processes = []

    def start(code: str, folder: Path) -> None:
        body = textwrap.indent(textwrap.dedent(code), "    ")
        head = f"import os\nfrom pathlib import Path\nfolder = Path({str(folder)!r})\nprint(flush=True)\n"
        program = f"{head}while True:\n{body}"
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
        assert process.stdout
        process.stdout.readline()
        processes.append(process)

    yield start
    for process in processes:
        process.kill()
        process.wait()


def test_a_racer_never_leads_the_capture_out_of_its_folder(
    tmp_path: Path, racer: Callable[[str, Path], None]
) -> None:  # FA-6
    """A folder turns into a link to another place and back, a file into a link and a FIFO, all the time."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("SECRET")
    context = tmp_path / "context"
    (context / "sub").mkdir(parents=True)
    (context / "sub" / "file").write_text("inside")
    (context / "one").write_text("inside")
    racer(
        """
        os.rename(folder / "context/sub", folder / "kept-sub")
        os.symlink(folder / "outside", folder / "context/sub")
        os.unlink(folder / "context/sub")
        os.rename(folder / "kept-sub", folder / "context/sub")
        os.symlink(folder / "outside/file", folder / "link")
        os.rename(folder / "link", folder / "context/one")
        os.mkfifo(folder / "fifo")
        os.rename(folder / "fifo", folder / "context/one")
        (folder / "new").write_text("inside")
        os.rename(folder / "new", folder / "context/one")
        """,
        tmp_path,
    )
    seen = set()
    for number in range(20 * ROUNDS):  # on a busy machine the racer may be late
        if number >= ROUNDS and len(seen) > 1:
            break
        kept = tmp_path / f"kept-{number}"
        packet = capture(kept, call_with(context))
        seen |= {item.capture_status for item in packet.items}
        here = {path.name for path in kept.iterdir()}
        assert here == {str(item.seq) for item in packet.items if item.capture_status == "captured"}
        assert all((kept / name).read_text() == "inside" for name in here)
        if packet.declared is not None:
            assert packet.declared == (packet.captured or 0) + (packet.omitted or 0)
    assert "captured" in seen and len(seen) > 1, "the racer met the capture"


def test_a_parent_of_the_declared_folder_that_becomes_a_link_is_not_followed(
    tmp_path: Path, racer: Callable[[str, Path], None]
) -> None:  # FA-6
    for place, text in (("parent", "inside"), ("evil", "SECRET")):
        (tmp_path / place / "context").mkdir(parents=True)
        (tmp_path / place / "context" / "file").write_text(text)
    racer(
        """
        os.rename(folder / "parent", folder / "away")
        os.symlink(folder / "evil", folder / "parent")
        os.unlink(folder / "parent")
        os.rename(folder / "away", folder / "parent")
        """,
        tmp_path,
    )
    for number in range(ROUNDS):
        kept = tmp_path / f"kept-{number}"
        capture(kept, call_with(tmp_path / "parent" / "context"))
        assert all(path.read_text() == "inside" for path in kept.iterdir())
