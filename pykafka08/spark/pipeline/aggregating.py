"""Measures over windows of event time.

Streams run them in update mode: each batch brings the windows that changed, and gold keeps each with the batch it is
of.  :func:`current` has the newest of each.  (In append mode a window would come only once the watermark has passed
it, so never for the newest ones, and a second query with a second state would be needed beside Kafka's.)
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from pykafka08.spark.pipeline.settings import Aggregate

__all__ = ["BATCH", "current", "key_of", "windowed"]

BATCH = "_batch"
"""Column of gold: the micro-batch a row is of; the highest is the newest."""


def key_of(aggregate: Aggregate) -> list[str]:
    """The columns by which rows of gold, and the records in Kafka, are replaced."""
    return ["window_start", "window_end", *aggregate.group_by]


def windowed(rows: DataFrame, aggregate: Aggregate) -> DataFrame:
    """``window_start, window_end``, the group, the measures; of a stream: as of its watermark."""
    if rows.isStreaming:
        rows = rows.withWatermark("event_time", aggregate.watermark)
    window = F.window("event_time", aggregate.window, aggregate.slide or None)
    measures = [F.expr(expression).alias(name) for name, expression in aggregate.measures.items()]
    grouped = rows.groupBy(window.alias("_window"), *aggregate.group_by).agg(*measures)
    return grouped.select(
        F.col("_window.start").alias("window_start"),
        F.col("_window.end").alias("window_end"),
        *aggregate.group_by,
        *aggregate.measures,
    )


def current(gold: DataFrame, aggregate: Aggregate) -> DataFrame:
    """The newest row of each window and group, with the batch it is of."""
    newest = Window.partitionBy(*key_of(aggregate)).orderBy(F.col(BATCH).desc())
    return gold.withColumn("_rank", F.row_number().over(newest)).where("_rank = 1").drop("_rank")
