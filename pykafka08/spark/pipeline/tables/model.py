"""Commits of a table, the data files that they add, and the states of the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

__all__ = [
    "BACKFILL",
    "COMPACTION",
    "NEW_ROWS",
    "RETENTION",
    "Commit",
    "DataFile",
    "FileBounds",
    "State",
    "Totals",
    "WIDENING",
    "text_of",
]

NEW_ROWS, BACKFILL, COMPACTION, RETENTION, WIDENING = "batch", "backfill", "compaction", "retention", "widening"
"""Kinds of commits: new rows, rows that replace others, the same rows in fewer files, the removal of old rows, and the
same rows with wider types."""


@dataclass(frozen=True)
class DataFile:
    """A Parquet file of a table."""

    path: str
    """Relative to the table."""
    rows: int
    bytes: int
    values: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Partition column → value, as text; ``""`` is null."""
    stats: str = field(default="", compare=False, repr=False)
    """Delta's statistics as JSON; if empty, the commit has the number of rows only."""
    numbers: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    """Column → Arrow type, of the columns that are numbers; only of a file that this process has written."""

    @property
    def day(self) -> str:
        """The ISO date of its partition, or ``""``."""
        return self.values.get("day", "")


@dataclass(frozen=True)
class FileBounds:
    """A live file with its statistics."""

    file: DataFile
    bounds: Mapping[str, tuple[Any, Any]]
    """Column → smallest and largest value, for the columns that have them."""
    committed: datetime
    """The time of the commit that added the file."""


@dataclass(frozen=True)
class Commit:
    """A commit."""

    version: int
    kind: str
    """One of the kinds above; for a commit of another program, its operation."""
    query: str
    batch: int
    """The batch of that query, the version of its application transaction."""
    added: tuple[DataFile, ...] = ()
    removed: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    """Counts of rows: ``read``, ``accepted``, ``rejected``, ``duplicates`` or ``rows``."""
    offsets: str = ""
    """The end offset of the batch in its source, as in the query's checkpoint."""
    retention: Mapping[str, str] = field(default_factory=dict)
    """See :attr:`Totals.retention`; empty if the commit removes no old rows, or was read from the log."""
    at: float = field(default=0.0, compare=False)
    """The time of the commit in seconds since 1970; 0 if it is not committed yet."""


@dataclass(frozen=True)
class Totals:
    """Sums over all commits.  Each commit holds them, because old commits are deleted."""

    counts: Mapping[str, int] = field(default_factory=dict)
    brought: Mapping[str, int] = field(default_factory=dict)
    """Kind of commit → rows in the files that such commits added."""
    newest: Mapping[str, int] = field(default_factory=dict)
    """Query → its last batch."""
    offsets: Mapping[str, str] = field(default_factory=dict)
    """The end offset of the last batch of each query."""
    retention: Mapping[str, str] = field(default_factory=dict)
    """``until``: the newest time or day of the rows that retention has removed; ``ranges``: the path of the file with
    their offsets (``removed.py``)."""

    def after(self, commit: Commit) -> Totals:
        """The totals with one more commit."""
        counts, brought = Counter(self.counts), Counter(self.brought)
        counts.update(commit.counts)
        brought[commit.kind] += sum(one.rows for one in commit.added)
        ends = {**self.offsets, commit.query: commit.offsets} if commit.offsets else self.offsets
        newest = {**self.newest, commit.query: commit.batch}
        return Totals(dict(counts), dict(brought), newest, ends, {**self.retention, **commit.retention})

    def document(self) -> dict[str, Any]:
        """The totals as a JSON object."""
        return {name: dict(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class State:
    """A table at a version."""

    version: int = -1
    files: tuple[DataFile, ...] = ()
    """The live files, in the order of their commits."""
    totals: Totals = field(default_factory=Totals)

    @property
    def counts(self) -> Mapping[str, int]:
        """Sums of the counts of all commits."""
        return self.totals.counts

    @property
    def brought(self) -> Mapping[str, int]:
        """Kind of commit → rows in the files that such commits added."""
        return self.totals.brought

    @property
    def newest(self) -> Mapping[str, int]:
        """Query → its last batch."""
        return self.totals.newest

    @property
    def rows(self) -> int:
        """Rows in all live files."""
        return sum(one.rows for one in self.files)

    @property
    def removed(self) -> int:
        """Rows that retention has removed."""
        return self.counts.get("removed", 0)


def text_of(at: datetime) -> str:
    """A time in UTC as in the statistics of files; texts of later times are greater."""
    return at.astimezone(timezone.utc).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
