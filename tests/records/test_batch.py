"""Magic 2: what the unrolled loops do at every border of the varints, and with batches made by hand."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykafka08.errors import CorruptRecordError
from pykafka08.records.batch import HEADER_SIZE
from pykafka08.records.packed import CHUNK
from pykafka08.records.reader import FetchedBatch
from tests.records.samples import batch, read, record, varint

#: Values around the points where a varint grows by a byte.
BORDERS = [0, 1, 63, 64, 65, 8191, 8192, 8193, 1 << 20, (1 << 20) - 1, 1 << 27, (1 << 31) - 1]


def only(data: bytes, fetch_offset: int = 0) -> FetchedBatch:
    (found,) = read(data, fetch_offset)
    return found


@pytest.mark.parametrize("size", [size for size in BORDERS if size < 1 << 21])
def test_sizes_at_the_borders_of_varints(size: int) -> None:
    content = b"x" * size
    found = only(batch([record(0, 0, content, None), record(1, 0, None, content), record(2, 0, content, content)]))
    assert found.keys() == [content, None, content]
    assert found.values() == [None, content, content]
    assert [(item.key, item.value) for item in found] == [(content, None), (None, content), (content, content)]


@pytest.mark.parametrize("delta", BORDERS)
def test_offsets_at_the_borders_of_varints(delta: int) -> None:
    data = batch([record(delta, 0, b"k", b"v")], base_offset=5, last_delta=delta)
    found = only(data)
    assert found.records()[0].offset == found.last_offset == 5 + delta
    assert found.values() == [b"v"]
    assert len(only(data, 5 + delta)) == 1


@pytest.mark.parametrize("delta", [*BORDERS, 1 << 40, *(-delta for delta in BORDERS), -(1 << 40), (1 << 62) - 1])
def test_timestamps_at_the_borders_of_varints(delta: int) -> None:
    data = batch([record(0, 0, b"k", b"v"), record(1, delta, b"k", b"w")], base_timestamp=1_500_000_000_000)
    assert [item.timestamp_ms for item in only(data)] == [1_500_000_000_000, 1_500_000_000_000 + delta]
    assert only(data).values() == [b"v", b"w"]
    assert only(data, 1).values() == [b"w"]


def test_varints_longer_than_they_need_to_be_are_read() -> None:
    # Java and librdkafka accept them; each stands for the length of the key, 1.
    for long in (b"\x82\x00", b"\x82\x80\x00", b"\x82\x80\x80\x80\x00"):
        body = b"\x00\x00\x00" + long + b"k" + varint(1) + b"v" + b"\x00"
        found = only(batch([varint(len(body)) + body]))
        assert (found.keys(), found.values()) == ([b"k"], [b"v"])


@pytest.mark.parametrize("count", [1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK])
def test_counts_around_the_size_of_a_chunk(count: int) -> None:
    found = only(batch([record(row, row, None, b"%d" % row) for row in range(count)]))
    assert [item.value for item in found] == found.values() == [b"%d" % row for row in range(count)]
    assert [item.offset for item in found] == list(range(count))


GOOD = record(0, 0, b"key", b"value")
BROKEN_BODIES = {
    "length says more": (b"\x1c" + GOOD[1:] + b"\x00", 1),
    "length says less": (bytes([GOOD[0] - 2]) + GOOD[1:], 1),
    "length is negative": (bytes([GOOD[0] - 1]) + GOOD[1:], 1),
    "length is no zig-zag": (bytes([GOOD[0] // 2]) + GOOD[1:], 1),
    "length of 6 bytes": (b"\x98\x80\x80\x80\x80\x00" + GOOD[1:], 1),
    "length runs past the end": (b"\xfe\xff\x07" + GOOD[1:], 1),
    "length of 2 GiB": (b"\xfe\xff\xff\xff\x0f" + GOOD[1:], 1),
    "key length is -2": (b"\x0e\x00\x00\x00\x03\x02v\x00\x00", 1),
    "key length is -2000": (b"\x10\x00\x00\x00\x9f\x1f\x02v\x00\x00", 1),
    "key runs past the end": (b"\x0e\x00\x00\x00\x7e\x02vv\x00", 1),
    "key length cut off": (b"\x0e\x00\x00\x00\xff\xff\xff\xff", 1),
    "value length is -2": (b"\x0e\x00\x00\x00\x01\x03\x00\x00", 1),
    "value runs past the end": (b"\x0e\x00\x00\x00\x01\x7e\x00\x00", 1),
    "value of 1 GiB": (b"\x14\x00\x00\x00\x01\x80\x80\x80\x80\x08\x00", 1),
    "no header count": (b"\x0c\x00\x00\x00\x01\x02v", 1),
    "bytes after a header count of 0": (b"\x10\x00\x00\x00\x01\x02v\x00\x00", 1),
    "timestamp delta of 11 bytes": (b"\x20\x00" + b"\x80" * 10 + b"\x00\x00\x01\x02v\x00", 1),
    "offset delta of 6 bytes": (b"\x18\x00\x00" + b"\x80" * 5 + b"\x00\x01\x02v\x00\x00", 1),
    "one record too many": (GOOD + record(1, 0, None, b"v"), 1),
    "bytes after the last record": (GOOD + b"\x00", 1),
    "a record below the batch": (record(-1, 0, b"key", b"value"), 1),
    "a record above the batch": (record(1, 0, b"key", b"value"), 1),
    "a record far above the batch": (record(1 << 30, 0, b"key", b"value"), 1),
}


@pytest.mark.parametrize("name", BROKEN_BODIES)
def test_damage_behind_a_right_checksum_shows_when_records_are_made(name: str) -> None:
    body, count = BROKEN_BODIES[name]
    found = only(batch(body, base_offset=50, count=count, last_delta=0))
    for make in (found.records, found.keys, lambda: list(found)):
        with pytest.raises(CorruptRecordError) as caught:
            make()
        error = caught.value
        assert (error.topic, error.partition, error.offset, error.next_offset) == ("t", 3, 50, 51)
    with pytest.raises(CorruptRecordError):
        found.values()


@pytest.mark.parametrize("count", [-1, 2, 1 << 20, (1 << 31) - 1, -(1 << 31)])
def test_a_count_that_lies(count: int) -> None:
    data = batch(GOOD, count=count, last_delta=max(count - 1, 0))
    if count == 2:
        with pytest.raises(CorruptRecordError):
            only(data).records()
    else:
        with pytest.raises(CorruptRecordError, match=f"claims {count} records"):
            read(data)


def test_records_before_the_damage_are_not_lost() -> None:
    rows = [record(row, 0, None, b"v") for row in range(2 * CHUNK)]
    rows[CHUNK + 5] = b"\x03" + rows[CHUNK + 5][1:]
    chunks = only(batch(rows)).chunks()
    assert len(next(chunks)) == CHUNK
    with pytest.raises(CorruptRecordError):
        next(chunks)


def test_damage_below_the_asked_offset_is_an_error_as_well() -> None:
    rows = [record(row, 0, None, b"v") for row in range(4)]
    for body in (b"\x03" + rows[1][1:], b"\xfe\xff\xff\xff\x0f" + rows[1][1:], b"\xff" * 20):
        with pytest.raises(CorruptRecordError):
            read(batch([rows[0], body, *rows[2:]]), 3)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"last_delta": -1}, "last offset delta -1"),
        ({"base_offset": (1 << 63) - 1}, "offset 9223372036854775807"),
        ({"base_offset": (1 << 63) - 2}, "last offset delta 1"),
        ({"base_offset": -1}, "offset -1"),
        ({"base_offset": -(1 << 63)}, "offset -9223372036854775808"),
        ({"attributes": 5}, "codec 5"),
        ({"attributes": 7}, "codec 7"),
        ({"attributes": 1}, "gzip"),
        ({"attributes": 2}, "snappy"),
        ({"attributes": 3}, "lz4"),
        ({"attributes": 4}, "zstd"),
    ],
)
def test_headers_that_cannot_be(change: dict[str, int], text: str) -> None:
    rows = [GOOD, record(1, 0, None, b"v")]
    with pytest.raises(CorruptRecordError, match=text):
        read(batch(rows, **change))  # type: ignore[arg-type]


def test_timestamps_and_offsets_that_leave_64_bits() -> None:
    rows = [record(0, 1 << 40, None, b"v")]
    with pytest.raises(CorruptRecordError, match="64 bits"):
        only(batch(rows, base_timestamp=(1 << 63) - 5)).records()


@pytest.mark.parametrize("size", [0, 1, 4, HEADER_SIZE - 13])
def test_a_size_too_small_for_a_header(size: int) -> None:
    data = bytearray(batch([GOOD]))
    struct.pack_into(">i", data, 8, size)
    with pytest.raises(CorruptRecordError, match=f"size of {size} bytes"):
        read(bytes(data))


@pytest.mark.parametrize("magic", [3, 127, -1, -128])
def test_unknown_magic(magic: int) -> None:
    data = bytearray(batch([GOOD], base_offset=6))
    struct.pack_into(">b", data, 16, magic)
    with pytest.raises(CorruptRecordError, match=f"magic {magic} is unknown") as caught:
        read(bytes(data))
    assert caught.value.offset == 6


ROWS = st.lists(
    st.tuples(
        st.integers(0, 5000),
        st.integers(-(1 << 41), 1 << 41),
        st.none() | st.binary(max_size=200),
        st.none() | st.binary(max_size=200),
    ),
    min_size=1,
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(rows=ROWS, base_offset=st.integers(0, 1 << 62), skip=st.integers(0, 40), extra=st.integers(0, 100))
def test_any_batch_made_by_hand(
    rows: list[tuple[int, int, bytes | None, bytes | None]], base_offset: int, skip: int, extra: int
) -> None:
    deltas = []
    for step, *_ in rows:
        deltas.append(deltas[-1] + 1 + step if deltas else step)
    data = batch(
        [record(delta, row[1], row[2], row[3]) for delta, row in zip(deltas, rows, strict=True)],
        base_offset=base_offset,
        last_delta=deltas[-1] + extra,
        base_timestamp=0,
    )
    skip = min(skip, len(rows) - 1)
    found = only(data, base_offset + deltas[skip])
    expected = list(zip(deltas, rows, strict=True))[skip:]
    assert len(found) == len(expected)
    assert found.next_offset == base_offset + deltas[-1] + extra + 1
    assert [(item.offset - base_offset, item.timestamp_ms, item.key, item.value) for item in found] == [
        (delta, row[1], row[2], row[3]) for delta, row in expected
    ]
    assert found.values() == [row[3] for _, row in expected]
