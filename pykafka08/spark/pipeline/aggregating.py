"""Measures over windows of event time.

Streams run them in update mode: each batch brings the windows that changed, and gold keeps each with the batch it is
of.  :func:`current` has the newest of each.  (In append mode a window would come only once the watermark has passed
it, so never for the newest ones, and a second query with a second state would be needed beside Kafka's.)
"""

from __future__ import annotations

import threading

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.settings import Aggregate

__all__ = ["BATCH", "WINDOW", "current", "key_of", "queried", "windowed"]

BATCH = "_batch"
"""Column of gold: the micro-batch a row is of; the highest is the newest."""
WINDOW = "window"
"""Column of a query's result: the window, with ``start`` and ``end``."""
SILVER = "silver"
"""The table that queries read."""
_view = threading.Lock()
"""Held while the temporary view :data:`SILVER` of a session exists."""


def key_of(aggregate: Aggregate) -> list[str]:
    """The columns by which rows of gold, and the records in Kafka, are replaced."""
    _check_is_resolved(aggregate)
    return ["window_start", "window_end", *aggregate.group_by]


def windowed(rows: DataFrame, aggregate: Aggregate) -> DataFrame:
    """``window_start, window_end``, the group, the measures; of a stream: as of its watermark."""
    if rows.isStreaming:
        rows = rows.withWatermark("event_time", aggregate.watermark)
    if aggregate.sql:
        _check_is_resolved(aggregate)
        return _of_query(queried(rows, aggregate.sql), aggregate)
    window = F.window("event_time", aggregate.window, aggregate.slide or None)
    measures = [F.expr(expression).alias(name) for name, expression in aggregate.measures.items()]
    grouped = rows.groupBy(window.alias("_window"), *aggregate.group_by).agg(*measures)
    return grouped.select(
        F.col("_window.start").alias("window_start"),
        F.col("_window.end").alias("window_end"),
        *aggregate.group_by,
        *aggregate.measures,
    )


def queried(silver: DataFrame, sql: str) -> DataFrame:
    """The result of a query over ``silver``.  Replaces a temporary view with this name in the session.

    Raises:
        pyspark.errors.PySparkException: Spark cannot parse or analyse the query.  Spark Connect raises it later, when
            the result is used.
    """
    if is_remote():
        return _queried_on_server(silver, sql)
    with _view:
        silver.createOrReplaceTempView(SILVER)
        try:
            return silver.sparkSession.sql(sql)
        finally:
            silver.sparkSession.catalog.dropTempView(SILVER)


def _queried_on_server(silver: DataFrame, sql: str) -> DataFrame:
    """The result with Spark Connect, which analyses a query when its result is used; a view would be gone by then."""
    inner = sql.strip().removesuffix(";").replace("{", "{{").replace("}", "}}")
    query = f"WITH {SILVER} AS (SELECT * FROM {{rows}}) SELECT * FROM (\n{inner}\n)"  # noqa: S608  (the user's query)
    return silver.sparkSession.sql(query, rows=silver)


def _of_query(result: DataFrame, aggregate: Aggregate) -> DataFrame:
    """The columns of gold from the result of a query, which has the window as one column or as two."""
    bounds = [F.col(f"{WINDOW}.start").alias("window_start"), F.col(f"{WINDOW}.end").alias("window_end")]
    if "window_start" in map(str.lower, result.columns):
        bounds = [F.col(name).alias(name) for name in ("window_start", "window_end")]
    return result.select(*bounds, *aggregate.group_by, *aggregate.measures)


def _check_is_resolved(aggregate: Aggregate) -> None:
    if aggregate.sql and not aggregate.measures:
        raise ConfigError("the columns of an aggregate with sql are not known yet; call gold_sql.resolved first")


def current(gold: DataFrame, aggregate: Aggregate) -> DataFrame:
    """The newest row of each window and group, with the batch it is of."""
    newest = Window.partitionBy(*key_of(aggregate)).orderBy(F.col(BATCH).desc())
    return gold.withColumn("_rank", F.row_number().over(newest)).where("_rank = 1").drop("_rank")
