"""The cursor: positions without any cost per record."""

from __future__ import annotations

import pytest

from pykafka08.consumer.cursor import Cursor
from pykafka08.errors import CorruptRecordError
from pykafka08.records.reader import FetchedBatch, read_batches
from tests.consumer.world import batch_bytes


def batch_of(offsets: list[int], fetch_offset: int = 0) -> FetchedBatch:
    (batch,) = read_batches(batch_bytes(offsets[0], offsets), topic="a", partition=0, fetch_offset=fetch_offset)
    return batch


def test_position_follows_each_record() -> None:
    offsets = [10, 11, 15, *range(20, 620)]
    cursor = Cursor()
    assert cursor.position is None
    cursor.open(batch_of(offsets), 10)
    assert cursor.position == 10
    taken = []
    while cursor.load():
        for record in cursor.records:
            assert cursor.tp == ("a", 0) or record.offset == offsets[-1]
            taken.append(record.offset)
            position = cursor.position
            if len(taken) == len(offsets):
                assert position is None
            else:
                assert position is not None
                assert taken[-1] < position <= offsets[len(taken)]
    assert taken == offsets
    assert cursor.tp is None


def test_drop_ends_the_loop_that_reads() -> None:
    cursor = Cursor()
    cursor.open(batch_of(list(range(10))), 0)
    assert cursor.load() == 10
    taken = []
    for record in cursor.records:
        taken.append(record.offset)
        if record.offset == 3:
            cursor.drop()
    assert taken == [0, 1, 2, 3]
    assert cursor.position is None
    assert cursor.load() == 0


def test_a_batch_from_its_midst_starts_where_it_was_asked() -> None:
    cursor = Cursor()
    cursor.open(batch_of(list(range(10)), fetch_offset=4), 4)
    assert cursor.position == 4
    cursor.load()
    assert [record.offset for record in cursor.records] == [4, 5, 6, 7, 8, 9]


def test_damage_is_met_where_it_stands() -> None:
    data = bytearray(batch_bytes(0, list(range(300))))
    data[-6] = 0x7E  # the length of the last value lies
    (batch,) = read_batches(bytes(data), topic="a", partition=0, fetch_offset=0, check_crcs=False)
    cursor = Cursor()
    cursor.open(batch, 0)
    assert cursor.load() == 256
    assert len(list(cursor.records)) == 256
    assert cursor.position == 256
    with pytest.raises(CorruptRecordError):
        cursor.load()
    assert cursor.position == 256
