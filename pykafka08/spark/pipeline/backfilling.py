"""Days of silver and gold made anew from bronze, with the functions of the streams: after a new rule, or for late rows.

One log entry replaces the files of the days; readers of the log pass it over, so nothing is counted twice.  Days that
the watermark has passed are meant: a window that a stream still has open is overwritten by its next update.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline import delta, tables
from pykafka08.spark.pipeline.aggregating import current, windowed
from pykafka08.spark.pipeline.decoding import accepted, decoded, rejected
from pykafka08.spark.pipeline.duplicates import first_of_each, not_there
from pykafka08.spark.pipeline.file_logs import unread_files
from pykafka08.spark.pipeline.judging import referenced, refused_as_not_unique
from pykafka08.spark.pipeline.locking import shared
from pykafka08.spark.pipeline.settings import Aggregate, Pipeline
from pykafka08.spark.pipeline.table import Added, Entry, Table
from pykafka08.spark.pipeline.verifying import PLACE, bronze_of

__all__ = ["Backfilled", "backfill", "check_days"]

KIND = "backfill"
WAS = "_was"
"""Column: the part of silver that a row was in, or :data:`NOWHERE`: it was left out as a duplicate."""
NOWHERE = "nowhere"
IN_BRONZE = ("topic", "partition", "offset")
"""Names of a record's place in bronze; silver has them behind an underscore."""
AS_IN_BRONZE = ("key", "value", "headers", *(f"_{one} AS {one}" for one in (*IN_BRONZE, "timestamp")))
"""What was refused, as the columns of bronze that decoding reads."""


@dataclass(frozen=True)
class Backfilled:
    """What became of a table."""

    table: str
    rows_before: int
    rows_after: int


def check_days(first: date, last: date) -> None:
    """ConfigError if the first day is after the last."""
    if first > last:
        raise ConfigError(f"days to make anew: {first} is after {last}")


def backfill(spark: SparkSession, pipeline: Pipeline, first: date, last: date) -> list[Backfilled]:
    """Make the days ``first`` to ``last`` (both included, event time in UTC) anew, silver and then each gold table.

    Killed at any point, it is to be made again: until then silver is as before or as after, and gold may lag behind.

    Raises:
        ConfigError: as :func:`check_days`.
    """
    check_days(first, last)
    with shared(pipeline.root):
        made = [_silver(spark, pipeline, first, last)]
        return [*made, *(_gold(spark, pipeline, name, one, first, last) for name, one in pipeline.aggregates.items())]


def _silver(spark: SparkSession, pipeline: Pipeline, first: date, last: date) -> Backfilled:
    table = Table(pipeline.silver)
    is_made = False
    while not is_made:
        scope = _scope(spark, pipeline, table, first, last)
        with ExitStack() as until:
            records = _records(spark, scope, until)
            candidates = _persisted(_candidates(scope, records), until)
            good = _persisted(_without_duplicates(scope, candidates), until)
            parts = {tables.ACCEPTED: good.drop(WAS), tables.REJECTED: _bad(scope, records, good)}
            added = tables.write(table, table.attempt(KIND, scope.version), parts)
            left_out = _count_of(candidates, tables.ACCEPTED) - _count_of(good, tables.ACCEPTED)
            counts = {"duplicates": left_out - _count_of(good, NOWHERE)}
        removed = tuple(one.path for one in [*scope.old, *scope.refused])
        is_made = table.commit(Entry(scope.version, KIND, KIND, scope.version, tuple(added), removed, counts))
    delta.follow(table, tables.ACCEPTED)
    after = sum(one.rows for one in added if one.part == tables.ACCEPTED)
    return Backfilled("silver", sum(one.rows for one in scope.old), after)


def _persisted(rows: DataFrame, until: ExitStack) -> DataFrame:
    until.callback(rows.persist().unpersist)
    return rows


@dataclass(frozen=True)
class _Scope:
    """What silver holds before it."""

    pipeline: Pipeline
    days: Column
    """Whether a row is of the days."""
    version: int
    """Of the entry to be made."""
    old: list[Added]
    """Accepted rows of the days; these files and `refused` are replaced."""
    refused: list[Added]
    newest: Mapping[str, int]
    """Query → its last batch that silver has taken."""
    is_all_there: bool
    """Whether silver has a row for every record that it has taken: none was left out as a duplicate."""
    was_good: DataFrame
    """Coordinates of the rows in `old`."""
    was_bad: DataFrame
    kept: DataFrame
    """Accepted rows of other days."""


def _scope(spark: SparkSession, pipeline: Pipeline, table: Table, first: date, last: date) -> _Scope:
    state = table.state()
    live = state.live(tables.ACCEPTED)
    old = [one for one in live if first.isoformat() <= one.day <= last.isoformat()]
    kept = [one for one in live if one not in old]
    refused = state.live(tables.REJECTED)
    good, bad = (tables.silver_schema(spark, pipeline.decode, part) for part in (tables.ACCEPTED, tables.REJECTED))
    return _Scope(
        pipeline=pipeline,
        days=F.col("event_date").between(first, last),
        version=state.version + 1,
        old=old,
        refused=refused,
        newest=state.newest,
        is_all_there=state.counts.get("read", 0) == sum(one.rows for one in state.files.values()),
        was_good=tables.read(spark, table, old, good).select(*PLACE),
        was_bad=tables.read(spark, table, refused, bad),
        kept=tables.read(spark, table, kept, good),
    )


def _records(spark: SparkSession, scope: _Scope, until: ExitStack) -> DataFrame:
    """What may come into these days, by the settings as they are now: what is in them, was refused, or left out.

    Rows that other days hold stay there, so their records are not asked.  Those that were refused silver has whole.
    """
    every = None
    for name in scope.pipeline.sources:
        is_judged = (F.col("_source") == name) & ~refused_as_not_unique(scope.pipeline.decode)
        refused = scope.was_bad.where(is_judged).selectExpr(*AS_IN_BRONZE)
        raw = _concerned(spark, scope, name, until).select(*refused.columns).unionByName(refused)
        rows = referenced(decoded(raw, scope.pipeline.decode, name), scope.pipeline.decode)
        every = rows if every is None else every.unionByName(rows)
    assert every is not None
    return every


def _concerned(spark: SparkSession, scope: _Scope, source: str, until: ExitStack) -> DataFrame:
    """Bronze rows that are in the days, or nowhere in silver; of the files without one, the coordinates are read."""
    bronze = _bronze_until(spark, scope.pipeline, source, scope.newest.get(f"decode-{source}", -1))
    if bronze.isEmpty():
        return bronze
    places = bronze.select(
        F.lit(source).alias("_source"),
        *[F.col(name).alias(f"_{name}") for name in IN_BRONZE],
        F.col("_metadata.file_name").alias("file"),
    )
    if scope.is_all_there:
        wanted = places.join(scope.was_good, list(PLACE), "left_semi")
    else:
        elsewhere = scope.kept.select(*PLACE).unionByName(scope.was_bad.select(*PLACE))
        wanted = places.join(elsewhere, list(PLACE), "left_anti")
    files = [row[0] for row in _persisted(wanted, until).select("file").distinct().collect()]
    is_same = [F.col(name) == F.col(f"_{name}") for name in IN_BRONZE]
    return bronze.where(F.col("_metadata.file_name").isin(files)).join(wanted, is_same, "left_semi")


def _bronze_until(spark: SparkSession, pipeline: Pipeline, source: str, batch: int) -> DataFrame:
    rows = bronze_of(spark, pipeline, source)
    manifest = pipeline.bronze(source) / "_spark_metadata"
    unread = unread_files(manifest, pipeline.checkpoint(f"decode-{source}"), batch)
    names = [Path(path).name for path in unread]
    return rows.where(~F.col("_metadata.file_name").isin(names)) if names else rows


def _candidates(scope: _Scope, records: DataFrame) -> DataFrame:
    """Rows that are accepted now, with :data:`WAS`: of the days, or that were accepted in them and are of others now.

    Not those that other days hold: a row of them that is of these days now changes when its old day is made anew.
    """
    was_good = scope.was_good.withColumn(WAS, F.lit(tables.ACCEPTED))
    was = was_good.unionByName(scope.was_bad.select(*PLACE, F.lit(tables.REJECTED).alias(WAS)))
    rows = accepted(records)
    marked = rows.join(was, list(PLACE), "left").fillna(NOWHERE, [WAS])
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


def _bad(scope: _Scope, records: DataFrame, good: DataFrame) -> DataFrame:
    """What was rejected and is not accepted now, and the other way round."""
    still_bad = scope.was_bad.join(good.select(*PLACE), list(PLACE), "left_anti")
    newly_bad = rejected(records).join(scope.was_good, list(PLACE), "left_semi")
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
        state = table.state()
        old = state.live(tables.ROWS)
        newest = state.newest.get(f"aggregate-{name}", 0)
        gold = tables.read(spark, table, old, tables.gold_schema(spark, pipeline.decode, aggregate))
        there = current(gold, aggregate).persist()
        before = there.where(is_of_days).count()
        anew = there.where(~is_of_days).unionByName(tables.gold_rows(windows, newest))
        added = tables.write(table, table.attempt(KIND, state.version + 1), {tables.ROWS: anew})
        removed = tuple(one.path for one in old)
        is_made = table.commit(Entry(state.version + 1, KIND, KIND, state.version + 1, tuple(added), removed))
    return Backfilled(f"gold/{name}", before, windows.count())
