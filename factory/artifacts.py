"""The stored bytes of an input, for a preview: found by its row, contained in the snapshot root, checked whole.

The path is made of the attempt's id and the sequence number; nothing that a row says is opened. What is served is
what was read and hashed, in one piece, so that nothing can change in between.
"""

import hashlib
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from factory.media import Media, recognise
from factory.snapshots import MAX_FILE_BYTES

TEXT_PAGE_BYTES = 64_000
"""A page of a text preview: more than a screen reader or a phone wants at once, less than a page's weight limit."""

_ATTEMPT = re.compile(r"[0-9a-f]{32}\Z")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Refused(Exception):
    """No preview, and why: a sentence for a person, and the HTTP status for it."""

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.sentence, self.status = sentence, status


@dataclass(frozen=True, slots=True)
class StoredCopy:
    """What is known of the copy before it is opened."""

    attempt_id: str
    seq: int
    sha256: str | None
    preview_kind: str
    artifact_status: str
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Artifact:
    """Bytes that agree with their hash, and what they are by themselves."""

    data: bytes
    media: Media
    sha256: str

    @property
    def page_count(self) -> int:
        return len(self._starts())

    def page(self, number: int) -> str:
        """The text's page 1 … `page_count`; pages end between characters, and together they are the text."""
        starts = [*self._starts(), len(self.data)]
        return self.data[starts[number - 1] : starts[number]].decode()

    def _starts(self) -> list[int]:
        starts = [0]
        while starts[-1] + TEXT_PAGE_BYTES < len(self.data):
            starts.append(self._break_before(starts[-1], starts[-1] + TEXT_PAGE_BYTES))
        return starts

    def _break_before(self, start: int, end: int) -> int:
        """Where a page that begins at `start` ends: after its last line, or inside a line that fills it, and never
        inside a character."""
        if (newline := self.data.rfind(b"\n", start, end)) >= 0:
            return newline + 1
        while self.data[end] & 0xC0 == 0x80:
            end -= 1
        return end


def load(root: Path, stored: StoredCopy) -> Artifact:
    """The copy, if it is there, may be previewed and is what was captured. Raises Refused."""
    if stored.artifact_status == "evicted":
        raise Refused(f"{_sentence(stored.detail)} Hash and size remain.", 410)
    if stored.artifact_status != "available" or stored.sha256 is None:
        raise Refused("The bytes of this input were never captured.", 404)
    if stored.preview_kind not in {"text", "image"}:
        raise Refused("There is no preview for this kind of file.", 415)
    data = _read(root, stored)
    if hashlib.sha256(data).hexdigest() != stored.sha256:
        raise Refused("The stored copy no longer matches its hash.", 409)
    media = recognise(data)
    if media.preview_kind != stored.preview_kind:
        raise Refused("There is no preview for this kind of file.", 415)
    return Artifact(data, media, stored.sha256)


def _read(root: Path, stored: StoredCopy) -> bytes:
    gone = Refused("The stored copy is gone.", 404)
    if not _ATTEMPT.match(stored.attempt_id) or stored.seq < 1:
        raise gone
    handles: list[int] = []
    try:
        handles.append(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        handles.append(os.open(stored.attempt_id, _FOLDER, dir_fd=handles[-1]))
        handles.append(os.open(str(stored.seq), _FILE, dir_fd=handles[-1]))
        if not stat.S_ISREG(os.fstat(handles[-1]).st_mode):
            raise gone
        with open(handles[-1], "rb", closefd=False) as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError:
        raise gone from None
    finally:
        for handle in handles:
            os.close(handle)
    if len(data) > MAX_FILE_BYTES:
        raise Refused("The stored copy is larger than a preview may be.", 413)
    return data


def _sentence(detail: str | None) -> str:
    said = (detail or "evicted").split("; ")[-1]
    return said[:1].upper() + said[1:] + "."
