"""Producing to the embedded cluster: every release, codec and acks; what a record may be; metadata that comes back."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from pykafka08 import (
    BufferFullError,
    ClosedError,
    ConfigError,
    EmbeddedCluster,
    ErrorCode,
    KafkaError,
    NewRecord,
    NoBrokersError,
    Producer,
    RecordMetadata,
    RecordTooLargeError,
    UnknownTopicError,
    UnsupportedVersionError,
)
from pykafka08.errors import BrokerError, LocalProtocolError, RecordTypeError
from pykafka08.producer.partitioners import murmur2_partition
from pykafka08.protocol.versions import RELEASES

from .clusters import FAST, log_values, logs, producing

pytestmark = pytest.mark.anyio


def magic_of(release: str) -> int:
    position = RELEASES.index(release)
    return (position >= RELEASES.index("0.10.0")) + (position >= RELEASES.index("0.11.0"))


# --- every release ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", RELEASES)
async def test_every_release_takes_records_without_a_version_setting(release: str) -> None:
    before = int(time.time() * 1000)
    async with producing(version=release, brokers=2, topics={"t": 3}) as (cluster, producer):
        one = await producer.send("t", b"one", b"key", timestamp_ms=1_500_000_000_000)
        tombstone = await producer.send("t", None, b"key", partition=one.partition)
        sent = await producer.send_many("t", [b"%d" % i for i in range(3000)])
        assert producer.counters[:5] == (3002, 3002, 0, 0, 0)
        assert one[:3] == ("t", murmur2_partition(b"key", 3), 0)
        assert tombstone.offset == 1
        assert one.timestamp_ms == (1_500_000_000_000 if magic_of(release) else -1)
        assert (tombstone.timestamp_ms >= before) == bool(magic_of(release))
        partitions = logs(cluster)
        assert [partitions[each.partition][each.offset].value for each in sent] == [b"%d" % i for i in range(3000)]
        record = partitions[one.partition][0]
        assert (record.key, record.value) == (b"key", b"one")
        assert partitions[one.partition][1].value is None


CODECS = [
    (codec, release)
    for codec, since in [("none", "0.8.0"), ("gzip", "0.8.0"), ("snappy", "0.8.0"), ("lz4", "0.8.2"), ("zstd", "2.1")]
    for release in ("0.8.0", "0.8.2", "0.9.0", "0.10.2", "0.11.0", "2.1", "4.3")
    if RELEASES.index(release) >= RELEASES.index(since)
]


@pytest.mark.parametrize(("codec", "release"), CODECS)
async def test_every_codec(codec: str, release: str) -> None:
    given = [b"%d" % i * 20 for i in range(2000)]
    async with producing(version=release, compression_type=codec) as (cluster, producer):
        await producer.send_many("t", given)
        assert log_values(cluster) == given


async def test_a_codec_that_the_broker_does_not_know_is_said_so() -> None:
    async with producing(version="2.0", compression_type="zstd") as (_, producer):
        with pytest.raises(UnsupportedVersionError, match=r"zstd.*2\.1") as caught:
            await producer.send("t", b"v")
        assert caught.value.broker is not None
        assert producer.counters[:5] == (1, 0, 1, 0, 0)
    async with producing(version="0.8.1", compression_type="lz4", broker_version="0.8.1") as (_, producer):
        with pytest.raises(UnsupportedVersionError, match=r"lz4.*0\.8\.2"):
            await producer.send("t", b"v")


@pytest.mark.parametrize("acks", [0, 1, "all", -1])
@pytest.mark.parametrize("release", ["0.8.0", "0.10.0", "4.3"])
async def test_acks(acks: int | str, release: str) -> None:
    async with producing(version=release, brokers=3, acks=acks) as (cluster, producer):
        metadata = await producer.send("t", b"v")
        assert metadata.offset == (-1 if acks == 0 else 0)
        sent = await producer.send_many("t", [b"%d" % i for i in range(100)])
        assert {each.offset for each in sent} == ({-1} if acks == 0 else set(range(1, 101)))
        assert producer.counters.acknowledged == 101
        while acks == 0 and len(log_values(cluster)) < 101:  # written; the broker reads it in its own time
            await anyio.lowlevel.checkpoint()
        assert log_values(cluster)[1:] == [b"%d" % i for i in range(100)]


@pytest.mark.parametrize("release", ["0.11.0", "4.3"])
async def test_headers(release: str) -> None:
    async with producing(version=release) as (cluster, producer):
        await producer.send("t", b"v", headers=[("a", b"1"), ("b", None), ("a", bytearray(b"2"))])
        await producer.send_many("t", [NewRecord(b"w", headers=(("c", b"3"),)), b"x"])
        assert [record.headers for record in cluster.records("t", 0)] == [
            (("a", b"1"), ("b", None), ("a", b"2")),
            (("c", b"3"),),
            (),
        ]


@pytest.mark.parametrize("release", ["0.8.0", "0.10.2"])
async def test_headers_before_0_11_fail_their_records_and_no_other(release: str) -> None:
    async with producing(version=release) as (cluster, producer):
        deliveries = [producer.enqueue("t", b"%d" % i, headers=[("h", b"")] if i % 2 else ()) for i in range(4)]
        for i, delivery in enumerate(deliveries):
            if i % 2:
                with pytest.raises(UnsupportedVersionError, match=r"headers.*0\.11"):
                    await delivery
            else:
                assert (await delivery).offset == i // 2
        assert log_values(cluster) == [b"0", b"2"]
        with pytest.raises(UnsupportedVersionError, match="headers"):
            await producer.send("t", b"v", headers=[("h", b"")])
        assert producer.counters[:5] == (5, 2, 3, 0, 0)


async def test_log_append_time_is_the_brokers() -> None:
    async with EmbeddedCluster(version="2.8") as cluster:
        cluster.create_topic("t", config={"message.timestamp.type": "LogAppendTime"})
        async with Producer(cluster.bootstrap_servers) as producer:
            first = await producer.send("t", b"v", timestamp_ms=5)
            assert first.timestamp_ms == cluster.records("t", 0)[0].timestamp_ms > 5


# --- the calls --------------------------------------------------------------------------------------------------------


async def test_a_delivery_can_be_awaited_by_many_and_again() -> None:
    async with producing() as (_, producer):
        delivery = producer.enqueue("t", b"v", timestamp_ms=7)
        assert not delivery.is_done
        assert "under way" in repr(delivery)
        results = []

        async def wait() -> None:
            results.append(await delivery)

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(wait)
        assert results == [RecordMetadata("t", 0, 0, 7)] * 3
        assert delivery.is_done
        assert await delivery == results[0]
        assert "offset 0" in repr(delivery)


async def test_a_failure_that_nobody_awaits_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with producing(topics={"t": 1}) as (cluster, producer):
        cluster.faults.answer("Produce", ErrorCode.TOPIC_AUTHORIZATION_FAILED, topic="t", partition=0)
        producer.enqueue("t", b"lost")
        await producer.flush()
        assert producer.counters.failed == 1
    (told,) = [record for record in caplog.records if vars(record).get("event") == "producer.batch_failed"]
    assert told.levelname == "WARNING"
    assert vars(told)["topic"] == "t"
    assert vars(told)["records"] == 1
    assert "TOPIC_AUTHORIZATION_FAILED" in vars(told)["cause"]
    assert told.message.startswith("producer.batch_failed client_id=pykafka08 topic=t partition=0 records=1 cause=")


async def test_leaving_the_block_delivers_what_was_enqueued() -> None:
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        async with Producer(cluster.bootstrap_servers, linger_ms=60_000) as producer:
            for i in range(1000):
                producer.enqueue("t", b"%d" % i)
            producer.enqueue("made", b"x")
        assert len(log_values(cluster)) == 1000
        assert log_values(cluster, "made") == [b"x"]
        assert producer.counters[:5] == (1001, 1001, 0, 0, 0)


async def test_closing_early_within_a_time_limit_of_ones_own() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, Producer(cluster.bootstrap_servers) as producer:
        delivery = producer.enqueue("t", b"one")
        with anyio.fail_after(30):
            await producer.aclose()
        assert (await delivery).offset == 0
        with pytest.raises(ClosedError):
            await producer.send("t", b"two")
    assert log_values(cluster, "t") == [b"one"]


async def test_flush_does_not_wait_for_the_linger() -> None:
    async with producing(linger_ms=60_000) as (cluster, producer):
        delivery = producer.enqueue("t", b"v")
        await producer.flush()
        assert delivery.is_done
        assert log_values(cluster) == [b"v"]
        await producer.flush()


async def test_send_many_takes_any_iterable_and_mixes_records() -> None:
    async with producing(topics={"t": 2}) as (cluster, producer):
        sent = await producer.send_many(
            "t",
            (
                each
                for each in [
                    b"plain",
                    None,
                    bytearray(b"array"),
                    NewRecord(b"placed", partition=1, timestamp_ms=9),
                    NewRecord(b"keyed", key=b"k"),
                ]
            ),
        )
        assert len(sent) == 5
        assert sent[3] == RecordMetadata("t", 1, sent[3].offset, 9)
        assert [sent[-5], sent[-1]] == [sent[0], list(sent)[4]]
        assert sent[1:3] == list(sent)[1:3]
        with pytest.raises(IndexError):
            sent[5]
        partitions = logs(cluster)
        found = [partitions[each.partition][each.offset].value for each in sent]
        assert found == [b"plain", None, b"array", b"placed", b"keyed"]
        assert len(await producer.send_many("t", [])) == 0


async def test_send_many_raises_what_the_first_failed_with_when_all_have_ended() -> None:
    async with producing(version="0.10.2") as (cluster, producer):
        records = [NewRecord(b"%d" % i, headers=(("h", b""),) if i == 5 else ()) for i in range(10)]
        with pytest.raises(UnsupportedVersionError):
            await producer.send_many("t", records)
        assert len(log_values(cluster)) == 9
        assert producer.counters[:5] == (10, 9, 1, 0, 0)


async def test_values_that_are_changed_afterwards_do_no_harm() -> None:
    async with producing() as (cluster, producer):
        value = bytearray(b"before")
        delivery = producer.enqueue("t", value, key=memoryview(b"key"))
        value[:] = b"after!"
        await delivery
        record = cluster.records("t", 0)[0]
        assert (record.key, record.value) == (b"key", b"before")


# --- what a record may be ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"value": "text"}, "str"),
        ({"value": 5}, "int"),
        ({"value": b"v", "key": "text"}, "key"),
        ({"value": b"v", "headers": [("name", "text")]}, "header 'name'"),
        ({"value": b"v", "headers": [(b"name", b"v")]}, "name of a header"),
        ({"value": b"v", "headers": [5]}, "pairs"),
        ({"value": b"v", "headers": 5}, "pairs"),
        ({"value": b"v", "partition": "0"}, "partition"),
        ({"value": b"v", "timestamp_ms": 1.5}, "timestamp_ms"),
    ],
    ids=str,
)
async def test_a_record_of_the_wrong_type_is_not_taken(arguments: dict[str, object], named: str) -> None:
    async with producing() as (_, producer):
        with pytest.raises(RecordTypeError, match=named) as caught:
            producer.enqueue("t", **arguments)  # type: ignore[arg-type]
        assert isinstance(caught.value, TypeError)
        assert isinstance(caught.value, KafkaError)
        assert caught.value.topic == "t"
        with pytest.raises(RecordTypeError):
            await producer.send("t", **arguments)  # type: ignore[arg-type]
        assert producer.counters.enqueued == 0


@pytest.mark.parametrize("partition", [1.0, True, "1", [1], {}], ids=str)
@pytest.mark.parametrize("key", [None, b"k"])
async def test_a_partition_is_an_int_also_where_its_batch_is_open(partition: Any, key: bytes | None) -> None:
    async with producing(topics={"t": 2}, linger_ms=60_000) as (cluster, producer):
        for _ in range(2):
            with pytest.raises(RecordTypeError, match="a partition is an int"):
                producer.enqueue("t", b"v", key, partition=partition)
            with pytest.raises(RecordTypeError, match="a partition is an int"):
                await producer.send("t", b"v", key, partition=partition)
            with pytest.raises(RecordTypeError, match="a partition is an int"):
                await producer.send_many("t", [NewRecord(b"v", key, partition=partition)])
            await producer.enqueue_columns("t", 1, [b"good"])
        await producer.flush()
        assert log_values(cluster) == [b"good"] * 2


async def test_arguments_of_many_records_that_are_no_such_thing() -> None:
    async with producing() as (_, producer):
        calls: list[Callable[[Any], Awaitable[object]]] = [
            lambda wrong: producer.send_many(wrong, [b"v"]),
            lambda wrong: producer.send_many(wrong, [b"v"], [b"k"]),
            lambda wrong: producer.send_many(wrong, [NewRecord(b"v", b"k")]),
            lambda wrong: producer.enqueue_columns(wrong, 0, [b"v"]),
            lambda wrong: producer.enqueue_columns("t", wrong, [b"v"]),
            lambda wrong: producer.enqueue_columns("t", 0, wrong),
            lambda wrong: producer.enqueue_columns("t", 0, [b"v"], wrong),
            lambda wrong: producer.enqueue_columns("t", 0, [b"v"], None, wrong),
            lambda wrong: producer.enqueue_columns("t", 0, [b"v"], None, None, wrong),
            lambda wrong: producer.send_many("t", wrong),
            lambda wrong: producer.send_many("t", [b"v"], wrong),
        ]
        for call in calls:
            for wrong in (5.0, ["t"]):
                with pytest.raises(RecordTypeError):
                    await call(wrong)
        assert producer.counters.enqueued == 0


@pytest.mark.parametrize("topic", ["", "a b", "x" * 250, "..", "täst", "a/b"])
async def test_a_topic_name_that_kafka_does_not_allow(topic: str) -> None:
    async with producing() as (_, producer):
        with pytest.raises(BrokerError, match="INVALID_TOPIC"):
            producer.enqueue(topic, b"v")
        with pytest.raises(BrokerError, match="INVALID_TOPIC"):
            await producer.send_many(topic, [b"v"])
        with pytest.raises(RecordTypeError):
            producer.enqueue(b"bytes", b"v")  # type: ignore[arg-type]


@pytest.mark.parametrize("timestamp_ms", [-1, 2**63])
async def test_a_timestamp_out_of_range(timestamp_ms: int) -> None:
    async with producing() as (_, producer):
        with pytest.raises(LocalProtocolError, match="timestamp_ms"):
            producer.enqueue("t", b"v", timestamp_ms=timestamp_ms)


async def test_a_record_too_large_is_refused_before_it_is_queued() -> None:
    async with producing(max_request_size=10_000) as (_, producer):
        with pytest.raises(RecordTooLargeError, match="max_request_size=10000") as caught:
            producer.enqueue("t", bytes(9_950))
        assert caught.value.topic == "t"
        assert producer.counters.enqueued == 0
        with pytest.raises(RecordTooLargeError):
            await producer.send_many("t", [b"the record before it is taken", bytes(9_950)])
        assert producer.counters.enqueued == 1
        await producer.send("t", bytes(9_900))
    async with producing(buffer_memory=1000) as (_, producer):
        with pytest.raises(RecordTooLargeError, match="buffer_memory=1000"):
            await producer.send("t", bytes(2000))


@pytest.mark.parametrize("release", ["0.8.2", "0.10.0", "2.8", "4.3"])
async def test_largest_records_pass(release: str) -> None:
    """What ``max_request_size`` allows is what the broker takes, in each format."""
    async with producing(version=release, max_request_size=100_000, batch_size=100_000) as (cluster, producer):
        sizes = [99_000, 50_000, 49_000, 1, 99_900]
        await producer.send_many("t", [bytes(size) for size in sizes])
        assert [len(value or b"") for value in log_values(cluster)] == sizes


# --- settings and life ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"lingerms": 5}, "lingerms"),
        ({"acks": 2}, "acks"),
        ({"compression_type": "rar"}, "rar"),
        ({"compression_level": -7}, "compression_level=-7, compression_type='none': compression none has no levels"),
        ({"compression_type": "snappy", "compression_level": 3}, "compression_level=3, .*snappy has no levels; gzip"),
        ({"compression_type": "gzip", "compression_level": 10}, r"compression_level=10, .*is not in 1\.\.9"),
        ({"partitioner": "best"}, "best"),
        ({"bootstrap_servers": "TLS://host:1"}, "PLAINTEXT"),
    ],
    ids=str,
)
def test_settings_are_checked_at_once(settings: dict[str, object], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        Producer(**{"bootstrap_servers": "localhost:9092", **settings})  # type: ignore[arg-type]


async def test_no_broker_at_the_address() -> None:
    async with EmbeddedCluster() as cluster:
        address = cluster.bootstrap_servers
    producer = Producer(address, **FAST)
    with pytest.raises(NoBrokersError, match=address):
        await producer.__aenter__()
    with pytest.raises(ClosedError):
        producer.enqueue("t", b"v")
    await producer.aclose()


async def test_a_producer_that_is_not_open_says_so() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        producer = Producer(cluster.bootstrap_servers)
        with pytest.raises(ClosedError, match="async with"):
            producer.enqueue("t", b"v")
        async with producer:
            await producer.send("t", b"v")
        for call in (producer.send("t", b"v"), producer.send_many("t", [b"v"]), producer.flush(), producer.ready()):
            with pytest.raises(ClosedError, match="closed"):
                await call
        with pytest.raises(ClosedError, match="closed"):
            producer.enqueue("t", b"v")
        await producer.aclose()
        with pytest.raises(ClosedError, match="cannot be reused"):
            await producer.__aenter__()
        assert producer.counters.acknowledged == 1


async def test_a_topic_that_does_not_exist() -> None:
    async with EmbeddedCluster(topics={"t": 1}, auto_create_topics=False) as cluster:
        async with Producer(cluster.bootstrap_servers, max_block_ms=300, **FAST) as producer:
            nope = producer.enqueue("nope", b"v")
            assert (await producer.send("t", b"v")).offset == 0
            with pytest.raises(UnknownTopicError, match="nope") as caught:
                await nope
            assert caught.value.topic == "nope"
            late = producer.enqueue("late", b"v")
            await anyio.lowlevel.checkpoint()
            cluster.create_topic("late", 2)
            assert (await late).topic == "late"


async def test_a_partition_that_does_not_exist() -> None:
    async with producing(topics={"t": 3}) as (_, producer):
        for _ in range(2):  # before and after the metadata is there
            with pytest.raises(UnknownTopicError, match="3 partitions, and no partition 3") as caught:
                await producer.send("t", b"v", partition=3)
            assert (caught.value.topic, caught.value.partition) == ("t", 3)
        with pytest.raises(UnknownTopicError, match="-1"):
            producer.enqueue("t", b"v", partition=-1)
        assert (await producer.send("t", b"v", partition=2)).partition == 2


async def test_the_buffer_is_full_and_ready_waits_for_room() -> None:
    async with producing(buffer_memory=10_000, linger_ms=60_000) as (cluster, producer):
        enqueued = 10_000 // 136
        for _ in range(enqueued):
            producer.enqueue("t", bytes(100))
        with pytest.raises(BufferFullError, match="ready"):
            producer.enqueue("t", bytes(100))
        await producer.ready()
        for _ in range(500):
            await producer.ready()
            producer.enqueue("t", bytes(100))
            assert producer.counters.buffered_bytes <= 10_000
        await producer.flush()
        assert len(log_values(cluster)) == enqueued + 500


@pytest.mark.parametrize("topic", [["t"], {}, 5, None, b"t"])
async def test_a_topic_that_is_no_string_is_refused(topic: Any) -> None:
    async with producing() as (_, producer):
        await producer.send("t", b"1")
        with pytest.raises(RecordTypeError):
            producer.enqueue(topic, b"x")
        with pytest.raises(RecordTypeError):
            await producer.send(topic, b"x")
        with pytest.raises(RecordTypeError):
            await producer.send_many(topic, [b"x"])


async def test_what_a_partitioner_raises_is_a_config_error_whether_or_not_the_topic_is_known() -> None:
    def odd(key: bytes | None, partitions: tuple[int, ...], available: tuple[int, ...]) -> int:
        return 1 // 0 if key else 0

    async with producing(partitioner=odd) as (_, producer):
        with pytest.raises(ConfigError) as unknown:
            await producer.enqueue("t", b"x", key=b"k")
        with pytest.raises(ConfigError) as known:
            producer.enqueue("t", b"x", key=b"k")
        for caught in (unknown, known):
            assert isinstance(caught.value.__cause__, ZeroDivisionError)
            assert caught.value.topic == "t"
        assert (await producer.send("t", b"y")).offset == 0


@pytest.mark.parametrize("timeout", [float("nan"), "5", True, [1]], ids=repr)
async def test_a_timeout_is_a_number_of_seconds(timeout: Any) -> None:
    async with producing(topics={"t": 1}, linger_ms=10_000) as (_, producer):
        delivery = producer.enqueue("t", b"value")
        for call in (producer.flush, producer.aclose):
            with pytest.raises(ConfigError, match="is not a number of seconds"):
                await call(timeout=timeout)
        assert not delivery.is_done
        await producer.flush(timeout=60)
        assert delivery.is_done
