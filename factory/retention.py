"""The snapshot folder's life: staged under a lock, kept within a disk budget, cleaned of what nobody owns.

`<root>/<attempt id>/<seq>` is the whole layout; beside it lie the lock and one lock file for each living run. One
lock, shared by every run on this machine, is held from before a capture until its rows are committed: captures of
two runs follow each other (each is bounded in time), what is being staged is never taken for an orphan, and the
budget is measured and spent by one at a time. Lock first, then the database, never the other way round.
"""

import fcntl
import os
import re
import shutil
import stat
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from factory.snapshots import Folder

ORPHAN_SECONDS = 600.0
"""Age below which a folder without an attempt is left alone: a hundred times the longest capture."""
LOCK_SECONDS = 30.0
"""How long a capture waits for the other runs'. Then it goes on, and says that nothing was kept."""
BLOCK = 4096
MARKER = ".database"
"""The file in the root that tells whose it is."""

_ATTEMPT = re.compile(r"[0-9a-f]{32}\Z")
_RUN_LOCK = re.compile(r"\.run-([0-9a-f]{32})\.lock\Z")
_NEW_LOCK = re.compile(r"\.run-[0-9a-f]{32}\.new\Z")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_IN_USE = "the snapshot folder was in use by other runs"
_MIB = 1024**2


class StoreError(Exception):
    """The snapshot root cannot be used; the message is one line for a person."""


@dataclass(frozen=True, slots=True)
class DiskLimits:
    """All in bytes: what all snapshots may take, what must stay free on their disk, what one run may take."""

    budget: int
    min_free: int
    run_cap: int


@dataclass(frozen=True, slots=True)
class StoredInput:
    """A snapshot that may go: it belongs to an attempt that has ended."""

    input_id: int
    attempt_id: str
    seq: int
    size: int


class SnapshotLedger(Protocol):
    """What the store must know of the rows, and the one change it asks for."""

    def evictable(self) -> Iterator[StoredInput]:
        """Available inputs of attempts that have ended, oldest attempt first, in the order of their packet."""

    def evict(self, input_id: int, reason: str) -> bool:
        """Mark the input as evicted, with the reason. False where it was not available any more."""

    def attempts_of(self, run_id: int) -> set[str]:
        """The ids of a run's attempts."""

    def known(self, attempt_ids: list[str]) -> dict[str, set[int]]:
        """Of these attempts, those with a committed row, each with the seqs whose bytes must be here."""

    def identity(self) -> str:
        """What tells this database from every other, for as long as it lives."""

    def interrupted(self, token: str, *, dry_run: bool) -> int | None:
        """The process with this token is gone: end the run it left running, if any, and answer its id."""


@dataclass(slots=True)
class Reconciled:
    """What a reconciliation did, or would do."""

    removed: list[str] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)
    young: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    interrupted: list[int] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    evicted: int = 0


def _free_bytes(root: Path) -> int:
    facts = os.statvfs(root)
    return facts.f_bavail * facts.f_frsize


class SnapshotStore:
    """The snapshot folder of this machine's factory."""

    def __init__(
        self,
        root: Path,
        limits: DiskLimits,
        ledger: SnapshotLedger,
        *,
        free_bytes: Callable[[Path], int] = _free_bytes,
        lock_seconds: float = LOCK_SECONDS,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.root, self.limits, self._ledger = root, limits, ledger
        self._free_bytes, self._lock_seconds, self._now = free_bytes, lock_seconds, now

    def prepare(self) -> None:
        """Make the root, private to this user. Raises StoreError for a root that would expose or endanger files."""
        root = Path(os.path.abspath(self.root))  # noqa: PTH100 - a link must not hide what it points to
        try:
            root.mkdir(parents=True, exist_ok=True, mode=0o700)
            real, facts = root.resolve(), root.stat()
        except OSError as error:
            raise StoreError(f"snapshot root {root}: {error.strerror}") from None
        if real in {Path("/"), Path("~").expanduser().resolve()}:
            raise StoreError(f"snapshot root {root}: not a folder of its own (FACTORY_SNAPSHOT_ROOT names another)")
        if facts.st_mode & stat.S_IWOTH:
            raise StoreError(f"snapshot root {root}: anybody may write there")
        self.root = real

    @contextmanager
    def running(self) -> Iterator[str]:
        """A token, and the lock that says that its process lives: others learn of a death by its being free.

        It is taken before the run's row is written, so there is no moment at which a death would not be seen; and its
        file stays behind where the block ends in an exception, since the row may not say how the run ended.
        Raises StoreError.
        """
        token = uuid.uuid4().hex
        new, path = self.root / f".run-{token}.new", self.root / f".run-{token}.lock"
        try:
            handle = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(handle, fcntl.LOCK_EX)
            new.rename(path)  # who sees it under this name finds it locked
        except OSError as error:
            raise StoreError(f"snapshot root {self.root}: {error.strerror}") from None
        try:
            yield token
            path.unlink(missing_ok=True)
        finally:
            os.close(handle)

    @contextmanager
    def staging(self, run_id: int) -> Iterator["Staging"]:
        """The time in which one attempt's inputs are captured and committed. A root that cannot be used costs the
        snapshots alone: nothing is raised for it."""
        with ExitStack() as stack:
            refusal = ""
            used: dict[str, int] = {}
            try:
                refusal = "" if stack.enter_context(self._lock()) else _IN_USE
                used = {} if refusal else self.used()
            except OSError as error:
                refusal = _unusable(error)
            staging = Staging(self, run_id, used, refusal)
            yield staging
            if not refusal:
                with suppress(OSError):
                    staging.settle()

    def reconcile(self, *, dry_run: bool = False) -> Reconciled:
        """Put folder and rows in agreement: end runs whose process died, remove old folders that no attempt owns and
        files that no row claims, then keep the budget. With `dry_run` it only says what it would do.

        Raises StoreError where other runs hold the lock for too long, or the root cannot be used.
        """
        try:
            return self._reconcile(dry_run)
        except OSError as error:
            raise StoreError(f"snapshot root {self.root}: {error.strerror}") from None

    def _reconcile(self, dry_run: bool) -> Reconciled:
        report = Reconciled()
        with self._lock() as held:
            if not held:
                raise StoreError("the snapshot folder is in use by another run")
            is_ours = self._is_ours(dry_run)
            self._dead_runs(report, dry_run, is_ours)
            self._orphans(report, dry_run, is_ours)
            report.evicted = Staging(self, 0, {}).settle(dry_run=dry_run)
        return report

    def _is_ours(self, dry_run: bool) -> bool:
        """Does this root belong to our database? The first that tidies here says so in a file. What another database's
        runs left has no row in ours, and is not ours to remove."""
        marker, identity = self.root / MARKER, self._ledger.identity().encode()
        said = marker.read_bytes() if marker.exists() else b""
        if not said and not dry_run:
            marker.write_bytes(identity)
        return not said or said == identity

    def _dead_runs(self, report: Reconciled, dry_run: bool, is_ours: bool) -> None:
        for path in sorted(self.root.iterdir()):
            if _NEW_LOCK.match(path.name) and not dry_run and self._is_old(path):
                path.unlink(missing_ok=True)
            match = _RUN_LOCK.match(path.name)
            if not match or not _is_free(path):
                continue
            run_id = self._ledger.interrupted(match[1], dry_run=dry_run)
            if run_id is not None:
                report.interrupted.append(run_id)
            if not dry_run and (is_ours or run_id is not None):
                path.unlink(missing_ok=True)

    def _orphans(self, report: Reconciled, dry_run: bool, is_ours: bool) -> None:
        names = sorted(path.name for path in self.root.iterdir() if _ATTEMPT.match(path.name))
        known = self._ledger.known(names)
        here = set(names)
        gone = (stored for stored in self._ledger.evictable() if stored.attempt_id not in here)
        report.missing += [f"{stored.attempt_id}/{stored.seq}" for stored in gone]
        for name in names:
            if name in known:
                self._strays(name, known[name], report, dry_run)
            elif not is_ours:
                report.foreign.append(name)
            elif not self._is_old(self.root / name):
                report.young.append(name)
            elif dry_run or self.discard(name) is None:
                report.removed.append(name)
            else:
                report.failed.append(str(self.root / name))

    def _is_old(self, path: Path) -> bool:
        return self._now() - path.lstat().st_mtime >= ORPHAN_SECONDS

    def _strays(self, attempt_id: str, wanted: set[int], report: Reconciled, dry_run: bool) -> None:
        folder = self.root / attempt_id
        try:
            handle = os.open(folder, _FOLDER)
        except OSError:
            report.failed.append(str(folder))
            return
        try:
            here = set(os.listdir(handle))  # noqa: PTH208 - of the open folder, whatever has its name by now
            expected = {str(seq) for seq in wanted}
            report.missing += [f"{attempt_id}/{name}" for name in sorted(expected - here)]
            for name in sorted(here - expected):
                if dry_run or _unlinked(name, handle):
                    report.strays.append(f"{attempt_id}/{name}")
                else:
                    report.failed.append(str(folder / name))
        finally:
            os.close(handle)

    def discard(self, attempt_id: str) -> str | None:
        """Remove an attempt's folder. Answers why it could not be, else None."""
        try:
            shutil.rmtree(self.root / attempt_id)
        except FileNotFoundError:
            return None
        except OSError as error:
            return str(error.strerror)
        return None

    @contextmanager
    def _lock(self) -> Iterator[bool]:
        """Hold the lock that all runs share; False where it could not be had in time."""
        handle = os.open(self.root / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            yield _flock_within(handle, self._lock_seconds)
        finally:
            os.close(handle)

    def used(self) -> dict[str, int]:
        """Allocated bytes by attempt folder, as the disk has them."""
        return {entry.name: _allocated(entry.path) for entry in os.scandir(self.root) if _ATTEMPT.match(entry.name)}

    def free(self) -> int:
        return self._free_bytes(self.root)

    def remove(self, attempt_id: str, seq: int) -> None:
        """Remove a copy, and its folder with the last one: an old factory would otherwise walk thousands of them."""
        folder = self.root / attempt_id
        with suppress(FileNotFoundError):
            (folder / str(seq)).unlink()
        with suppress(OSError):
            folder.rmdir()

    @property
    def ledger(self) -> SnapshotLedger:
        return self._ledger


class Staging:
    """One capture's hold on the store: it reserves room before bytes are written, and evicts to make that room.

    `used` are the allocated bytes by attempt; `refusal` is why nothing can be kept at all.
    """

    def __init__(self, store: SnapshotStore, run_id: int, used: dict[str, int], refusal: str = "") -> None:
        self._store, self._refusal = store, refusal
        self._used = sum(used.values())
        own = store.ledger.attempts_of(run_id) if used else set()
        self._run_used = sum(size for name, size in used.items() if name in own)
        self._queue: deque[StoredInput] | None = None
        self._would_be_free = 0

    @contextmanager
    def folder(self, attempt_id: str) -> Iterator[Folder]:
        """The attempt's new folder, held open; it is gone again where nothing was kept in it."""
        path = self._store.root / attempt_id
        try:
            handle = -1 if self._refusal else _new_folder(path)
        except OSError as error:
            handle, self._refusal = -1, _unusable(error)
        if self._refusal:
            yield Folder.closed(self._refusal)
            return
        try:
            yield Folder(handle, self.reserve, self.release)
        finally:
            os.close(handle)
            with suppress(OSError):
                path.rmdir()

    def reserve(self, size: int) -> str | None:
        """Room for `size` more bytes, evicting the oldest snapshots where that gives it. Answers the refusal."""
        size = _blocks(size)
        limits = self._store.limits
        if self._run_used + size > limits.run_cap:
            return f"this run's snapshots would pass the cap of {_mib(limits.run_cap)} a run"
        if self._crossed(size):
            if refusal := self._impossible(size):
                return refusal
            while self._crossed(size) and self._evict_oldest():
                pass
            if refusal := self._crossed(size):
                return refusal
        self._used += size
        self._run_used += size
        return None

    def release(self, size: int) -> None:
        """Give back room that was reserved and not used."""
        self._used -= _blocks(size)
        self._run_used -= _blocks(size)

    def settle(self, *, dry_run: bool = False) -> int:
        """Measure again and evict until budget and free space hold. Answers how many inputs were evicted, or would
        be."""
        self._used = sum(self._store.used().values())
        evicted = 0
        while self._crossed(0) and self._evict_oldest(dry_run=dry_run):
            evicted += 1
        return evicted

    def _impossible(self, size: int) -> str | None:
        """Why not even evicting everything that may go would make room: then nothing is evicted."""
        limits = self._store.limits
        gain = sum(_blocks(stored.size) for stored in self._evictable())
        if self._used - gain + size > limits.budget:
            return f"protected snapshots alone would pass the budget of {_mib(limits.budget)}"
        if self._store.free() + gain - size < limits.min_free:
            return f"less than {_mib(limits.min_free)} would stay free on the disk"
        return None

    def _crossed(self, size: int) -> str | None:
        limits = self._store.limits
        if self._used + size > limits.budget:
            return f"budget of {_mib(limits.budget)}"
        if self._store.free() + self._would_be_free - size < limits.min_free:
            return f"at least {_mib(limits.min_free)} must stay free"
        return None

    def _evictable(self) -> deque[StoredInput]:
        if self._queue is None:  # asked for only when room is short
            self._queue = deque(self._store.ledger.evictable())
        return self._queue

    def _evict_oldest(self, *, dry_run: bool = False) -> bool:
        queue = self._evictable()
        if not queue:
            return False
        oldest = queue.popleft()
        reason = f"evicted to stay within the disk budget ({self._crossed(0) or 'room for a newer capture'})"
        if dry_run:
            self._used -= _blocks(oldest.size)
            self._would_be_free += _blocks(oldest.size)
        elif self._store.ledger.evict(oldest.input_id, reason):
            self._store.remove(oldest.attempt_id, oldest.seq)
            self._used -= _blocks(oldest.size)
        return True


def _new_folder(path: Path) -> int:
    path.mkdir(mode=0o700)
    return os.open(path, _FOLDER)


def _unusable(error: OSError) -> str:
    return f"the snapshot folder cannot be used: {error.strerror}"


def _unlinked(name: str, folder: int) -> bool:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _flock_within(handle: int, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= end:
                return False
            time.sleep(0.02)


def _is_free(path: Path) -> bool:
    """Is nobody holding this lock file?"""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return _flock_within(handle, 0)
    finally:
        os.close(handle)


def _allocated(folder: str) -> int:
    try:
        with os.scandir(folder) as entries:
            return sum(entry.stat(follow_symlinks=False).st_blocks * 512 for entry in entries)
    except OSError:
        return 0


def _blocks(size: int) -> int:
    return -(-size // BLOCK) * BLOCK


def _mib(size: int) -> str:
    return f"{size / _MIB:.4g} MiB"
