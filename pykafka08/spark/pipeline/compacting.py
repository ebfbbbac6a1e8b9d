"""Small files of a table made one: Spark writes new files, one commit swaps them, then the old ones go.

Of gold, of which each change of a window brings a row, only the newest rows stay: all of it is one file then.
Old files are deleted once every stage that reads the table has committed a version behind them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from pyspark.sql import SparkSession

from pykafka08.spark.pipeline.aggregating import current
from pykafka08.spark.pipeline.checkpoints import version_read
from pykafka08.spark.pipeline.settings import Aggregate, Compaction, Pipeline
from pykafka08.spark.pipeline.stores import Folder
from pykafka08.spark.pipeline.tables import rows as table_rows
from pykafka08.spark.pipeline.tables.model import COMPACTION, Commit, DataFile
from pykafka08.spark.pipeline.tables.table import Table

__all__ = ["Compacted", "compact", "readers_of", "versions"]

JOBS = 4
"""So many groups of files are joined at once, each by one task."""
PER_COMMIT = 64
"""Groups whose files one commit swaps: what a compaction that is ended has done so far stays."""
Group = list[DataFile]
Compacted = tuple[int, int, int]
"""Files before, files after, files deleted."""


def compact(spark: SparkSession, pipeline: Pipeline, *, until: Mapping[str, int] | None = None) -> dict[str, Compacted]:
    """All tables by their folder's name.

    ``until``: stages or backfills run meanwhile, which may read what they found live when they began: only what was
    replaced up to these versions is deleted.  Without it nobody does, so files that no commit names are nobody's.
    """
    aggregates = {f"gold/{name}": one for name, one in pipeline.aggregates.items()}
    made = {}
    for name, table in _tables(pipeline).items():
        before = len(table.live())
        _join(spark, table, pipeline.compaction, aggregates.get(name))
        deleted = _expire(pipeline, name, table, None if until is None else until.get(name, -1))
        made[name] = before, len(table.live()), deleted
    return made


def versions(pipeline: Pipeline) -> dict[str, int]:
    """The newest of each table, by its folder's name."""
    return {name: table.version for name, table in _tables(pipeline).items()}


def _tables(pipeline: Pipeline) -> dict[str, Table]:
    folders = {f"bronze/{name}": pipeline.bronze(name) for name in pipeline.sources}
    folders |= {"silver": pipeline.silver, "rejects": pipeline.rejects}
    folders |= {f"gold/{name}": pipeline.gold(name) for name in pipeline.aggregates}
    return {name: Table(folder) for name, folder in folders.items()}


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


def _join(spark: SparkSession, table: Table, settings: Compaction, aggregate: Aggregate | None) -> None:
    """``aggregate``: rows of a window replace one another; without it each row stays."""
    state = table.state()
    groups = list(_groups(state.files, settings) if aggregate is None else _whole(state.files, settings))
    attempt = table.attempt(COMPACTION, state.version + 1)
    for at in range(0, len(groups), PER_COMMIT):
        chosen = groups[at : at + PER_COMMIT]
        folders = [f"{attempt}/{_folder(group[0])}{number:06d}" for number, group in enumerate(chosen, at)]
        with ThreadPoolExecutor(JOBS) as pool:
            joined = list(pool.map(partial(_joined, spark, table, aggregate), folders, chosen))
        removed = tuple(one.path for group in chosen for one in group)
        added = tuple(one for files in joined for one in files)
        if not _swap(table, Commit(0, COMPACTION, COMPACTION, state.version + 1, added, removed)):
            break


def _swap(table: Table, commit: Commit) -> bool:
    """Commit behind whatever others have made meanwhile; False if these have replaced one of the files."""
    removed, is_made = set(commit.removed), False
    while not is_made:
        state = table.state()
        if not removed <= {one.path for one in state.files}:
            return False
        is_made = table.commit(replace(commit, version=state.version + 1))
    return True


def _expire(pipeline: Pipeline, name: str, table: Table, until: int | None) -> int:
    """Delete what every reader has passed; how many files."""
    readers, version = readers_of(pipeline, pipeline.root / name), table.version
    passed = min((version_read(pipeline.checkpoint(name)) for name in readers), default=version)
    kept = pipeline.compaction.keep_commits
    last = min(passed, version - kept, version if until is None else until)
    return table.expire(last + 1, with_attempts=until is None)


def _groups(files: Iterable[DataFile], settings: Compaction) -> Iterator[Group]:
    """Files of one partition that together are small enough, in the order in which they came."""
    partitions: dict[str, Group] = defaultdict(list)
    for one in files:
        if one.bytes < settings.target_bytes:
            partitions[_folder(one)].append(one)
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


def _whole(files: Sequence[DataFile], settings: Compaction) -> Iterator[Group]:
    """All files: a row may be replaced by one in any of them."""
    if len(files) >= settings.min_files:
        yield list(files)


def _folder(file: DataFile) -> str:
    """Of its partition, as Spark names it."""
    return "".join(f"{name}={value}/" for name, value in file.values.items())


def _joined(
    spark: SparkSession, table: Table, aggregate: Aggregate | None, folder: str, group: Group
) -> list[DataFile]:
    rows = table_rows.read(spark, table, group, table_rows.columns_in_files(table))
    if aggregate is not None:
        rows = current(rows, aggregate)
    rows.coalesce(1).write.option("compression", "zstd").parquet(table.location.of(folder))
    return table_rows.files_of(table, folder, group[0].values)
