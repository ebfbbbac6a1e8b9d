"""Rows of Arrow columns that are packed at once: where batches end, and how they go with other records."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import pyarrow as pa
import pytest

from pykafka08 import EmbeddedCluster, Producer, RecordTooLargeError
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import KafkaError
from pykafka08.producer.batch import Batch
from pykafka08.producer.rows import SizedRows, rows_added
from pykafka08.records.compression import Codec
from pykafka08.records.reader import read_batches
from pykafka08.records.record import Record
from pykafka08.records.writer import encode_parts

from .clusters import log_values, logs, producing
from .world import OK, World

ROWS = 300


def table(start: int, count: int = ROWS, **columns: pa.Array) -> pa.Table:
    """Values of different sizes, each of which names its row."""
    values = [b"%d:" % row + b"x" * (row * 37 % 150) for row in range(start, start + count)]
    return pa.table({"value": pa.array(values, pa.binary()), **columns})


def values_of(*tables: pa.Table) -> list[bytes]:
    return [value for each in tables for value in each["value"].to_pylist()]


async def known(producer: Producer) -> None:
    """Until then rows are not packed: they wait for the topic's metadata as other records do."""
    producer.enqueue("t", b"first")
    await producer.flush()


@pytest.mark.anyio
@pytest.mark.parametrize("partition", [None, 0])
async def test_rows_and_single_records_keep_their_order(partition: int | None) -> None:
    expected: list[bytes] = []
    async with producing(batch_size=8000, linger_ms=60_000) as (cluster, producer):
        await known(producer)
        handles = []
        for turn in range(4):
            rows = table(turn * ROWS)
            sent = await producer.enqueue_arrow("t", rows, partition)
            handles.append(producer.enqueue("t", b"single"))
            few = table(turn, 3)
            await producer.enqueue_arrow("t", few, partition)
            expected += [*values_of(rows), b"single", *values_of(few)]
        await producer.flush()
        assert log_values(cluster) == [b"first", *expected]
        assert [each.offset for each in sent] == [1 + 3 * (ROWS + 4) + row for row in range(ROWS)]
        assert [(await each).offset for each in handles] == [1 + ROWS + turn * (ROWS + 4) for turn in range(4)]
        assert producer.counters.in_buffer == 0


@pytest.mark.anyio
async def test_tables_share_batches() -> None:
    """Small tables do not make small batches: what lingers takes the rows of the next."""
    async with producing(linger_ms=60_000) as (cluster, producer):
        await known(producer)
        for turn in range(5):
            await producer.enqueue_arrow("t", table(turn * 100, 100), 0)
        await producer.flush()
        assert len(log_values(cluster)) == 501
        assert producer.counters.requests == 2


@pytest.mark.anyio
@pytest.mark.parametrize("compression_type", ["none", "gzip"])
async def test_keys_nulls_and_times_of_packed_rows(compression_type: str) -> None:
    keys = pa.array([None if row % 5 == 0 else b"k%d" % row for row in range(ROWS)])
    times = pa.array([None if row % 7 == 0 else 1_600_000_000_000 - row * 100_000 for row in range(ROWS)])
    values = pa.array([None if row % 3 == 0 else b"v" * row for row in range(ROWS)])
    rows = pa.table({"value": values, "key": keys, "timestamp": times})
    async with producing(batch_size=5000, compression_type=compression_type) as (cluster, producer):
        await known(producer)
        await producer.send_arrow("t", rows)
        found = logs(cluster)[0][1:]
    assert [each.value for each in found] == values.to_pylist()
    assert [each.key for each in found] == keys.to_pylist()
    given = times.to_pylist()
    assert all(each.timestamp_ms == time for each, time in zip(found, given, strict=True) if time is not None)
    assert all(each.timestamp_ms > 1_700_000_000_000 for each, time in zip(found, given, strict=True) if time is None)


@pytest.mark.anyio
@pytest.mark.parametrize("version", ["0.8.2", "0.10.0"])
async def test_formats_that_rows_are_not_packed_for(version: str) -> None:
    keys = pa.array([b"k%d" % row if row % 2 else None for row in range(ROWS)])
    async with producing(version=version, batch_size=5000) as (cluster, producer):
        tables = [table(0, key=keys), table(ROWS, key=keys)]
        for each in tables:
            await producer.enqueue_arrow("t", each, 0)
        await producer.flush()
        assert log_values(cluster) == values_of(*tables)
        assert [record.key for record in logs(cluster)[0]] == keys.to_pylist() * 2


@pytest.mark.anyio
async def test_a_row_that_never_fits() -> None:
    values = [b"v"] * 200 + [b"x" * 70_000]
    async with producing(batch_size=20_000, max_request_size=60_000) as (cluster, producer):
        await known(producer)
        with pytest.raises(RecordTooLargeError):
            await producer.send_arrow("t", pa.table({"value": pa.array(values)}))
        await producer.send_arrow("t", table(0))
        assert log_values(cluster)[-ROWS:] == values_of(table(0))
        assert producer.counters.in_buffer == 0


@pytest.mark.anyio
async def test_a_row_larger_than_a_batch_goes_alone() -> None:
    values = [b"v%d" % row if row != 100 else b"x" * 30_000 for row in range(200)]
    async with producing(batch_size=20_000) as (cluster, producer):
        await known(producer)
        await producer.send_arrow("t", pa.table({"value": pa.array(values)}))
        assert log_values(cluster) == [b"first", *values]


@pytest.mark.anyio
async def test_more_rows_than_there_is_room_for() -> None:
    settings = {"batch_size": 5000, "max_request_size": 10_000, "buffer_memory": 20_000, "linger_ms": 0}
    async with producing(topics={"t": 3}, **settings) as (cluster, producer):
        await known(producer)
        sent = await producer.send_arrow("t", table(0, 2000))
        found = logs(cluster)
        assert [found[each.partition][each.offset].value for each in sent] == values_of(table(0, 2000))
        assert producer.counters.in_buffer == 0


@pytest.mark.anyio
async def test_rows_of_transactions() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with Producer(cluster.bootstrap_servers, transactional_id="x", batch_size=5000) as producer:
            async with producer.transaction():
                await producer.enqueue_arrow("t", table(0), 0)
            with contextlib.suppress(ZeroDivisionError):
                async with producer.transaction():
                    await producer.enqueue_arrow("t", table(ROWS), 0)
                    raise ZeroDivisionError
            with pytest.raises(KafkaError):
                await producer.enqueue_arrow("t", table(ROWS), 0)
        assert [record.value for record in cluster.records("t", 0, committed=True)] == values_of(table(0))


def test_a_batch_of_rows_that_the_broker_finds_too_large_goes_in_halves() -> None:
    world = World({"t": [0]}, batch_size=100_000, linger_ms=0)
    accumulator = world.machine.accumulator
    rows = SizedRows(table(0, 100).to_batches()[0])
    ((batch, first, count),) = rows_added(accumulator, accumulator.queues_of("t"), 0, rows, 0, 100, 5, world.now)
    assert (first, count, accumulator.buffered_bytes) == (0, 100, rows.size(0, 100))
    world.answer(world.one(), int(ErrorCode.MESSAGE_TOO_LARGE))
    kept = [batch.follow(index) for index in (0, 49, 50, 99)]
    assert [half.values[index] for half, index in kept] == [values_of(table(row, 1))[0] for row in (0, 49, 50, 99)]
    assert [index for _, index in kept] == [0, 49, 0, 49]
    for _ in range(2):
        world.answer(world.one(after=1), OK)
    assert accumulator.buffered_bytes == 0


@pytest.mark.parametrize("sizes", [[50], range(20, 70)])
def test_rows_of_a_later_millisecond_have_a_delta_in_the_batch_that_was_open_alone(sizes: Sequence[int]) -> None:
    """Rows of one size are packed as a matrix, others are joined."""
    world = World({"t": [0]}, batch_size=40_000, linger_ms=60_000)
    accumulator = world.machine.accumulator
    values = [b"%d:" % row + b"x" * sizes[row % len(sizes)] for row in range(1000, 3000)]
    spans = []
    for start, end, now_ms in ((0, 300, 5), (300, 2000, 9)):
        rows = SizedRows(pa.record_batch({"value": pa.array(values[start:end], pa.binary())}))
        spans += rows_added(accumulator, accumulator.queues_of("t"), 0, rows, 0, end - start, now_ms, world.now)
    batches = list(dict.fromkeys(batch for batch, _, _ in spans))
    assert len(batches) > 2
    found = [record for batch in batches for record in read_back(batch)]
    assert [record.value for record in found] == values
    assert [record.timestamp_ms for record in found] == [5] * 300 + [9] * 1700


def read_back(batch: Batch) -> list[Record]:
    """The records of a batch that is still open."""
    pieces = encode_parts(
        2, Codec.NONE, timestamps=batch.timestamps, keys=None, values=[], packed=batch.packed_records()
    )
    (found,) = read_batches(b"".join(pieces), topic="t", partition=0, fetch_offset=0)
    return list(found)
