"""Commits of a table, the data files that they add, and the states of the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["BACKFILL", "COMPACTION", "NEW_ROWS", "Commit", "DataFile", "State", "Totals"]

NEW_ROWS, BACKFILL, COMPACTION = "batch", "backfill", "compaction"
"""Kinds of commits: new rows, rows that replace others, and the same rows in fewer files."""


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

    @property
    def day(self) -> str:
        """The ISO date of its partition, or ``""``."""
        return self.values.get("day", "")


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

    def after(self, commit: Commit) -> Totals:
        """The totals with one more commit."""
        counts, brought = Counter(self.counts), Counter(self.brought)
        counts.update(commit.counts)
        brought[commit.kind] += sum(one.rows for one in commit.added)
        ends = {**self.offsets, commit.query: commit.offsets} if commit.offsets else self.offsets
        return Totals(dict(counts), dict(brought), {**self.newest, commit.query: commit.batch}, ends)

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
