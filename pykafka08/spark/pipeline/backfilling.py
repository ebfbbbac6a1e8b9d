"""Days of silver and gold made anew from bronze, with the functions of the streams: after a new rule, or for late rows.

One log entry replaces the files of the days; readers of the log pass it over, so nothing is counted twice.  Days that
the watermark has passed are meant: a window that a stream still has open is overwritten by its next update.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from pykafka08.spark.pipeline import delta, tables
from pykafka08.spark.pipeline.aggregating import current, windowed
from pykafka08.spark.pipeline.decoding import accepted, decoded, rejected
from pykafka08.spark.pipeline.duplicates import first_of_each, not_there
from pykafka08.spark.pipeline.file_logs import unread_files
from pykafka08.spark.pipeline.locking import shared
from pykafka08.spark.pipeline.settings import Aggregate, Pipeline
from pykafka08.spark.pipeline.table import Added, Entry, Table
from pykafka08.spark.pipeline.table_source import NEW_ROWS
from pykafka08.spark.pipeline.verifying import PLACE, bronze_of

__all__ = ["Backfilled", "backfill"]

KIND = "backfill"
WAS = "_was"
"""Column: the part of silver that a row was in, or :data:`NOWHERE`: it was left out as a duplicate."""
NOWHERE = "nowhere"


@dataclass(frozen=True)
class Backfilled:
    """What became of a table."""

    table: str
    rows_before: int
    rows_after: int


def backfill(spark: SparkSession, pipeline: Pipeline, first: date, last: date) -> list[Backfilled]:
    """Make the days ``first`` to ``last`` (both included, event time in UTC) anew, silver and then each gold table."""
    with shared(pipeline.root):
        made = [_silver(spark, pipeline, first, last)]
        return [*made, *(_gold(spark, pipeline, name, one, first, last) for name, one in pipeline.aggregates.items())]


def _silver(spark: SparkSession, pipeline: Pipeline, first: date, last: date) -> Backfilled:
    table = Table(pipeline.silver)
    is_made = False
    while not is_made:
        scope = _scope(spark, pipeline, table, first, last)
        candidates = _candidates(scope).persist()
        good = _without_duplicates(scope, candidates).persist()
        parts = {tables.ACCEPTED: good.drop(WAS), tables.REJECTED: _bad(scope, good)}
        added = tables.write(table, table.attempt(KIND, scope.version), parts)
        left_out = _count_of(candidates, tables.ACCEPTED) - _count_of(good, tables.ACCEPTED)
        counts = {"duplicates": left_out - _count_of(good, NOWHERE)}
        good.unpersist()
        candidates.unpersist()
        removed = tuple(one.path for one in [*scope.old, *scope.refused])
        is_made = table.commit(Entry(scope.version, KIND, KIND, scope.version, tuple(added), removed, counts))
    delta.follow(table, tables.ACCEPTED)
    after = sum(one.rows for one in added if one.part == tables.ACCEPTED)
    return Backfilled("silver", sum(one.rows for one in scope.old), after)


@dataclass(frozen=True)
class _Scope:
    """What silver holds before it, and what the records of bronze are by the settings as they are now."""

    pipeline: Pipeline
    days: Column
    """Whether a row is of the days."""
    version: int
    """Of the entry to be made."""
    old: list[Added]
    """Accepted rows of the days; these files and `refused` are replaced."""
    refused: list[Added]
    decoded: DataFrame
    was_good: DataFrame
    """Coordinates of the rows in `old`."""
    was_bad: DataFrame
    kept: DataFrame
    """Accepted rows of other days."""


def _scope(spark: SparkSession, pipeline: Pipeline, table: Table, first: date, last: date) -> _Scope:
    version = table.version
    live = table.live(tables.ACCEPTED, version)
    old = [one for one in live if first.isoformat() <= one.day <= last.isoformat()]
    kept = [one for one in live if one not in old]
    refused = table.live(tables.REJECTED, version)
    good, bad = (tables.silver_schema(spark, pipeline.decode, part) for part in (tables.ACCEPTED, tables.REJECTED))
    return _Scope(
        pipeline=pipeline,
        days=F.col("event_date").between(first, last),
        version=version + 1,
        old=old,
        refused=refused,
        decoded=_decoded_anew(spark, pipeline, table.entries(until=version)),
        was_good=tables.read(spark, table, old, good).select(*PLACE),
        was_bad=tables.read(spark, table, refused, bad),
        kept=tables.read(spark, table, kept, good),
    )


def _decoded_anew(spark: SparkSession, pipeline: Pipeline, entries: Iterable[Entry]) -> DataFrame:
    """Every record that silver has taken, accepted or not; what bronze holds beyond them is left to the stream."""
    newest = {one.query: one.batch for one in entries if one.kind == NEW_ROWS}
    every = None
    for name in pipeline.sources:
        query = f"decode-{name}"
        bronze = _bronze_until(spark, pipeline, name, newest.get(query, -1))
        rows = decoded(bronze, pipeline.decode, name)
        every = rows if every is None else every.unionByName(rows)
    assert every is not None
    return every


def _bronze_until(spark: SparkSession, pipeline: Pipeline, source: str, batch: int) -> DataFrame:
    rows = bronze_of(spark, pipeline, source)
    manifest = pipeline.bronze(source) / "_spark_metadata"
    unread = unread_files(manifest, pipeline.checkpoint(f"decode-{source}"), batch)
    names = [Path(path).name for path in unread]
    return rows.where(~F.col("_metadata.file_name").isin(names)) if names else rows


def _candidates(scope: _Scope) -> DataFrame:
    """Rows that are accepted now, with :data:`WAS`: of the days, or that were accepted in them and are of others now.

    Not those that other days hold: a row of them that is of these days now changes when its old day is made anew.
    """
    was_good = scope.was_good.withColumn(WAS, F.lit(tables.ACCEPTED))
    was = was_good.unionByName(scope.was_bad.select(*PLACE, F.lit(tables.REJECTED).alias(WAS)))
    rows = accepted(scope.decoded)
    marked = rows.join(scope.kept.select(*PLACE), list(PLACE), "left_anti").join(was, list(PLACE), "left")
    marked = marked.fillna(NOWHERE, [WAS])
    return marked.where(scope.days | (F.col(WAS) == tables.ACCEPTED)).select(*rows.columns, WAS)


def _without_duplicates(scope: _Scope, candidates: DataFrame) -> DataFrame:
    """Of one key a row that was accepted before goes first: what the stream took is what remains."""
    duplicates = scope.pipeline.decode.duplicates
    if duplicates is None:
        return candidates
    was_good = F.col(WAS) == tables.ACCEPTED
    staying = not_there(first_of_each(candidates.where(was_good), duplicates), scope.kept, duplicates)
    coming = not_there(first_of_each(candidates.where(~was_good), duplicates), scope.kept, duplicates)
    return staying.unionByName(not_there(coming, staying, duplicates))


def _bad(scope: _Scope, good: DataFrame) -> DataFrame:
    """What was rejected and is not accepted now, and the other way round."""
    still_bad = scope.was_bad.join(good.select(*PLACE), list(PLACE), "left_anti")
    newly_bad = rejected(scope.decoded).join(scope.was_good, list(PLACE), "left_semi")
    return still_bad.unionByName(newly_bad)


def _count_of(rows: DataFrame, was: str) -> int:
    return rows.where(F.col(WAS) == was).count()


def _gold(
    spark: SparkSession, pipeline: Pipeline, name: str, aggregate: Aggregate, first: date, last: date
) -> Backfilled:
    """All of a gold table, which is small, with the windows of these days anew; it is published again."""
    silver, table = Table(pipeline.silver), Table(pipeline.gold(name))
    schema = tables.silver_schema(spark, pipeline.decode, tables.ACCEPTED)
    rows = tables.read(spark, silver, silver.live(tables.ACCEPTED), schema)
    is_of_days = F.to_date("window_start").between(first, last)
    windows = windowed(rows, aggregate).where(is_of_days).persist()
    is_made = False
    while not is_made:
        version = table.version
        old = table.live(tables.ROWS)
        newest = max((one.batch for one in table.entries() if one.kind == "batch"), default=0)
        gold = tables.read(spark, table, old, tables.gold_schema(spark, pipeline.decode, aggregate))
        there = current(gold, aggregate).persist()
        before = there.where(is_of_days).count()
        anew = there.where(~is_of_days).unionByName(tables.gold_rows(windows, newest))
        added = tables.write(table, table.attempt(KIND, version + 1), {tables.ROWS: anew})
        removed = tuple(one.path for one in old)
        is_made = table.commit(Entry(version + 1, KIND, KIND, version + 1, tuple(added), removed))
    return Backfilled(f"gold/{name}", before, windows.count())
