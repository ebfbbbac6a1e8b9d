"""Gold computed again from all of silver, after a change of an aggregate.

The stage starts without a checkpoint.  Its first batch reads all of silver, so Spark builds the state again, no row is
late, and one commit replaces all rows and the columns of gold.  ``publish`` then writes all windows again.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import SparkSession

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.backfilling import Backfilled
from pykafka08.spark.pipeline.definitions import definition_of, path_of
from pykafka08.spark.pipeline.gold_sql import resolved
from pykafka08.spark.pipeline.leasing import BACKFILL, leased
from pykafka08.spark.pipeline.running import run_once
from pykafka08.spark.pipeline.settings import Pipeline
from pykafka08.spark.pipeline.stages import restating_stage
from pykafka08.spark.pipeline.tables.rows import silver_schema
from pykafka08.spark.pipeline.tables.table import Table
from pykafka08.spark.pipeline.widening import check_types

__all__ = ["check_name", "restate"]


def check_name(pipeline: Pipeline, name: str) -> None:
    """Raise ConfigError if there is no aggregate with this name."""
    if name not in pipeline.aggregates:
        there = ", ".join(pipeline.aggregates) or "none"
        raise ConfigError(f"--restate: there is no aggregate {name!r}; aggregates: {there}")


def restate(spark: SparkSession, pipeline: Pipeline, name: str) -> Backfilled:
    """Compute all windows of an aggregate again, and the state of its stage, with the present settings.

    Gold has the old windows until one commit replaces them.  If the process is killed, runs are refused until this
    call is repeated.

    Raises:
        ConfigError: as :func:`check_name`, :func:`gold_sql.resolved` or :func:`widening.check_types`, retention has
            removed rows from silver, or another process runs the stage or a backfill.
        LeaseLostError: the lease was not renewed in time, and another process has taken it.
        pyspark.errors.StreamingQueryException: the stage failed.
    """
    check_name(pipeline, name)
    pipeline = resolved(spark, replace(pipeline, aggregates={name: pipeline.aggregates[name]}))
    check_types(spark, pipeline)
    gold, silver = Table(pipeline.gold(name)), Table(pipeline.silver)
    with leased(pipeline.root, [f"aggregate-{name}", f"publish-{name}", BACKFILL]) as lease:
        if silver.state().removed:
            raise ConfigError(
                f"--restate: retention has removed {silver.state().removed:,} rows from silver, whose windows would be "
                "lost; give the aggregate another name"
            )
        before = gold.state().rows
        path, columns = path_of(pipeline, name), silver_schema(spark, pipeline.decode)
        made = definition_of(spark, columns, pipeline.aggregates[name])
        path.write_text(replace(made, is_complete=False).text())
        pipeline.checkpoint(f"aggregate-{name}").delete()
        run_once(spark, pipeline, [restating_stage(pipeline, name, lease)], _say_nothing)
        path.write_text(made.text())
    return Backfilled(f"gold/{name}", before, gold.state().rows)


def _say_nothing(line: str) -> None:
    """Say nothing: the caller reports the rows."""
