"""The pipeline of ``benchmarks.spark.pipeline`` as a data engineer writes it with Structured Streaming and Delta Lake.

    python -m benchmarks.spark.hand_written SERVERS TOPIC FOLDER JARS

Kafka → bronze → silver and rejects → gold: the tables, partitions and guarantees of a pipeline with default settings.
A batch that is run again commits nothing, because of ``txnAppId`` and ``txnVersion``.  Nothing is compacted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

PER_BATCH = 10_000_000
"""The most records or rows of a batch, as in the pipeline."""
FIELDS = "id BIGINT, user STRING, amount BIGINT"
PLACE = ("topic", "partition", "offset", "timestamp")
"""The columns of bronze that silver and rejects keep."""


def main(servers: str, topic: str, folder: str, jars: str) -> None:
    """Run the three queries one after the other, each to the end of its input."""
    spark = _session(jars)
    root = Path(folder)
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", PER_BATCH)
        .option("includeHeaders", "true")
        .load()
    )
    dated = records.withColumn("ingest_date", F.current_date())
    bronze = dated.writeStream.format("delta").partitionBy("topic", "ingest_date")
    _run(bronze.option("path", str(root / "bronze")), root / "checkpoints" / "bronze")

    stored = spark.readStream.format("delta").load(str(root / "bronze"))
    _run(stored.writeStream.foreachBatch(_decode(root)), root / "checkpoints" / "silver")

    accepted = spark.readStream.format("delta").load(str(root / "silver"))
    windows = (
        accepted.withWatermark("event_time", "30 days")
        .groupBy(F.window("event_time", "1 hour"), (F.col("id") % 10).alias("kind"))
        .agg(F.count("*").alias("orders"), F.sum("amount").alias("amount"))
    )
    _run(windows.writeStream.outputMode("update").foreachBatch(_gold(root)), root / "checkpoints" / "gold")
    spark.stop()


def _session(jars: str) -> SparkSession:
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", jars)
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.ansi.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )


def _run(writer: DataStreamWriter, checkpoint: Path) -> None:
    query: StreamingQuery = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()


def _decode(root: Path) -> Callable[[DataFrame, int], None]:
    place = [F.col(name).alias(f"_{name}") for name in PLACE]

    def take(batch: DataFrame, number: int) -> None:
        text = F.col("value").cast("string")
        rows = batch.select("key", "value", *place, F.from_json(text, FIELDS).alias("row"))
        rows = rows.select(
            "*", F.timestamp_millis(F.lit(1_704_067_200_000) + F.col("row.id") * 100).alias("event_time")
        )
        reason = (
            F.when(F.col("row.id").isNull(), "no event time")
            .when(~F.coalesce(F.col("row.amount") >= 0, F.lit(False)), "the amount is positive")
            .otherwise(F.lit(None))
        )
        rows = rows.withColumn("reason", reason).persist()
        good = rows.where("reason IS NULL").select("row.*", "event_time", *(f"_{name}" for name in PLACE))
        good = good.withColumn("day", F.to_date("event_time"))
        bad = rows.where("reason IS NOT NULL").select("key", "value", "reason", *(f"_{name}" for name in PLACE))
        _append(bad, root / "rejects", "rejects", number)
        _append(good.repartition("day"), root / "silver", "silver", number, ["day"])
        rows.unpersist()

    return take


def _gold(root: Path) -> Callable[[DataFrame, int], None]:
    def take(batch: DataFrame, number: int) -> None:
        _append(batch.withColumn("_batch", F.lit(number)).coalesce(1), root / "gold", "gold", number)

    return take


def _append(rows: DataFrame, folder: Path, query: str, batch: int, partitions: list[str] | None = None) -> None:
    writer = rows.write.format("delta").mode("append").option("txnAppId", query).option("txnVersion", batch)
    writer.partitionBy(*(partitions or ())).save(str(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
