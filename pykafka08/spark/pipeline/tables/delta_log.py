"""The log of a Delta table, read and written with the package ``deltalake``."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Field, PostCommitHookProperties, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from pykafka08.spark.pipeline.stores import Folder
from pykafka08.spark.pipeline.tables.column_types import WIDER, check_file, numbers_of
from pykafka08.spark.pipeline.tables.delta_commits import NOTE, commit_of, last_checkpoint, note_of, totals_at, versions
from pykafka08.spark.pipeline.tables.model import COMPACTION, WIDENING, Commit, DataFile, FileBounds, Totals
from pykafka08.spark.pipeline.tables.storage import Location, located
from pykafka08.spark.pipeline.tables.table_log import Version

__all__ = ["DeltaLog"]

LOG_RETENTION = "delta.logRetentionDuration"
CONFIGURATION = {LOG_RETENTION: "interval 1 days"}
"""A stream makes thousands of commits a day; :meth:`DeltaLog.clean_up` deletes old ones once all stages read them."""
DAY_S = 86_400
PARTITION = "partition."
"""The prefix of partition columns in deltalake's list of files."""


class DeltaVersion:
    """A Delta table at a version."""

    def __init__(self, location: Location, table: DeltaTable) -> None:
        self.table = table
        self._location = location

    @property
    def number(self) -> int:
        return self.table.version()

    def totals(self) -> Totals:
        return totals_at(self._location, self.number)

    def transaction(self, query: str) -> int | None:
        return self.table.transaction_version(query)

    def live(self, days: Collection[str] | None = None) -> tuple[DataFile, ...]:
        return _live(self.table, f"{PARTITION}day", days)

    def bounded(self, columns: Sequence[str]) -> list[FileBounds]:
        return _bounded(self.table, columns)

    def columns(self) -> tuple[str, list[str]]:
        return self.table.schema().to_json(), self.table.metadata().partition_columns


class DeltaLog:
    """The log in the folder ``_delta_log`` of a table."""

    has_partitions_in_files = False
    wider = WIDER
    attempts_kept_s = 0.0  # the outcome of each commit is known

    def __init__(self, folder: Folder) -> None:
        self._location = located(folder)
        self._newest = threading.local()
        """deltalake's table of each thread.  A table that is used again reads only new commits."""

    def newest(self) -> DeltaVersion | None:
        found = self._updated()
        return None if found is None else DeltaVersion(self._location, found)

    def at(self, version: int) -> DeltaVersion:
        try:
            found = DeltaTable(self._location.delta_uri, version, self._location.storage_options)
        except DeltaError as error:
            raise LookupError(f"{self._location.uri}: version {version} was cleaned up: {error}") from error
        return DeltaVersion(self._location, found)

    def commit_at(self, version: int) -> Commit:
        try:
            return commit_of(self._location, version)
        except FileNotFoundError as error:
            raise LookupError(f"{self._location.uri}: commit {version} was cleaned up: {error}") from error

    def versions(self) -> list[int]:
        return versions(self._location)

    def prepare(self, schema: str, partition_by: Collection[str]) -> None:
        wanted = _nullable(schema)
        found = self._updated()
        if found is None:
            DeltaTable.create(
                self._location.delta_uri,
                wanted,
                mode="ignore",
                partition_by=list(partition_by),
                configuration=CONFIGURATION,
                storage_options=self._location.storage_options,
            )
            found = self._updated()
        assert found is not None
        there = {one.name for one in found.schema().fields}
        new = [one for one in wanted.fields if one.name not in there]
        if new:
            found.alter.add_columns(new)

    def changes(self, schema: str) -> dict[str, tuple[str, str]]:
        found = self._updated()
        there = {} if found is None else {one.name: one for one in found.schema().fields}
        every = [(there[one.name], one) for one in _nullable(schema).fields if one.name in there]
        return {new.name: (_type(old), _type(new)) for old, new in every if old.type != new.type}

    def append(
        self, newest: Version, commit: Commit, totals: Totals, batches: Mapping[str, int], schema: str | None
    ) -> bool:
        assert isinstance(newest, DeltaVersion)
        table, is_change = newest.table, commit.kind not in (COMPACTION, WIDENING)
        columns = table.schema() if schema is None else _nullable(schema)
        numbers = {name: {kind} for name, kind in numbers_of(pa.schema(columns)).items()} if commit.added else {}
        for one in commit.added:
            check_file(self._location.uri, numbers, one.numbers)
        removes = _removes(table, commit, is_change) if schema is None else []
        try:
            table.create_write_transaction(
                [*removes, *_adds(commit, is_change)],
                "append" if schema is None else "overwrite",
                columns,
                table.metadata().partition_columns,
                commit_properties=CommitProperties(
                    custom_metadata={NOTE: note_of(commit, totals)},
                    max_commit_retries=0,
                    app_transactions=[Transaction(query, batch) for query, batch in batches.items()],
                ),
                post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=False),
            )
        except CommitFailedError:
            found = self._updated()
            if found is not None and found.version() >= commit.version:
                return False
            raise
        return True

    def keep_commits(self, seconds: float, check: Callable[[], None]) -> None:
        """Keep commits, which name the files to delete, for a day longer than ``seconds``."""
        interval = f"interval {1 + math.ceil(seconds / DAY_S)} days"
        found = self._updated()
        if found is not None and found.metadata().configuration.get(LOG_RETENTION) != interval:
            check()
            found.alter.set_table_properties({LOG_RETENTION: interval})

    def clean_up(self, before: int, seconds: float, *, with_attempts: bool) -> None:
        """Delete the commits that a checkpoint covers and that are older than the table's own setting."""
        found = self._updated()
        if found is not None and before > last_checkpoint(self._location) >= 0:
            found.cleanup_metadata()

    def _updated(self) -> DeltaTable | None:
        """This thread's table, at the newest version."""
        found: DeltaTable | None = getattr(self._newest, "table", None)
        if found is not None:
            found.update_incremental()
            return found
        with suppress(TableNotFoundError):
            found = self._newest.table = DeltaTable(
                self._location.delta_uri, storage_options=self._location.storage_options
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
