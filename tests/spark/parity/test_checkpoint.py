"""One query on one checkpoint, run by Spark's own connector and by ours in turn: every row once."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest
from pyspark.sql import SparkSession

from pykafka08 import NewRecord, Producer
from tests.integration.clusters import Clusters


async def write(servers: str, topic: str, first: int, count: int) -> None:
    """Unevenly into three partitions."""
    async with Producer(bootstrap_servers=servers, linger_ms=0) as producer:
        rows = range(first, first + count)
        await producer.send_many(topic, [NewRecord(b"%d" % n, partition=min(2, n % 4)) for n in rows])


def run(spark: SparkSession, form: str, options: dict[str, str], folder: Path) -> None:
    """One run of the query, until all that was there is read."""
    query = (
        spark.readStream.format(form)
        .options(**options)
        .load()
        .selectExpr("cast(value as string) as value", "partition", "offset")
        .writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .option("path", str(folder / "rows"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def last_offsets(folder: Path) -> dict[str, dict[str, int]]:
    """What the checkpoint has of the last batch, after the two lines before it."""
    newest = max(int(each.name) for each in (folder / "checkpoint" / "offsets").iterdir() if each.name.isdigit())
    found: dict[str, dict[str, int]] = json.loads(
        (folder / "checkpoint" / "offsets" / str(newest)).read_text().split("\n")[2]
    )
    return found


@pytest.mark.parametrize("release", ["0.11.0.3", "3.9.2"])
def test_either_continues_where_the_other_ended(
    spark: SparkSession, clusters: Clusters, release: str, tmp_path: Path
) -> None:
    kafka = clusters.running(release)
    topic = kafka.new_topic("alternate", 3)
    options = {
        "kafka.bootstrap.servers": kafka.bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "600",
    }
    written = 0
    for form in ("kafka", "pykafka08", "kafka", "pykafka08"):
        anyio.run(write, kafka.bootstrap, topic, written, 1000)
        written += 1000
        run(spark, form, options, tmp_path)
        assert last_offsets(tmp_path) == {topic: {"0": written // 4, "1": written // 4, "2": written // 2}}
    values = [int(row.value) for row in spark.read.parquet(str(tmp_path / "rows")).collect()]
    assert sorted(values) == list(range(written))
