"""Retention: a commit removes the files whose rows are all older than ``[retention]`` allows.

A file is removed only after every stage that reads the table has read it.  The commits of bronze name the offsets that
they removed, so that ``verify`` and ``backfill`` know them.  Compaction, which rewrites gold, leaves
old windows out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.compacting import swap, tables, version_passed
from pykafka08.spark.pipeline.leasing import BACKFILL, leased
from pykafka08.spark.pipeline.settings import Pipeline
from pykafka08.spark.pipeline.settings_model import duration_seconds
from pykafka08.spark.pipeline.tables.model import RETENTION, Commit, FileBounds, text_of
from pykafka08.spark.pipeline.tables.removed import merged, ranges_in, read_ranges, write_ranges
from pykafka08.spark.pipeline.tables.table import Fence, LeaseLostError, Table
from pykafka08.spark.pipeline.verifying import DECODE, is_interrupted

__all__ = ["Removal", "removals", "retain"]

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
"""Records of brokers before 0.10 have no timestamp; bronze stores a time one millisecond before this one."""
Aged = tuple[FileBounds, str]
"""A file, and the newest time or day of its rows as text."""
Say = Callable[[str], None]


@dataclass(frozen=True)
class Removal:
    """What retention has removed from a table."""

    table: str
    rows: int
    files: int
    bytes: int
    until: str
    """The newest time or day of the removed rows."""

    def __str__(self) -> str:
        of_files = f" in {_counted(self.files, 'file')}" if self.files else ""
        return f"{self.table}: {_counted(self.rows, 'row')}{of_files} removed, the newest of {self.until}"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def removals(pipeline: Pipeline) -> list[Removal]:
    """All rows that retention has removed so far, by table; tables without such rows are left out."""
    found = []
    for name, table in tables(pipeline).items():
        totals = table.totals()
        rows, files, size = (totals.counts.get(one, 0) for one in ("removed", "removed_files", "removed_bytes"))
        if rows:
            found.append(Removal(name, rows, files, size, totals.retention["until"]))
    return found


def retain(pipeline: Pipeline, *, now: datetime | None = None, say: Say = print) -> list[Removal]:
    """Remove old files from bronze, silver and rejects.  Nothing is removed while a backfill runs.

    If the process is killed, the next run removes the other files.  Ages are counted from ``now``.  ``say`` is called
    with a line for each table, and with the reason if nothing can be removed now.
    """
    settings = pipeline.retention
    if not (settings.bronze or settings.silver or settings.rejects):
        return []
    made: list[Removal] = []
    try:
        with leased(pipeline.root, [RETENTION, BACKFILL], say=say) as lease:
            if is_interrupted(Table(pipeline.rejects).state()):
                raise ConfigError("a backfill was interrupted and needs the records; repeat it")
            for removal in _removed(pipeline, now or datetime.now(timezone.utc), lease):
                made.append(removal)
                say(f"retention of {removal}")
    except (ConfigError, LeaseLostError) as error:
        say(f"nothing is removed before the next run or round: {error}")
    return made


def _removed(pipeline: Pipeline, now: datetime, fence: Fence) -> Iterator[Removal]:
    settings = pipeline.retention
    if settings.bronze:
        before = now - _period(settings.bronze)
        for name in pipeline.sources:
            table = Table(pipeline.bronze(name), fence)
            old = _older(table.bounded(["timestamp", "partition", "offset"]), "timestamp", before)
            yield from _remove(pipeline, f"bronze/{name}", table, old)
    if settings.rejects:
        table = Table(pipeline.rejects, fence)
        old = _older(table.bounded(["_timestamp"]), "_timestamp", now - _period(settings.rejects))
        if not _has_pending_batch(pipeline, table):
            yield from _remove(pipeline, "rejects", table, old)
    if settings.silver:
        table = Table(pipeline.silver, fence)
        first = (now - _period(settings.silver)).date().isoformat()
        days = [(one, one.file.day) for one in table.bounded([]) if "" < one.file.day < first]
        yield from _remove(pipeline, "silver", table, days)


def _period(text: str) -> timedelta:
    return timedelta(seconds=duration_seconds(text))


def _older(files: Iterable[FileBounds], column: str, before: datetime) -> list[Aged]:
    """The files whose rows are all older than ``before``."""
    every = [(one, _newest(one, column)) for one in files]
    return [(one, text_of(newest)) for one, newest in every if newest < before]


def _newest(one: FileBounds, column: str) -> datetime:
    """The newest time of a file's rows; without a timestamp, the end of their ingest date or the time of the commit."""
    smallest: datetime | None
    largest: datetime | None
    smallest, largest = one.bounds.get(column, (None, None))
    if smallest is not None and largest is not None and smallest >= EPOCH:
        return largest
    day = one.file.values.get("ingest_date")
    ingested = datetime.combine(date.fromisoformat(day), time.max, timezone.utc) if day else one.committed
    return ingested if largest is None else max(ingested, largest)


def _has_pending_batch(pipeline: Pipeline, rejects: Table) -> bool:
    """Whether a batch has refused records, and its accepted rows are not in silver yet."""
    silver = Table(pipeline.silver).totals().newest
    newest = rejects.totals().newest
    return any(batch > silver.get(query, -1) for query, batch in newest.items() if query.startswith(DECODE))


def _remove(pipeline: Pipeline, name: str, table: Table, old: Sequence[Aged]) -> Iterator[Removal]:
    """Commit the removal of those old files that all stages have read."""
    if not old:
        return
    passed = version_passed(pipeline, name, table)
    if passed < 0:
        return
    unread = {one.path for commit in table.commits(passed) for one in commit.added}
    chosen = [(one, newest) for one, newest in old if one.file.path not in unread]
    if not chosen:
        return
    files = [one for one, _ in chosen]
    before, query, batch = table.totals().retention, RETENTION, table.version + 1
    until = max([before.get("until", ""), *(newest for _, newest in chosen)])
    rows, size = sum(one.file.rows for one in files), sum(one.file.bytes for one in files)
    retention = {"until": until}
    if name.startswith("bronze/"):
        ranges = merged(read_ranges(table), *(ranges_in(table, one) for one in files))
        retention["ranges"] = write_ranges(table, table.attempt(query, batch), ranges)
    commit = Commit(
        version=0,
        kind=RETENTION,
        query=query,
        batch=batch,
        removed=tuple(one.file.path for one in files),
        counts={"removed": rows, "removed_files": len(files), "removed_bytes": size},
        retention=retention,
    )
    if swap(table, commit):
        yield Removal(name, rows, len(files), size, until)
