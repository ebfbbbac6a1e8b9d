"""Large batches in slices: the same records as in one piece, in little memory, and damage at any position."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from pykafka08.errors import CorruptRecordError, RecordTooLargeError
from pykafka08.records.batch_records import BatchRecords, prepare
from pykafka08.records.bounds import NO_LIMIT, PART
from pykafka08.records.compression import Codec, compress
from pykafka08.records.fetched import FetchedBatch
from pykafka08.records.reader import read_batches
from pykafka08.records.record import Record, TimestampType
from pykafka08.records.rewrite import assign_offsets
from pykafka08.records.slices import LARGEST_WHOLE, MOST_MESSAGES, Stretch, batch_slices
from pykafka08.records.writer import encode_batch
from tests.records.samples import batch as batch_of
from tests.records.samples import read, record, varint

# Many records for numpy, and some that are larger than a part, with keys, headers and nulls between them.
VALUES = [b"value %d" % row for row in range(2000)]
VALUES[100] = None
VALUES[700] = bytes(PART + 5)
VALUES[701] = bytes(range(256)) * (PART // 100)
VALUES[1999] = b"last" * (PART // 2)
KEYS = [None if row % 3 else b"key %d" % row for row in range(2000)]


def large(codec: Codec) -> bytes:
    data = encode_batch(
        2, codec, timestamps=[1000 + row for row in range(2000)], keys=KEYS, values=VALUES,
        headers=[(("h", b"x"),) if row % 7 == 0 else () for row in range(2000)],
    )  # fmt: skip
    return assign_offsets(data, 50).data


def batch(body: bytes, codec: Codec = Codec.NONE, *, count: int, base_offset: int = 0, last_delta: int) -> bytes:
    packed = compress(codec, body) if codec else body
    return batch_of(packed, attributes=codec, count=count, base_offset=base_offset, last_delta=last_delta)


def slices(data: bytes, fetch_offset: int = 0, **more: int) -> list[FetchedBatch]:
    return list(read_batches(data, topic="t", partition=3, fetch_offset=fetch_offset, in_slices=True, **more))


def records_of(batches: list[FetchedBatch]) -> list[Record]:
    return [each for found in batches for each in found]


@pytest.mark.parametrize("codec", list(Codec))
def test_slices_have_the_records_of_the_batch(codec: Codec) -> None:
    data = large(codec)
    (whole,) = read(data)
    found = slices(data)
    assert len(found) >= 3
    assert records_of(found) == whole.records()
    assert [value for each in found for value in each.values()] == whole.values()
    assert [key for each in found for key in each.keys()] == whole.keys()  # noqa: SIM118 - of a batch
    assert [each.base_offset for each in found] == [50, *(each.next_offset for each in found[:-1])]
    assert found[-1].next_offset == whole.next_offset
    assert all(each.max_timestamp_ms == whole.max_timestamp_ms and each.codec == codec for each in found)
    assert max(each.unpacked_bytes for each in found) < 2 * PART + max(map(len, filter(None, VALUES)))


@pytest.mark.parametrize("offset", [51, 750, 751, 1000, 2048, 2049])
def test_slices_begin_at_the_fetched_offset(offset: int) -> None:
    found = slices(large(Codec.GZIP), offset)
    assert [each.offset for each in records_of(found)] == list(range(offset, 2050))


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_a_batch_above_max_unpacked_bytes_is_read_in_slices(codec: Codec) -> None:
    """As kafka-producer-perf-test writes them: 30,897 records of 50 kB in 250 kB of zstd."""
    data = encode_batch(2, codec, timestamps=[1] * 300, keys=[None] * 300, values=[bytes(50_000)] * 300)
    found = slices(bytes(data), max_unpacked_bytes=PART)
    assert [len(value) for each in found for value in each.values()] == [50_000] * 300
    assert max(each.unpacked_bytes for each in found) < 2 * PART


def test_a_zstd_batch_of_javas_producer_above_max_unpacked_bytes_is_read_in_slices() -> None:
    """The frames have no content size."""
    packer = zstandard.ZstdCompressor(write_content_size=False)
    packed = packer.compress(b"".join(record(row, 0, None, bytes(50_000)) for row in range(300)))
    data = batch_of(packed, attributes=Codec.ZSTD, count=300)
    assert sum(len(each) for each in slices(data, max_unpacked_bytes=PART)) == 300


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_a_record_above_max_unpacked_bytes_is_refused_by_that_name(codec: Codec) -> None:
    values = [b"small", bytes(6 * PART), b"after"]
    data = assign_offsets(encode_batch(2, codec, timestamps=[1] * 3, keys=[None] * 3, values=values), 7).data
    with pytest.raises(RecordTooLargeError, match="larger than max_unpacked_bytes=1048576; raise") as caught:
        slices(data, max_unpacked_bytes=PART)
    error = caught.value
    assert (error.topic, error.partition, error.offset, error.next_offset) == ("t", 3, 7, 10)
    assert "corrupt" not in str(error).lower()
    assert records_of(slices(data, max_unpacked_bytes=7 * PART)) == read(data)[0].records()


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_each_record_above_max_unpacked_bytes_is_refused_wherever_it_lies(codec: Codec) -> None:
    """Records smaller than a part were refused only where a part cut them off."""
    values = [b"small"] * 5 + [bytes(50_000)] + [b"small"] * 5
    data = assign_offsets(encode_batch(2, codec, timestamps=[1] * 11, keys=[None] * 11, values=values), 7).data
    batches = read_batches(data, topic="t", partition=3, fetch_offset=0, in_slices=True, max_unpacked_bytes=49_000)
    found: list[Record] = []
    with pytest.raises(RecordTooLargeError, match="a record of 50011 bytes is larger than max_unpacked_bytes=49000"):
        found.extend(record for batch in batches for record in batch)
    assert [each.offset for each in found] == list(range(7, 12))


@pytest.mark.parametrize(("magic", "codec"), [(0, Codec.GZIP), (1, Codec.NONE)])
def test_many_messages_are_sliced(magic: int, codec: Codec) -> None:
    count = MOST_MESSAGES + 5
    data = bytes(encode_batch(magic, codec, timestamps=[5] * count, keys=[None] * count, values=[b"v"] * count))
    found = slices(data, 3)
    assert [(each.base_offset, each.next_offset, len(each)) for each in found] == [
        (3, MOST_MESSAGES + 3, MOST_MESSAGES),
        (MOST_MESSAGES + 3, count, 2),
    ]
    assert [each.offset for each in records_of(found)] == list(range(3, count))


def test_the_last_slice_of_a_compacted_batch_ends_at_its_last_offset() -> None:
    rows = b"".join(record(delta, 0, None, bytes(PART)) for delta in (0, 4, 9, 20, 21))
    data = batch(rows, count=5, base_offset=100, last_delta=30)
    found = slices(data)
    assert [each.offset for each in records_of(found)] == [100, 104, 109, 120, 121]
    assert found[-1].next_offset == 131
    assert all(before.next_offset <= after.base_offset for before, after in pairwise(found))
    assert [each.next_offset for each in slices(data, 125)] == [131]


def full(*deltas: int) -> bytes:
    return b"".join(record(delta, 0, None, bytes(PART)) for delta in deltas)


DAMAGE = {
    "bytes after the records": (full(0, 1, 2, 3, 4) + bytes(3), 5),
    "records after the last offset": (full(0, 1, 2, 3, 4, 4), 5),
    "a record is missing": (full(0, 1, 2, 3, 4), 6),
    "the last record is cut off": (full(0, 1, 2, 3, 4)[:-1], 5),
    "a negative count": (full(0, 1, 2, 3, 4), -1),
    "no records": (full(0, 1, 2, 3, 4), 0),
    "a negative length": (full(0, 1, 2, 3) + varint(-3) + full(4), 6),
    "an empty record": (full(0, 1, 2, 3) + bytes(20) + full(4), 25),
    "a length that is not a varint": (full(0, 1, 2, 3) + b"\xff" * 10 + full(4), 6),
    "an unterminated length": (full(0, 1, 2, 3) + b"\xff" * 3, 5),
    "zeros": (bytes(5 * PART), 700_000),
    "an offset before the batch": (full(0, 1, 2, 3, -1), 5),
    "an offset after the batch": (full(0, 1, 2, 3, 5), 5),
    "an offset that repeats": (full(0, 1, 2, 2, 4), 5),
    "an offset that goes back": (full(0, 1, 3, 2, 4), 5),
}


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_in_a_slice_is_corrupt(kind: str, codec: Codec) -> None:
    body, count = DAMAGE[kind]
    data = batch(body, codec, count=count, base_offset=10, last_delta=4)
    found = read_batches(data, topic="t", partition=3, fetch_offset=0, in_slices=True)
    good: list[Record] = []
    with pytest.raises(CorruptRecordError) as caught:
        good.extend(each for piece in found for each in piece)
    assert len(good) < 5  # otherwise the reader would not see the error
    error = caught.value
    assert (error.topic, error.partition, error.next_offset) == ("t", 3, 15)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.binary(max_size=400), min_size=1, max_size=30), st.data())
def test_records_divided_between_parts_are_joined(values: list[bytes], data: st.DataObject) -> None:
    body = b"".join(record(delta, 0, None, value) for delta, value in enumerate(values))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=20)))
    bounds = list(zip([0, *cuts], [*cuts, len(body)], strict=True))

    def parts() -> Iterator[Stretch]:
        for start, end in bounds:
            yield b"#" + body[start:end] + b"#", 1, 1 + end - start

    header = {
        "topic": "t", "partition": 0, "base_offset": 0, "last_offset": len(values) - 1, "leader_epoch": 0,
        "timestamp_type": TimestampType.CREATE_TIME,
    }  # fmt: skip
    records = BatchRecords(b"", 0, 0, 0, base_timestamp=0, fixed_timestamp=None, **header)
    empty = FetchedBatch(records, magic=2, codec=Codec.NONE, max_timestamp_ms=0, **header)
    found = list(batch_slices(empty, records, parts(), len(values), 0, NO_LIMIT))
    assert [value for each in found for value in each.values()] == values
    assert [each.offset for each in records_of(found)] == list(range(len(values)))


def test_batches_up_to_the_bound_stay_whole() -> None:
    data = encode_batch(2, Codec.ZSTD, timestamps=[1] * 4, keys=[None] * 4, values=[bytes(PART - 20)] * 4)
    (found,) = slices(bytes(data))
    assert found.unpacked_bytes <= LARGEST_WHOLE


@pytest.mark.parametrize("has_numpy", [True, False])
def test_a_large_batch_of_small_records_takes_little_memory(has_numpy: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """9.5 million in one gzip batch took 489 MiB at once with numpy, and 180 without."""
    if not has_numpy:
        monkeypatch.setattr("pykafka08.records.batch_records._numpy_decoder", lambda: None)
    deltas = np.arange(8192, 8192 + 72_000) << 1  # as varints of three bytes
    rows = np.zeros((len(deltas), 62), dtype=np.uint8)
    rows[:, 0] = 61 << 1
    rows[:, 3], rows[:, 4], rows[:, 5] = deltas & 127 | 128, deltas >> 7 & 127 | 128, deltas >> 14
    rows[:, 6], rows[:, 7] = 1, 53 << 1  # no key, a value of zeros
    data = batch(rows.tobytes(), Codec.GZIP, count=len(rows), last_delta=1 << 20)
    prepare()
    tracemalloc.start()
    try:
        batches = read_batches(data, topic="t", partition=3, fetch_offset=0, in_slices=True)
        assert sum(len(chunk) for each in batches for chunk in each.chunks()) == len(rows)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 7 * PART
