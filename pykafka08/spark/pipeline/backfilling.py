"""Days of silver and gold made anew from bronze, with the functions of the streams: after a new rule, or for late rows.

One log entry replaces the files of the days; readers of the log pass it over, so nothing is counted twice.  Days that
the watermark has passed are meant: a window that a stream still has open is overwritten by its next update.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pykafka08.spark.pipeline import delta, tables
from pykafka08.spark.pipeline.aggregating import current, windowed
from pykafka08.spark.pipeline.decoding import accepted, decoded, rejected
from pykafka08.spark.pipeline.duplicates import first_of_each, not_there
from pykafka08.spark.pipeline.locking import shared
from pykafka08.spark.pipeline.settings import Aggregate, Pipeline
from pykafka08.spark.pipeline.table import Added, Entry, Table
from pykafka08.spark.pipeline.verifying import PLACE, bronze_of

__all__ = ["Backfilled", "backfill"]

KIND = "backfill"


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
        version = table.version
        live = table.live(tables.ACCEPTED)
        old = [one for one in live if _is_within(one, first, last)]
        kept = [one for one in live if not _is_within(one, first, last)]
        refused = table.live(tables.REJECTED)
        good, bad = _decoded_anew(spark, pipeline, first, last, table, old, kept, refused)
        parts = {tables.ACCEPTED: good, tables.REJECTED: bad}
        added = tables.write(table, table.attempt(KIND, version + 1), parts)
        removed = tuple(one.path for one in [*old, *refused])
        is_made = table.commit(Entry(version + 1, KIND, KIND, version + 1, tuple(added), removed))
    delta.follow(table, tables.ACCEPTED)
    after = sum(one.rows for one in added if one.part == tables.ACCEPTED)
    return Backfilled("silver", sum(one.rows for one in old), after)


def _decoded_anew(
    spark: SparkSession,
    pipeline: Pipeline,
    first: date,
    last: date,
    table: Table,
    old: list[Added],
    kept: list[Added],
    refused: list[Added],
) -> tuple[DataFrame, DataFrame]:
    """The accepted rows of the days, and all rejected ones.

    A record that was rejected and is accepted now changes its place if it is of these days, and the other way round.
    """
    decode = pipeline.decode
    schema = tables.silver_schema(spark, decode, tables.ACCEPTED)
    rows = None
    for name in pipeline.sources:
        one = decoded(bronze_of(spark, pipeline, name), decode, name)
        rows = one if rows is None else rows.unionByName(one)
    assert rows is not None
    good = accepted(rows).where(F.col("event_date").between(first, last))
    if decode.duplicates is not None:
        good = first_of_each(good, decode.duplicates)
        good = not_there(good, tables.read(spark, table, kept, schema), decode.duplicates)
    good = good.persist()
    was_good = tables.read(spark, table, old, schema).select(*PLACE)
    was_bad = tables.read(spark, table, refused, tables.silver_schema(spark, decode, tables.REJECTED))
    bad = was_bad.join(good.select(*PLACE), list(PLACE), "left_anti")
    newly_bad = rejected(rows).join(was_good, list(PLACE), "left_semi")
    return good, bad.unionByName(newly_bad)


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


def _is_within(file: Added, first: date, last: date) -> bool:
    return first.isoformat() <= file.day <= last.isoformat()
