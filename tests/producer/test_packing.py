"""Batches that are full are packed: their records are kept as bytes, no longer as objects."""

from __future__ import annotations

import pytest

from pykafka08.error_codes import ErrorCode
from pykafka08.errors import LocalProtocolError
from pykafka08.producer.batch import BATCH_OVERHEAD, FEWEST_PACKED, RECORD_OVERHEAD, Batch
from pykafka08.records.compression import Codec
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


def test_a_batch_with_headers_is_not_packed() -> None:
    world = World({"t": [0]}, batch_size=ROOM, linger_ms=60_000)
    first = world.add(headers=(("h", b"1"),))
    while world.add(value=b"12345678").batch is first.batch:
        pass
    assert first.batch.packed is None
    assert first.batch.headers is not None


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
async def test_records_of_a_millisecond_share_its_number() -> None:
    """As an object: one of 32 bytes for each record would be a third of what waits."""
    async with producing(batch_size=1 << 20, linger_ms=60_000) as (_, producer):
        producer.enqueue("t", b"first")
        await producer.flush()
        for _ in range(5000):
            producer.enqueue("t", b"value")
        (queue,) = producer._intake._accumulator.topics["t"].queues.values()
        assert queue.open is not None
        stamps = queue.open.timestamps
        assert len(stamps) == 5000
        # The first record goes the long way, and the loop's clock may turn amid a millisecond of the other.
        assert len({id(stamp) for stamp in stamps}) <= 2 * len(set(stamps)) + 1 < 5000
