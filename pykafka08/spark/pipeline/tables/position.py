"""Positions in a table's commits, the offsets of streams, and the ends of batches with limits.

A position is a version whose commit, and all before it, have been read.  If a batch ended between the files of later
commits, the position also has ``at``, the version at which these files were listed, and the number of files read.

A restatement of gold replaces all rows and the columns in one commit.  Streams that read backfills skip all files of
earlier commits from then on, because these files may lack the new columns, or have other types.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from pykafka08.spark.pipeline.tables.model import BACKFILL, Commit, DataFile
from pykafka08.spark.pipeline.tables.table import Table

__all__ = ["Limits", "Position", "end_of_batch", "files_between", "files_since", "files_until"]

RESTATING = "aggregate-"
"""The prefix of queries whose backfills restate gold."""


@dataclass(frozen=True)
class Position:
    """The position of a stream in a table."""

    version: int = -1
    at: int = -1
    files: int = 0

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Position:
        """The position in a checkpoint's JSON object."""
        return cls(**document)

    def document(self) -> dict[str, int]:
        """The JSON object for a checkpoint."""
        amid = {"at": self.at, "files": self.files} if self.files else {}
        return {"version": self.version, **amid}


@dataclass(frozen=True)
class Limits:
    """Limits of one batch, which has at least one file; 0 is no limit."""

    rows: int = 0
    bytes: int = 0
    files: int = 0

    def admitted(self, files: Collection[DataFile]) -> int:
        """The number of files, from the first on, that one batch takes."""
        rows = size = 0
        for number, one in enumerate(files):
            rows, size = rows + one.rows, size + one.bytes
            if number and (0 < self.rows < rows or 0 < self.bytes < size or 0 < self.files <= number):
                return number
        return len(files)


def end_of_batch(table: Table, kinds: Collection[str], start: Position, last: int, limits: Limits) -> Position:
    """The end of the batch that begins at ``start``, at most the version ``last``."""
    if limits == Limits() and not start.files:
        return Position(last)
    at = start.at if start.files else _bounded(table, kinds, start.version, last, limits)
    files = files_since(table, kinds, start.version, at)
    count = start.files + limits.admitted(files[start.files :])
    return Position(at) if count >= len(files) else Position(start.version, at, count)


def _bounded(table: Table, kinds: Collection[str], after: int, last: int, limits: Limits) -> int:
    """The first version that exceeds the limits, or ``last``."""
    if after < 0:  # old commits may be gone; then all live files are one list
        return last
    found: list[DataFile] = []
    first = max(after + 1, _restated(table, kinds, after))
    for version in range(first, last + 1):
        found += table.files_since(kinds, version - 1, version)
        if limits.admitted(found) < len(found):
            return version
    return last


def files_between(table: Table, kinds: Collection[str], start: Position, end: Position) -> list[DataFile]:
    """The files of a batch."""
    at = end.at if end.files else end.version
    read = end.files or None
    return files_since(table, kinds, start.version, at)[start.files : read]


def files_since(table: Table, kinds: Collection[str], after: int, until: int) -> list[DataFile]:
    """As :meth:`Table.files_since`, without the files of commits before the newest restatement.

    A batch that was planned before the restatement loses all its files, so positions in lists of files stay valid.
    """
    restated = _restated(table, kinds, after)
    if restated < 0:
        return table.files_since(kinds, after, until)
    if until < restated:
        return []
    if after >= 0:
        return table.files_since(kinds, restated - 1, until)
    try:
        before = table.commits(-1, restated - 1)
    except LookupError:  # then the list has the live files only
        before = []
    replaced = {one.path for commit in before for one in commit.added}
    return [one for one in table.files_since(kinds, after, until) if one.path not in replaced]


def _restated(table: Table, kinds: Collection[str], after: int) -> int:
    """The version of the newest restatement after a version; -1 without one, or if the stream reads no backfills."""
    if BACKFILL not in kinds:
        return -1
    try:
        commits = table.commits(after)
    except LookupError:  # some commits were cleaned up
        commits = [one for one in table.existing_commits() if one.version > after]
    return max((one.version for one in commits if _is_restating(one)), default=-1)


def _is_restating(commit: Commit) -> bool:
    return commit.kind == BACKFILL and commit.query.startswith(RESTATING)


def files_until(table: Table, kinds: Collection[str], end: Position) -> list[DataFile]:
    """The files that all batches up to a position have read, after compactions."""
    amid = table.files_since(kinds, end.version, end.at)[: end.files] if end.files else []
    return [*table.live(end.version), *amid]
