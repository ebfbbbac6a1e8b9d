"""The log of an Iceberg table: snapshots, which a catalog commits.

The version of a table is the sequence number of its newest snapshot; a new table has version 0.  A snapshot's summary
has its kind, query, batch and counts.  The totals and the last batch of each query are a property of the table, which
the same commit sets: in the summaries of all snapshots they would make the metadata large.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timezone
from functools import cached_property
from typing import Any, NamedTuple

from pyiceberg.exceptions import NamespaceAlreadyExistsError, TableAlreadyExistsError, ValidationException
from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.manifest import ManifestEntryStatus, ManifestFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table import TableProperties
from pyiceberg.table.snapshots import Operation, Snapshot
from pyiceberg.table.update.schema import UpdateSchema

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.stores import Folder
from pykafka08.spark.pipeline.tables.column_types import Wider, check_file, is_widening, numbers_of
from pykafka08.spark.pipeline.tables.iceberg.catalogs import (
    NOT_COMMITTED,
    NOT_FOUND,
    catalog_errors,
    catalog_of,
    identifier_of,
    location_of,
)
from pykafka08.spark.pipeline.tables.iceberg.entries import bounds_of, data_file_of, iceberg_file_of
from pykafka08.spark.pipeline.tables.iceberg.schemas import iceberg_schema, identity_spec, spark_name, spark_schema
from pykafka08.spark.pipeline.tables.model import COMPACTION, WIDENING, Commit, DataFile, FileBounds, Totals
from pykafka08.spark.pipeline.tables.storage import located
from pykafka08.spark.pipeline.tables.table_log import CatalogError, Version

__all__ = ["IcebergLog"]

NOTE = "pykafka08"
"""The key of a snapshot's summary with kind, query, batch and counts, and of the property with totals and batches."""
DATA, METADATA = "data", "metadata"
PROPERTIES = {
    TableProperties.COMMIT_NUM_RETRIES: "0",
    TableProperties.MANIFEST_MERGE_ENABLED: "true",
    TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED: "true",
    TableProperties.METADATA_PREVIOUS_VERSIONS_MAX: "20",
}
"""pyiceberg must not repeat a commit after the commit of another writer, which may have the same batch."""
KEPT_S = 3600.0
"""The shortest time for which old snapshots are kept, for readers that have begun."""
WIDER: Wider = {"integer": {"long"}, "float": {"double"}}
"""The changes of types that Iceberg's specification allows."""
TYPES_IN_FILES = {"int32": {"int8", "int16", "int32"}}
"""Arrow type of a column → types that its files may have: Spark writes bytes and shorts, which Iceberg lacks."""
ATTEMPTS = 5
"""Attempts at a commit, since other programs may change the table without a new snapshot."""


class Entry(NamedTuple):
    """An entry of a manifest."""

    file: IcebergFile
    data: DataFile
    """The same file, with its path below the table's folder."""
    status: ManifestEntryStatus
    snapshot: int
    """The id of the snapshot that added the file, or that removed it."""
    sequence: int
    """The version that added the file."""


class IcebergVersion:
    """An Iceberg table at a version."""

    def __init__(self, log: IcebergLog, table: IcebergTable, snapshot: Snapshot | None, number: int) -> None:
        self.table = table
        self._log = log
        self._snapshot = snapshot
        self._number = number

    @property
    def number(self) -> int:
        return self._number

    @property
    def note(self) -> Mapping[str, Any]:
        """The property with the totals; empty before the first commit."""
        found: Mapping[str, Any] = json.loads(self.table.properties.get(NOTE, "{}"))
        return found

    def totals(self) -> Totals:
        if self._number < _version_of(self.table):
            raise LookupError(f"{self.table.location()}: only the newest version has totals, not {self._number}")
        return Totals(**self.note.get("totals", {}))

    def transaction(self, query: str) -> int | None:
        batch: int | None = self.note.get("batches", {}).get(query)
        return batch

    @cached_property
    def entries(self) -> list[Entry]:
        """The live files in the order of their commits."""
        manifests = [] if self._snapshot is None else self._snapshot.manifests(self.table.io)
        every = self._log.entries(self.table, manifests)
        live = (one for one in every if one.status is not ManifestEntryStatus.DELETED)
        return sorted(live, key=lambda one: (one.sequence, one.file.file_path))

    def live(self, days: Collection[str] | None = None) -> tuple[DataFile, ...]:
        return tuple(one.data for one in self.entries if days is None or one.data.day in days)

    def bounded(self, columns: Sequence[str]) -> list[FileBounds]:
        schema = self.table.schema()
        times = {one.snapshot_id: one.timestamp_ms / 1000 for one in self.table.metadata.snapshots}
        is_any_expired = any(one.snapshot not in times for one in self.entries)
        written = self._log.times_of_files() if is_any_expired else {}
        found = []
        for one in self.entries:
            pairs = {name: bounds_of(one.file, schema, name) for name in columns}
            bounds = {name: pair for name, pair in pairs.items() if pair is not None}
            at = times.get(one.snapshot, written.get(one.data.path, time.time()))
            found.append(FileBounds(one.data, bounds, datetime.fromtimestamp(at, timezone.utc)))
        return found

    def columns(self) -> tuple[str, list[str]]:
        return spark_schema(self.table.schema()), [one.name for one in self.table.spec().fields]


class IcebergLog:
    """The snapshots of the table in a folder, in the catalog of the settings."""

    has_partitions_in_files = True
    wider = WIDER

    def __init__(self, folder: Folder) -> None:
        self._storage = folder.storage
        self._identifier = identifier_of(folder)
        self._name = ".".join(self._identifier)
        self._files = located(folder)
        self.location = location_of(folder.address)
        """The address of the table."""
        self._catalog = catalog_of(folder.storage)
        self._read: IcebergTable | None = None
        """The table as it was read last."""
        self._entries: dict[str, list[Entry]] = {}
        """Manifest → its entries, for the manifests read last.  Manifests never change."""

    @property
    def attempts_kept_s(self) -> float:
        return KEPT_S

    def newest(self) -> IcebergVersion | None:
        try:
            with catalog_errors(self._storage):
                found = self._catalog.load_table(self._identifier)
        except NOT_FOUND:
            # Without this check the stages would begin anew, and a run would delete all files as unnamed.
            if any(one.is_file for one in self._files.files(DATA)):
                raise ConfigError(
                    f"storage.catalog: {self.location} has files of a table, but the catalog has no table "
                    f"{self._name}; use the earlier uri, name and namespace (default: the name of the pipeline), or "
                    "another folder"
                ) from None
            return None
        if found.location().rstrip("/") != self.location:
            raise ConfigError(
                f"storage.catalog: the table {self._name} is in {found.location()}, not in "
                f"{self.location}; choose another namespace or folder"
            )
        self._read = found
        return IcebergVersion(self, found, found.current_snapshot(), _version_of(found))

    def at(self, version: int) -> IcebergVersion:
        table, snapshot = self._snapshot_at(version)
        return IcebergVersion(self, table, snapshot, version)

    def commit_at(self, version: int) -> Commit:
        table, snapshot = self._snapshot_at(version)
        if snapshot is None:
            return Commit(version, "create", "", -1)
        try:
            changed = [one for one in snapshot.manifests(table.io) if one.added_snapshot_id == snapshot.snapshot_id]
            found = [one for manifest in changed for one in self._entries_in(table, manifest)]
        except FileNotFoundError as error:  # another process has expired the snapshot since the table was read
            raise LookupError(f"{self.location}: version {version} was cleaned up: {error}") from error
        every = [one for one in found if one.snapshot == snapshot.snapshot_id]
        added = tuple(one.data for one in every if one.status is ManifestEntryStatus.ADDED)
        removed = tuple(one.data.path for one in every if one.status is ManifestEntryStatus.DELETED)
        at = snapshot.timestamp_ms / 1000
        summary = snapshot.summary
        note = None if summary is None else summary.additional_properties.get(NOTE)
        if note is None:
            operation = Operation.APPEND if summary is None else summary.operation
            kind = COMPACTION if operation is Operation.REPLACE else operation.value
            return Commit(version, kind, "", -1, added, removed, at=at)
        own = json.loads(note)
        return Commit(version, own["kind"], own["query"], own["batch"], added, removed, own["counts"], at=at)

    def versions(self) -> list[int]:
        newest = self.newest()
        if newest is None:
            return []
        return sorted([0, *(one.sequence_number or 0 for one in newest.table.metadata.snapshots)])

    def prepare(self, schema: str, partition_by: Collection[str]) -> None:
        wanted = iceberg_schema(schema)
        found = self.newest()
        for _ in range(ATTEMPTS):
            if found is None:
                self._create(schema, partition_by)
                found = self.newest()
        if found is None:
            raise CatalogError(
                f"storage.catalog: the catalog has something else of the name {self._name}, such as a view or a table "
                "that was dropped; choose another namespace"
            )
        has = {one.name for one in found.table.schema().fields}
        new = {one.name: one.field_type for one in wanted.fields if one.name not in has}
        if new:
            self._change(lambda table: _add_columns(table, new))
        if any(found.table.properties.get(name) != value for name, value in self._properties(found.table).items()):
            self._change(self._set_properties)

    def changes(self, schema: str) -> dict[str, tuple[str, str]]:
        found = self.newest()
        has = {} if found is None else {one.name: spark_name(one.field_type) for one in found.table.schema().fields}
        wants = {one.name: spark_name(one.field_type) for one in iceberg_schema(schema).fields}
        return {name: (has[name], kind) for name, kind in wants.items() if has.get(name, kind) != kind}

    def append(
        self, newest: Version, commit: Commit, totals: Totals, batches: Mapping[str, int], schema: str | None
    ) -> bool:
        assert isinstance(newest, IcebergVersion)
        found: IcebergVersion | None = newest
        for _ in range(ATTEMPTS):
            if found is None or found.number >= commit.version:
                return False
            if commit.kind == WIDENING and schema is not None and not _has_columns_of(schema, found.table):
                return False  # another process has added a column, which is no new version
            made: list[int] = []
            try:
                with catalog_errors(self._storage):
                    self._append(found, commit, totals, batches, schema, made)
            except (*NOT_COMMITTED, ValidationException):
                found = self.newest()
                if found is not None and any(found.table.snapshot_by_id(one) is not None for one in made):
                    return True  # the request was repeated on its way, and only the second one was refused
            else:
                return True
        raise CatalogError(
            f"storage.catalog: {self._name}: {ATTEMPTS} commits failed, because other "
            "programs changed the table; run this again"
        )

    def keep_commits(self, seconds: float, check: Callable[[], None]) -> None:
        """Nothing to set: :meth:`clean_up` is given the time."""

    def clean_up(self, before: int, seconds: float, *, with_attempts: bool) -> None:
        newest = self.newest()
        if newest is None:
            return
        table, limit = newest.table, time.time() - max(seconds, KEPT_S)
        refs = {one.snapshot_id for one in table.metadata.refs.values()}
        old = [
            one
            for one in table.metadata.snapshots
            # A stage that has read up to the version before `before` lists the files of that version.
            if (one.sequence_number or 0) < before - 1
            and one.timestamp_ms / 1000 < limit
            and one.snapshot_id not in refs
        ]
        if old:
            expired = {one.snapshot_id for one in old}
            kept = [one for one in table.metadata.snapshots if one.snapshot_id not in expired]
            gone = _metadata_files(table, old) - _metadata_files(table, kept)
            try:
                with catalog_errors(self._storage):
                    table.maintenance.expire_snapshots().by_ids(sorted(expired)).commit()
            except (*NOT_COMMITTED, ValueError):  # ValueError: another process has expired them
                return
            self._delete(gone)
        if with_attempts:
            self._delete_unnamed()

    def entries(self, table: IcebergTable, manifests: Collection[ManifestFile]) -> list[Entry]:
        """The entries of manifests.  They stay in memory until the next call, and entries of other manifests do not."""
        self._entries = found = {one.manifest_path: self._entries_in(table, one) for one in manifests}
        return [entry for each in found.values() for entry in each]

    def _entries_in(self, table: IcebergTable, manifest: ManifestFile) -> list[Entry]:
        known = self._entries.get(manifest.manifest_path)
        if known is not None:
            return known
        schema, spec = table.schema(), table.specs()[manifest.partition_spec_id]
        found = manifest.fetch_manifest_entry(table.io, discard_deleted=False)
        files = ((one, data_file_of(one.data_file, self.location, schema, spec)) for one in found)
        return [
            Entry(one.data_file, data, one.status, one.snapshot_id or 0, one.sequence_number or 0)
            for one, data in files
        ]

    def times_of_files(self) -> dict[str, float]:
        """Path of each data file → its time in seconds since 1970, for files whose snapshot has expired."""
        files = self._files.files(DATA)
        return {one.path: one.mtime.timestamp() for one in files if one.is_file and one.mtime is not None}

    def _snapshot_at(self, version: int) -> tuple[IcebergTable, Snapshot | None]:
        if self._read is None or _version_of(self._read) < version:
            self.newest()
        if self._read is None or _version_of(self._read) < version:
            raise LookupError(f"{self.location}: version {version} does not exist")
        for one in reversed(self._read.metadata.snapshots):
            if one.sequence_number == version:
                return self._read, one
        if version:
            raise LookupError(f"{self.location}: version {version} was cleaned up")
        return self._read, None

    def _create(self, schema: str, partition_by: Collection[str]) -> None:
        columns = iceberg_schema(schema)
        with catalog_errors(self._storage):
            try:
                self._catalog.create_namespace_if_not_exists(self._identifier[:-1])
                self._catalog.create_table(
                    self._identifier,
                    columns,
                    location=self.location,
                    partition_spec=identity_spec(columns, partition_by),
                    properties=PROPERTIES,
                )
            except (NamespaceAlreadyExistsError, TableAlreadyExistsError):
                return  # another process was first

    def _properties(self, table: IcebergTable) -> dict[str, str]:
        """The properties that the table must have.  The ids of its columns are known only after its creation."""
        mapping = table.properties.get(TableProperties.DEFAULT_NAME_MAPPING, "[]")
        mapped = {name for one in json.loads(mapping) for name in one.get("names", ())}
        if not mapped.issuperset(one.name for one in table.schema().fields):
            mapping = table.schema().name_mapping.model_dump_json()
        return {**PROPERTIES, TableProperties.DEFAULT_NAME_MAPPING: mapping}

    def _set_properties(self, table: IcebergTable) -> None:
        with table.transaction() as transaction:
            transaction.set_properties(self._properties(table))

    def _change(self, change: Callable[[IcebergTable], None]) -> None:
        """Change the table.  Repeats the change if another process was first."""
        for _ in range(ATTEMPTS):
            found = self.newest()
            assert found is not None
            try:
                with catalog_errors(self._storage):
                    return change(found.table)
            except NOT_COMMITTED:
                continue
        raise CatalogError(
            f"storage.catalog: {self._name}: {ATTEMPTS} changes failed, because other "
            "programs changed the table; run this again"
        )

    def _append(
        self,
        found: IcebergVersion,
        commit: Commit,
        totals: Totals,
        batches: Mapping[str, int],
        schema: str | None,
        made: list[int],
    ) -> None:
        """Commit once.  ``made`` gets the id of the snapshot, before the catalog is asked."""
        table, removed = found.table, set(commit.removed)
        note = {"totals": totals.document(), "batches": {**found.note.get("batches", {}), **batches}}
        own = {"kind": commit.kind, "query": commit.query, "batch": commit.batch, "counts": dict(commit.counts)}
        live = {one.file.file_path: one.file for one in found.entries} if removed or schema is not None else {}
        with table.transaction() as transaction:
            if schema is not None:
                removed = {one.removeprefix(f"{self.location}/") for one in live}
                with transaction.update_schema() as update:
                    _set_columns(update, table.schema(), iceberg_schema(schema))
            columns, spec = transaction.table_metadata.schema(), table.spec()
            numbers = {name: TYPES_IN_FILES.get(kind, {kind}) for name, kind in numbers_of(columns.as_arrow()).items()}
            transaction.set_properties({NOTE: json.dumps(note)})
            snapshot = transaction.update_snapshot(snapshot_properties={NOTE: json.dumps(own)})
            with snapshot.overwrite() if removed else snapshot.merge_append() as producer:
                # pyiceberg would delete the manifests of a refused commit, which may be in the table all the same.
                producer._clean_all_uncommitted = _leave_manifests  # type: ignore[method-assign]
                made.append(producer.snapshot_id)
                for path in sorted(removed):
                    producer.delete_data_file(live[f"{self.location}/{path}"])
                for one in commit.added:
                    check_file(self.location, numbers, one.numbers)
                    producer.append_data_file(iceberg_file_of(one, self.location, columns, spec))

    def _delete_unnamed(self) -> None:
        """Delete old metadata files of failed commits, which the table does not name."""
        newest = self.newest()
        if newest is None:
            return
        table, limit = newest.table, time.time() - KEPT_S
        named = _metadata_files(table, table.metadata.snapshots) | {table.metadata_location}
        named |= {one.metadata_file for one in table.metadata.metadata_log}
        files = (one for one in self._files.files(METADATA) if one.is_file and one.mtime is not None)
        old = {f"{self.location}/{one.path}" for one in files if one.mtime.timestamp() < limit}
        self._delete({one for one in old if one.endswith((".avro", ".metadata.json"))} - named)

    def _delete(self, addresses: Collection[str]) -> None:
        for one in sorted(addresses):
            path = one.removeprefix(f"{self.location}/")
            if self._files.filesystem.get_file_info(path).is_file:
                self._files.filesystem.delete_file(path)


def _version_of(table: IcebergTable) -> int:
    """The sequence number of the newest snapshot; 0 without one."""
    return table.metadata.next_sequence_number() - 1


def _metadata_files(table: IcebergTable, snapshots: Collection[Snapshot]) -> set[str]:
    """The manifest lists and the manifests of snapshots."""
    found = {one.manifest_list for one in snapshots}
    return found | {each.manifest_path for one in snapshots for each in one.manifests(table.io)}


def _set_columns(update: UpdateSchema, old: Schema, new: Schema) -> None:
    """Give a table the columns of a new schema.  A column whose type cannot change is replaced by a new column."""
    kept = {one.name: one.field_type for one in new.fields}
    for one in old.fields:
        kind = kept.get(one.name)
        if kind is not None and is_widening(spark_name(one.field_type), spark_name(kind), WIDER):
            update.update_column(one.name, kind)
        elif kind is None or spark_name(kind) != spark_name(one.field_type):
            update.delete_column(one.name)
            if kind is not None:
                update.add_column(one.name, kind)
    names = {one.name for one in old.fields}
    for one in new.fields:
        if one.name not in names:
            update.add_column(one.name, one.field_type)


def _leave_manifests() -> None:
    """:meth:`IcebergLog._delete_unnamed` deletes them later."""


def _has_columns_of(schema: str, table: IcebergTable) -> bool:
    return {one.name for one in table.schema().fields} <= {one.name for one in iceberg_schema(schema).fields}


def _add_columns(table: IcebergTable, columns: Mapping[str, Any]) -> None:
    with table.update_schema() as update:
        for name, kind in columns.items():
            if name not in table.schema().column_names:
                update.add_column(name, kind)
