"""Each stage as one streaming query with a checkpoint of its own.

    ingest-S      Kafka → bronze/S            foreachBatch: one commit for each batch, found again on replay
    decode-S      bronze/S → rejects, silver  foreachBatch: one commit to each for a batch, found again on replay
    dead-letters  rejects → Kafka             versions of the table as offsets; transactions of the sink
    aggregate-A   silver → gold/A             state of the checkpoint; one commit for each batch
    publish-A     gold/A → Kafka              versions of the table as offsets; keyed by window and group

Kafka is read once, by the first; replays and new rules begin at bronze.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from pykafka08.spark.pipeline.aggregating import key_of, windowed
from pykafka08.spark.pipeline.checkpoints import offset_text
from pykafka08.spark.pipeline.decoding import BRONZE_SCHEMA, PLACE, accepted, decoded, rejected
from pykafka08.spark.pipeline.duplicates import days_near, first_of_each, not_there
from pykafka08.spark.pipeline.judging import judged
from pykafka08.spark.pipeline.leasing import Lease
from pykafka08.spark.pipeline.replaying import is_committed
from pykafka08.spark.pipeline.session import brief
from pykafka08.spark.pipeline.settings import Aggregate, Duplicates, Limits, Pipeline, Source
from pykafka08.spark.pipeline.starting import kafka_options, start_options
from pykafka08.spark.pipeline.stores import Folder
from pykafka08.spark.pipeline.tables import rows as table_rows
from pykafka08.spark.pipeline.tables.model import BACKFILL, NEW_ROWS, Commit
from pykafka08.spark.pipeline.tables.stream import stream_options
from pykafka08.spark.pipeline.tables.table import Fence, Table

__all__ = ["BatchError", "Stage", "restating_stage", "stages", "told_briefly"]

KAFKA = "pykafka08"
"""The name of the source and sink in Spark."""


class BatchError(RuntimeError):
    """A batch failed; the text is short."""


def told_briefly(take: Callable[[DataFrame, int], None]) -> Callable[[DataFrame, int], None]:
    """``foreachBatch`` whose errors Spark can read.

    It searches what Python says for a stop amid a batch, by a pattern that overflows its stack where that is long, as
    it is with a stack trace of Java's: then the query ends as if all were well.
    """

    @wraps(take)
    def telling(batch: DataFrame, number: int) -> None:
        try:
            take(batch, number)
        except (PySparkException, Py4JJavaError) as error:
            raise BatchError(brief(error)) from None

    return telling


@dataclass(frozen=True)
class Stage:
    """A query that is ready to start."""

    name: str
    follows: tuple[str, ...]
    """The stages whose output it reads."""
    writer: Callable[[SparkSession], DataStreamWriter]
    tables: tuple[Folder, ...] = ()
    """The tables that the stage commits to."""

    def start(self, spark: SparkSession, pipeline: Pipeline, trigger: Mapping[str, Any]) -> StreamingQuery:
        """Start the query; ``trigger`` has the arguments of ``DataStreamWriter.trigger``."""
        writer = self.writer(spark).queryName(self.name)
        return writer.option("checkpointLocation", str(pipeline.checkpoint(self.name))).trigger(**trigger).start()


def stages(pipeline: Pipeline, fence: Fence | None = None) -> list[Stage]:
    """All stages, each after the stages that it reads from.  They commit only while ``fence`` is valid."""
    made = [
        Stage(f"ingest-{name}", (), _ingest(pipeline, source, fence), (pipeline.bronze(name),))
        for name, source in pipeline.sources.items()
    ]
    both = (pipeline.rejects, pipeline.silver)
    made += [
        Stage(f"decode-{name}", (f"ingest-{name}",), _decode(pipeline, name, fence), both) for name in pipeline.sources
    ]
    decodes = tuple(f"decode-{name}" for name in pipeline.sources)
    if pipeline.dead_letters is not None:
        made.append(Stage("dead-letters", decodes, _dead_letters(pipeline, fence)))
    for name, aggregate in pipeline.aggregates.items():
        writer = _aggregate(pipeline, name, aggregate, fence)
        made.append(Stage(f"aggregate-{name}", decodes, writer, (pipeline.gold(name),)))
        if aggregate.topic:
            made.append(Stage(f"publish-{name}", (f"aggregate-{name}",), _publish(pipeline, name, aggregate, fence)))
    return made


def _ingest(pipeline: Pipeline, source: Source, fence: Fence | None) -> Callable[[SparkSession], DataStreamWriter]:
    table, query = Table(pipeline.bronze(source.name), fence), f"ingest-{source.name}"
    checkpoint = pipeline.checkpoint(query)

    def take(batch: DataFrame, number: int) -> None:
        if is_committed(table, checkpoint, query, number):
            return
        ends = offset_text(checkpoint, number)
        added = table_rows.write_bronze(table, table.attempt(query, number), batch)
        counts = {"rows": sum(one.rows for one in added)}
        table_rows.append_commit(table, Commit(0, NEW_ROWS, query, number, tuple(added), (), counts, ends))

    def writer(spark: SparkSession) -> DataStreamWriter:
        start = start_options(pipeline, source)
        records = spark.readStream.format(KAFKA).options(**kafka_options(source), **start).load()
        dated = records.withColumn("ingest_date", F.current_date())
        return dated.writeStream.foreachBatch(told_briefly(take))

    return writer


def _decode(pipeline: Pipeline, source: str, fence: Fence | None) -> Callable[[SparkSession], DataStreamWriter]:
    silver, rejects, query = Table(pipeline.silver, fence), Table(pipeline.rejects, fence), f"decode-{source}"
    checkpoint = pipeline.checkpoint(query)

    def take(batch: DataFrame, number: int) -> None:
        if is_committed(silver, checkpoint, query, number):
            return
        silver.check(table_rows.silver_schema(batch.sparkSession, pipeline.decode).json())
        ends = offset_text(checkpoint, number)
        kept = partial(_accepted_of, pipeline, batch.sparkSession, None)
        with judged(pipeline, query, number, decoded(batch, pipeline.decode, source), kept) as (rows, read):
            if read:
                commit = Commit(0, NEW_ROWS, query, number, counts={"read": read}, offsets=ends)
                _commit_decoded(pipeline, silver, rejects, rows, commit)

    def writer(spark: SparkSession) -> DataStreamWriter:
        records = _table_stream(spark, pipeline, pipeline.bronze(source), fence).schema(BRONZE_SCHEMA).load()
        return records.writeStream.foreachBatch(told_briefly(take))

    return writer


def _commit_decoded(pipeline: Pipeline, silver: Table, rejects: Table, rows: DataFrame, commit: Commit) -> None:
    """Commit refused records first, then the accepted rows, whose commit to silver completes the batch.

    An attempt that ended between the two has left refused records.  These stay refused, also if the rules were changed
    since then: a record is in one of the tables.
    """
    earlier = 0
    good, bad = accepted(rows), rejected(rows)
    is_continued = rejects.holds(commit.query, commit.batch)
    if is_continued:
        places = table_rows.read(rows.sparkSession, rejects, rejects.live(), bad.schema).select(*PLACE)
        earlier = rows.join(places, list(PLACE), "left_semi").count()
        good, bad = (one.join(places, list(PLACE), "left_anti").select(*one.columns) for one in (good, bad))
    added = table_rows.write(rejects, rejects.attempt(commit.query, commit.batch), bad)
    if added:
        table_rows.append_commit(rejects, replace(commit, added=tuple(added), counts={}), is_continued=is_continued)
    refused = earlier + sum(one.rows for one in added)
    _commit_accepted(pipeline, silver, good, replace(commit, counts={**commit.counts, "rejected": refused}))


def _commit_accepted(pipeline: Pipeline, table: Table, rows: DataFrame, commit: Commit) -> None:
    """Commit the accepted rows.  Duplicates are searched again in each new version of the table."""
    duplicates = pipeline.decode.duplicates
    is_made, added = False, None
    while not is_made:
        version = table.version
        if added is None or duplicates is not None:
            good = rows if duplicates is None else _without_duplicates(pipeline, version, rows, duplicates)
            added = table_rows.write(table, table.attempt(commit.query, commit.batch), good)
        kept = sum(one.rows for one in added)
        duplicate = commit.counts["read"] - commit.counts["rejected"] - kept
        counts = {**commit.counts, "accepted": kept, "duplicates": duplicate}
        behind = max(version, 0)  # the first batch has made the table by writing
        is_made = table.commit(replace(commit, version=behind + 1, added=tuple(added), counts=counts))


def _without_duplicates(pipeline: Pipeline, version: int, rows: DataFrame, duplicates: Duplicates) -> DataFrame:
    first = first_of_each(rows, duplicates)
    days = days_near((row[0] for row in rows.select("event_date").distinct().collect()), duplicates.within_days)
    kept = _accepted_of(pipeline, rows.sparkSession, version, days)
    return first if kept is None else not_there(first, kept, duplicates)


def _accepted_of(pipeline: Pipeline, spark: SparkSession, version: int | None, days: set[str]) -> DataFrame | None:
    """The accepted rows of some days, now or at a version; None without files of these days."""
    table = Table(pipeline.silver)
    files = table.live(version, days=days)
    if not files:
        return None
    return table_rows.read(spark, table, files, table_rows.silver_schema(spark, pipeline.decode))


def _table_stream(spark: SparkSession, pipeline: Pipeline, folder: Folder, fence: Fence | None) -> DataStreamReader:
    """A table as a stream.  On a Spark Connect server, where queries outlive a killed run, it ends with the lease."""
    lease = fence.remote() if pipeline.spark.is_connect and isinstance(fence, Lease) else None
    limits = {f"max{unit.capitalize()}PerTrigger": str(value) for unit, value in vars(pipeline.limits).items()}
    reader = spark.readStream.format("pykafka08-table").options(**limits)
    return reader.options(**stream_options(folder, lease))


def _dead_letters(pipeline: Pipeline, fence: Fence | None) -> Callable[[SparkSession], DataStreamWriter]:
    letters = pipeline.dead_letters
    assert letters is not None

    def writer(spark: SparkSession) -> DataStreamWriter:
        schema = table_rows.rejects_schema(spark, pipeline.decode)
        rows = _table_stream(spark, pipeline, pipeline.rejects, fence).schema(schema).load()
        told = {
            "reason": F.col("reason"),
            "source": F.col("_source"),
            "topic": F.col("_topic"),
            "partition": F.col("_partition").cast("string"),
            "offset": F.col("_offset").cast("string"),
            "timestamp": F.unix_millis("_timestamp").cast("string"),
        }
        added = F.array(
            *[
                F.struct(F.lit(f"dead-letter.{name}").alias("key"), value.cast("binary").alias("value"))
                for name, value in told.items()
            ]
        )
        none = F.array().cast("array<struct<key:string,value:binary>>")
        records = rows.select("key", "value", F.concat(F.coalesce("headers", none), added).alias("headers"))
        return _to_kafka(
            records,
            letters.bootstrap_servers,
            letters.topic,
            letters.options,
            letters.exactly_once,
            includes_headers=True,
        )

    return writer


def restating_stage(pipeline: Pipeline, name: str, fence: Fence) -> Stage:
    """The stage of an aggregate without a checkpoint: its first batch reads all of silver, and replaces all of gold."""
    writer = _aggregate(pipeline, name, pipeline.aggregates[name], fence, is_restating=True)
    return Stage(f"aggregate-{name}", (), writer, (pipeline.gold(name),))


def _aggregate(
    pipeline: Pipeline, name: str, aggregate: Aggregate, fence: Fence | None, *, is_restating: bool = False
) -> Callable[[SparkSession], DataStreamWriter]:
    table, query = Table(pipeline.gold(name), fence), f"aggregate-{name}"
    checkpoint = pipeline.checkpoint(query)

    def take(batch: DataFrame, number: int) -> None:
        if is_restating and number == 0:
            _restate(table, Commit(0, BACKFILL, query, number, offsets=offset_text(checkpoint, number)), batch)
            return
        if is_committed(table, checkpoint, query, number):
            batch.write.format("noop").mode("overwrite").save()  # its state is to be computed and kept all the same
            return
        added = table_rows.write(table, table.attempt(query, number), table_rows.gold_rows(batch, number))
        if added:
            counts = {"rows": sum(one.rows for one in added)}
            ends = offset_text(checkpoint, number)
            table_rows.append_commit(table, Commit(0, NEW_ROWS, query, number, tuple(added), (), counts, ends))

    def writer(spark: SparkSession) -> DataStreamWriter:
        schema = table_rows.silver_schema(spark, pipeline.decode)
        limits = Limits(0, 0, 0) if is_restating else pipeline.limits
        rows = _table_stream(spark, replace(pipeline, limits=limits), pipeline.silver, fence).schema(schema).load()
        return windowed(rows, aggregate).writeStream.outputMode("update").foreachBatch(told_briefly(take))

    return writer


def _restate(table: Table, commit: Commit, windows: DataFrame) -> None:
    """Replace all rows and the columns of gold by the windows of a batch."""
    rows = table_rows.gold_rows(windows, commit.batch)
    if table.version < 0:
        table.prepare(rows.schema.json())
    added = tuple(table_rows.write_file(table, table.attempt(commit.query, commit.batch), rows))
    is_made = False
    while not is_made:
        state = table.state()
        removed = tuple(one.path for one in state.files)
        replaced = replace(commit, version=state.version + 1, added=added, removed=removed)
        is_made = table.commit(replaced, schema=rows.schema.json())


def _publish(
    pipeline: Pipeline, name: str, aggregate: Aggregate, fence: Fence | None
) -> Callable[[SparkSession], DataStreamWriter]:
    def writer(spark: SparkSession) -> DataStreamWriter:
        schema = table_rows.gold_schema(spark, pipeline.decode, aggregate)
        gold = _table_stream(spark, pipeline, pipeline.gold(name), fence)
        rows = gold.option("inOrder", "true").option("kinds", "batch,backfill").schema(schema).load()
        key = F.to_json(F.struct(*key_of(aggregate))).alias("key")
        value = F.to_json(F.struct(*key_of(aggregate), *aggregate.measures)).alias("value")
        return _to_kafka(
            rows.select(key, value),
            aggregate.bootstrap_servers,
            aggregate.topic,
            aggregate.options,
            aggregate.exactly_once,
        )

    return writer


def _to_kafka(
    records: DataFrame,
    bootstrap_servers: str,
    topic: str,
    options: Mapping[str, str],
    exactly_once: bool,
    *,
    includes_headers: bool = False,
) -> DataStreamWriter:
    writer = records.writeStream.format(KAFKA).option("kafka.bootstrap.servers", bootstrap_servers)
    writer = writer.option("topic", topic).option("exactlyOnce", str(exactly_once).lower())
    if includes_headers:
        writer = writer.option("includeHeaders", "true")
    return writer.options(**options)
