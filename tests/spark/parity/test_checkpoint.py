"""One query on one checkpoint, run by Spark's own connector and by ours in turn: every row once."""

from __future__ import annotations

import json
import os
from functools import partial
from math import ceil
from pathlib import Path

import anyio
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pykafka08 import NewRecord, Producer
from tests.integration.clusters import Clusters
from tests.spark.queries import finish

TURNS = [("kafka", 600), ("pykafka08", 600), ("kafka", 300), ("pykafka08", None)]
"""Which connector runs the query, and its ``maxOffsetsPerTrigger``."""
OTHER = {"kafka": "pykafka08", "pykafka08": "kafka"}
COUNT = 1000
"""New records before each turn."""
RELEASES = ["0.11.0.3", "2.8.2", "3.9.2", "4.3.1"] if os.environ.get("PYKAFKA08_SOAK") == "1" else ["4.3.1"]


def place(number: int) -> tuple[int, int]:
    """Partition and offset of a record: unevenly in three partitions."""
    partition = min(2, number % 4)
    return partition, number // 4 if partition < 2 else number // 4 * 2 + number % 2


async def write(servers: str, topic: str, first: int) -> None:
    async with Producer(bootstrap_servers=servers, linger_ms=0) as producer:
        rows = range(first, first + COUNT)
        await producer.send_many(topic, [NewRecord(b"%d" % n, partition=place(n)[0]) for n in rows])


def started(spark: SparkSession, form: str, options: dict[str, str], folder: Path) -> StreamingQuery:
    """A run of the query, until all that was there is read."""
    return (
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


def last_offsets(folder: Path) -> str:
    """What the checkpoint has of the last batch, after the two lines before it."""
    newest = max(int(each.name) for each in (folder / "checkpoint" / "offsets").iterdir() if each.name.isdigit())
    return (folder / "checkpoint" / "offsets" / str(newest)).read_text().split("\n")[2]


@pytest.mark.parametrize("release", RELEASES)
def test_either_continues_where_the_other_ended(
    spark: SparkSession, clusters: Clusters, release: str, tmp_path: Path
) -> None:
    kafka = clusters.running(release)
    topic = kafka.new_topic("alternate", 3)
    options = {"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": topic}
    written = 0
    for form, limit in TURNS:
        anyio.run(write, kafka.bootstrap, topic, written)
        written += COUNT
        limits = {} if limit is None else {"maxOffsetsPerTrigger": str(limit)}
        run = options | {"startingOffsets": "earliest"} | limits
        assert len(finish(partial(started, spark, form, run, tmp_path))) == ceil(COUNT / (limit or COUNT))
        offsets = last_offsets(tmp_path)
        assert json.loads(offsets) == {topic: {"0": written // 4, "1": written // 4, "2": written // 2}}
        until = {"endingOffsets": offsets}  # those of one as the option of the other
        assert spark.read.format(OTHER[form]).options(**options, **until).load().count() == written
    rows = spark.read.parquet(str(tmp_path / "rows")).collect()
    found = sorted((int(row.value), (row.partition, row.offset)) for row in rows)
    assert found == [(number, place(number)) for number in range(written)]
