"""Small files of a table made one: new files first, then one commit that swaps them, then the old ones go.

Of gold, of which each change of a window brings a row, only the newest rows stay: all of it is one file then.
Old files are deleted once every stage that reads the table's log has committed a version behind them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from pykafka08.spark.pipeline.checkpoints import version_read
from pykafka08.spark.pipeline.settings import Compaction, Pipeline
from pykafka08.spark.pipeline.stores import Folder
from pykafka08.spark.pipeline.tables.model import COMPACTION, Added, Entry
from pykafka08.spark.pipeline.tables.table import Table

__all__ = ["Compacted", "compact", "newest", "readers_of", "versions"]

NUMBER = "__number"
BRONZE = "bronze/"
"""Before the names of tables whose files stay as they are."""
Compacted = tuple[int, int, int]
"""Files before, files after, files deleted."""


def compact(pipeline: Pipeline, *, until: Mapping[str, int] | None = None) -> dict[str, Compacted]:
    """All tables by their folder's name.

    ``until``: stages or backfills run meanwhile, which may read what they found live when they began: only what was
    replaced up to these versions is deleted.  Without it nobody does, so files that no commit names are nobody's.
    """
    from pykafka08.spark.pipeline.aggregating import key_of

    keys = {f"gold/{name}": key_of(one) for name, one in pipeline.aggregates.items()}
    made = {}
    for name, table in _tables(pipeline).items():
        before = len(table.live())
        if not name.startswith(BRONZE):
            _join(table, pipeline.compaction, keys.get(name))
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


def _join(table: Table, settings: Compaction, key: list[str] | None) -> None:
    """``key``: of rows that replace one another; without it each row stays."""
    is_made = False
    while not is_made:
        state = table.state()
        version = state.version
        groups = list(_groups(state.files, settings) if key is None else _whole(state.files, settings))
        if not groups:
            break
        attempt = table.attempt(COMPACTION, version + 1)
        added = tuple(_joined(table, attempt, number, group, key) for number, group in enumerate(groups))
        removed = tuple(one.path for group in groups for one in group)
        is_made = table.commit(Entry(version + 1, COMPACTION, COMPACTION, version + 1, added, removed))


def _expire(pipeline: Pipeline, name: str, table: Table, until: int | None) -> int:
    """Delete what every reader has passed; how many files."""
    readers, version = readers_of(pipeline, pipeline.root / name), table.version
    passed = min((version_read(pipeline.checkpoint(name)) for name in readers), default=version)
    kept = pipeline.compaction.keep_entries
    last = min(passed, version - kept, version if until is None else until)
    return table.expire(last + 1, with_attempts=until is None)


def _groups(files: Iterable[Added], settings: Compaction) -> Iterator[list[Added]]:
    """Files of one day that together are small enough, in the order in which they came."""
    days: dict[str, list[Added]] = defaultdict(list)
    for one in files:
        if one.bytes < settings.target_bytes:
            days[one.day].append(one)
    for of_day in days.values():
        group: list[Added] = []
        for one in of_day:
            if group and sum(each.bytes for each in group) + one.bytes > settings.target_bytes:
                if len(group) >= settings.min_files:
                    yield group
                group = []
            group.append(one)
        if len(group) >= settings.min_files:
            yield group


def _whole(files: Sequence[Added], settings: Compaction) -> Iterator[list[Added]]:
    """All files: a row may be replaced by one in any of them."""
    if len(files) >= settings.min_files:
        yield list(files)


def _joined(table: Table, attempt: str, number: int, group: list[Added], key: list[str] | None) -> Added:
    day, files = group[0].day, table.location.filesystem
    folder = f"{attempt}/day={day}" if day else attempt
    path = f"{folder}/{number:06d}.parquet"
    files.create_dir(folder, recursive=True)
    with files.open_input_file(group[-1].path) as file:
        schema = pq.read_schema(file)
    batches = _batches(table, group, schema)
    if key is not None:
        batches = newest(pa.Table.from_batches(batches, schema), key).to_batches()
    with files.open_output_stream(path) as out, pq.ParquetWriter(out, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)
    return table.added(path, group[0].values)


def _batches(table: Table, group: Iterable[Added], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    from pykafka08.spark.pipeline.arrow_rows import fitted

    for one in group:
        with table.location.filesystem.open_input_file(one.path) as opened, pq.ParquetFile(opened) as file:
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
