"""Each stage as one streaming query with a checkpoint of its own.

    ingest-S      Kafka → bronze/S            Spark's file sink: its manifest and the checkpoint
    decode-S      bronze/S → silver           foreachBatch: one log entry for each batch, found again on replay
    dead-letters  silver's rejected → Kafka   the table's log as offsets; transactions of the sink
    aggregate-A   silver → gold/A             state of the checkpoint; one log entry for each batch
    publish-A     gold/A → Kafka              the table's log as offsets; keyed by window and group

Kafka is read once, by the first; replays and new rules begin at bronze.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from pykafka08.spark.pipeline import delta, tables
from pykafka08.spark.pipeline.aggregating import key_of, windowed
from pykafka08.spark.pipeline.decoding import BRONZE_SCHEMA, accepted, decoded, rejected
from pykafka08.spark.pipeline.duplicates import days_to_compare, first_of_each, not_there
from pykafka08.spark.pipeline.judging import judged
from pykafka08.spark.pipeline.session import brief
from pykafka08.spark.pipeline.settings import Aggregate, Duplicates, Pipeline, Source
from pykafka08.spark.pipeline.starting import kafka_options, start_options
from pykafka08.spark.pipeline.table import Entry, Table
from pykafka08.spark.pipeline.table_source import NEW_ROWS

__all__ = ["BatchError", "Stage", "stages", "told_briefly"]

KAFKA = "pykafka08"
"""The format of source and sink."""
FOR_EVER = "36500d"
"""Spark's file source forgets files that are a week older than the newest, unless told otherwise."""


class BatchError(RuntimeError):
    """A batch that could not be taken; in short words."""


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

    def start(self, spark: SparkSession, pipeline: Pipeline, trigger: Mapping[str, Any]) -> StreamingQuery:
        """Start it; ``trigger`` is what ``DataStreamWriter.trigger`` takes."""
        writer = self.writer(spark).queryName(self.name)
        return writer.option("checkpointLocation", str(pipeline.checkpoint(self.name))).trigger(**trigger).start()


def stages(pipeline: Pipeline) -> list[Stage]:
    """All of them, each after those that it reads from."""
    made = [Stage(f"ingest-{name}", (), _ingest(pipeline, source)) for name, source in pipeline.sources.items()]
    made += [Stage(f"decode-{name}", (f"ingest-{name}",), _decode(pipeline, name)) for name in pipeline.sources]
    decodes = tuple(f"decode-{name}" for name in pipeline.sources)
    if pipeline.dead_letters is not None:
        made.append(Stage("dead-letters", decodes, _dead_letters(pipeline)))
    for name, aggregate in pipeline.aggregates.items():
        made.append(Stage(f"aggregate-{name}", decodes, _aggregate(pipeline, name, aggregate)))
        if aggregate.topic:
            made.append(Stage(f"publish-{name}", (f"aggregate-{name}",), _publish(pipeline, name, aggregate)))
    return made


def _ingest(pipeline: Pipeline, source: Source) -> Callable[[SparkSession], DataStreamWriter]:
    def writer(spark: SparkSession) -> DataStreamWriter:
        start = start_options(pipeline, source)
        records = spark.readStream.format(KAFKA).options(**kafka_options(source), **start).load()
        dated = records.withColumn("ingest_date", F.current_date())
        return dated.writeStream.format("parquet").option("path", str(pipeline.bronze(source.name))).partitionBy(
            "topic", "ingest_date"
        )  # fmt: skip

    return writer


def _decode(pipeline: Pipeline, source: str) -> Callable[[SparkSession], DataStreamWriter]:
    table, query = Table(pipeline.silver), f"decode-{source}"

    def take(batch: DataFrame, number: int) -> None:
        if table.holds(query, number):
            return
        kept = partial(_accepted_of, pipeline, table, batch.sparkSession)
        with judged(pipeline, query, number, decoded(batch, pipeline.decode, source), kept) as (rows, read):
            if read:
                _commit_decoded(pipeline, table, rows, Entry(0, NEW_ROWS, query, number, counts={"read": read}))
                delta.follow(table, tables.ACCEPTED)

    def writer(spark: SparkSession) -> DataStreamWriter:
        pipeline.bronze(source).mkdir(parents=True, exist_ok=True)
        reader = spark.readStream.schema(BRONZE_SCHEMA).option("maxFileAge", FOR_EVER)
        return reader.parquet(str(pipeline.bronze(source))).writeStream.foreachBatch(told_briefly(take))

    return writer


def _commit_decoded(pipeline: Pipeline, table: Table, rows: DataFrame, entry: Entry) -> None:
    """Files for the rows, and the entry that makes them part of the table.

    With duplicates to find, a batch is compared with the very version of the table that it follows.
    """
    duplicates = pipeline.decode.duplicates
    is_made = False
    while not is_made:
        version = table.version
        good, bad = accepted(rows), rejected(rows)
        if duplicates is not None:
            good = _without_duplicates(pipeline, table, good, duplicates)
        attempt = table.attempt(entry.query, entry.batch)
        added = tables.write(table, attempt, {tables.ACCEPTED: good, tables.REJECTED: bad})
        kept = {part: sum(one.rows for one in added if one.part == part) for part in (tables.ACCEPTED, tables.REJECTED)}
        counts = {**entry.counts, **kept, "duplicates": entry.counts["read"] - sum(kept.values())}
        is_made = table.commit(Entry(version + 1, entry.kind, entry.query, entry.batch, tuple(added), (), counts))


def _without_duplicates(pipeline: Pipeline, table: Table, rows: DataFrame, duplicates: Duplicates) -> DataFrame:
    first = first_of_each(rows, duplicates)
    days = days_to_compare({row[0] for row in rows.select("event_date").distinct().collect()}, duplicates)
    kept = _accepted_of(pipeline, table, rows.sparkSession, days)
    return first if kept is None else not_there(first, kept, duplicates)


def _accepted_of(pipeline: Pipeline, table: Table, spark: SparkSession, days: set[str]) -> DataFrame | None:
    """The accepted rows of some days, None if there are none."""
    files = [one for one in table.live(tables.ACCEPTED) if one.day in days]
    if not files:
        return None
    return tables.read(spark, table, files, tables.silver_schema(spark, pipeline.decode, tables.ACCEPTED))


def _table_stream(spark: SparkSession, table: Table, part: str) -> DataStreamReader:
    return spark.readStream.format("pykafka08-table").option("path", str(table.folder)).option("part", part)


def _dead_letters(pipeline: Pipeline) -> Callable[[SparkSession], DataStreamWriter]:
    letters = pipeline.dead_letters
    assert letters is not None

    def writer(spark: SparkSession) -> DataStreamWriter:
        schema = tables.silver_schema(spark, pipeline.decode, tables.REJECTED)
        rows = _table_stream(spark, Table(pipeline.silver), tables.REJECTED).schema(schema).load()
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


def _aggregate(pipeline: Pipeline, name: str, aggregate: Aggregate) -> Callable[[SparkSession], DataStreamWriter]:
    table, query = Table(pipeline.gold(name)), f"aggregate-{name}"

    def take(batch: DataFrame, number: int) -> None:
        if table.holds(query, number):
            batch.write.format("noop").mode("overwrite").save()  # its state is to be computed and kept all the same
            return
        attempt = table.attempt(query, number)
        added = tables.write(table, attempt, {tables.ROWS: tables.gold_rows(batch, number)})
        if added:
            tables.commit(table, NEW_ROWS, query, number, added, rows=sum(one.rows for one in added))

    def writer(spark: SparkSession) -> DataStreamWriter:
        schema = tables.silver_schema(spark, pipeline.decode, tables.ACCEPTED)
        rows = _table_stream(spark, Table(pipeline.silver), tables.ACCEPTED).schema(schema).load()
        return windowed(rows, aggregate).writeStream.outputMode("update").foreachBatch(told_briefly(take))

    return writer


def _publish(pipeline: Pipeline, name: str, aggregate: Aggregate) -> Callable[[SparkSession], DataStreamWriter]:
    def writer(spark: SparkSession) -> DataStreamWriter:
        schema = tables.gold_schema(spark, pipeline.decode, aggregate)
        gold = _table_stream(spark, Table(pipeline.gold(name)), tables.ROWS)
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
