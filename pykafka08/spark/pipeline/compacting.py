"""Small files of a table made one: new files first, then one log entry that swaps them, then the old ones go.

Of gold, of which each change of a window brings a row, only the newest rows stay: all of it is one file then.
Old files are deleted once every stage that reads the table's log has committed a version behind them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pykafka08.spark.pipeline import delta
from pykafka08.spark.pipeline.settings import Compaction, Pipeline
from pykafka08.spark.pipeline.table import ACCEPTED, Added, Entry, Table

__all__ = ["Compacted", "compact", "newest", "readers_of", "version_read", "versions"]

QUERY = "compaction"
NUMBER = "__number"
Compacted = tuple[int, int, int]
"""Files before, files after, files deleted."""


def compact(pipeline: Pipeline, *, until: Mapping[str, int] | None = None) -> dict[str, Compacted]:
    """All tables by their folder's name.

    ``until``: stages or backfills run meanwhile, which may read what they found live when they began: only what was
    replaced up to these versions is deleted.  Without it nobody does, so files that no entry names are nobody's.
    """
    from pykafka08.spark.pipeline.aggregating import key_of

    keys = {pipeline.gold(name): key_of(one) for name, one in pipeline.aggregates.items()}
    made = {}
    for name, table in _tables(pipeline).items():
        before = _count(table)
        _join(table, pipeline.compaction, keys.get(table.folder))
        shown = delta.follow(table, ACCEPTED) if table.folder == pipeline.silver else table.version
        deleted = _expire(pipeline, table, shown, None if until is None else until.get(name, -1))
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


def _join(table: Table, settings: Compaction, key: list[str] | None) -> None:
    """``key``: of rows that replace one another; without it each row stays."""
    is_made = False
    while not is_made:
        version = table.version
        groups = list(_groups(table, settings) if key is None else _whole(table, settings))
        if not groups:
            break
        attempt = table.attempt(QUERY, version + 1)
        added = tuple(_joined(table, attempt, number, group, key) for number, group in enumerate(groups))
        removed = tuple(one.path for group in groups for one in group)
        is_made = table.commit(Entry(version + 1, QUERY, QUERY, version + 1, added, removed))


def _expire(pipeline: Pipeline, table: Table, shown: int, until: int | None) -> int:
    """Delete what every reader has passed; how many files.  ``shown``: the version that readers of Delta see."""
    readers = readers_of(pipeline, table.folder)
    passed = min((version_read(pipeline.checkpoint(name)) for name in readers), default=table.version)
    kept = pipeline.compaction.keep_entries
    last = min(passed, shown, table.version - kept, table.version if until is None else until)
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


def _whole(table: Table, settings: Compaction) -> Iterator[list[Added]]:
    """All files of each part: a row may be replaced by one in any of them."""
    files = [table.live(part) for part in sorted(table.parts())]
    yield from (group for group in files if len(group) >= settings.min_files)


def _joined(table: Table, attempt: str, number: int, group: list[Added], key: list[str] | None) -> Added:
    first = group[0]
    day = f"day={first.day}/" if first.day else ""
    path = table.folder / attempt / first.part / f"{day}{number:06d}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    schema = pq.read_schema(table.folder / group[-1].path)
    batches = _batches(table, group, schema)
    if key is not None:
        batches = newest(pa.Table.from_batches(batches, schema), key).to_batches()
    rows = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)
            rows += batch.num_rows
    return Added(path.relative_to(table.folder).as_posix(), first.part, first.day, rows, path.stat().st_size)


def _batches(table: Table, group: Iterable[Added], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    from pykafka08.spark.pipeline.arrow_rows import fitted

    for one in group:
        with pq.ParquetFile(table.folder / one.path) as file:
            for batch in file.iter_batches():
                yield fitted(batch, schema)


def newest(gold: pa.Table, key: list[str]) -> pa.Table:
    """Of each window and group the row of the highest batch; all rows where Arrow cannot group by such a column."""
    from pykafka08.spark.pipeline.aggregating import BATCH

    ordered = gold.sort_by(BATCH)
    numbered = ordered.select(key).append_column(NUMBER, pa.array(range(ordered.num_rows), pa.int64()))
    try:
        last = numbered.group_by(key).aggregate([(NUMBER, "max")])
    except pa.ArrowNotImplementedError:
        return gold
    return ordered.take(last.sort_by(f"{NUMBER}_max")[f"{NUMBER}_max"])


def version_read(checkpoint: Path) -> int:
    """The newest version that a stage has read and committed; -1: none."""
    done = [int(path.name) for path in (checkpoint / "commits").glob("*") if path.name.isdigit()]
    if not done:
        return -1
    return int(json.loads((checkpoint / "offsets" / str(max(done))).read_text().splitlines()[2])["version"])
