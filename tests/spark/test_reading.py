"""Ranges read into Arrow batches, without Spark: on embedded brokers of all ages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from pykafka08 import NewRecord, Producer
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import BrokerError, CorruptRecordError, RequestTimeoutError
from pykafka08.records.record import TopicPartition
from pykafka08.spark import reading
from pykafka08.spark.columns import schema_of
from pykafka08.spark.data_loss import DataLossError
from pykafka08.spark.fetching import Place
from pykafka08.spark.locating import resolve
from pykafka08.spark.options import ReadOptions, read_options
from pykafka08.spark.ranges import Range, ReadTask, plan_tasks
from pykafka08.spark.reading import read_ranges
from pykafka08.spark.rows import COLUMNS, MAX_BYTES, MAX_ROWS, arrow_schema, default_columns
from pykafka08.spark.runtime import client, run
from tests.consumer.embedded import store
from tests.consumer.world import batch_bytes, marker_bytes
from tests.spark.sinks import ThreadedCluster, embedded

RELEASES = ["0.8.2", "0.9.0", "0.10.0", "0.11.0", "2.8", "4.3"]


def options_of(cluster: ThreadedCluster, topic: str = "t", **given: str) -> ReadOptions:
    options = {"kafka.bootstrap.servers": cluster.servers, "subscribe": topic, "includeHeaders": "true", **given}
    return read_options(options, streaming=False)


def plan(options: ReadOptions) -> list[Range]:
    return run(resolve(client(options.client), options))


def task_of(options: ReadOptions, ranges: Sequence[Range]) -> ReadTask:
    return ReadTask(tuple(ranges), options.settings)


def read(cluster: ThreadedCluster, topic: str = "t", **given: str) -> pa.Table:
    options = options_of(cluster, topic, **given)
    return table(read_ranges(task_of(options, plan(options)), options.columns))


def table(batches: Iterator[pa.RecordBatch]) -> pa.Table:
    found = list(batches)
    return pa.Table.from_batches(found).sort_by([("partition", "ascending"), ("offset", "ascending")])


def fill(cluster: ThreadedCluster, records: Sequence[NewRecord], topic: str = "t", **settings: Any) -> None:
    async def send() -> None:
        async with Producer(bootstrap_servers=cluster.servers, **settings) as producer:
            await producer.send_many(topic, records)

    run(send())


def keep(cluster: ThreadedCluster, data: bytes, last_offset: int) -> None:
    """Put bytes into the log as they are."""
    cluster._portal.call(lambda: store(cluster._cluster, "t", data, last_offset))


def values(count: int, partition: int = 0) -> list[NewRecord]:
    return [NewRecord(b"%d" % number, partition=partition) for number in range(count)]


@pytest.mark.parametrize("names", [COLUMNS, default_columns(include_headers=False), ("offset", "value"), ("headers",)])
def test_the_columns_are_what_spark_expects(names: Sequence[str]) -> None:
    wanted = to_arrow_schema(schema_of(names, include_headers=True), timezone="UTC")
    assert wanted.equals(arrow_schema(names))


@pytest.mark.parametrize("version", RELEASES)
def test_rows_are_what_was_produced(version: str) -> None:
    has_time = version not in ("0.8.2", "0.9.0")
    has_headers = has_time and version != "0.10.0"
    records = [
        NewRecord(
            None if number % 7 == 0 else b"v%d" % number * (number % 5),
            None if number % 3 == 0 else b"k%d" % number,
            (("a", b"%d" % number), ("a", None)) if has_headers and number % 4 == 0 else (),
            1_600_000_000_000 + number if has_time else None,
            number % 3,
        )
        for number in range(2000)
    ]
    with embedded(version=version, topics={"t": 4}) as cluster:
        fill(cluster, records)
        rows = read(cluster).to_pylist()
    expected = [records[number] for partition in range(3) for number in range(partition, 2000, 3)]
    assert len(rows) == len(expected)
    offsets = [offset for partition in range(3) for offset in range(len(range(partition, 2000, 3)))]
    for row, record, offset in zip(rows, expected, offsets, strict=True):
        assert (row["key"], row["value"], row["topic"]) == (record.key, record.value, "t")
        assert (row["partition"], row["offset"]) == (record.partition, offset)
        assert row["timestampType"] == (0 if has_time else -1)
        assert round(row["timestamp"].timestamp() * 1000) == (record.timestamp_ms if has_time else -1)
        assert row["headers"] == ([{"key": k, "value": v} for k, v in record.headers] or None)


def test_only_the_columns_that_are_named_in_their_order() -> None:
    with embedded(topics={"t": 1}) as cluster:
        fill(cluster, values(3))
        options = options_of(cluster)
        found = table(read_ranges(task_of(options, plan(options)), ("offset", "value", "partition")))
    assert found.to_pydict() == {"offset": [0, 1, 2], "value": [b"0", b"1", b"2"], "partition": [0, 0, 0]}


@pytest.mark.parametrize("version", ["0.8.2", "0.10.0", "4.3"])
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_a_range_begins_and_ends_within_batches(version: str, codec: str) -> None:
    with embedded(version=version, topics={"t": 1}) as cluster:
        fill(cluster, values(1000), compression_type=codec)
        (whole,) = plan(options_of(cluster))
        task = task_of(options_of(cluster), [Range("t", 0, 123, 457, topic_id=whole.topic_id)])
        found = table(read_ranges(task))
    assert found.column("offset").to_pylist() == list(range(123, 457))
    assert found.column("value").to_pylist() == [b"%d" % number for number in range(123, 457)]


@pytest.mark.parametrize("version", ["0.8.2", "4.3"])
def test_batches_stay_small(version: str) -> None:
    with embedded(version=version, topics={"t": 2}) as cluster:
        fill(cluster, values(70_000), batch_size=1 << 20, linger_ms=50)
        large = [NewRecord(b"%d" % number * 300_000, partition=1) for number in range(9)] * 8
        fill(cluster, large, compression_type="gzip", max_request_size=4 << 20)
        options = options_of(cluster)
        batches = list(read_ranges(task_of(options, plan(options))))
    assert sum(batch.num_rows for batch in batches) == 70_072
    assert all(batch.num_rows <= MAX_ROWS and batch.nbytes < MAX_BYTES + (4 << 20) for batch in batches)


@pytest.mark.parametrize("version", ["0.8.2", "4.3"])
def test_a_record_larger_than_a_fetch(version: str) -> None:
    with embedded(version=version, topics={"t": 1}) as cluster:
        fill(cluster, [NewRecord(b"x" * 950_000), NewRecord(b"y"), NewRecord(b"z" * 900_000)], max_request_size=2 << 20)
        found = read(cluster, fetchBytes="10000")
    assert [len(value) for value in found.column("value").to_pylist()] == [950_000, 1, 900_000]


def test_gaps_and_markers_end_ranges_by_position() -> None:
    with embedded(topics={"t": 1}) as cluster:
        keep(cluster, batch_bytes(0, [1, 4], last=9), 9)
        keep(cluster, marker_bytes(10, 5, is_commit=True), 10)
        keep(cluster, batch_bytes(11, [13], last=15), 15)
        keep(cluster, marker_bytes(16, 5, is_commit=False), 16)
        options = options_of(cluster)
        (whole,) = plan(options)
        assert (whole.start, whole.end) == (0, 17)
        assert table(read_ranges(task_of(options, [whole]))).column("offset").to_pylist() == [1, 4, 13]
        nothing = Range("t", 0, 5, 11, topic_id=whole.topic_id)
        assert sum(each.num_rows for each in read_ranges(task_of(options, [nothing]))) == 0


def test_transactions_that_were_aborted_are_seen_by_who_wants_them() -> None:
    async def transactions(servers: str) -> None:
        async with Producer(bootstrap_servers=servers, transactional_id="x") as producer:
            for number in range(4):
                try:
                    async with producer.transaction():
                        await producer.send_many("t", [b"%d" % number] * 3)
                        if number % 2:
                            raise ZeroDivisionError
                except ZeroDivisionError:
                    pass

    with embedded(topics={"t": 1}) as cluster:
        run(transactions(cluster.servers))
        everything = read(cluster)
        committed = read(cluster, **{"kafka.isolation.level": "read_committed"})
    assert everything.column("value").to_pylist() == [b"%d" % number for number in range(4) for _ in range(3)]
    assert committed.column("value").to_pylist() == [b"0"] * 3 + [b"2"] * 3


def test_many_uneven_partitions_and_empty_ones() -> None:
    counts = {number: number % 7 * 3 for number in range(500)}
    with embedded(topics={"t": 500}) as cluster:
        fill(cluster, [each for number, count in counts.items() for each in values(count, number)])
        options = options_of(cluster, targetRecordsPerTask="1500")
        tasks = plan_tasks(plan(options), target_records_per_task=options.target_records_per_task)
        assert 2 <= len(tasks) <= 4
        found = table(batch for task in tasks for batch in read_ranges(task_of(options, task)))
    assert found.column("partition").to_pylist() == [number for number, count in counts.items() for _ in range(count)]


def test_leaders_move_and_brokers_go_while_a_range_is_read() -> None:
    with embedded(brokers=3, topics={"t": 2}, replication_factor=3) as cluster:
        fill(cluster, [*values(3000, 0), *values(3000, 1)], batch_size=2000)
        options = options_of(cluster, fetchBytes="10000")
        batches_of = read_ranges(task_of(options, plan(options)))
        batches = [next(batches_of)]
        cluster.call("move_leader", "t", 0, cluster.call("leader", "t", 0) % 3 + 1)
        batches += [next(batches_of), next(batches_of)]
        cluster.call("stop_broker", cluster.call("leader", "t", 1))
        found = table(iter([*batches, *batches_of]))
    assert found.column("offset").to_pylist() == [*range(3000), *range(3000)]


@pytest.mark.parametrize(
    "code", [ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.KAFKA_STORAGE_ERROR]
)
def test_what_passes_is_waited_for(code: ErrorCode) -> None:
    with embedded(topics={"t": 1}) as cluster:
        fill(cluster, values(10))
        cluster.faults.answer("Fetch", code, times=2)
        assert read(cluster).num_rows == 10


def test_what_does_not_pass_is_an_error() -> None:
    with embedded(topics={"t": 1}) as cluster:
        fill(cluster, values(10))
        cluster.faults.answer("Fetch", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        with pytest.raises(BrokerError) as caught:
            read(cluster)
    assert (caught.value.code, caught.value.topic, caught.value.partition) == (29, "t", 0)


def test_no_progress_is_an_error_that_says_where() -> None:
    with embedded(brokers=1, topics={"t": 1}) as cluster:
        fill(cluster, values(10))
        options = options_of(cluster, **{"kafkaConsumer.pollTimeoutMs": "300"})
        task = task_of(options, plan(options))
        cluster.call("stop_broker", cluster.call("leader", "t", 0))
        with pytest.raises(RequestTimeoutError, match="Cannot fetch record for offset 0 of t-0 in 300 milli") as caught:
            list(read_ranges(task))
    assert (caught.value.topic, caught.value.partition, caught.value.offset) == ("t", 0, 0)


def test_offsets_that_are_gone() -> None:
    with embedded(topics={"t": 2}) as cluster:
        fill(cluster, [*values(100, 0), *values(10, 1)])
        strict, lenient = options_of(cluster), options_of(cluster, failOnDataLoss="false")
        ranges = plan(strict)
        cluster.call("delete_records", "t", 0, 60)
        with pytest.raises(DataLossError, match=r"offsets 0 to 59 of t-0 .* set the source option") as caught:
            list(read_ranges(task_of(strict, ranges)))
        assert (caught.value.topic, caught.value.partition, caught.value.offset) == ("t", 0, 0)
        found = table(read_ranges(task_of(lenient, ranges)))
        assert found.column("offset").to_pylist() == [*range(60, 100), *range(10)]
        early = [Range("t", 0, 3, 7, topic_id=ranges[0].topic_id)]
        assert list(read_ranges(task_of(lenient, early))) == []


@pytest.mark.parametrize("version", ["0.11.0", "4.3"])
def test_a_topic_that_was_made_anew(version: str) -> None:
    with embedded(version=version, topics={"t": 1}) as cluster:
        fill(cluster, values(100))
        strict, lenient = options_of(cluster), options_of(cluster, failOnDataLoss="false")
        task = [Range(each.topic, each.partition, 50, each.end, topic_id=each.topic_id) for each in plan(strict)]
        cluster.call("delete_topic", "t")
        cluster.call("create_topic", "t")
        with pytest.raises(DataLossError, match="offsets 50 to 99 of t-0 cannot be read"):
            list(read_ranges(task_of(strict, task)))
        assert list(read_ranges(task_of(lenient, task))) == []


def test_a_topic_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "SETTLING_S", 0.0)
    with embedded(topics={"t": 1}) as cluster:
        fill(cluster, values(100))
        strict, lenient = options_of(cluster), options_of(cluster, failOnDataLoss="false")
        ranges = plan(strict)
        cluster.call("delete_topic", "t")
        with pytest.raises(DataLossError, match="offsets 0 to 99 of t-0 cannot be read: the partition t-0 is gone"):
            list(read_ranges(task_of(strict, ranges)))
        assert list(read_ranges(task_of(lenient, ranges))) == []


def test_a_plan_is_newer_than_what_a_worker_knows() -> None:
    with embedded(topics={"t": 1}) as cluster:
        fill(cluster, values(5))
        assert read(cluster).num_rows == 5
        other = options_of(cluster, **{"kafka.client.id": "driver"})
        cluster.call("delete_topic", "t")
        cluster.call("create_topic", "t")
        fill(cluster, values(7))
        found = table(read_ranges(task_of(options_of(cluster), plan(other))))
    assert found.column("offset").to_pylist() == list(range(7))


@pytest.mark.parametrize(("at", "value"), [(-2, b"\xff"), (8, b"\0\0\0\1")], ids=["in a record", "in the head"])
def test_damage_is_told_with_its_place(at: int, value: bytes) -> None:
    with embedded(topics={"t": 1}) as cluster:
        whole = bytearray(batch_bytes(0, [0, 1, 2], last=2))
        whole[at : at + len(value)] = value
        keep(cluster, bytes(whole), 2)
        with pytest.raises(CorruptRecordError) as caught:
            read(cluster)
    assert (caught.value.topic, caught.value.partition, caught.value.offset) == ("t", 0, 0)


def test_a_task_that_ends_early_leaves_nothing_behind() -> None:
    with embedded(topics={"t": 1}) as cluster:
        fill(cluster, values(3000), batch_size=2000)
        options = options_of(cluster, fetchBytes="20000")
        task = task_of(options, plan(options))
        batches_of = read_ranges(task)
        next(batches_of)
        batches_of.close()
        assert table(read_ranges(task)).column("offset").to_pylist() == list(range(3000))


def test_tasks_share_their_connections() -> None:
    with embedded(topics={"t": 1}) as cluster:
        fill(cluster, values(100))
        options = options_of(cluster)
        task = task_of(options, plan(options))
        opened = []
        for _ in range(4):
            assert table(read_ranges(task)).num_rows == 100
            opened.append(sum(each.api == "ApiVersions" for each in cluster.call("requests")))
        assert len(set(opened)) == 1


def test_partitions_by_name() -> None:
    with embedded(topics={"t": 3, "u": 1}) as cluster:
        fill(cluster, [*values(5, 0), *values(6, 1), *values(7, 2)])
        options = read_options({"kafka.bootstrap.servers": cluster.servers, "assign": '{"t":[0,2]}'}, streaming=False)
        assert [TopicPartition(each.topic, each.partition) for each in plan(options)] == [("t", 0), ("t", 2)]
        assert sum(batch.num_rows for batch in read_ranges(task_of(options, plan(options)))) == 12


def test_small_ranges_ask_for_little_once_the_size_of_records_is_known() -> None:
    most = 4 << 20
    unknown = Place(Range("t", 0, 0, 1000), 0.0)
    assert unknown.wanted_bytes(most) == most
    unknown.advance(1000, 100_000, 1.0)
    assert unknown.is_done
    known = Place(Range("t", 0, 1000, 2000), 0.0, unknown.average_bytes)
    assert 100_000 < known.wanted_bytes(most) < 200_000
    assert known.wanted_bytes(50_000) == 50_000
    known.grow(300_000)
    assert known.wanted_bytes(50_000) == 300_000
    assert Place(Range("t", 0, 0, 1 << 40), 0.0, 100.0).wanted_bytes(most) == most
