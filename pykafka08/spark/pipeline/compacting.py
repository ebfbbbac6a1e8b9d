"""Compaction: Spark joins small files into one, a commit replaces them, and later the old files are deleted.

Gold has a row for each change of a window.  Its compaction keeps the newest row of each window, in one file, and no
windows older than ``retention.gold``.  A run rewrites gold only if it holds the lease of the aggregate's stage, because
the settings of any other run may be older than the last restatement.

Removed files are deleted once every stage that reads the table has committed a later version, and ``retention.files``
has passed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pykafka08.spark.pipeline.aggregating import current
from pykafka08.spark.pipeline.checkpoints import version_read
from pykafka08.spark.pipeline.leasing import Lease
from pykafka08.spark.pipeline.settings import Aggregate, Compaction, Pipeline
from pykafka08.spark.pipeline.settings_model import duration_seconds
from pykafka08.spark.pipeline.stores import Folder
from pykafka08.spark.pipeline.tables import rows as table_rows
from pykafka08.spark.pipeline.tables.model import COMPACTION, Commit, DataFile, text_of
from pykafka08.spark.pipeline.tables.table import Fence, Table

__all__ = [
    "Compacted",
    "compact",
    "delete_attempts",
    "folder_of",
    "groups",
    "readers_of",
    "swap",
    "tables",
    "version_passed",
    "versions",
    "written",
]

JOBS = 4
"""The number of groups of files that are joined at once, each by one task."""
PER_COMMIT = 64
"""The number of groups that one commit replaces.  If a compaction is killed, the commits before stay."""
END = "window_end"
"""The column of gold by which windows are retained."""
Group = list[DataFile]
Compacted = tuple[int, int, int]
"""Files before, files after, files deleted."""


def compact(
    spark: SparkSession,
    pipeline: Pipeline,
    *,
    until: Mapping[str, int] | None = None,
    fence: Fence | None = None,
) -> dict[str, Compacted]:
    """Compact all tables; the results by folder.

    ``until``: only files that were replaced up to these versions are deleted, because stages or backfills run that may
    still read later ones.  Without it nothing else runs, and files that no commit names are deleted, too.
    """
    aggregates = {f"gold/{name}": one for name, one in pipeline.aggregates.items()}
    made = {}
    for name, table in tables(pipeline, fence).items():
        before, cluster_by = len(table.live()), pipeline.compaction.cluster_by.get(name, ())
        if name in aggregates:
            if _may_rewrite(name, fence):
                _join_gold(spark, table, pipeline, aggregates[name], cluster_by)
        else:
            _join(spark, table, pipeline.compaction, cluster_by)
        deleted = _expire(pipeline, name, table, None if until is None else until.get(name, -1))
        made[name] = before, len(table.live()), deleted
    return made


def _may_rewrite(folder: str, fence: Fence | None) -> bool:
    """Whether no other process can restate a gold table, because this one has the lease of the aggregate's stage."""
    return not isinstance(fence, Lease) or f"aggregate-{folder.removeprefix('gold/')}" in fence.holder.work


def versions(pipeline: Pipeline) -> dict[str, int]:
    """The newest version of each table, by folder."""
    return {name: table.version for name, table in tables(pipeline).items()}


def delete_attempts(pipeline: Pipeline) -> int:
    """Delete the files that no commit names, and return their number.  No other process may write meanwhile."""
    return sum(_expire(pipeline, name, table, None) for name, table in tables(pipeline).items())


def tables(pipeline: Pipeline, fence: Fence | None = None) -> dict[str, Table]:
    """The tables of a pipeline by folder."""
    folders = {f"bronze/{name}": pipeline.bronze(name) for name in pipeline.sources}
    folders |= {"silver": pipeline.silver, "rejects": pipeline.rejects}
    folders |= {f"gold/{name}": pipeline.gold(name) for name in pipeline.aggregates}
    return {name: Table(folder, fence) for name, folder in folders.items()}


def readers_of(pipeline: Pipeline, folder: Folder) -> list[str]:
    """The stages that read a table as a stream."""
    decodes = {pipeline.bronze(name): f"decode-{name}" for name in pipeline.sources}
    if folder in decodes:
        return [decodes[folder]]
    if folder == pipeline.silver:
        return [f"aggregate-{name}" for name in pipeline.aggregates]
    if folder == pipeline.rejects:
        return ["dead-letters"] if pipeline.dead_letters is not None else []
    return [
        f"publish-{name}" for name, one in pipeline.aggregates.items() if one.topic and pipeline.gold(name) == folder
    ]


def _join(spark: SparkSession, table: Table, settings: Compaction, cluster_by: Sequence[str] = ()) -> None:
    """Join small files.

    ``cluster_by``: columns by which the rows of each new file are sorted.
    """
    state = table.state()
    found = list(groups(state.files, settings))
    attempt = table.attempt(COMPACTION, state.version + 1)
    for at in range(0, len(found), PER_COMMIT):
        chosen = found[at : at + PER_COMMIT]
        folders = [f"{attempt}/{folder_of(group[0])}{number:06d}" for number, group in enumerate(chosen, at)]
        with ThreadPoolExecutor(JOBS) as pool:
            joined = list(pool.map(partial(_joined, spark, table, cluster_by), folders, chosen))
        removed = tuple(one.path for group in chosen for one in group)
        added = tuple(one for files in joined for one in files)
        if not swap(table, Commit(0, COMPACTION, COMPACTION, state.version + 1, added, removed)):
            break


def _join_gold(
    spark: SparkSession, table: Table, pipeline: Pipeline, aggregate: Aggregate, cluster_by: Sequence[str]
) -> None:
    """Rewrite gold as one file with the newest row of each window that is not older than ``retention.gold``.

    Nothing is done if there are few files and no old windows.
    """
    state, period = table.state(), pipeline.retention.gold
    now = datetime.now(timezone.utc).replace(microsecond=0)
    before = now - timedelta(seconds=duration_seconds(period)) if period else None
    ends = [one.bounds[END][0] for one in table.bounded([END]) if END in one.bounds]
    has_old = before is not None and any(end <= before for end in ends)
    if not has_old and len(state.files) < pipeline.compaction.min_files:
        return
    rows = current(table_rows.read(spark, table, state.files, table_rows.columns_in_files(table)), aggregate)
    counts: dict[str, int] = {}
    retention: dict[str, str] = {}
    if before is not None and has_old:
        is_old = F.col(END) <= before
        counts["removed"] = rows.where(is_old).count()
        retention["until"] = max(state.totals.retention.get("until", ""), text_of(before))
        rows = rows.where(~is_old)
    version = state.version + 1
    attempt = table.attempt(COMPACTION, version)
    added, removed = written(table, rows, cluster_by, attempt, {}), tuple(one.path for one in state.files)
    swap(table, Commit(0, COMPACTION, COMPACTION, version, tuple(added), removed, counts, retention=retention))


def swap(table: Table, commit: Commit) -> bool:
    """Commit after the newest version; False if another commit has replaced one of the files."""
    removed, is_made = set(commit.removed), False
    while not is_made:
        state = table.state()
        if not removed <= {one.path for one in state.files}:
            return False
        is_made = table.commit(replace(commit, version=state.version + 1))
    return True


def _expire(pipeline: Pipeline, name: str, table: Table, until: int | None) -> int:
    """Delete the files that no reader needs; the number of files."""
    age = duration_seconds(pipeline.retention.files) if pipeline.retention.files else 0.0
    table.keep_commits(age)
    version, kept = table.version, pipeline.compaction.keep_commits
    last = min(version_passed(pipeline, name, table), version - kept, version if until is None else until)
    return table.expire(last + 1, with_attempts=until is None, age=age)


def version_passed(pipeline: Pipeline, name: str, table: Table) -> int:
    """The newest version of a table that every stage has read completely; -1 if one of them has read nothing."""
    readers = readers_of(pipeline, pipeline.root / name)
    return min((version_read(pipeline.checkpoint(one)) for one in readers), default=table.version)


def groups(files: Iterable[DataFile], settings: Compaction) -> Iterator[Group]:
    """Groups of files of one partition, each at most ``target_bytes``, in the order of their commits."""
    partitions: dict[str, Group] = defaultdict(list)
    for one in files:
        if one.bytes < settings.target_bytes:
            partitions[folder_of(one)].append(one)
    for of_partition in partitions.values():
        group: Group = []
        for one in of_partition:
            if group and sum(each.bytes for each in group) + one.bytes > settings.target_bytes:
                if len(group) >= settings.min_files:
                    yield group
                group = []
            group.append(one)
        if len(group) >= settings.min_files:
            yield group


def folder_of(file: DataFile) -> str:
    """The folder of its partition, as Spark names it."""
    return "".join(f"{name}={value}/" for name, value in file.values.items())


def _joined(spark: SparkSession, table: Table, cluster_by: Sequence[str], folder: str, group: Group) -> list[DataFile]:
    rows = table_rows.read(spark, table, group, table_rows.columns_in_files(table))
    return written(table, rows, cluster_by, folder, group[0].values)


def written(
    table: Table, rows: DataFrame, cluster_by: Sequence[str], folder: str, values: Mapping[str, str]
) -> list[DataFile]:
    """Write rows of one partition as one file, sorted by ``cluster_by``."""
    rows = rows.coalesce(1)
    if cluster_by:
        rows = rows.sortWithinPartitions(*cluster_by)
    rows.write.option("compression", "zstd").parquet(table.location.of(folder))
    return table_rows.files_of(table, folder, values)
