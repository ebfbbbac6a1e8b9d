"""One row for each business key: the first that came.

Spark's own ``dropDuplicatesWithinWatermark`` throws away what is later than the watermark, uncounted, and what it takes
for a duplicate depends on how the rows fell into batches.  Here a batch is compared with what the table holds: nothing
is dropped but duplicates, each is counted, no state is kept, and a backfill comes to the same rows.  What it costs: the
key columns of the days in question are read for each batch, which `within_days` bounds.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from pykafka08.spark.pipeline.settings import Duplicates

__all__ = ["days_near", "first_of_each", "not_there"]

ARRIVAL = ("_timestamp", "_topic", "_partition", "_offset", "_source")


def first_of_each(rows: DataFrame, duplicates: Duplicates) -> DataFrame:
    """Without the rows that an earlier one of the same key, at most `within_days` away, precedes."""
    reach = duplicates.within_days
    near = Window.partitionBy(*duplicates.key).orderBy(F.unix_date("event_date")).rangeBetween(-reach, reach)
    arrival = F.struct(*ARRIVAL)
    return rows.withColumn("_first", F.min(arrival).over(near)).where(F.col("_first") == arrival).drop("_first")


def not_there(rows: DataFrame, kept: DataFrame, duplicates: Duplicates) -> DataFrame:
    """Without the rows whose key is among ``kept``, at most `within_days` away."""
    there = kept.select(
        *[F.col(name).alias(f"_kept_{name}") for name in duplicates.key], F.col("event_date").alias("_kept_date")
    )
    is_same = F.abs(F.datediff(F.col("event_date"), F.col("_kept_date"))) <= duplicates.within_days
    for name in duplicates.key:
        is_same = is_same & F.col(name).eqNullSafe(F.col(f"_kept_{name}"))
    return rows.join(there, is_same, "left_anti")


def days_near(days: Iterable[date], within_days: int) -> set[str]:
    """The ISO dates at most ``within_days`` from one of ``days``, as far as the calendar goes."""
    first, last = date.min.toordinal(), date.max.toordinal()
    near = {day.toordinal() + apart for day in days for apart in range(-within_days, within_days + 1)}
    return {date.fromordinal(number).isoformat() for number in near if first <= number <= last}
