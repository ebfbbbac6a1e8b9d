"""What an application sees of a chunk: control batches never, aborted transactions not under read_committed."""

from __future__ import annotations

import pytest

from pykafka08.consumer.actions import Aborted
from pykafka08.consumer.chunk import Chunk
from pykafka08.errors import CorruptRecordError
from pykafka08.records.record import TopicPartition
from tests.consumer.world import World, batch_bytes, marker_bytes, transaction_bytes

A = TopicPartition("a", 0)


def offsets_of(data: bytes, aborted: list[Aborted] | None = None, fetch_offset: int = 0) -> list[int]:
    chunk = Chunk(data, A, fetch_offset, 100, aborted=aborted or [], max_unpacked_bytes=1 << 20)
    offsets = []
    while (batch := chunk.next_batch()) is not None:
        offsets += [record.offset for record in batch]
    return offsets


def test_control_batches_are_never_seen() -> None:
    data = batch_bytes(0, [0, 1]) + marker_bytes(2, 7, is_commit=True) + batch_bytes(3, [3])
    assert offsets_of(data) == [0, 1, 3]


def test_aborted_transactions_are_left_out() -> None:
    data = (
        transaction_bytes(0, 2, producer_id=7)
        + transaction_bytes(2, 2, producer_id=8)
        + batch_bytes(4, [4])
        + transaction_bytes(5, 1, producer_id=7)
        + marker_bytes(6, 7, is_commit=False)
        + transaction_bytes(7, 1, producer_id=7)
        + marker_bytes(8, 8, is_commit=True)
        + marker_bytes(9, 7, is_commit=True)
    )
    assert offsets_of(data) == [0, 1, 2, 3, 4, 5, 7]
    assert offsets_of(data, [Aborted(0, 7)]) == [2, 3, 4, 7]


def test_aborted_transactions_in_no_order_and_repeated_markers() -> None:
    data = (
        marker_bytes(0, 9, is_commit=False)
        + transaction_bytes(1, 1, producer_id=7)
        + marker_bytes(2, 7, is_commit=False)
        + marker_bytes(3, 7, is_commit=False)
        + transaction_bytes(4, 1, producer_id=8)
        + transaction_bytes(5, 1, producer_id=7)
        + marker_bytes(6, 7, is_commit=True)
        + marker_bytes(7, 8, is_commit=False)
    )
    assert offsets_of(data, [Aborted(4, 8), Aborted(1, 7)]) == [5]


def test_a_transaction_that_began_before_the_chunk() -> None:
    data = transaction_bytes(10, 2, producer_id=7) + marker_bytes(12, 7, is_commit=False) + batch_bytes(13, [13])
    assert offsets_of(data, [Aborted(3, 7)], fetch_offset=10) == [13]


def test_records_below_the_asked_offset_are_left_out() -> None:
    assert offsets_of(batch_bytes(0, [0, 1, 2]) + batch_bytes(3, [3]), fetch_offset=2) == [2, 3]


def test_damage_is_raised_each_time_it_is_met() -> None:
    data = batch_bytes(0, [0]) + batch_bytes(1, [1])[:-1] + b"\x55"
    chunk = Chunk(data, A, 0, 2, max_unpacked_bytes=1 << 20)
    assert chunk.next_batch() is not None
    for _ in range(2):
        with pytest.raises(CorruptRecordError):
            chunk.is_drained()
    with pytest.raises(CorruptRecordError):
        chunk.next_batch()


def test_looking_ahead_takes_nothing() -> None:
    chunk = Chunk(batch_bytes(0, [0]), A, 0, 1, max_unpacked_bytes=1 << 20)
    assert not chunk.is_drained()
    assert not chunk.is_drained()
    batch = chunk.next_batch()
    assert batch is not None
    assert batch.base_offset == 0
    assert chunk.is_drained()
    assert chunk.next_batch() is None


def test_the_position_is_beyond_what_is_hidden_at_the_end() -> None:
    world = World({A: 1}, isolation_level="read_committed")
    log = world.logs[A]
    log.append(2)
    log.append_bytes(transaction_bytes(2, 2, producer_id=7), 3)
    log.append_bytes(marker_bytes(4, 7, is_commit=False), 4)
    log.aborted.append(Aborted(2, 7))
    world.start()
    world.answer_all()
    assert world.next_batch() is not None
    assert world.machine.position(A) == 5
    assert world.read_offsets() == {}
