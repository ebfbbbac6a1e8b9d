"""A folder of Parquet files with an own log: what is in the table changes by one entry, atomically.

``log/NNNNNNNNNNNNNNNNNNNN.json`` is one entry: files that come and files that go, and which batch of which query made
them.  An entry is written beside and linked into place, which fails if the number is taken: so of two writers one sees
that the other was first.  A batch that is replayed after a crash finds its entry and writes nothing; files of an
attempt that left no entry are nobody's, and :func:`expire` takes them away.

``snapshots/N.json`` is what all entries up to N come to, made behind every :data:`SNAPSHOT_EVERY`-th entry: a process
begins with the newest, and reads on from there.  So entries up to a snapshot may go; who looks for the next entry and
finds none looks for a newer snapshot, too, and nobody makes an entry that a snapshot covers.

Not here: Spark.  The folder must be on a file system with hard links, which every writer sees.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import shutil
import tempfile
import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Lock

__all__ = ["ACCEPTED", "REJECTED", "Added", "Entry", "State", "Table", "write_once"]

ACCEPTED, REJECTED = "accepted", "rejected"
"""The parts of silver."""
SNAPSHOT_EVERY = 100
KNOWN: dict[str, tuple[Stamp, State]] = {}
"""Log → what its entries come to, and the newest file that this was read from: it is read on from there."""
READING = Lock()
DRAFT = ".entry-"


@dataclass(frozen=True)
class Added:
    """A file that an entry brings."""

    path: str
    """Relative to the table."""
    part: str
    """Which of the tables in this one, as ``accepted`` and ``rejected``."""
    day: str
    """ISO date that all its rows have, or ``""``."""
    rows: int
    bytes: int


@dataclass(frozen=True)
class Entry:
    """One change."""

    version: int
    kind: str
    """``batch`` (new rows; streams read these), ``backfill`` or ``compaction``."""
    query: str
    batch: int
    """Of that query; with it the entry is found again."""
    added: tuple[Added, ...] = ()
    removed: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    """Rows read, and what became of them."""


@dataclass(frozen=True)
class State:
    """What the entries up to a version come to."""

    version: int = -1
    files: Mapping[str, Added] = field(default_factory=dict)
    """By their paths, those that hold the rows, in the order in which they came."""
    newest: Mapping[str, int] = field(default_factory=dict)
    """Query → its last batch."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Of all entries."""
    brought: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Kind of entry → part → rows in files that came."""
    first: Mapping[str, int] = field(default_factory=dict)
    """Part → version of the entry that brought its first file."""

    def live(self, part: str) -> list[Added]:
        """The files that hold a part's rows, in the order in which they came."""
        return [one for one in self.files.values() if one.part == part]

    def advanced(self, entries: Iterable[Entry]) -> State:
        """Behind more entries, the next ones in order."""
        version, first = self.version, dict(self.first)
        files, newest, counts = dict(self.files), dict(self.newest), Counter(self.counts)
        brought = {kind: Counter(rows) for kind, rows in self.brought.items()}
        for entry in entries:
            version = entry.version
            newest[entry.query] = entry.batch
            counts.update(entry.counts)
            for path in entry.removed:
                files.pop(path, None)
            for one in entry.added:
                files[one.path] = one
                first.setdefault(one.part, version)
                brought.setdefault(entry.kind, Counter())[one.part] += one.rows
        return State(version, files, newest, dict(counts), {kind: dict(rows) for kind, rows in brought.items()}, first)


Stamp = tuple[Path, int]
"""A file and its time: entries and snapshots never change, but the folder may be another one."""


class Table:
    """The table in a folder; other processes may write, and what they have committed is seen by the next call."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._log = folder / "log"
        self._folded = folder / "snapshots"

    @property
    def version(self) -> int:
        """Of the newest entry; -1: there is none."""
        return self.state().version

    def state(self, version: int | None = None) -> State:
        """Now, or as of a version.

        Raises:
            LookupError: entries that are needed for it are gone.
        """
        if version is None:
            return self._newest_state()
        older = max((one for one in self._snapshots() if one <= version), default=-1)
        return self._snapshot(older).advanced(self.entries(older, version))

    def entries(self, after: int = -1, until: int | None = None) -> list[Entry]:
        """In order, those with ``after < version <= until``.

        Raises:
            LookupError: some of them are gone; what they came to is in the snapshots.
        """
        last = self.version if until is None else until
        try:
            return [_parsed(self._path(version)) for version in range(after + 1, last + 1)]
        except FileNotFoundError as error:
            raise LookupError(f"entries behind {after} are gone from the log: {error}") from error

    def holds(self, query: str, batch: int) -> bool:
        """Whether a batch of a query has left its entry, or a later one of it has: they come in order."""
        return batch <= self.state().newest.get(query, -1)

    def live(self, part: str, version: int | None = None) -> list[Added]:
        """The files that hold a part's rows, now or at a version, in the order in which they came."""
        return self.state(version).live(part)

    def files_since(self, part: str, kinds: Collection[str], after: int, until: int) -> list[Added]:
        """Of entries of these kinds with ``after < version <= until``, the files of a part in order.

        From the first entry on, if that or files of those are gone: what the table holds at ``until``.

        Raises:
            LookupError: entries between are gone.
        """
        if after < 0 < self._oldest():
            return self.live(part, until)
        entries = self.entries(after, until)
        files = [one for entry in entries if entry.kind in kinds for one in entry.added if one.part == part]
        if after < 0 and not all((self.folder / one.path).exists() for one in files):
            return self.live(part, until)
        return files

    def paths(self, files: Iterable[Added]) -> list[str]:
        return [str(self.folder / one.path) for one in files]

    def attempt(self, query: str, batch: int) -> str:
        """The name, relative to the table, of a new folder for an attempt at a batch; no two attempts share one."""
        return f"data/{query}-{batch:012d}-{uuid.uuid4().hex[:8]}"

    def commit(self, entry: Entry) -> bool:
        """Make it so; False if an entry with this version exists, or did: then look again, and decide anew."""
        with self._locked(fcntl.LOCK_SH):
            if entry.version <= self._last_snapshot():
                return False
            is_made = write_once(self._path(entry.version), json.dumps(asdict(entry)))
        if is_made and entry.version - self._last_snapshot() >= SNAPSHOT_EVERY:
            self._fold()
        return is_made

    def expire(self, before: int, *, with_attempts: bool) -> int:
        """Delete files that entries below ``before`` removed, then such entries as a snapshot covers; how many files.

        ``with_attempts``: also the folders that no entry names.  Nobody may be writing then.
        """
        state = self.state()
        oldest = self._oldest()
        entries = self.entries(oldest - 1)
        gone = [path for one in entries if one.version < before for path in one.removed if path not in state.files]
        there = [path for path in gone if (self.folder / path).exists()]
        for path in there:
            (self.folder / path).unlink()
        deleted = len(there)
        if with_attempts:
            named = {*state.files, *(path for one in entries for path in one.removed)}
            named.update(added.path for one in entries for added in one.added)
            deleted += self._expire_attempts({path.split("/")[1] for path in named})
        self._forget(before)
        return deleted

    def parts(self) -> set[str]:
        """All that ever had a file."""
        return set(self.state().first)

    def _expire_attempts(self, named: Collection[str]) -> int:
        deleted = 0
        for draft in self.folder.glob(f"{DRAFT}*"):
            draft.unlink()
        for folder in (self.folder / "data").glob("*"):
            if folder.name not in named:
                deleted += sum(1 for _ in folder.rglob("*.parquet"))
                shutil.rmtree(folder)
        return deleted

    def _forget(self, before: int) -> None:
        """Entries up to the newest snapshot below ``before``, the oldest first, then the snapshots that are older."""
        last = max((one for one in self._snapshots() if one < before), default=-1)
        with self._locked(fcntl.LOCK_EX):
            for version in sorted(self._versions()):
                if version <= last:
                    self._path(version).unlink()
            for version in self._snapshots():
                if version < last:
                    self._snapshot_path(version).unlink()

    def _fold(self) -> None:
        state = self.state()
        document = {**vars(state), "files": [vars(one) for one in state.files.values()]}
        write_once(self._snapshot_path(state.version), json.dumps(document))

    def _newest_state(self) -> State:
        with READING:
            stamp, state = KNOWN.get(str(self._log), (None, State()))
            if stamp is None or _stamp(stamp[0]) != stamp:
                state = self._snapshot(self._last_snapshot())
            state = self._read_on(state)
            while self._last_snapshot() > state.version:  # the next entry was there, and is gone
                state = self._read_on(self._snapshot(self._last_snapshot()))
            stamp = _stamp(self._path(state.version)) or _stamp(self._snapshot_path(state.version))
            if stamp is not None:
                KNOWN[str(self._log)] = stamp, state
            return state

    def _read_on(self, state: State) -> State:
        """With the entries that follow, which have no gaps."""
        entries = list(self._following(state.version))
        return state.advanced(entries) if entries else state

    def _following(self, version: int) -> Iterator[Entry]:
        with suppress(FileNotFoundError):
            for number in itertools.count(version + 1):
                yield _parsed(self._path(number))

    def _snapshot(self, version: int) -> State:
        """One that is there; -1: before the first entry.  If a newer one has taken its place, that."""
        if version < 0:
            return State()
        try:
            document = json.loads(self._snapshot_path(version).read_text())
        except FileNotFoundError:
            return self._snapshot(self._last_snapshot())
        files = (Added(**one) for one in document.pop("files"))
        return State(files={one.path: one for one in files}, **document)

    def _last_snapshot(self) -> int:
        return max(self._snapshots(), default=-1)

    def _snapshots(self) -> list[int]:
        return [int(path.stem) for path in self._folded.glob("*.json")]

    def _oldest(self) -> int:
        """Of the entries that are there; if none is, of the next one."""
        return min(self._versions(), default=self._last_snapshot() + 1)

    def _versions(self) -> list[int]:
        return [int(path.stem) for path in self._log.glob("*.json")]

    @contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        """Shared by those who make entries; who takes some away is alone."""
        self._log.mkdir(parents=True, exist_ok=True)
        with (self._log / ".lock").open("wb") as file:
            fcntl.flock(file, how)
            yield

    def _path(self, version: int) -> Path:
        return self._log / f"{version:020d}.json"

    def _snapshot_path(self, version: int) -> Path:
        return self._folded / f"{version:020d}.json"


def _stamp(path: Path) -> Stamp | None:
    """None: it is not there."""
    try:
        return path, path.stat().st_mtime_ns
    except FileNotFoundError:
        return None


def write_once(path: Path, text: str) -> bool:
    """A file that is there whole or not at all; False if it was there before, and then it stays as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    number, draft = tempfile.mkstemp(dir=path.parent.parent, prefix=DRAFT)
    try:
        with os.fdopen(number, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, path)
    except FileExistsError:
        return False
    finally:
        os.unlink(draft)
    return True


def _parsed(path: Path) -> Entry:
    document = json.loads(path.read_text())
    added = tuple(Added(**one) for one in document.pop("added"))
    return Entry(added=added, removed=tuple(document.pop("removed")), **document)
