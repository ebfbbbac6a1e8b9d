"""Small files of a table made one: new files first, then one log entry that swaps them, then the old ones go.

Old files are deleted once every stage that reads the table's log has committed a version behind them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow.parquet as pq

from pykafka08.spark.pipeline import delta
from pykafka08.spark.pipeline.settings import Compaction, Pipeline
from pykafka08.spark.pipeline.table import ACCEPTED, Added, Entry, Table

__all__ = ["Compacted", "compact", "readers_of", "version_read", "versions"]

QUERY = "compaction"
Compacted = tuple[int, int, int]
"""Files before, files after, files deleted."""


def compact(pipeline: Pipeline, *, until: Mapping[str, int] | None = None) -> dict[str, Compacted]:
    """All tables by their folder's name.

    ``until``: stages or backfills run meanwhile, which may read what they found live when they began: only what was
    replaced up to these versions is deleted.  Without it nobody does, so files that no entry names are nobody's.
    """
    made = {}
    for name, table in _tables(pipeline).items():
        before = _count(table)
        _join(table, pipeline.compaction)
        if table.folder == pipeline.silver:
            delta.follow(table, ACCEPTED)  # nothing is deleted that its readers are still shown
        deleted = _expire(pipeline, table, None if until is None else until.get(name, -1))
        made[name] = before, _count(table), deleted
    return made


def versions(pipeline: Pipeline) -> dict[str, int]:
    """The newest of each table, by its folder's name."""
    return {name: table.version for name, table in _tables(pipeline).items()}


def _tables(pipeline: Pipeline) -> dict[str, Table]:
    folders = [pipeline.silver, *(pipeline.gold(name) for name in pipeline.aggregates)]
    return {str(folder.relative_to(pipeline.root)): Table(folder) for folder in folders}


def readers_of(pipeline: Pipeline, folder: Path) -> list[str]:
    """The stages that read a table as a stream."""
    if folder == pipeline.silver:
        letters = ["dead-letters"] if pipeline.dead_letters is not None else []
        return [*letters, *(f"aggregate-{name}" for name in pipeline.aggregates)]
    return [
        f"publish-{name}" for name, one in pipeline.aggregates.items() if one.topic and pipeline.gold(name) == folder
    ]


def _join(table: Table, settings: Compaction) -> None:
    is_made = False
    while not is_made:
        version = table.version
        groups = list(_groups(table, settings))
        if not groups:
            break
        attempt = table.attempt(QUERY, version + 1)
        added = tuple(_joined(table, attempt, number, group) for number, group in enumerate(groups))
        removed = tuple(one.path for group in groups for one in group)
        is_made = table.commit(Entry(version + 1, QUERY, QUERY, version + 1, added, removed))


def _expire(pipeline: Pipeline, table: Table, until: int | None) -> int:
    """Delete what every reader has passed; how many files."""
    readers = readers_of(pipeline, table.folder)
    passed = min((version_read(pipeline.checkpoint(name)) for name in readers), default=table.version)
    kept = pipeline.compaction.keep_entries
    last = min(passed, table.version - kept, table.version if until is None else until)
    return table.expire(last + 1, with_attempts=until is None)


def _count(table: Table) -> int:
    return sum(len(table.live(part)) for part in table.parts())


def _groups(table: Table, settings: Compaction) -> Iterator[list[Added]]:
    """Files of one day and part that together are small enough, in the order in which they came."""
    for part in sorted(table.parts()):
        days: dict[str, list[Added]] = defaultdict(list)
        for one in table.live(part):
            if one.bytes < settings.target_bytes:
                days[one.day].append(one)
        for files in days.values():
            group: list[Added] = []
            for one in files:
                if group and sum(each.bytes for each in group) + one.bytes > settings.target_bytes:
                    if len(group) >= settings.min_files:
                        yield group
                    group = []
                group.append(one)
            if len(group) >= settings.min_files:
                yield group


def _joined(table: Table, attempt: str, number: int, group: list[Added]) -> Added:
    from pykafka08.spark.pipeline.arrow_rows import fitted

    first = group[0]
    day = f"day={first.day}/" if first.day else ""
    path = table.folder / attempt / first.part / f"{day}{number:06d}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    schema = pq.read_schema(table.folder / group[-1].path)
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for one in group:
            with pq.ParquetFile(table.folder / one.path) as file:
                for batch in file.iter_batches():
                    writer.write_batch(fitted(batch, schema))
    relative = path.relative_to(table.folder).as_posix()
    return Added(relative, first.part, first.day, sum(one.rows for one in group), path.stat().st_size)


def version_read(checkpoint: Path) -> int:
    """The newest version that a stage has read and committed; -1: none."""
    done = [int(path.name) for path in (checkpoint / "commits").glob("*") if path.name.isdigit()]
    if not done:
        return -1
    return int(json.loads((checkpoint / "offsets" / str(max(done))).read_text().splitlines()[2])["version"])
