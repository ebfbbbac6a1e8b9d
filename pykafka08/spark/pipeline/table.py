"""A folder of Parquet files with an own log: what is in the table changes by one entry, atomically.

``log/NNNNNNNNNNNNNNNNNNNN.json`` is one entry: files that come and files that go, and which batch of which query made
them.  An entry is written beside and linked into place, which fails if the number is taken: so of two writers one sees
that the other was first.  A batch that is replayed after a crash finds its entry and writes nothing; files of an
attempt that left no entry are nobody's, and :func:`expire` takes them away.

Not here: Spark.  The folder must be on a file system with hard links, which every writer sees.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Lock

__all__ = ["ACCEPTED", "REJECTED", "Added", "Entry", "Table", "write_once"]

ACCEPTED, REJECTED = "accepted", "rejected"
"""The parts of silver."""
KNOWN: dict[tuple[str, int], list[Entry]] = {}
"""Log, and the time of its first entry → its entries: they never change, so this process reads each once."""
READING = Lock()


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


class Table:
    """The table in a folder; other processes may write, and what they have committed is seen by the next call."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._log = folder / "log"

    @property
    def version(self) -> int:
        """Of the newest entry; -1: there is none."""
        return len(self._known()) - 1

    def entries(self, after: int = -1, until: int | None = None) -> list[Entry]:
        """In order, those with ``after < version <= until``."""
        return self._known()[after + 1 : None if until is None else until + 1]

    def find(self, query: str, batch: int) -> Entry | None:
        """The entry that a batch of a query has left; a query's batches come in order."""
        newest = next((one for one in reversed(self._known()) if one.query == query and one.batch <= batch), None)
        return newest if newest is not None and newest.batch == batch else None

    def live(self, part: str, version: int | None = None) -> list[Added]:
        """The files that hold a part's rows, now or at a version, in the order in which they came."""
        files: dict[str, Added] = {}
        for entry in self.entries(until=version):
            for path in entry.removed:
                files.pop(path, None)
            files.update((one.path, one) for one in entry.added)
        return [one for one in files.values() if one.part == part]

    def paths(self, files: Iterable[Added]) -> list[str]:
        return [str(self.folder / one.path) for one in files]

    def attempt(self, query: str, batch: int) -> str:
        """The name, relative to the table, of a new folder for an attempt at a batch; no two attempts share one."""
        return f"data/{query}-{batch:012d}-{uuid.uuid4().hex[:8]}"

    def commit(self, entry: Entry) -> bool:
        """Make it so; False if an entry with this version exists: then look again, and decide anew."""
        return write_once(self._path(entry.version), json.dumps(asdict(entry)))

    def expire(self, before: int, *, with_attempts: bool) -> int:
        """Delete files that entries below ``before`` removed; how many.

        ``with_attempts``: also the folders that no entry names.  Nobody may be writing then.
        """
        live = {one.path for part in self.parts() for one in self.live(part)}
        known = {one.path for entry in self.entries() for one in entry.added}
        gone = [path for entry in self.entries(until=before - 1) for path in entry.removed if path not in live]
        deleted = 0
        for path in gone:
            if (self.folder / path).exists():
                (self.folder / path).unlink()
                deleted += 1
        attempts_known = {path.split("/")[1] for path in known}
        for folder in (self.folder / "data").glob("*"):
            if with_attempts and folder.name not in attempts_known:
                deleted += sum(1 for _ in folder.rglob("*.parquet"))
                shutil.rmtree(folder)
        return deleted

    def parts(self) -> set[str]:
        """All that ever had a file."""
        return {one.part for entry in self.entries() for one in entry.added}

    def _known(self) -> list[Entry]:
        """All entries by their versions, which have no gaps; it only ever grows."""
        try:
            log = str(self._log), self._path(0).stat().st_mtime_ns
        except FileNotFoundError:
            return []
        with READING:
            known = KNOWN.setdefault(log, [])
            while (path := self._path(len(known))).exists():
                known.append(_parsed(path))
            return known

    def _path(self, version: int) -> Path:
        return self._log / f"{version:020d}.json"


def write_once(path: Path, text: str) -> bool:
    """A file that is there whole or not at all; False if it was there before, and then it stays as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    number, draft = tempfile.mkstemp(dir=path.parent.parent, prefix=".entry-")
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
