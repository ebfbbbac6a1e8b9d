"""A stream whose Python workers are killed in the middle of a batch, and which is started again: every row once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.spark.queries import failure_of, finish
from tests.spark.sinks import embedded
from tests.spark.test_stream_reader import fill


def killer(marker: Path) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Passes rows on; the first time it kills all workers of this session, those that read Kafka and its own."""

    def kill_once(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            if not marker.exists():
                marker.touch()
                own, parent = os.getpid(), os.getppid()
                for stat in Path("/proc").glob("[0-9]*/stat"):
                    pid = int(stat.parent.name)
                    try:
                        is_sibling = int(stat.read_text().rpartition(")")[2].split()[1]) == parent
                    except (FileNotFoundError, ProcessLookupError):
                        continue  # it has ended meanwhile
                    if is_sibling and pid != own:
                        os.kill(pid, signal.SIGKILL)
                os.kill(own, signal.SIGKILL)
            yield batch

    return kill_once


def test_every_row_once(spark: SparkSession, tmp_path: Path) -> None:
    with embedded(topics={"t": 2}) as cluster:
        fill(cluster, 3000, 1000)

        def start() -> StreamingQuery:
            options = {"kafka.bootstrap.servers": cluster.servers, "subscribe": "t", "startingOffsets": "earliest"}
            rows = spark.readStream.format("pykafka08").options(**options, maxOffsetsPerTrigger="2400").load()
            return (
                rows.select("partition", "offset")
                .mapInArrow(killer(tmp_path / "killed"), "partition int, offset long")
                .writeStream.format("parquet")
                .option("checkpointLocation", str(tmp_path / "checkpoint"))
                .option("path", str(tmp_path / "rows"))
                .trigger(availableNow=True)
                .start()
            )

        failure_of(start)
        assert (tmp_path / "killed").exists()
        finish(start)
        found = sorted((row.partition, row.offset) for row in spark.read.parquet(str(tmp_path / "rows")).collect())
        assert found == [(0, n) for n in range(3000)] + [(1, n) for n in range(1000)]
