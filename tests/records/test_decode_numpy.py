"""What the decoder with numpy finds by itself: ``test_decoders`` allows it to leave anything to the others."""

from __future__ import annotations

import pytest

from pykafka08.records import decode_loop, decode_numpy
from pykafka08.records.batch_records import BatchRecords
from pykafka08.records.packed import PackedRecords
from tests.records.samples import batch, read, record


def packed_of(data: bytes) -> list[PackedRecords]:
    payloads = [found.payload for found in read(data)]
    assert all(isinstance(payload, BatchRecords) for payload in payloads)
    return payloads  # type: ignore[return-value]


# The last byte of the count lies just before the first record, and looks like the first byte of a long length.
@pytest.mark.parametrize("count", [127, 128, 129, 200, 201, 255])
def test_first_record_is_short(count: int) -> None:
    packed = packed_of(batch([record(row, 0, None, b"v" * (row % 7)) for row in range(count)]))
    columns = decode_numpy.read_columns(packed)
    assert columns is not None
    assert columns.values() == decode_loop.read_values(packed[0])[0]


@pytest.mark.parametrize("length", range(50, 75))
def test_zero_bytes_at_each_place_of_eight(length: int) -> None:
    records = [record(row, row, b"k", b"v" * (length + row * 3 % 11)) for row in range(40)]
    packed = packed_of(batch(records) + batch(records, base_offset=40))
    columns = decode_numpy.read_columns(packed)
    assert columns is not None
    assert columns.offsets.tolist() == list(range(80))
    assert columns.timestamps_ms.tolist() == [1000 + row for row in range(40)] * 2
    assert columns.values() == [b"v" * (length + row * 3 % 11) for row in range(40)] * 2


def test_values_full_of_zero_bytes_are_read_or_left_alone() -> None:
    packed = packed_of(batch([record(row, 0, None, bytes(row % 60)) for row in range(100)]))
    columns = decode_numpy.read_columns(packed)
    assert columns is None or columns.values() == [bytes(row % 60) for row in range(100)]
