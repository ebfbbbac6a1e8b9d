"""Commits of a table, the files that they bring, and the state that they come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["BACKFILL", "COMPACTION", "NEW_ROWS", "Commit", "DataFile", "State", "Totals"]

NEW_ROWS, BACKFILL, COMPACTION = "batch", "backfill", "compaction"
"""Kinds of commits: rows that nobody has read before, rows made anew, and the same rows in other files."""


@dataclass(frozen=True)
class DataFile:
    """A file that a commit brings."""

    path: str
    """Relative to the table."""
    rows: int
    bytes: int
    values: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Of the partition columns; all its rows have them."""
    stats: str = field(default="", compare=False, repr=False)
    """Delta's statistics as JSON; empty: the number of rows alone."""

    @property
    def day(self) -> str:
        """The ISO date of its partition, or ``""``."""
        return self.values.get("day", "")


@dataclass(frozen=True)
class Commit:
    """A commit."""

    version: int
    kind: str
    """One of the kinds above; of another program's commit its operation."""
    query: str
    batch: int
    """Of that query: its application transaction."""
    added: tuple[DataFile, ...] = ()
    removed: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    """Rows read, and what became of them."""


@dataclass(frozen=True)
class Totals:
    """Sums over all commits, which each commit carries on: old commits may be deleted."""

    counts: Mapping[str, int] = field(default_factory=dict)
    brought: Mapping[str, int] = field(default_factory=dict)
    """Kind of commit → rows in files that came."""
    newest: Mapping[str, int] = field(default_factory=dict)
    """Query → its last batch."""

    def after(self, commit: Commit) -> Totals:
        """With one more commit."""
        counts, brought = Counter(self.counts), Counter(self.brought)
        counts.update(commit.counts)
        brought[commit.kind] += sum(one.rows for one in commit.added)
        return Totals(dict(counts), dict(brought), {**self.newest, commit.query: commit.batch})

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"counts": dict(self.counts), "brought": dict(self.brought), "newest": dict(self.newest)}


@dataclass(frozen=True)
class State:
    """A table as of a version."""

    version: int = -1
    files: tuple[DataFile, ...] = ()
    """Those that hold the rows, in the order in which they came."""
    totals: Totals = field(default_factory=Totals)

    @property
    def counts(self) -> Mapping[str, int]:
        """Of all commits."""
        return self.totals.counts

    @property
    def brought(self) -> Mapping[str, int]:
        """Kind of commit → rows in files that came."""
        return self.totals.brought

    @property
    def newest(self) -> Mapping[str, int]:
        """Query → its last batch."""
        return self.totals.newest

    @property
    def rows(self) -> int:
        """In all files."""
        return sum(one.rows for one in self.files)
