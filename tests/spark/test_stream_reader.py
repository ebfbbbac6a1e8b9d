"""The stream reader without Spark: what it answers to the hooks, on embedded brokers."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, ReadMinRows

from pykafka08 import NewRecord, Producer
from pykafka08.errors import ConfigError, UnknownTopicError
from pykafka08.spark.columns import schema_of
from pykafka08.spark.data_loss import DataLossError
from pykafka08.spark.options import read_options
from pykafka08.spark.ranges import Range
from pykafka08.spark.runtime import run
from pykafka08.spark.stream_reader import KafkaStreamReader
from tests.spark.sinks import ThreadedCluster, embedded

EARLIEST = {"startingOffsets": "earliest"}


def reader_of(cluster: ThreadedCluster, now: list[float] | None = None, **given: str) -> KafkaStreamReader:
    options = {
        "kafka.bootstrap.servers": cluster.servers,
        "fetchOffset.numRetries": "1",
        "fetchOffset.retryIntervalMs": "1",
        **given,
    }
    clock = [0.0] if now is None else now
    is_named = not {"subscribePattern", "assign"} & given.keys()
    chosen = {"subscribe": "t", **options} if is_named else options
    return KafkaStreamReader(
        read_options(chosen, streaming=True), schema_of(None, include_headers=False), lambda: clock[0]
    )


async def _fill(servers: str, topic: str, counts: tuple[int, ...]) -> None:
    async with Producer(bootstrap_servers=servers, linger_ms=0) as producer:
        for partition, count in enumerate(counts):
            await producer.send_many(topic, [NewRecord(b"%d" % n, partition=partition) for n in range(count)])


def fill(cluster: ThreadedCluster, *counts: int, topic: str = "t") -> None:
    """So many records into each partition."""
    run(_fill(cluster.servers, topic, counts))


@contextmanager
def topics(**settings: Any) -> Iterator[ThreadedCluster]:
    settings.setdefault("topics", {"t": 2})
    with embedded(**settings) as cluster:
        yield cluster


def limit_of(reader: KafkaStreamReader) -> ReadLimit:
    return reader.getDefaultReadLimit()


def spans(ranges: list[Range]) -> list[tuple[str, int, int, int]]:
    return [(each.topic, each.partition, each.start, each.end) for each in ranges]


@pytest.mark.parametrize("version", ["0.8.2", "0.10.0", "2.8", "4.3"])
def test_from_the_beginning_to_what_there_is(version: str) -> None:
    with topics(version=version) as cluster:
        fill(cluster, 3, 2)
        reader = reader_of(cluster, **EARLIEST)
        start = reader.initialOffset()
        assert start == {"t": {"0": 0, "1": 0}}
        end = reader.latestOffset(start, ReadAllAvailable())
        assert end == reader.reportLatestOffset() == {"t": {"0": 3, "1": 2}}
        assert spans(reader.ranges(start, end)) == [("t", 0, 0, 3), ("t", 1, 0, 2)]
        assert reader.latestOffset(end, ReadAllAvailable()) is end
        assert reader.partitions(end, end) == []


def test_latest_is_found_once() -> None:
    with topics() as cluster:
        fill(cluster, 3, 2)
        reader = reader_of(cluster)
        assert reader.initialOffset() == {"t": {"0": 3, "1": 2}}
        fill(cluster, 1, 1)
        assert reader.initialOffset() == {"t": {"0": 3, "1": 2}}


def test_at_most_so_many() -> None:
    with topics() as cluster:
        fill(cluster, 300, 100)
        reader = reader_of(cluster, maxOffsetsPerTrigger="40", **EARLIEST)
        assert limit_of(reader) == ReadMaxRows(40)
        start = reader.initialOffset()
        assert reader.latestOffset(start, limit_of(reader)) == {"t": {"0": 30, "1": 10}}
        assert reader.reportLatestOffset() == {"t": {"0": 300, "1": 100}}
        assert reader.latestOffset(start, ReadAllAvailable()) == {"t": {"0": 300, "1": 100}}


def test_at_least_so_many_or_after_a_time() -> None:
    with topics(topics={"t": 1}) as cluster:
        now = [0.0]
        reader = reader_of(cluster, now, minOffsetsPerTrigger="10", maxTriggerDelay="5s", **EARLIEST)
        assert limit_of(reader) == ReadMinRows(10)
        start = reader.initialOffset()
        fill(cluster, 2)
        first = reader.latestOffset(start, limit_of(reader))
        assert first == {"t": {"0": 2}}
        fill(cluster, 9)
        assert reader.latestOffset(first, limit_of(reader)) is first
        now[0] = 5000.0
        assert reader.latestOffset(first, limit_of(reader)) == {"t": {"0": 11}}


def test_both_bounds() -> None:
    with topics(topics={"t": 1}) as cluster:
        reader = reader_of(cluster, minOffsetsPerTrigger="10", maxOffsetsPerTrigger="15", **EARLIEST)
        fill(cluster, 31)
        end: dict[str, Any] = reader.initialOffset()
        ends = []
        for _ in range(3):
            end = reader.latestOffset(end, limit_of(reader))
            ends.append(end["t"]["0"])
        assert ends == [15, 30, 30]


def test_available_now_ends_at_what_was_there() -> None:
    with topics() as cluster:
        fill(cluster, 5, 5)
        reader = reader_of(cluster, minOffsetsPerTrigger="4", maxOffsetsPerTrigger="4", **EARLIEST)
        reader.prepareForTriggerAvailableNow()
        end: dict[str, Any] = reader.initialOffset()
        ends = []
        for _ in range(4):
            end = reader.latestOffset(end, limit_of(reader))
            ends.append(end["t"])
            fill(cluster, 3, 3)
        assert ends == [{"0": 2, "1": 2}, {"0": 4, "1": 4}, {"0": 5, "1": 5}, {"0": 5, "1": 5}]


def test_new_partitions_and_topics_begin_at_their_beginning() -> None:
    with topics(topics={"t1": 1}) as cluster:
        reader = reader_of(cluster, subscribePattern="t.*")
        fill(cluster, 5, topic="t1")
        start = reader.initialOffset()
        cluster.call("add_partitions", "t1", 2)
        cluster.call("create_topic", "t2", 1)
        fill(cluster, 1, 4, topic="t1")
        fill(cluster, 2, topic="t2")
        end = reader.latestOffset(start, ReadAllAvailable())
        assert end == {"t1": {"0": 6, "1": 4}, "t2": {"0": 2}}
        assert spans(reader.ranges(start, end)) == [("t1", 0, 5, 6), ("t1", 1, 0, 4), ("t2", 0, 0, 2)]


def test_a_new_partition_has_its_share() -> None:
    with topics(topics={"t": 1}) as cluster:
        reader = reader_of(cluster, maxOffsetsPerTrigger="10")
        start = reader.initialOffset()
        cluster.call("add_partitions", "t", 2)
        fill(cluster, 50, 60)
        cluster.call("delete_records", "t", 1, 10)
        assert reader.latestOffset(start, limit_of(reader)) == {"t": {"0": 5, "1": 15}}


@pytest.mark.parametrize("fails", [True, False])
def test_a_topic_that_is_gone(fails: bool) -> None:
    with topics(topics={"t1": 1, "t2": 1}) as cluster:
        reader = reader_of(cluster, subscribePattern="t.*", failOnDataLoss=str(fails), **EARLIEST)
        start = reader.initialOffset()
        cluster.call("delete_topic", "t1")
        fill(cluster, 2, topic="t2")
        if fails:
            with pytest.raises(DataLossError, match="Partitions t1-0 have been deleted") as caught:
                reader.latestOffset(start, ReadAllAvailable())
            assert "failOnDataLoss" in str(caught.value)
            return
        end = reader.latestOffset(start, ReadAllAvailable())
        assert end == {"t1": {"0": 0}, "t2": {"0": 2}}
        assert spans(reader.ranges(start, end)) == [("t2", 0, 0, 2)]


CHOSEN_BEFORE = {"t": {"0": 0}, "u": {"0": 4, "1": 5}}


@pytest.mark.parametrize("version", ["0.8.2", "4.3"])
@pytest.mark.parametrize("chosen", [{"subscribe": "t"}, {"subscribePattern": "^t$"}, {"assign": '{"t":[0]}'}])
def test_topics_that_the_options_do_not_choose_any_more(version: str, chosen: dict[str, str]) -> None:
    with topics(topics={"t": 1, "u": 2}, version=version) as cluster:
        with pytest.raises(DataLossError) as caught:
            reader_of(cluster, **chosen).latestOffset(CHOSEN_BEFORE, ReadAllAvailable())
        words = "The checkpoint is of topics u, which the query no longer reads (partitions u-0, u-1)"
        assert words in str(caught.value)
        assert "failOnDataLoss" in str(caught.value)
        assert "deleted" not in str(caught.value)
        reader = reader_of(cluster, failOnDataLoss="false", **chosen)
        assert reader.latestOffset(CHOSEN_BEFORE, ReadAllAvailable()) == CHOSEN_BEFORE


def test_what_is_deleted_is_told_before_what_is_not_chosen() -> None:
    with topics(topics={"t": 1, "u": 1}) as cluster:
        with pytest.raises(DataLossError, match="Partitions gone-0, u-1 have been deleted"):
            reader_of(cluster).latestOffset({**CHOSEN_BEFORE, "gone": {"0": 1}}, ReadAllAvailable())


@pytest.mark.parametrize("offset", [3, 0, {"logOffset": 3}])
def test_a_checkpoint_of_another_kind_of_query(offset: Any) -> None:
    with topics() as cluster:
        reader = reader_of(cluster)
        for ask in (lambda: reader.latestOffset(offset, ReadAllAvailable()), lambda: reader.partitions(offset, offset)):
            with pytest.raises(ConfigError, match="is not one of a Kafka source: is this checkpointLocation") as caught:
                ask()
            assert f"The offset in the checkpoint ({json.dumps(offset)})" in str(caught.value)


@pytest.mark.parametrize("version", ["0.10.2", "4.3"])
@pytest.mark.parametrize("fails", [True, False])
def test_a_topic_that_was_made_again(version: str, fails: bool) -> None:
    with topics(topics={"t": 1}, version=version) as cluster:
        fill(cluster, 5)
        reader = reader_of(cluster, failOnDataLoss=str(fails), **EARLIEST)
        start = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
        cluster.call("delete_topic", "t")
        cluster.call("create_topic", "t", 1)
        fill(cluster, 3)
        if fails:
            with pytest.raises(DataLossError, match=r"made again|offset was changed from 5 to 3"):
                reader.ranges(start, reader.latestOffset(start, ReadAllAvailable()))
            return
        end = reader.latestOffset(start, ReadAllAvailable())
        assert end == {"t": {"0": 3}}
        assert reader.ranges(start, end) == []


def test_partitions_that_another_left_out_of_the_checkpoint() -> None:
    with topics() as cluster:
        start, end = {"t": {"0": 1, "1": 1}}, {"t": {"0": 4}}
        with pytest.raises(DataLossError, match="Partitions t-1 have been deleted"):
            reader_of(cluster).ranges(start, end)
        assert spans(reader_of(cluster, failOnDataLoss="false").ranges(start, end)) == [("t", 0, 1, 4)]


def test_a_batch_is_a_function_of_its_offsets() -> None:
    with topics() as cluster:
        given = {"minPartitions": "7", **EARLIEST}
        start, end = {"t": {"1": 5, "0": 0}}, {"t": {"0": 100, "1": 50}}

        def tasks(reader: KafkaStreamReader) -> list[tuple[Range, ...]]:
            return [part.task.ranges for part in reader.partitions(start, end)]  # type: ignore[attr-defined]

        first = tasks(reader_of(cluster, **given))
        cluster.call("add_partitions", "t", 9)
        assert tasks(reader_of(cluster, **given)) == first
        assert cluster.call("requests") == []


def test_a_topic_that_never_was() -> None:
    with topics() as cluster, pytest.raises(UnknownTopicError, match="does not host this topic-partition"):
        reader_of(cluster, subscribe="nope").initialOffset()


def test_without_arguments_as_pyspark_before_4_2_asks() -> None:
    with topics() as cluster:
        fill(cluster, 30, 10)
        reader = reader_of(cluster, maxOffsetsPerTrigger="8", **EARLIEST)
        start = reader.initialOffset()
        first = reader.latestOffset()
        assert first == {"t": {"0": 6, "1": 2}}
        reader.partitions(start, first)
        assert reader.latestOffset() == {"t": {"0": 12, "1": 4}}
        restarted = reader_of(cluster, maxOffsetsPerTrigger="8", **EARLIEST)
        restarted.partitions(start, first)
        assert restarted.latestOffset() == {"t": {"0": 12, "1": 4}}


def test_an_executor_has_a_copy_that_reads() -> None:
    with topics() as cluster:
        fill(cluster, 3, 2)
        reader = reader_of(cluster, **EARLIEST)
        start = reader.initialOffset()
        tasks = reader.partitions(start, reader.latestOffset(start, ReadAllAvailable()))
        copy, tasks = pickle.loads(pickle.dumps((reader, tasks)))
        rows = [row for task in tasks for batch in copy.read(task) for row in batch.to_pylist()]
        assert sorted((row["partition"], row["offset"], row["value"]) for row in rows) == [
            (0, 0, b"0"),
            (0, 1, b"1"),
            (0, 2, b"2"),
            (1, 0, b"0"),
            (1, 1, b"1"),
        ]
