"""Small batches in one buffer, whose values are read together: the same as one by one, whatever lies between them."""

from __future__ import annotations

import pytest

from pykafka08.errors import CorruptRecordError
from pykafka08.records import decode_loop
from pykafka08.records.compression import Codec
from pykafka08.records.reader import read_batches
from pykafka08.records.rewrite import assign_offsets
from tests.records.samples import batch, encode, read, record
from tests.records.test_decoders import packed_of

SMALL = 30


def small_batch(base_offset: int, *, attributes: int = 0) -> bytes:
    rows = [record(row, row, None, b"value %d of the batch at %d" % (row, base_offset) * 3) for row in range(SMALL)]
    return batch(rows, base_offset=base_offset, attributes=attributes)


def expected(base_offset: int) -> list[bytes | None]:
    return [b"value %d of the batch at %d" % (row, base_offset) * 3 for row in range(SMALL)]


def test_many_small_batches() -> None:
    data = b"".join(small_batch(offset) for offset in range(0, 400 * SMALL, SMALL))
    found = read(data)
    assert [one.values() for one in found] == [decode_loop.read_values(one)[0] for one in packed_of(data)]
    assert found[7].values() == found[7].values() == expected(7 * SMALL)
    assert found[200].values() == expected(200 * SMALL)
    assert [one.values() for one in reversed(found[:60])] == [expected(row * SMALL) for row in reversed(range(60))]


def test_reading_from_the_middle_of_a_batch() -> None:
    data = b"".join(small_batch(offset) for offset in range(0, 100 * SMALL, SMALL))
    found = read(data, SMALL + 11)
    assert [one.values() for one in found] == [expected(SMALL)[11:], *(expected(row * SMALL) for row in range(2, 100))]


def test_other_batches_between_them() -> None:
    parts = [small_batch(offset) for offset in range(0, 90 * SMALL, SMALL)]
    parts[20] = bytes(assign_offsets(encode(2, Codec.GZIP, 5), 20 * SMALL).data)
    parts[40] = bytes(assign_offsets(encode(1, Codec.NONE, 5), 40 * SMALL).data)
    parts[60] = small_batch(60 * SMALL, attributes=8)
    values = [one.values() for one in read(b"".join(parts))]
    assert values == [[each.value for each in one] for one in read(b"".join(parts))]
    assert values[60] == expected(60 * SMALL)


@pytest.mark.parametrize("has_right_checksum", [True, False])
def test_a_damaged_batch_spoils_no_other(has_right_checksum: bool) -> None:
    parts = [small_batch(offset) for offset in range(0, 100 * SMALL, SMALL)]
    if has_right_checksum:
        parts[50] = batch([b"\x02\x00"] * 200, base_offset=50 * SMALL, count=SMALL)
    else:
        parts[50] = parts[50][:-8] + bytes(8)
    data = b"".join(parts)
    values: list[list[bytes | None]] = []
    damage: list[int | None] = []
    offset = 0
    while offset < 100 * SMALL:
        try:
            for one in read_batches(data, topic="t", partition=3, fetch_offset=offset):
                offset = one.next_offset
                values.append(one.values())
        except CorruptRecordError as error:
            damage.append(error.offset)
            assert error.next_offset == 51 * SMALL  # noqa: PT017
            offset = error.next_offset
    assert damage == [50 * SMALL]
    assert values == [expected(row * SMALL) for row in range(100) if row != 50]
