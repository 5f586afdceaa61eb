"""The worst folder we know of, as a user who may not read all of it."""

import json
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from factory.snapshots import Deadline
from tests.factory.making import Clock, call_with, capture, rows

NOBODY = 65534


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that an unprivileged user can reach."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    (folder / "context").mkdir()
    (folder / "kept").mkdir()
    if os.geteuid() == 0:
        os.chown(folder / "kept", NOBODY, NOBODY)
    yield folder
    shutil.rmtree(folder)


def captured(place: Path) -> dict[str, Any]:
    """The packet of `context`, captured by a forked child that is not root (root may read everything)."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            packet = capture(place / "kept", call_with(place / "context"), deadline=Deadline(Clock()))
            said = {"counts": [packet.declared, packet.captured, packet.omitted], "rows": rows(packet)}
            os.write(theirs, json.dumps(said).encode())
        finally:
            os._exit(0)
    os.close(theirs)
    with open(ours, "rb") as pipe:  # noqa: PTH123
        said = pipe.read()
    os.waitpid(child, 0)
    return json.loads(said)  # type: ignore[no-any-return]


def test_what_may_not_be_read_is_named_with_its_reason(place: Path) -> None:  # FA-6
    context = place / "context"
    (context / "file").write_text("x")
    (context / "file").chmod(0)
    (context / "folder").mkdir(mode=0o700)
    (context / "folder").chmod(0)
    (context / "open").write_text("x")
    packet = captured(place)
    assert packet["rows"] == [
        ["file", "unreadable", "cannot be opened: Permission denied"],
        ["folder/", "unreadable", "folder cannot be listed: Permission denied"],
        ["open", "captured", None],
        ["more inputs may exist", "enumeration_incomplete", "stopped: a folder could not be listed"],
    ]
    assert packet["counts"] == [None, 1, None], "what lies in that folder is unknown, not nothing"


def test_the_worst_folder_is_accounted_for_name_by_name(place: Path) -> None:  # FA-6
    context = place / "context"
    (context / "deep").mkdir()
    (context / "deep" / "loop").symlink_to("../deep")
    os.mkfifo(context / "fifo", 0o644)
    (context / os.fsdecode(b"latin-\xe9")).write_text("x")
    (context / "locked").mkdir()
    (context / "locked").chmod(0)
    (context / "new\nline").write_text("x")
    with (context / "sparse").open("wb") as file:
        file.truncate(10 * 1024**3)
    (context / "secret").write_text("x")
    (context / "secret").chmod(0)
    many = context / "zmany"
    many.mkdir()
    for number in range(10_000):
        (many / f"{number:05}").touch()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(context / "socket"))
    growing = subprocess.Popen(["/bin/sh", "-c", f"while :; do echo x; done >> {context}/growing"])
    try:
        packet = captured(place)
    finally:
        growing.kill()
        growing.wait()
        listener.close()
    status = {label: (state, detail) for label, state, detail in packet["rows"]}
    assert status["deep/loop"] == ("unreadable", "symbolic link, not followed")
    assert status["fifo"] == status["socket"] == ("unreadable", "not a regular file")
    assert status["latin-\\xe9"][0] == status["new\nline"][0] == "captured"
    assert status["sparse"] == ("limit_exceeded", "larger than 10 MiB")
    assert status["locked/"][0] == status["secret"][0] == "unreadable"
    assert status["growing"][0] in {"captured", "changed_during_capture", "limit_exceeded"}
    assert status["more inputs may exist"] == ("enumeration_incomplete", "stopped: 100 files")
    assert len(packet["rows"]) == 101
    kept = {path.name for path in (place / "kept").iterdir()}
    assert kept == {str(seq) for seq, row in enumerate(packet["rows"], 1) if row[1] == "captured"}
