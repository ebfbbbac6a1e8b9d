"""A Delta table: its state, its commits since a version, and commits to exactly the next version.

A commit is made against the version that its maker has seen: of two makers one learns that the other was first, looks
again, and decides anew.  A batch that is replayed finds its application transaction.  Files of an attempt that left no
commit belong to nobody, and :meth:`Table.expire` deletes them.

Not here: Spark, which writes the files.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Field, PostCommitHookProperties, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.stores import Folder, local_folder
from pykafka08.spark.pipeline.tables.log import NOTE, commit_of, last_checkpoint, note_of, totals_at, versions
from pykafka08.spark.pipeline.tables.model import COMPACTION, NEW_ROWS, Commit, DataFile, State, Totals
from pykafka08.spark.pipeline.tables.statistics import statistics_of
from pykafka08.spark.pipeline.tables.storage import located

__all__ = ["BatchTakenError", "Table"]

DATA = "data"
"""The folder of the attempts' folders."""
CONFIGURATION = {"delta.logRetentionDuration": "interval 1 days"}
"""A stream makes thousands of commits a day; :meth:`Table.expire` deletes old ones once all stages have read them."""
KNOWN = 10_000
"""So many commits are kept in memory."""
PARTITION = "partition."
"""What deltalake puts before the names of partition columns."""


class BatchTakenError(RuntimeError):
    """Another run has committed the batch."""


class Table:
    """The table in a folder; other processes may write, and what they have committed is seen by the next call."""

    def __init__(self, folder: str | Path | Folder) -> None:
        self.folder = folder if isinstance(folder, Folder) else local_folder(folder)
        self.location = located(self.folder)
        self._known: dict[int, Commit] = {}
        """Commits that were read, which never change; the newest ones."""

    @property
    def version(self) -> int:
        """The newest; -1: there is no table yet."""
        found = self._opened()
        return -1 if found is None else found.version()

    def state(self, version: int | None = None) -> State:
        """Now, or as of a version.

        Raises:
            LookupError: commits that are needed for it were cleaned up.
        """
        found = self._opened(version)
        if found is None:
            return State()
        return State(found.version(), _live(found), totals_at(self.location, found.version()))

    def live(self, version: int | None = None) -> list[DataFile]:
        """The files that hold the rows, now or at a version, in the order in which they came."""
        found = self._opened(version)
        return [] if found is None else list(_live(found))

    def commits(self, after: int = -1, until: int | None = None) -> list[Commit]:
        """In order, those with ``after < version <= until``.

        Raises:
            LookupError: some of them were cleaned up.
        """
        last = self.version if until is None else until
        try:
            return [self._commit_at(version) for version in range(after + 1, last + 1)]
        except FileNotFoundError as error:
            raise LookupError(
                f"commits behind {after} are gone from the log of {self.location.uri}: {error}"
            ) from error

    def existing_commits(self) -> list[Commit]:
        """In order, all that were not cleaned up."""
        found = []
        for version in versions(self.location):
            with suppress(FileNotFoundError):  # cleaned up since the folder was listed
                found.append(self._commit_at(version))
        return found

    def holds(self, query: str, batch: int) -> bool:
        """Whether a batch of a query has left its commit, or a later one of it has: they come in order."""
        return batch <= self.newest(query)

    def newest(self, query: str) -> int:
        """The last batch of a query that has left its commit; -1: there is none."""
        found = self._opened()
        batch = None if found is None else found.transaction_version(query)
        return -1 if batch is None else batch

    def files_since(self, kinds: Collection[str], after: int, until: int) -> list[DataFile]:
        """The files of commits of these kinds with ``after < version <= until``, in order.

        From the first commit on, if that or files of those are gone: what the table holds at ``until``.

        Raises:
            LookupError: commits between were cleaned up.
        """
        if until < 0:
            return []
        try:
            files = [one for commit in self.commits(after, until) if commit.kind in kinds for one in commit.added]
        except LookupError:
            if after >= 0:
                raise
            return self.live(until)
        if after < 0 and not self._exist(files):
            return self.live(until)
        return files

    def read(self, file: DataFile, columns: Sequence[str]) -> pa.Table:
        """Columns of a file."""
        with self.location.filesystem.open_input_file(file.path) as opened:
            return pq.read_table(opened, columns=list(columns))

    def data_file(self, path: str, values: Mapping[str, str]) -> DataFile:
        """A file of the table as a commit brings it: its rows and statistics are in its footer."""
        with self.location.filesystem.open_input_file(path) as file:
            footer, size = pq.ParquetFile(file).metadata, file.size()
        return DataFile(path, footer.num_rows, size, values, statistics_of(footer))

    def paths(self, files: Iterable[DataFile]) -> list[str]:
        """The files' addresses for Spark."""
        return [self.location.of(one.path) for one in files]

    def columns(self) -> tuple[str, list[str]]:
        """The schema as JSON, as Spark writes it too, and the partition columns.  LookupError: there is no table."""
        found = self._opened()
        if found is None:
            raise LookupError(f"{self.location.uri}: no table")
        return found.schema().to_json(), found.metadata().partition_columns

    def attempt(self, query: str, batch: int) -> str:
        """The name, relative to the table, of a new folder for an attempt at a batch; no two attempts share one."""
        return f"{DATA}/{query}-{batch:012d}-{uuid.uuid4().hex[:8]}"

    def prepare(self, schema: str, partition_by: Collection[str] = ()) -> None:
        """Make the table, or add the columns that it lacks.  ``schema``: as Spark's StructType writes it in JSON.

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
            found = self._opened()
        assert found is not None
        there = {one.name: one for one in found.schema().fields}
        for one in wanted.fields:
            if one.name in there and there[one.name].type != one.type:
                raise ConfigError(
                    f"{self.location.uri}: column {one.name} is {_type(there[one.name])} in the table, and "
                    f"{_type(one)} in the settings; give the new column another name, or begin with another folder"
                )
        new = [one for one in wanted.fields if one.name not in there]
        if new:
            found.alter.add_columns(new)

    def commit(self, commit: Commit, totals: Totals | None = None, *, is_continued: bool = False) -> bool:
        """Make it the table's next version; False if that version exists: then look again, and decide anew.

        ``totals``: in place of the sums of the table's commits; each of their queries gets its application transaction.
        ``is_continued``: new rows of a batch that has a commit already.

        Raises:
            BatchTakenError: they have one, and were not to.  Two runs have read the same batch; Spark's checkpoint does
                not exclude that on object stores.
        """
        try:
            found = self._opened(commit.version - 1)
        except LookupError:
            return False
        if found is None:
            raise LookupError(f"{self.location.uri}: no table; prepare() makes it")
        if commit.kind == NEW_ROWS and not is_continued:
            newest = found.transaction_version(commit.query)
            if newest is not None and newest >= commit.batch:
                raise BatchTakenError(
                    f"another run has committed batch {commit.batch} of {commit.query}: one run at a time"
                )
        batches = {commit.query: commit.batch} if totals is None else {**totals.newest, commit.query: commit.batch}
        totals = totals or totals_at(self.location, commit.version - 1).after(commit)
        is_change = commit.kind != COMPACTION
        try:
            found.create_write_transaction(
                [*_removes(found, commit, is_change), *_adds(commit, is_change)],
                "append",
                found.schema(),
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

    def expire(self, before: int, *, with_attempts: bool) -> int:
        """Delete files that commits below ``before`` removed, and old commits that a checkpoint covers; how many files.

        ``with_attempts``: also the folders that no commit names.  Nobody may be writing then.
        """
        found = self._opened()
        if found is None:
            return 0
        live = {one.path for one in _live(found)}
        commits = self.existing_commits()
        gone = {path for one in commits if one.version < before for path in one.removed} - live
        there = {one.path for one in self.location.files(DATA) if one.is_file}
        for path in sorted(gone & there):
            self.location.filesystem.delete_file(path)
        deleted = len(gone & there)
        if with_attempts:
            named = live | {path for one in commits for path in (*one.removed, *(each.path for each in one.added))}
            deleted += self._expire_attempts({path.split("/")[1] for path in named if path.startswith(f"{DATA}/")})
        if before > last_checkpoint(self.location) >= 0:
            found.cleanup_metadata()
        return deleted

    def _expire_attempts(self, named: Collection[str]) -> int:
        deleted = 0
        for folder in self.location.files(DATA, is_recursive=False):
            if folder.base_name not in named:
                deleted += sum(one.path.endswith(".parquet") for one in self.location.files(folder.path))
                self.location.filesystem.delete_dir(folder.path)
        return deleted

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
        """None: there is no table yet."""
        if version is not None and version < 0:
            return None
        try:
            found = DeltaTable(self.location.delta_uri, version, self.location.storage_options)
        except DeltaError as error:
            if version is not None:
                raise LookupError(f"{self.location.uri}: version {version} is gone: {error}") from error
            if isinstance(error, TableNotFoundError):
                return None
            raise
        return found


def _live(table: DeltaTable) -> tuple[DataFile, ...]:
    rows = pa.table(table.get_add_actions(flatten=True))
    partitions = [name for name in rows.column_names if name.startswith(PARTITION)]
    columns = ["path", "num_records", "size_bytes", "modification_time", *partitions]
    found = []
    for path, count, size, at, *values in zip(*(rows.column(one).to_pylist() for one in columns), strict=True):
        texts = ["" if one is None else str(one) for one in values]  # in Delta's log "" is null, too
        named = {name.removeprefix(PARTITION): text for name, text in zip(partitions, texts, strict=True)}
        found.append((at, DataFile(path, count or 0, size, named)))
    return tuple(one for _, one in sorted(found, key=lambda each: (each[0], each[1].path)))


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
    now, there = int(time.time() * 1000), {one.path: one for one in _live(table)}
    removed = (there[path] for path in commit.removed)
    return [RemoveAction(one.path, is_change, now, one.bytes, dict(one.values)) for one in removed]


def _nullable(schema: str) -> Schema:
    """Delta's schema of Spark's; everything may be null."""
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
