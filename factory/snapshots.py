"""Copies of files as they were at dispatch: bounded, race-checked, never through a link.

Every open goes name by name from an open directory, with O_NOFOLLOW (a link is not followed, not even one that was
swapped in a moment ago) and O_NONBLOCK (a FIFO does not wait for a writer); what was opened is then judged by its
own `fstat`, before the copy and after it. ctime is compared too: it moves when a writer puts mtime back.
"""

import errno
import hashlib
import os
import stat
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Literal

from factory.items import CaptureStatus
from factory.media import Media, recognise

MIB = 1024**2
MAX_FILES = 100
MAX_DEPTH = 8
MAX_FILE_BYTES = 10 * MIB
MAX_TOTAL_BYTES = 50 * MIB
MAX_SECONDS = 5.0

_CHUNK = MIB
_OPEN_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# To pass through a folder one need not be allowed to list it. (Only Linux has such a handle.)
_PASS_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FULL = {errno.ENOSPC, errno.EDQUOT}
_CLOCK_EVERY = 512  # names listed between two looks at the clock

Bound = Literal["files", "depth", "bytes", "time"]
BOUND_NAMES: dict[Bound, str] = {
    "files": f"{MAX_FILES} files",
    "depth": f"depth {MAX_DEPTH}",
    "bytes": f"{MAX_TOTAL_BYTES // MIB} MiB in total",
    "time": f"{MAX_SECONDS:g} seconds",
}


class CaptureFailed(Exception):
    """These bytes were not kept. `status` is the row's, `detail` its reason for a person."""

    def __init__(self, status: CaptureStatus, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail


class BoundReached(Exception):
    """A bound that ends the whole capture was reached."""

    def __init__(self, bound: Bound) -> None:
        super().__init__(BOUND_NAMES[bound])
        self.bound: Bound = bound


class Deadline:
    """The capture's wall time, on a clock that a test can turn."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, seconds: float = MAX_SECONDS) -> None:
        self._clock, self._end = clock, clock() + seconds

    def check(self) -> None:
        """Raises BoundReached when the time is over."""
        if self._clock() >= self._end:
            raise BoundReached("time")


@dataclass(frozen=True, slots=True)
class Kept:
    """What was kept of one source: facts of the copy, never of the source."""

    size: int
    sha256: str
    media: Media
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """One name below a declared root: its path in components, and what is known of it before it is opened.

    `problem` is set for what is not copied: a link, a FIFO, a folder that cannot be listed.
    """

    parts: tuple[str, ...]
    folder: int
    problem: str | None = None
    is_folder: bool = False


class Folder:
    """One attempt's snapshot folder, held open. Files are named by their sequence number and nothing else."""

    def __init__(self, handle: int, reserve: Callable[[int], str | None], release: Callable[[int], None]) -> None:
        self._handle, self._reserve, self._release = handle, reserve, release
        self.total = 0

    @classmethod
    def closed(cls, why: str) -> "Folder":
        """A folder that could not be made: it keeps nothing, for this reason."""
        return cls(-1, lambda size: why, lambda size: None)

    def keep_bytes(self, seq: int, data: bytes) -> Kept:
        """Keep bytes that are held already. Raises CaptureFailed or BoundReached."""
        self._admit(len(data))
        with self._temporary(seq, len(data)) as handle:
            _write(handle, data)
        self.total += len(data)
        return Kept(len(data), hashlib.sha256(data).hexdigest(), recognise(data))

    def keep_file(self, seq: int, folder: int, name: str, deadline: Deadline) -> Kept:
        """Copy the file `name` of the open directory `folder`. Raises CaptureFailed or BoundReached.

        A file that changed under the copy is tried once more: some file systems move ctime by themselves.
        """
        try:
            return self._copy(seq, folder, name, deadline)
        except CaptureFailed as failure:
            if failure.status != "changed_during_capture":
                raise
            return self._copy(seq, folder, name, deadline)

    def _copy(self, seq: int, folder: int, name: str, deadline: Deadline) -> Kept:
        source = open_regular(folder, name)
        try:
            before = os.fstat(source)
            self._admit(before.st_size)
            deadline.check()
            with self._temporary(seq, before.st_size) as handle:
                data = _read_bounded(source, handle, deadline)
                _check_unchanged(before, os.fstat(source), folder, name)
                # Some files have no size until they are read (those of /proc): what was read counts.
                self._admit(len(data), reserved=before.st_size)
            self.total += len(data)
        finally:
            os.close(source)
        links = f"{before.st_nlink} hard links" if before.st_nlink > 1 else None
        return Kept(len(data), hashlib.sha256(data).hexdigest(), recognise(bytes(data)), links)

    def _admit(self, size: int, *, reserved: int | None = None) -> None:
        if size > MAX_FILE_BYTES:
            raise CaptureFailed("limit_exceeded", f"larger than {MAX_FILE_BYTES // MIB} MiB")
        if self.total + size > MAX_TOTAL_BYTES:
            raise BoundReached("bytes")
        more = size - (reserved or 0)
        if (more > 0 or reserved is None) and (refusal := self._reserve(more)):
            raise CaptureFailed("limit_exceeded", refusal)

    @contextmanager
    def _temporary(self, seq: int, reserved: int) -> Iterator[int]:
        """A temporary file that becomes `seq` when the block ends well, and is gone when it does not."""
        temporary = f".{seq}.tmp"
        try:
            handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=self._handle)
            try:
                yield handle
            finally:
                os.close(handle)
            os.rename(temporary, str(seq), src_dir_fd=self._handle, dst_dir_fd=self._handle)
        except BaseException as error:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=self._handle)
            self._release(reserved)
            if isinstance(error, OSError):
                status: CaptureStatus = "limit_exceeded" if error.errno in _FULL else "unreadable"
                raise CaptureFailed(status, f"cannot be kept: {error.strerror}") from None
            raise


def open_regular(folder: int, name: str) -> int:
    """A handle of the regular file `name` in `folder`. Raises CaptureFailed, and never waits."""
    try:
        handle = os.open(name, _OPEN_FILE, dir_fd=folder)
    except ValueError:
        raise CaptureFailed("unreadable", "invalid path") from None
    except FileNotFoundError:
        raise CaptureFailed("missing", "no longer there") from None
    except OSError as error:
        raise CaptureFailed("unreadable", _why_not_opened(error)) from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise CaptureFailed("unreadable", "not a regular file")
    return handle


def _why_not_opened(error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return "symbolic link, not followed"
    if error.errno in {errno.ENXIO, errno.ENODEV, errno.EOPNOTSUPP}:  # a socket, a device without a driver
        return "not a regular file"
    return f"cannot be opened: {error.strerror}"


def _read_bounded(source: int, copy: int, deadline: Deadline) -> bytearray:
    """Copy at most the limit and one byte, whatever the file's size claims."""
    data = bytearray()
    while len(data) <= MAX_FILE_BYTES:
        try:
            chunk = os.read(source, _CHUNK)
        except OSError as error:
            raise CaptureFailed("unreadable", f"cannot be read: {error.strerror}") from None
        if not chunk:
            break
        data += chunk
        _write(copy, chunk)
        deadline.check()
    return data


def _write(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _check_unchanged(before: os.stat_result, after: os.stat_result, folder: int, name: str) -> None:
    if _identity(before) != _identity(after):
        raise CaptureFailed("changed_during_capture", "changed while it was copied")
    try:
        named = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        raise CaptureFailed("changed_during_capture", "was moved while it was copied") from None
    if (named.st_dev, named.st_ino) != (before.st_dev, before.st_ino):
        raise CaptureFailed("changed_during_capture", "was replaced while it was copied")


def _identity(facts: os.stat_result) -> tuple[int, ...]:
    return (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)


def open_folder(path: str) -> int:
    """A handle of the folder at an absolute path, opened name by name so that no component is a link.

    Raises OSError.
    """
    parts = ["/", *(part for part in path.split("/") if part not in {"", "."})]
    handle: int | None = None
    for number, part in enumerate(parts, 1):
        above = handle
        try:
            handle = os.open(part, _OPEN_FOLDER if number == len(parts) else _PASS_FOLDER, dir_fd=above)
        finally:
            if above is not None:
                os.close(above)
    assert handle is not None
    return handle


def walk(root: int, deadline: Deadline, parts: tuple[str, ...] = ()) -> Generator[Found, None, None]:
    """Everything below an open folder but the folders themselves, in the order of path components by their bytes.

    The handle in `Found.folder` is open until the next step. Raises BoundReached for depth and time.
    """
    try:
        names = _names(root, deadline)
    except OSError as error:
        yield _not_listed(parts, root, error)
        return
    for name in names:
        deadline.check()
        here = (*parts, name)
        try:
            mode = os.stat(name, dir_fd=root, follow_symlinks=False).st_mode
        except FileNotFoundError:
            yield Found(here, root)  # gone since it was listed, as the copy will find
            continue
        except OSError as error:
            yield Found(here, root, f"cannot be examined: {error.strerror}")
            continue
        if stat.S_ISDIR(mode):
            yield from _below(root, name, here, deadline)
        elif stat.S_ISLNK(mode):
            yield Found(here, root, "symbolic link, not followed")
        elif stat.S_ISREG(mode):
            yield Found(here, root)
        else:
            yield Found(here, root, "not a regular file")


def _below(root: int, name: str, here: tuple[str, ...], deadline: Deadline) -> Iterator[Found]:
    if len(here) > MAX_DEPTH:
        raise BoundReached("depth")
    try:
        handle = os.open(name, _OPEN_FOLDER, dir_fd=root)
    except OSError as error:
        yield _not_listed(here, root, error)
        return
    try:
        yield from walk(handle, deadline, here)
    finally:
        os.close(handle)


def _not_listed(parts: tuple[str, ...], folder: int, error: OSError) -> Found:
    swapped = error.errno in {errno.ENOTDIR, errno.ELOOP}
    reason = "symbolic link, not followed" if swapped else f"folder cannot be listed: {error.strerror}"
    return Found(parts, folder, reason, is_folder=True)


def _names(folder: int, deadline: Deadline) -> list[str]:
    names = []
    with os.scandir(folder) as entries:
        for count, entry in enumerate(entries):
            names.append(entry.name)
            if count % _CLOCK_EVERY == 0:
                deadline.check()
    return sorted(names, key=os.fsencode)
