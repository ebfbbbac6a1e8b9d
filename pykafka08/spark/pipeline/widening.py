"""Wider types of columns in silver, such as BIGINT for INT: one commit replaces the schema and all files.

Delta's log has one schema for all files, and readers differ in what they accept in a file with a narrower type.  So the
table has the old types in all files, or the new types in all files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from pykafka08.spark.pipeline.compacting import JOBS, Group, folder_of, groups, written
from pykafka08.spark.pipeline.settings import Pipeline
from pykafka08.spark.pipeline.tables import rows as table_rows
from pykafka08.spark.pipeline.tables.column_types import check_changes, is_widening
from pykafka08.spark.pipeline.tables.model import WIDENING, Commit, DataFile, State
from pykafka08.spark.pipeline.tables.table import Fence, Table

__all__ = ["check_types", "widen"]

Widened = dict[tuple[str, ...], list[DataFile]]
"""Paths of a group of old files → the files with the same rows in the new types."""


def check_types(spark: SparkSession, pipeline: Pipeline) -> dict[str, tuple[str, str]]:
    """The columns of silver that the settings widen, with the old and the new type.

    Raises:
        ConfigError: the settings change a type in another way.
    """
    table = Table(pipeline.silver)
    changes = table.changes(table_rows.silver_schema(spark, pipeline.decode).json())
    others = {name: each for name, each in changes.items() if not is_widening(*each, table.wider)}
    check_changes(table.location.uri, others, table.wider)
    return changes


def widen(spark: SparkSession, pipeline: Pipeline, fence: Fence | None = None) -> str:
    """Give silver the wider types of the settings.  Returns a line about the changes; empty if no type has changed.

    Spark rewrites all files, in groups of at most ``compaction.target_bytes``.  Other runs may commit meanwhile.
    If the process is killed, the table is unchanged, and the next run begins again.

    Raises:
        ConfigError: the settings change a type in another way.
        LeaseLostError: another process has taken the lease.
    """
    table, made = Table(pipeline.silver, fence), Widened()
    while changes := check_types(spark, pipeline):
        state, columns = table.state(), table.columns()[0]
        if table.version != state.version:
            continue  # the columns may be of another version
        rewriting = _Rewriting(spark, pipeline, table, table_rows.columns_in_files(table), changes)
        made = rewriting.complete(state, made)
        added = tuple(one for files in made.values() for one in files)
        removed = tuple(one.path for one in state.files)
        commit = Commit(state.version + 1, WIDENING, WIDENING, state.version + 1, added, removed)
        if table.commit(commit, schema=_with_types(columns, changes)):
            types = ", ".join(f"{name} from {old} to {new}" for name, (old, new) in changes.items())
            return f"silver: widened {types}; {len(removed)} files, now {len(added)}"
    return ""


@dataclass(frozen=True)
class _Rewriting:
    """The rewriting of silver's files."""

    spark: SparkSession
    pipeline: Pipeline
    table: Table
    columns: StructType
    """The columns in the files, with their old types."""
    changes: Mapping[str, tuple[str, str]]
    attempt: str = field(init=False)
    """The folder of the new files."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "attempt", self.table.attempt(WIDENING, self.table.version + 1))

    def complete(self, state: State, made: Widened) -> Widened:
        """New files for all live files.

        ``made``: the new files of an earlier attempt, which are used again if all old files of their group are live.
        """
        live = {one.path for one in state.files}
        kept = {paths: files for paths, files in made.items() if live.issuperset(paths)}
        covered = {path for paths in kept for path in paths}
        found = self._groups([one for one in state.files if one.path not in covered])
        folders = [f"{self.attempt}/{folder_of(group[0])}{number:06d}" for number, group in enumerate(found)]
        with ThreadPoolExecutor(JOBS) as pool:
            files = list(pool.map(self._rewritten, folders, found))
        return kept | {tuple(one.path for one in group): new for group, new in zip(found, files, strict=True)}

    def _groups(self, files: list[DataFile]) -> list[Group]:
        settings = replace(self.pipeline.compaction, min_files=1)
        large = [[one] for one in files if one.bytes >= settings.target_bytes]
        return [*groups(files, settings), *large]

    def _rewritten(self, folder: str, group: Group) -> list[DataFile]:
        rows = self._widened(table_rows.read(self.spark, self.table, group, self.columns))
        cluster_by = self.pipeline.compaction.cluster_by.get("silver", ())
        return written(self.table, rows, cluster_by, folder, group[0].values)

    def _widened(self, rows: DataFrame) -> DataFrame:
        wanted = table_rows.silver_schema(self.spark, self.pipeline.decode)
        return rows.withColumns({name: F.col(f"`{name}`").cast(wanted[name].dataType) for name in self.changes})


def _with_types(columns: str, changes: Mapping[str, tuple[str, str]]) -> str:
    """A schema in the JSON of Delta, with other types for some columns."""
    document = json.loads(columns)
    for one in document["fields"]:
        if one["name"] in changes:
            one["type"] = changes[one["name"]][1]
    return json.dumps(document)
