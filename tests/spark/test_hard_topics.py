"""Topics that are hard to read, on real brokers: planned and read by the classes that Spark calls, without Spark."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Iterator

import pytest

from pykafka08 import NewRecord, Producer
from pykafka08.spark.batch_reader import KafkaBatchReader
from pykafka08.spark.columns import schema_of
from pykafka08.spark.data_loss import DataLossError
from pykafka08.spark.options import read_options
from pykafka08.spark.ranges import Range
from pykafka08.spark.runtime import run, runtime
from pykafka08.spark.tasks import task_partitions
from tests.integration.clusters import Clusters

OLD, NEW = "0.8.2.2", "4.3.1"
IS_SOAK = os.environ.get("PYKAFKA08_SOAK") == "1"
RELEASES = [OLD, "0.9.0.1", "0.11.0.3", "2.8.2", "3.9.2", NEW] if IS_SOAK else [OLD, NEW]
SLOW = RELEASES if IS_SOAK else [NEW]
"""Of tests whose topics take long to come about."""
KEYS = 10


@pytest.fixture(autouse=True)
def no_runtime_left() -> Iterator[None]:
    yield
    runtime().close()


def reader_of(servers: str, topic: str, **given: str) -> KafkaBatchReader:
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, **given}
    return KafkaBatchReader(read_options(options, streaming=False), schema_of(None, include_headers=False))


def rows_of(reader: KafkaBatchReader, ranges: list[Range] | None = None) -> list[tuple[int, int, bytes, bytes]]:
    """Partition, offset, key and value, as an executor reads them, which gets pickles."""
    tasks = reader.partitions() if ranges is None else task_partitions(ranges, reader._options)
    copy, tasks = pickle.loads(pickle.dumps((reader, tasks)))
    rows = [row for task in tasks for batch in copy.read(task) for row in batch.to_pylist()]
    return sorted((row["partition"], row["offset"], row["key"], row["value"]) for row in rows)


def fill(servers: str, topic: str, records: list[NewRecord]) -> None:
    async def send() -> None:
        async with Producer(bootstrap_servers=servers, linger_ms=0) as producer:
            await producer.send_many(topic, records)

    run(send())


@pytest.mark.parametrize("release", SLOW)
def test_many_uneven_partitions_and_empty_ones(clusters: Clusters, release: str) -> None:
    kafka = clusters.running(release)
    topic = kafka.new_topic("many", 500)
    counts = [3000 if number == 250 else number % 7 for number in range(500)]
    records = [
        NewRecord(b"%d" % n, b"k", partition=number) for number, count in enumerate(counts) for n in range(count)
    ]
    fill(kafka.bootstrap, topic, records)
    reader = reader_of(kafka.bootstrap, topic, targetRecordsPerTask="1500")
    assert 2 <= len(reader.partitions()) <= 4
    expected = [(number, n, b"k", b"%d" % n) for number, count in enumerate(counts) for n in range(count)]
    assert rows_of(reader) == expected


@pytest.mark.parametrize("release", RELEASES)
def test_offsets_that_the_broker_does_not_have(clusters: Clusters, release: str) -> None:
    kafka = clusters.running(release)
    topic = kafka.new_topic("range", 1)
    fill(kafka.bootstrap, topic, [NewRecord(b"%d" % n, b"k", partition=0) for n in range(10)])
    strict = reader_of(kafka.bootstrap, topic)
    lenient = reader_of(kafka.bootstrap, topic, failOnDataLoss="false")
    (whole,) = strict.ranges()
    behind = Range(topic, 0, 20, 30, topic_id=whole.topic_id)
    with pytest.raises(DataLossError, match=f"offsets 20 to 29 of {topic}-0 cannot be read"):
        rows_of(strict, [behind])
    assert rows_of(lenient, [behind]) == []
    assert [row[1] for row in rows_of(strict, [whole])] == list(range(10))


@pytest.mark.cluster(is_special=True)
@pytest.mark.parametrize("release", SLOW)
def test_gaps_that_compaction_leaves(clusters: Clusters, release: str) -> None:
    kafka = clusters.running(release, props=("log.cleaner.enable=true", "log.cleaner.backoff.ms=200"))
    configs = {"cleanup.policy": "compact", "segment.bytes": str(1 << 20), "min.cleanable.dirty.ratio": "0.01"}
    topic = kafka.new_topic("compacted", 1, **configs)
    records = [NewRecord(b"%d" % n + b"." * 1000, b"%d" % (n % KEYS), partition=0) for n in range(3000)]
    fill(kafka.bootstrap, topic, records)
    produced = [(0, n, record.key, record.value) for n, record in enumerate(records)]
    # Segment by segment, also while they are read: fewer records do not tell that the first segment was cleaned.
    while (found := rows_of(reader := reader_of(kafka.bootstrap, topic)))[0][1] <= 1:
        time.sleep(0.2)
    assert found == [produced[row[1]] for row in found]
    assert found[-KEYS:] == produced[-KEYS:]
    (whole,) = reader.ranges()
    assert (whole.start, whole.end) == (0, 3000)
    gap = Range(topic, 0, 1, found[0][1], topic_id=whole.topic_id)
    assert gap.start < gap.end
    assert rows_of(reader, [gap]) == []
