"""Conversion of a folder of an earlier version: tables, checkpoints, starts and runs.

The new folder is made beside the old one, with hard links to the old Parquet files, or copies if the file system has no
hard links.  At the end it gets the old folder's name, and the old one becomes ``FOLDER.before-conversion``.  Each entry
of an old log that a stage has not read becomes a commit; all earlier entries become one commit.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline import old_layout
from pykafka08.spark.pipeline.gold_sql import resolved
from pykafka08.spark.pipeline.leasing import CONVERSION as WORK
from pykafka08.spark.pipeline.leasing import leased
from pykafka08.spark.pipeline.old_layout import OldEntry, OldFile, OldState
from pykafka08.spark.pipeline.settings import Pipeline
from pykafka08.spark.pipeline.tables import rows as table_rows
from pykafka08.spark.pipeline.tables.model import NEW_ROWS, Commit, DataFile, Totals
from pykafka08.spark.pipeline.tables.table import Table

__all__ = ["commit_next", "convert"]

CONVERSION = "conversion"
"""The query of commits that replace several entries of an old log."""
ACCEPTED, REJECTED, ROWS = "accepted", "rejected", "rows"
"""Parts of the old tables: old silver held accepted and rejected rows."""
COPIED = ("starts", "runs", "checkpoints")
Say = Callable[[str], None]
Renumber = Callable[[int], int]
"""From an offset in an old log to the version of the new table."""


@dataclass(frozen=True)
class _Part:
    """A new table, and the part of the old table that goes into it."""

    name: str
    table: Table
    schema: StructType


def convert(start: Callable[[], SparkSession], pipeline: Pipeline, say: Say) -> None:
    """Convert the folder of a pipeline.  If the process is killed, at any point, repeat the conversion.

    ``start`` creates the session; it is not called if there is nothing to convert.

    Raises:
        ConfigError: there is nothing to convert, a run is at work, or the folder of an earlier conversion exists.
    """
    if not old_layout.is_old(pipeline):
        raise ConfigError(f"folder: {pipeline.root} has no tables of an earlier version")
    if pipeline.storage.format != "delta":
        raise ConfigError(
            "storage.format: convert makes Delta tables only; remove this setting, or choose another folder"
        )
    root = Path(pipeline.root)
    made, kept = (root.with_name(root.name + suffix) for suffix in (old_layout.MADE, old_layout.KEPT))
    if old_layout.is_unnamed(pipeline):
        made.rename(root)
        say(f"{root} has Delta tables now; {kept} is the old folder, and may be deleted")
        return
    if kept.exists():
        raise ConfigError(f"folder: {kept} exists, from an earlier conversion; move or delete it, then repeat this one")
    if old_layout.is_at_work(root):
        raise ConfigError(f"folder: a run or a backfill writes to {root}; repeat the conversion after it has ended")
    with leased(pipeline.root, [WORK], is_exclusive=True) as lease:
        shutil.rmtree(made, ignore_errors=True)
        for name in COPIED:
            if (root / name).exists():
                shutil.copytree(root / name, made / name)
        _Conversion(start(), pipeline, made, say).run()
        lease.stop_renewing()  # the table of the lease is moved with the old folder
        root.rename(kept)
        made.rename(root)
    say(f"{root} has Delta tables now; {kept} is the old folder, and may be deleted")


class _Conversion:
    def __init__(self, spark: SparkSession, pipeline: Pipeline, made: Path, say: Say) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self._made = made
        self._say = say

    def run(self) -> None:
        spark, pipeline = self._spark, resolved(self._spark, self._pipeline)
        for name in pipeline.sources:
            self._bronze(name)
        good, bad = (of(spark, pipeline.decode) for of in (table_rows.silver_schema, table_rows.rejects_schema))
        silver = _Part(ACCEPTED, self._table(Path(pipeline.silver)), good)
        rejects = _Part(REJECTED, self._table(Path(pipeline.rejects)), bad)
        readers = ["dead-letters", *(f"aggregate-{one}" for one in pipeline.aggregates)]
        self._log(Path(pipeline.silver), [silver, rejects], readers)
        for name, aggregate in pipeline.aggregates.items():
            schema = table_rows.gold_schema(spark, pipeline.decode, aggregate)
            folder = Path(pipeline.gold(name))
            self._log(folder, [_Part(ROWS, self._table(folder), schema)], [f"publish-{name}"])

    def _table(self, folder: Path) -> Table:
        return Table(self._made / folder.relative_to(Path(self._pipeline.root)))

    def _log(self, old: Path, parts: Iterable[_Part], readers: Iterable[str]) -> None:
        """Convert an old table into one Delta table for each part, all with the same versions."""
        if not (old / "log").exists():
            return
        checkpoints = [self._made / "checkpoints" / one for one in readers]
        read = [int(one["version"]) for each in checkpoints for one in _planned(each)]
        newest = max((one.version for one in old_layout.entries(old, -1)), default=-1)
        newest = max(newest, *(int(one.stem) for one in (old / "snapshots").glob("*.json")), -1)
        base = old_layout.state_at(old, min([*read, newest]))
        first = 1 if base.version >= 0 else 0
        for part in parts:
            is_partitioned = "event_date" in part.schema.fieldNames()
            day = StructType.fromJson({"type": "struct", "fields": [DAY]}) if is_partitioned else StructType([])
            part.table.prepare(StructType([*part.schema, *day]).json(), [table_rows.DAY] if is_partitioned else [])
            if first:
                self._commit_state(old, part, base)
            for entry in old_layout.entries(old, base.version):
                self._commit_entry(old, part, entry)
            self._say(f"{part.table.location.uri}: {part.table.state().rows:,} rows")
        for checkpoint in checkpoints:
            _renumber(checkpoint, "version", lambda version: max(0, version - base.version + first))

    def _commit_state(self, old: Path, part: _Part, state: OldState) -> None:
        files = (one for one in state.files.values() if one.part == part.name)
        added = tuple(self._linked(old, part.table, one) for one in files)
        brought = {kind: rows[part.name] for kind, rows in state.brought.items()}
        totals = Totals(dict(state.counts) if part.name != REJECTED else {}, brought, state.newest)
        commit_next(part.table, Commit(1, NEW_ROWS, CONVERSION, 0, added), totals)

    def _commit_entry(self, old: Path, part: _Part, entry: OldEntry) -> None:
        live = {one.path for one in part.table.live()}
        added = tuple(self._linked(old, part.table, one) for one in entry.added if one.part == part.name)
        removed = tuple(path for path in entry.removed if path in live)
        counts = entry.counts if part.name != REJECTED else {}
        version = part.table.version + 1
        commit_next(part.table, Commit(version, entry.kind, entry.query, entry.batch, added, removed, counts))

    def _bronze(self, source: str) -> None:
        """Convert bronze: a commit for each batch that the decode stage has read, and one for the unread files."""
        old = Path(self._pipeline.bronze(source))
        table = self._table(old)
        last = old_layout.last_batch(old)
        if last < 0:
            return
        checkpoint = self._made / "checkpoints" / f"decode-{source}"
        read = old_layout.source_log(checkpoint)
        batches: dict[int, list[str]] = {number: [] for number in sorted(set(read.values()))}
        unread: list[str] = []
        for path in old_layout.manifest(old):
            number = read.get(Path(path).name)
            (unread if number is None else batches[number]).append(path)
        table.prepare(table_rows.bronze_schema(self._spark).json(), table_rows.BRONZE_PARTITIONS)
        for number, paths in batches.items():
            files = tuple(self._linked_bronze(old, table, path) for path in paths)
            commit_next(table, Commit(table.version + 1, NEW_ROWS, CONVERSION, number, files))
        files = tuple(self._linked_bronze(old, table, path) for path in unread)
        commit_next(table, Commit(table.version + 1, NEW_ROWS, f"ingest-{source}", last, files))
        _renumber(checkpoint, "logOffset", lambda offset: sum(number <= offset for number in batches))
        shutil.rmtree(checkpoint / "sources", ignore_errors=True)
        self._say(f"{table.location.uri}: {table.state().rows:,} rows")

    def _linked(self, old: Path, table: Table, file: OldFile) -> DataFile:
        values = {table_rows.DAY: file.day} if file.part == ACCEPTED else {}
        if not (old / file.path).exists():  # replaced and deleted; a later entry removes it
            return DataFile(file.path, file.rows, file.bytes, values)
        _link(old / file.path, Path(table.location.uri, file.path))
        return table.data_file(file.path, values)

    def _linked_bronze(self, old: Path, table: Table, path: str) -> DataFile:
        made = f"data/{CONVERSION}/{path}"
        _link(old / path, Path(table.location.uri, made))
        return table.data_file(made, table_rows.partition_values(path.split("/")[:-1]))


DAY = {"name": table_rows.DAY, "type": "date", "nullable": True, "metadata": {}}


def commit_next(table: Table, entry: Commit, totals: Totals | None = None) -> None:
    """Make the table's next version.  Raises ConfigError if another program has made it."""
    if not table.commit(entry, totals):
        raise ConfigError(f"folder: another program writes to {table.location.uri}; end it, and repeat the conversion")


def _link(old: Path, new: Path) -> None:
    new.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(old, new)
    except OSError:  # a file system without hard links
        shutil.copyfile(old, new)


def _planned(checkpoint: Path) -> list[Mapping[str, int]]:
    """The offsets of the last two batches, which Spark reads when a query starts."""
    numbers = sorted(int(one.name) for one in (checkpoint / "offsets").glob("*") if one.name.isdigit())
    texts = ((checkpoint / "offsets" / str(number)).read_text().splitlines()[2] for number in numbers[-2:])
    return [json.loads(text) for text in texts]


def _renumber(checkpoint: Path, key: str, renumbered: Renumber) -> None:
    """Replace the offsets of a query, and delete the checksums, which no longer match."""
    for path in (checkpoint / "offsets").glob("*"):
        if path.name.isdigit():
            lines = path.read_text().splitlines()
            lines[2] = json.dumps({"version": renumbered(int(json.loads(lines[2])[key]))})
            path.write_text("\n".join(lines))
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
