"""A table: its state, its commits since a version, and commits to exactly the next version.

A commit is made after the version that its writer has read.  If another writer commits that version first, the commit
fails, and the writer reads the table again.  A replayed batch finds its application transaction.  :meth:`Table.expire`
deletes the files of attempts that were never committed.

Spark writes the files; this module needs no Spark.  ``table_log`` is the interface to the logs of both formats.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from pykafka08.spark.pipeline.stores import Folder, local_folder
from pykafka08.spark.pipeline.tables.column_types import Wider, check_changes, numbers_of
from pykafka08.spark.pipeline.tables.model import (
    BACKFILL,
    COMPACTION,
    NEW_ROWS,
    RETENTION,
    WIDENING,
    Commit,
    DataFile,
    FileBounds,
    State,
    Totals,
)
from pykafka08.spark.pipeline.tables.statistics import statistics_of
from pykafka08.spark.pipeline.tables.storage import located
from pykafka08.spark.pipeline.tables.table_log import Version, log_of

__all__ = ["BatchTakenError", "Fence", "LeaseLostError", "Table"]

DATA = "data"
"""The folder of the attempts' folders."""
KNOWN = 10_000
"""The number of commits that are kept in memory."""
EPOCH = "pykafka08-epoch-"
"""The prefix of the application transactions that hold the epoch of a query's lease."""


class BatchTakenError(RuntimeError):
    """Another run has committed this batch."""


class LeaseLostError(RuntimeError):
    """Another process has taken the lease of this process, which must not commit any more."""


class Fence(Protocol):
    """A lease that a writer must hold to commit."""

    @property
    def epoch(self) -> int:
        """The epoch of the writer; later writers of a query have higher epochs."""
        ...

    def check(self) -> None:
        """Raise LeaseLostError if another process has taken over."""
        ...


class Table:
    """The table in a folder.  Other processes may commit; each call reads the newest version.

    With ``fence``, a commit fails if the fence is lost, or if a writer of a later epoch has committed the same query.
    """

    def __init__(self, folder: str | Path | Folder, fence: Fence | None = None) -> None:
        self._fence = fence
        self.folder = folder if isinstance(folder, Folder) else local_folder(folder)
        self.location = located(self.folder)
        self._log = log_of(self.folder)
        self._known: dict[int, Commit] = {}
        """Version → commit, for the commits read last.  Commits never change."""

    @property
    def has_partitions_in_files(self) -> bool:
        """Whether the data files have the partition columns, too."""
        return self._log.has_partitions_in_files

    def __reduce__(self) -> tuple[type[Table], tuple[Folder, Fence | None]]:
        """A copy in another process reads the table anew."""
        return Table, (self.folder, self._fence)

    @property
    def version(self) -> int:
        """The newest version; -1 if the table does not exist yet."""
        found = self._opened()
        return -1 if found is None else found.number

    def state(self, version: int | None = None) -> State:
        """The state now, or at a version.

        Raises:
            LookupError: the commits of that version were cleaned up.
        """
        found = self._opened(version)
        if found is None:
            return State()
        return State(found.number, found.live(), found.totals())

    def live(self, version: int | None = None, *, days: Collection[str] | None = None) -> list[DataFile]:
        """The live files in the order of their commits, now or at a version; with ``days``, only of these days."""
        found = self._opened(version)
        return [] if found is None else list(found.live(days))

    def bounded(self, columns: Sequence[str]) -> list[FileBounds]:
        """The live files with the smallest and largest values of columns."""
        found = self._opened()
        return [] if found is None else found.bounded(columns)

    def totals(self) -> Totals:
        """The sums over all commits."""
        found = self._opened()
        return Totals() if found is None else found.totals()

    def commits(self, after: int = -1, until: int | None = None) -> list[Commit]:
        """The commits with ``after < version <= until``, in order.

        Raises:
            LookupError: some of them were cleaned up.
        """
        last = self.version if until is None else until
        try:
            return [self._commit_at(version) for version in range(after + 1, last + 1)]
        except LookupError as error:
            raise LookupError(f"{self.location.uri}: commits after version {after} were cleaned up: {error}") from error

    def existing_commits(self) -> list[Commit]:
        """All commits that were not cleaned up, in order."""
        found = []
        for version in self._log.versions():
            with suppress(LookupError):  # cleaned up since the folder was listed
                found.append(self._commit_at(version))
        return found

    def holds(self, query: str, batch: int) -> bool:
        """Whether a batch of a query is committed.  Batches are committed in order, so a later one counts, too."""
        return batch <= self.newest(query)

    def newest(self, query: str) -> int:
        """The last committed batch of a query; -1 without one."""
        found = self._opened()
        batch = None if found is None else found.transaction(query)
        return -1 if batch is None else batch

    def offsets(self, query: str) -> str:
        """The end offset of the last committed batch of a query; empty if the commit has none."""
        return self.totals().offsets.get(query, "")

    def files_since(self, kinds: Collection[str], after: int, until: int) -> list[DataFile]:
        """The files that commits of these kinds with ``after < version <= until`` added, in order.

        With ``after=-1``, if commits, files or rows are gone or replaced: the live files at ``until``.

        Raises:
            LookupError: some of these commits were cleaned up.
        """
        if until < 0:
            return []
        try:
            commits = self.commits(after, until)
        except LookupError:
            if after >= 0:
                raise
            return self.live(until)
        files = [one for commit in commits if commit.kind in kinds for one in commit.added]
        replacing = {RETENTION, BACKFILL} - set(kinds)
        if after < 0 and (any(one.kind in replacing for one in commits) or not self._exist(files)):
            return self.live(until)
        return files

    def read(self, file: DataFile, columns: Sequence[str]) -> pa.Table:
        """Columns of a file."""
        with self.location.filesystem.open_input_file(file.path) as opened:
            return pq.read_table(opened, columns=list(columns))

    def data_file(self, path: str, values: Mapping[str, str]) -> DataFile:
        """A written file, with the rows and statistics in its footer."""
        with self.location.filesystem.open_input_file(path) as file:
            footer, size = pq.ParquetFile(file).metadata, file.size()
        numbers = numbers_of(footer.schema.to_arrow_schema())
        return DataFile(path, footer.num_rows, size, values, statistics_of(footer), numbers)

    def paths(self, files: Iterable[DataFile]) -> list[str]:
        """The addresses of files for Spark."""
        return [self.location.of(one.path) for one in files]

    def columns(self) -> tuple[str, list[str]]:
        """The schema in the JSON of Spark, and the partition columns.  Raises LookupError without a table."""
        found = self._opened()
        if found is None:
            raise LookupError(f"{self.location.uri}: no table")
        return found.columns()

    def attempt(self, query: str, batch: int) -> str:
        """The name of a new folder for one attempt at a batch, relative to the table."""
        return f"{DATA}/{query}-{batch:012d}-{uuid.uuid4().hex[:8]}"

    def prepare(self, schema: str, partition_by: Collection[str] = ()) -> None:
        """Create the table, or add the columns that it lacks.  ``schema`` is the JSON of Spark's StructType.

        Raises:
            ConfigError: a column has another type in the table.
        """
        is_new = self._log.newest() is None
        if not is_new:
            self.check(schema)
        self._log.prepare(schema, partition_by)
        if is_new:  # another process may have been first
            self.check(schema)

    @property
    def wider(self) -> Wider:
        """Type → types that a column of this type may get."""
        return self._log.wider

    def changes(self, schema: str) -> dict[str, tuple[str, str]]:
        """Column → its type in the table and in ``schema``, the JSON of Spark's StructType, if these types differ."""
        return self._log.changes(schema)

    def check(self, schema: str) -> None:
        """Raise ConfigError if a column has another type in the table than in ``schema``."""
        check_changes(self.location.uri, self.changes(schema), self.wider)

    def commit(
        self,
        commit: Commit,
        totals: Totals | None = None,
        *,
        is_continued: bool = False,
        schema: str | None = None,
    ) -> bool:
        """Commit as the table's next version.  False if that version exists: read the table again, and retry.

        ``totals`` replaces the sums over the table's commits; each query in it gets its application transaction.
        ``is_continued``: the batch has a commit already, and gets another one.
        ``schema``: the JSON of the table's new schema; the commit removes all files, whatever ``commit.removed`` is.

        Raises:
            BatchTakenError: the batch has a commit already.  Two runs have read the same batch, which Spark's
                checkpoints do not exclude on object stores.
            LeaseLostError: another process has taken the lease.
            ConfigError: another process has widened a column since the files were written.
        """
        self._check_fence()
        found = self._log.newest()
        if found is None:
            raise LookupError(f"{self.location.uri}: no table; prepare() makes it")
        if found.number != commit.version - 1:
            return False
        if commit.kind == NEW_ROWS and not is_continued:
            newest = found.transaction(commit.query)
            if newest is not None and newest >= commit.batch:
                raise BatchTakenError(
                    f"{self.location.uri}: another run has committed batch {commit.batch} of {commit.query}; "
                    "run a pipeline once at a time"
                )
        batches = {commit.query: commit.batch} if totals is None else {**totals.newest, commit.query: commit.batch}
        batches |= self._epoch(found, commit)
        return self._log.append(found, commit, totals or found.totals().after(commit), batches, schema)

    def keep_commits(self, seconds: float) -> None:
        """Keep commits, which name the files to delete, at least for ``seconds``."""
        self._log.keep_commits(seconds, self._check_fence)

    def expire(self, before: int, *, with_attempts: bool, age: float = 0.0) -> int:
        """Delete the files that commits below ``before`` removed, and old commits that a checkpoint covers.

        ``with_attempts``: also delete folders that no commit names, which is safe only if no process writes.
        ``age``: files stay at least this number of seconds after the commit that removed them.  Returns the number of
        files.
        """
        found = self._opened()
        if found is None:
            return 0
        live = {one.path for one in found.live()}
        commits = self.existing_commits()
        last = time.time() - age
        gone = {path for one in commits if one.version < before and one.at <= last for path in one.removed} - live
        there = {one.path: one for one in self.location.files(DATA) if one.is_file}
        for path in sorted(gone & there.keys()):
            self.location.filesystem.delete_file(path)
        deleted = len(gone & there.keys())
        if with_attempts:
            named = live | {path for one in commits for path in (*one.removed, *(each.path for each in one.added))}
            named |= {self.totals().retention.get("ranges", "")}
            young = time.time() - self._log.attempts_kept_s
            named |= {path for path, one in there.items() if one.mtime is not None and one.mtime.timestamp() > young}
            deleted += self._expire_attempts(there.keys() - gone, {path.split("/")[1] for path in named if "/" in path})
        self._check_fence()
        self._log.clean_up(before, age, with_attempts=with_attempts)
        return deleted

    def _expire_attempts(self, there: Collection[str], named: Collection[str]) -> int:
        attempts = self.folder / DATA
        for name in attempts.names():
            if name not in named:
                (attempts / name).delete()
        return sum(path.endswith(".parquet") and path.split("/")[1] not in named for path in there)

    def _check_fence(self) -> None:
        if self._fence is not None:
            self._fence.check()

    def _epoch(self, found: Version, commit: Commit) -> dict[str, int]:
        """The application transaction with the epoch of the fence.

        Compaction, widening and retention have no epoch, because runs of different stages do these to one table.

        Raises:
            LeaseLostError: a process with a later epoch has committed.
        """
        if self._fence is None or commit.kind in (COMPACTION, WIDENING, RETENTION):
            return {}
        name = EPOCH + commit.query
        newest = found.transaction(name)
        if newest is not None and newest > self._fence.epoch:
            raise LeaseLostError(
                f"{self.location.uri}: a process with a later lease has committed {commit.query}; stop this process"
            )
        return {name: self._fence.epoch}

    def _commit_at(self, version: int) -> Commit:
        if version not in self._known:
            if len(self._known) >= KNOWN:
                del self._known[next(iter(self._known))]
            self._known[version] = self._log.commit_at(version)
        return self._known[version]

    def _exist(self, files: Collection[DataFile]) -> bool:
        found = self.location.filesystem.get_file_info([one.path for one in files])
        return all(one.is_file for one in found)

    def _opened(self, version: int | None = None) -> Version | None:
        """The table at a version or now; None if the table does not exist yet."""
        if version is not None and version < 0:
            return None
        found = self._log.newest()
        if version is None or (found is not None and found.number == version):
            return found
        return self._log.at(version)
