"""Batches that are full are packed: their records are kept as bytes, no longer as objects."""

from __future__ import annotations

import pytest

from pykafka08.error_codes import ErrorCode
from pykafka08.errors import LocalProtocolError
from pykafka08.producer.accumulator import SMALLEST_LIMIT
from pykafka08.producer.batch import BATCH_OVERHEAD, FEWEST_PACKED, RECORD_OVERHEAD, Batch
from pykafka08.records.compression import Codec
from pykafka08.records.record import Headers
from pykafka08.records.writer import encode_parts

from .clusters import logs, producing
from .world import OK, Handle, World

COUNT = 100
SIZE = RECORD_OVERHEAD + 8
ROOM = BATCH_OVERHEAD + COUNT * SIZE


def filled(count: int = COUNT, *, batch_size: int = ROOM) -> tuple[World, list[Handle]]:
    """Records with keys, of which the last is in another batch."""
    world = World({"t": [0]}, batch_size=batch_size, linger_ms=60_000)
    return world, [world.add(value=b"v%03d" % row, key=b"k%03d" % row) for row in range(count + 1)]


def pairs(batch: Batch) -> list[tuple[bytes | None, bytes | None]]:
    batch.unpack()
    assert batch.keys is not None
    return list(zip(batch.keys, batch.values, strict=True))


def test_a_full_batch_is_packed_and_an_open_one_is_not() -> None:
    world, handles = filled()
    full, still_open = handles[0].batch, handles[-1].batch
    assert (full.keys, full.values, len(full)) == (None, [], COUNT)
    assert still_open.packed is None
    assert [each.batches for each in world.sends()] == [[full]]
    assert pairs(full) == [(b"k%03d" % row, b"v%03d" % row) for row in range(COUNT)]


def test_a_batch_of_few_records_is_not_packed() -> None:
    few = FEWEST_PACKED - 1
    _, handles = filled(few, batch_size=BATCH_OVERHEAD + few * SIZE)
    assert handles[0].batch is not handles[-1].batch
    assert handles[0].batch.packed is None


def test_headers_are_packed_and_come_back() -> None:
    headers: list[Headers] = [(), (("h", b"1"), ("n", None)), (("h\u00e4", b""),)]
    world = World({"t": [0]}, batch_size=ROOM, linger_ms=60_000)
    batches = [world.add(value=b"%d" % row, headers=headers[row % 3]).batch for row in range(COUNT)]
    full = batches[0]
    count = batches.count(full)
    assert FEWEST_PACKED <= count < COUNT
    assert (full.keys, full.values, full.headers, len(full)) == (None, [], None, count)
    full.unpack()
    assert full.values == [b"%d" % row for row in range(count)]
    assert full.headers == [headers[row % 3] for row in range(count)]


def test_what_waits_behind_another_batch_is_packed_when_all_are_hurried() -> None:
    """The first is sent at once, and is packed then."""
    world = World({"t": [0, 0]}, batch_size=ROOM, linger_ms=60_000)
    alone = world.add(value=b"12345678", partition=1).batch
    for _ in range(COUNT - 1):
        world.add(value=b"12345678", partition=1)
    batches = [world.add(value=b"12345678", partition=0).batch for _ in range(COUNT + FEWEST_PACKED)]
    assert batches[0].packed is not None
    assert batches[-1].packed is None
    world.machine.release_all(world.now)
    assert (batches[-1].is_closed, batches[-1].packed is not None) == (True, True)
    assert (alone.is_closed, alone.packed) == (True, None)


def test_the_more_batches_are_open_the_smaller_they_are() -> None:
    """Open ones hold objects, of up to twice the bytes that are counted."""
    count = 16
    settings = {"batch_size": 1 << 20, "buffer_memory": 1 << 20, "linger_ms": 60_000}
    world = World({"t": [0] * count, "alone": [0]}, **settings)
    value = b"v" * 964
    for row in range(200 * count):  # the first ones were opened when they were few
        world.add(value=value, partition=row % count)
    accumulator = world.machine.accumulator
    queues = accumulator.topics["t"].queues.values()
    assert accumulator._opened.count == count
    assert sum(queue.open.size for queue in queues if queue.open is not None) <= accumulator._open_bytes
    assert max(len(batch) for queue in queues for batch in list(queue.batches)[1:]) >= SMALLEST_LIMIT // 1000 - 1
    world.machine.release_all(world.now)
    assert accumulator._opened.count == 0
    batch = world.add("alone", value).batch
    while len(batch) < 100:
        assert world.add("alone", value).batch is batch


def test_nothing_is_packed_for_a_broker_of_an_older_format() -> None:
    world = World({"t": [0]}, batch_size=ROOM, linger_ms=60_000)
    world.machine.accumulator.packs_rows = False
    batches = {world.add(value=b"12345678").batch for _ in range(3 * COUNT)}
    assert len(batches) > 2
    assert all(batch.packed is None for batch in batches)


def test_one_that_the_broker_finds_too_large_goes_in_halves() -> None:
    world, handles = filled()
    world.answer(world.one(), int(ErrorCode.MESSAGE_TOO_LARGE))
    sent = []
    for _ in range(2):
        send = world.one(after=1)
        sent += pairs(send.batches[0])
        world.answer(send, OK)
    assert sent == [(b"k%03d" % row, b"v%03d" % row) for row in range(COUNT)]
    assert all(handle.is_acknowledged for handle in handles[:COUNT])


def test_a_record_that_cannot_be_encoded_is_told_when_it_is_sent() -> None:
    batch = Batch("t", 0, 0.0, 1.0)
    for row in range(COUNT):
        batch.append(b"v", None, (), 1 << 70 if row == 50 else row, SIZE)
    batch.pack()
    assert (batch.packed, batch.values) == (None, [b"v"] * COUNT)
    with pytest.raises(LocalProtocolError, match="cannot be encoded"):
        encode_parts(2, Codec.NONE, timestamps=batch.timestamps, keys=batch.keys, values=batch.values)


@pytest.mark.anyio
@pytest.mark.parametrize("version", ["0.8.2", "0.10.0", "4.3"])
@pytest.mark.parametrize("compression_type", ["none", "gzip"])
async def test_all_that_was_given_arrives_in_order(version: str, compression_type: str) -> None:
    given = [(b"k%d" % row if row % 3 else None, None if row % 7 == 1 else b"v" * (row % 300)) for row in range(3000)]
    settings = {"batch_size": 8000, "linger_ms": 60_000, "compression_type": compression_type}
    async with producing(version=version, **settings) as (cluster, producer):
        producer.enqueue("t", b"first")
        await producer.flush()
        handles = [producer.enqueue("t", value, key) for key, value in given]
        await producer.flush()
        assert [(each.key, each.value) for each in logs(cluster)[0][1:]] == given
        assert [(await handle).offset for handle in handles] == list(range(1, len(given) + 1))


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["values", "keys", "headers"])
async def test_records_of_a_millisecond_share_its_number(kind: str) -> None:
    """As an object: one of 32 bytes for each record would be a third of what waits."""
    async with producing(batch_size=1 << 20, linger_ms=60_000) as (_, producer):
        producer.enqueue("t", b"first")
        await producer.flush()
        for row in range(5000):
            key = b"%d" % row if kind == "keys" else None
            producer.enqueue("t", b"value", key, None, [("h", b"1")] if kind == "headers" else ())
        (queue,) = producer._intake._accumulator.topics["t"].queues.values()
        assert queue.open is not None
        stamps = queue.open.timestamps
        assert len(stamps) == 5000
        # The loop's clock may turn amid a millisecond of the other.
        assert len({id(stamp) for stamp in stamps}) <= 2 * len(set(stamps)) + 1 < 5000
