"""A Delta table: its state, its commits since a version, and commits to exactly the next version.

A commit is made after the version that its writer has read.  If another writer commits that version first, the commit
fails, and the writer reads the table again.  A replayed batch finds its application transaction.  :meth:`Table.expire`
deletes the files of attempts that were never committed.

Spark writes the files; this module needs no Spark.
"""

from __future__ import annotations

import json
import math
import threading
import time
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Field, PostCommitHookProperties, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from pykafka08.spark.pipeline.stores import Folder, local_folder
from pykafka08.spark.pipeline.tables.column_types import check_changes, check_file, numbers_of
from pykafka08.spark.pipeline.tables.log import NOTE, commit_of, last_checkpoint, note_of, totals_at, versions
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

__all__ = ["BatchTakenError", "Fence", "LeaseLostError", "Table"]

DATA = "data"
"""The folder of the attempts' folders."""
LOG_RETENTION = "delta.logRetentionDuration"
CONFIGURATION = {LOG_RETENTION: "interval 1 days"}
"""A stream makes thousands of commits a day; :meth:`Table.expire` deletes old ones once all stages have read them."""
DAY_S = 86_400
KNOWN = 10_000
"""The number of commits that are kept in memory."""
PARTITION = "partition."
"""The prefix of partition columns in deltalake's list of files."""
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
        self._known: dict[int, Commit] = {}
        """Version → commit, for the commits read last.  Commits never change."""
        self._newest = threading.local()
        """deltalake's table of each thread.  A table that is used again reads only new commits."""

    @property
    def version(self) -> int:
        """The newest version; -1 if the table does not exist yet."""
        found = self._opened()
        return -1 if found is None else found.version()

    def state(self, version: int | None = None) -> State:
        """The state now, or at a version.

        Raises:
            LookupError: the commits of that version were cleaned up.
        """
        found = self._opened(version)
        if found is None:
            return State()
        return State(found.version(), _live(found), totals_at(self.location, found.version()))

    def live(self, version: int | None = None, *, days: Collection[str] | None = None) -> list[DataFile]:
        """The live files in the order of their commits, now or at a version; with ``days``, only of these days."""
        found = self._opened(version)
        return [] if found is None else list(_live(found, f"{PARTITION}day", days))

    def bounded(self, columns: Sequence[str]) -> list[FileBounds]:
        """The live files with the smallest and largest values of columns."""
        found = self._opened()
        return [] if found is None else _bounded(found, columns)

    def totals(self) -> Totals:
        """The sums over all commits."""
        return totals_at(self.location, self.version)

    def commits(self, after: int = -1, until: int | None = None) -> list[Commit]:
        """The commits with ``after < version <= until``, in order.

        Raises:
            LookupError: some of them were cleaned up.
        """
        last = self.version if until is None else until
        try:
            return [self._commit_at(version) for version in range(after + 1, last + 1)]
        except FileNotFoundError as error:
            raise LookupError(f"{self.location.uri}: commits after version {after} were cleaned up: {error}") from error

    def existing_commits(self) -> list[Commit]:
        """All commits that were not cleaned up, in order."""
        found = []
        for version in versions(self.location):
            with suppress(FileNotFoundError):  # cleaned up since the folder was listed
                found.append(self._commit_at(version))
        return found

    def holds(self, query: str, batch: int) -> bool:
        """Whether a batch of a query is committed.  Batches are committed in order, so a later one counts, too."""
        return batch <= self.newest(query)

    def newest(self, query: str) -> int:
        """The last committed batch of a query; -1 without one."""
        found = self._opened()
        batch = None if found is None else found.transaction_version(query)
        return -1 if batch is None else batch

    def offsets(self, query: str) -> str:
        """The end offset of the last committed batch of a query; empty if the commit has none."""
        return totals_at(self.location, self.version).offsets.get(query, "")

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
        """The schema in the JSON of Delta and Spark, and the partition columns.  Raises LookupError without a table."""
        found = self._opened()
        if found is None:
            raise LookupError(f"{self.location.uri}: no table")
        return found.schema().to_json(), found.metadata().partition_columns

    def attempt(self, query: str, batch: int) -> str:
        """The name of a new folder for one attempt at a batch, relative to the table."""
        return f"{DATA}/{query}-{batch:012d}-{uuid.uuid4().hex[:8]}"

    def prepare(self, schema: str, partition_by: Collection[str] = ()) -> None:
        """Create the table, or add the columns that it lacks.  ``schema`` is the JSON of Spark's StructType.

        Raises:
            ConfigError: a column has another type in the table.
        """
        wanted = _nullable(schema)
        found = self._opened()
        if found is None:
            DeltaTable.create(
                self.location.delta_uri,
                wanted,
                mode="ignore",
                partition_by=list(partition_by),
                configuration=CONFIGURATION,
                storage_options=self.location.storage_options,
            )
        self.check(schema)
        found = self._opened()
        assert found is not None
        there = {one.name for one in found.schema().fields}
        new = [one for one in wanted.fields if one.name not in there]
        if new:
            found.alter.add_columns(new)

    def changes(self, schema: str) -> dict[str, tuple[str, str]]:
        """The columns whose type in ``schema``, the JSON of Spark's StructType, is not the table's, with both types."""
        found = self._opened()
        there = {} if found is None else {one.name: one for one in found.schema().fields}
        every = [(there[one.name], one) for one in _nullable(schema).fields if one.name in there]
        return {new.name: (_type(old), _type(new)) for old, new in every if old.type != new.type}

    def check(self, schema: str) -> None:
        """Raise ConfigError if a column has another type in the table than in ``schema``."""
        check_changes(self.location.uri, self.changes(schema))

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
        if self._fence is not None:
            self._fence.check()
        found = self._updated()
        if found is None:
            raise LookupError(f"{self.location.uri}: no table; prepare() makes it")
        if found.version() != commit.version - 1:
            return False
        if commit.kind == NEW_ROWS and not is_continued:
            newest = found.transaction_version(commit.query)
            if newest is not None and newest >= commit.batch:
                raise BatchTakenError(
                    f"{self.location.uri}: another run has committed batch {commit.batch} of {commit.query}; "
                    "run a pipeline once at a time"
                )
        batches = {commit.query: commit.batch} if totals is None else {**totals.newest, commit.query: commit.batch}
        batches |= self._epoch(found, commit)
        totals = totals or totals_at(self.location, commit.version - 1).after(commit)
        is_change = commit.kind not in (COMPACTION, WIDENING)
        columns = found.schema() if schema is None else _nullable(schema)
        numbers = numbers_of(pa.schema(columns)) if commit.added else {}
        for one in commit.added:
            check_file(self.location.uri, numbers, one.numbers)
        removes = _removes(found, commit, is_change) if schema is None else []
        try:
            found.create_write_transaction(
                [*removes, *_adds(commit, is_change)],
                "append" if schema is None else "overwrite",
                columns,
                found.metadata().partition_columns,
                commit_properties=CommitProperties(
                    custom_metadata={NOTE: note_of(commit, totals)},
                    max_commit_retries=0,
                    app_transactions=[Transaction(query, batch) for query, batch in batches.items()],
                ),
                post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=False),
            )
        except CommitFailedError:
            if self.version >= commit.version:
                return False
            raise
        return True

    def keep_commits(self, seconds: float) -> None:
        """Keep commits, which name the files to delete, for a day longer than ``seconds``."""
        interval = f"interval {1 + math.ceil(seconds / DAY_S)} days"
        found = self._updated()
        if found is not None and found.metadata().configuration.get(LOG_RETENTION) != interval:
            if self._fence is not None:
                self._fence.check()
            found.alter.set_table_properties({LOG_RETENTION: interval})

    def expire(self, before: int, *, with_attempts: bool, age: float = 0.0) -> int:
        """Delete the files that commits below ``before`` removed, and old commits that a checkpoint covers.

        ``with_attempts``: also delete folders that no commit names, which is safe only if no process writes.
        ``age``: files stay at least this number of seconds after the commit that removed them.  Returns the number of
        files.
        """
        found = self._opened()
        if found is None:
            return 0
        live = {one.path for one in _live(found)}
        commits = self.existing_commits()
        last = time.time() - age
        gone = {path for one in commits if one.version < before and one.at <= last for path in one.removed} - live
        there = {one.path for one in self.location.files(DATA) if one.is_file}
        for path in sorted(gone & there):
            self.location.filesystem.delete_file(path)
        deleted = len(gone & there)
        if with_attempts:
            named = live | {path for one in commits for path in (*one.removed, *(each.path for each in one.added))}
            named |= {self.totals().retention.get("ranges", "")}
            deleted += self._expire_attempts(there - gone, {path.split("/")[1] for path in named if "/" in path})
        if before > last_checkpoint(self.location) >= 0:
            found.cleanup_metadata()
        return deleted

    def _expire_attempts(self, there: Collection[str], named: Collection[str]) -> int:
        attempts = self.folder / DATA
        for name in attempts.names():
            if name not in named:
                (attempts / name).delete()
        return sum(path.endswith(".parquet") and path.split("/")[1] not in named for path in there)

    def _epoch(self, found: DeltaTable, commit: Commit) -> dict[str, int]:
        """The application transaction with the epoch of the fence.

        Compaction, widening and retention have no epoch, because runs of different stages do these to one table.

        Raises:
            LeaseLostError: a process with a later epoch has committed.
        """
        if self._fence is None or commit.kind in (COMPACTION, WIDENING, RETENTION):
            return {}
        name = EPOCH + commit.query
        newest = found.transaction_version(name)
        if newest is not None and newest > self._fence.epoch:
            raise LeaseLostError(
                f"{self.location.uri}: a process with a later lease has committed {commit.query}; stop this process"
            )
        return {name: self._fence.epoch}

    def _commit_at(self, version: int) -> Commit:
        if version not in self._known:
            if len(self._known) >= KNOWN:
                del self._known[next(iter(self._known))]
            self._known[version] = commit_of(self.location, version)
        return self._known[version]

    def _exist(self, files: Collection[DataFile]) -> bool:
        found = self.location.filesystem.get_file_info([one.path for one in files])
        return all(one.is_file for one in found)

    def _opened(self, version: int | None = None) -> DeltaTable | None:
        """deltalake's table, at a version or now; None if the table does not exist yet."""
        if version is not None and version < 0:
            return None
        found = self._updated()
        if version is None or (found is not None and found.version() == version):
            return found
        try:
            return DeltaTable(self.location.delta_uri, version, self.location.storage_options)
        except DeltaError as error:
            raise LookupError(f"{self.location.uri}: version {version} was cleaned up: {error}") from error

    def _updated(self) -> DeltaTable | None:
        """This thread's table, at the newest version."""
        found: DeltaTable | None = getattr(self._newest, "table", None)
        if found is not None:
            found.update_incremental()
            return found
        with suppress(TableNotFoundError):
            found = self._newest.table = DeltaTable(
                self.location.delta_uri, storage_options=self.location.storage_options
            )
        return found


def _live(table: DeltaTable, column: str = "", values: Collection[str] | None = None) -> tuple[DataFile, ...]:
    """The live files in the order of their commits; with ``values``, only the files with these values of a column."""
    rows = _decoded(pa.table(table.get_add_actions(flatten=True)))
    if values is not None:
        rows = rows.filter(pc.is_in(rows[column].cast(pa.string()), pa.array(values, pa.string())))
    partitions = [name for name in rows.column_names if name.startswith(PARTITION)]
    columns = ["path", "num_records", "size_bytes", "modification_time", *partitions]
    found = []
    for path, count, size, at, *values in zip(*(rows.column(one).to_pylist() for one in columns), strict=True):
        texts = ["" if one is None else str(one) for one in values]  # in Delta's log "" is null, too
        named = {name.removeprefix(PARTITION): text for name, text in zip(partitions, texts, strict=True)}
        found.append((at, DataFile(path, count or 0, size, named)))
    return tuple(one for _, one in sorted(found, key=lambda each: (each[0], each[1].path)))


def _bounded(table: DeltaTable, columns: Sequence[str]) -> list[FileBounds]:
    files = {one.path: one for one in _live(table)}
    rows = _decoded(pa.table(table.get_add_actions(flatten=True)))
    kept = [name for name in columns if f"min.{name}" in rows.column_names]
    sides = [f"{side}.{name}" for name in kept for side in ("min", "max")]
    found = []
    for row in rows.select(["path", "modification_time", *sides]).to_pylist():
        pairs = {name: (row[f"min.{name}"], row[f"max.{name}"]) for name in kept}
        bounds = {name: pair for name, pair in pairs.items() if None not in pair}
        committed = datetime.fromtimestamp(row["modification_time"] / 1000, timezone.utc)
        found.append(FileBounds(files[row["path"]], bounds, committed))
    return found


def _decoded(actions: pa.Table) -> pa.Table:
    """Decode the paths of files, which are percent-encoded in Delta's log."""
    paths = actions["path"].cast(pa.string())
    if pc.any(pc.match_substring(paths, "%")).as_py():
        number = actions.column_names.index("path")
        return actions.set_column(number, "path", pa.array([unquote(one) for one in paths.to_pylist()], pa.string()))
    return actions


def _adds(commit: Commit, is_change: bool) -> list[AddAction]:
    now = int(time.time() * 1000)
    return [
        AddAction(
            one.path, one.bytes, dict(one.values), now, is_change, one.stats or json.dumps({"numRecords": one.rows})
        )
        for one in commit.added
    ]


def _removes(table: DeltaTable, commit: Commit, is_change: bool) -> list[RemoveAction]:
    if not commit.removed:
        return []
    now, there = int(time.time() * 1000), {one.path: one for one in _live(table, "path", commit.removed)}
    removed = (there[path] for path in commit.removed)
    return [RemoveAction(one.path, is_change, now, one.bytes, dict(one.values)) for one in removed]


def _nullable(schema: str) -> Schema:
    """Delta's schema for Spark's; every field is nullable."""
    return Schema.from_json(json.dumps(_with_nulls(json.loads(schema))))


def _with_nulls(document: Any) -> Any:
    if isinstance(document, list):
        return [_with_nulls(one) for one in document]
    if not isinstance(document, dict):
        return document
    return {
        key: True if key in NULLS else {} if key == "metadata" else _with_nulls(value)
        for key, value in document.items()
    }


NULLS = ("nullable", "containsNull", "valueContainsNull")


def _type(field: Field) -> str:
    document = json.loads(field.to_json())["type"]
    return document if isinstance(document, str) else json.dumps(document)
