"""The decoders of magic 0 and 1 against a simple reading of the same bytes, whole and damaged."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykafka08.errors import CorruptRecordError
from pykafka08.records import message_set, messages_loop, messages_native, messages_stride
from pykafka08.records.columns import Columns
from pykafka08.records.compression import Codec, compress
from pykafka08.records.message_set import EVERY_OFFSET
from pykafka08.records.reader import read_batches
from tests.records import message_reference
from tests.records.message_reference import Row
from tests.records.samples import entry_bounds, message, put_right, read

FIELD = st.none() | st.binary(max_size=40) | st.just(b"x" * 3000)
ROWS = st.lists(
    st.tuples(st.integers(0, 1 << 62), st.integers(-(1 << 63), (1 << 63) - 1), FIELD, FIELD), min_size=1, max_size=20
)
HOSTILE = st.lists(
    st.tuples(st.integers(0, 400), st.sampled_from([0, 1, 2, 7, 8, 127, 128, 254, 255])), max_size=4
)  # fmt: skip


def rows_of(columns: Columns) -> list[Row]:
    fields = (columns.offsets.tolist(), columns.timestamps_ms.tolist(), columns.keys(), columns.values())
    native = [
        messages_native.read_fields(columns.data, edges, nulls, len(columns))
        for edges, nulls in ((columns.key_edges, columns.key_nulls), (columns.value_edges, columns.value_nulls))
    ]
    assert native == [fields[2], fields[3]]
    for column, edges, nulls in (
        (2, columns.key_edges, columns.key_nulls),
        (3, columns.value_edges, columns.value_nulls),
    ):
        none_at = fields[column].count(None)
        assert (edges is None, nulls is None) == (none_at == len(columns), none_at in (0, len(columns)))
    records = messages_native.read_records(columns, 0, len(columns), "t", 3, 0)
    rows = list(zip(*fields, strict=True))
    assert [(each.offset, each.timestamp_ms, each.key, each.value) for each in records] == rows
    return rows


def outcome(decoder: object, data: bytes, fetch_offset: int, is_inner: bool) -> tuple[list[Row], int] | int:
    try:
        columns, after = decoder.read_run(data, 0, len(data), fetch_offset, True, is_inner)  # type: ignore[attr-defined]
    except CorruptRecordError as error:
        if error.offset is None or error.next_offset != error.offset + 1:
            raise
        return error.offset
    return rows_of(columns), after


def check(data: bytes, fetch_offset: int, is_inner: bool) -> None:
    expected = message_reference.read_run(data, 0, len(data), fetch_offset, is_inner)
    for decoder in (messages_loop, messages_native):
        assert outcome(decoder, data, fetch_offset, is_inner) == expected
    found = messages_stride.read_run(data, 0, len(data), fetch_offset, True, is_inner)
    if found is not None:
        assert (rows_of(found[0]), found[1]) == expected


@settings(max_examples=150, deadline=None)
@given(
    magic=st.integers(0, 1),
    rows=ROWS,
    attributes=st.sampled_from([0, 8, 0x10]),
    others=st.sampled_from([0, 8, 1]),
    cut=st.integers(0, 30),
    fetch_offset=st.sampled_from([EVERY_OFFSET, 0, 1 << 60]),
    is_inner=st.booleans(),
)
def test_any_run(
    magic: int, rows: list[Row], attributes: int, others: int, cut: int, fetch_offset: int, is_inner: bool
) -> None:
    data = b"".join(
        message(magic, row[2], row[3], offset=row[0], timestamp=row[1], attributes=attributes if number < 9 else others)
        for number, row in enumerate(rows)
    )
    first_end = entry_bounds(data)[0][1]
    check(data[: max(first_end, len(data) - cut)], fetch_offset, is_inner)


@settings(max_examples=400, deadline=None)
@given(
    magic=st.integers(0, 1),
    fields=st.sampled_from([(None, b"value"), (b"k", b"value"), (b"", b""), (b"key", None), (None, None)]),
    places=HOSTILE,
    cut=st.integers(0, 40),
    repaired=st.booleans(),
    is_inner=st.booleans(),
)
def test_hostile_bytes(
    magic: int,
    fields: tuple[bytes | None, bytes | None],
    places: list[tuple[int, int]],
    cut: int,
    repaired: bool,
    is_inner: bool,
) -> None:
    data = bytearray(b"".join(message(magic, *fields, offset=number) for number in range(10)))
    for place, byte in places:
        if place < len(data):
            data[place] = byte
    data[16] = magic
    data[17] &= 0xF8  # what has a codec is no run, which callers know
    if repaired:
        put_right(data)
    ((_, first_end), *_) = entry_bounds(data) or [(0, 0)]
    if 26 + 8 * magic <= first_end:
        check(bytes(data[: max(first_end, len(data) - cut)]), EVERY_OFFSET, is_inner)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("key", [None, b"", b"key"])
@pytest.mark.parametrize("value", [None, b"", b"value"])
@pytest.mark.parametrize("cut", [0, 1, 25, 30])
def test_messages_of_one_length_are_read_together(magic: int, key: bytes | None, value: bytes | None, cut: int) -> None:
    data = b"".join(message(magic, key, value, offset=9 + number, timestamp=number) for number in range(300))
    data = data[: len(data) - cut]
    found = messages_stride.read_run(data, 0, len(data), 9, True, False)
    assert found is not None
    count = len(entry_bounds(data))
    assert rows_of(found[0]) == [(9 + row, row if magic else -1, key, value) for row in range(count)]
    check(data, 9, False)
    (batch,) = read(data, 9)
    assert [(each.offset, each.key, each.value) for each in batch] == [(9 + row, key, value) for row in range(count)]
    assert batch.unpacked_bytes == count * (len(key or b"") + len(value or b""))


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("place", [8, 11, 12, 16, 17, 18, 30, 45])
def test_one_message_among_equals_that_is_not_alike(magic: int, place: int) -> None:
    size = len(message(magic, None, b"v" * 30))
    for damaged in (1, 77, 299):
        data = bytearray(b"".join(message(magic, None, b"v" * 30, offset=number) for number in range(300)))
        data[damaged * size + place] ^= 1
        check(bytes(data), EVERY_OFFSET, False)
        check(bytes(put_right(data)), EVERY_OFFSET, False)
        batches = read_batches(bytes(data), topic="t", partition=3, fetch_offset=0)
        assert len(next(batches)) >= damaged


@pytest.mark.parametrize("magic", [0, 1])
def test_wrapper_that_is_asked_from_its_middle(magic: int) -> None:
    inner = b"".join(message(magic, b"k", b"v%d" % (row % 10), offset=row, timestamp=row) for row in range(700))
    data = message(magic, None, compress(Codec.GZIP, inner, magic=magic), attributes=1, offset=699)
    (batch,) = read(data, 400)
    assert [each.offset for each in batch] == list(range(400, 700))
    assert batch.columns().offsets.tolist() == list(range(400, 700))
    assert (batch.base_offset, batch.last_offset, batch.max_timestamp_ms) == (0, 699, 699 if magic else -1)
    assert batch.values() == [b"v%d" % (row % 10) for row in range(400, 700)]
    assert batch.keys() == [b"k"] * 300


def test_offsets_in_a_wrapper_that_fit_no_64_bits() -> None:
    inner = message(1, None, b"a", offset=(1 << 63) - 1) + message(1, None, b"b", offset=0)
    data = message(1, None, compress(Codec.GZIP, inner, magic=1), attributes=1, offset=44)
    with pytest.raises(CorruptRecordError, match="64 bits") as caught:
        read(data)
    assert (caught.value.offset, caught.value.next_offset) == (44, 45)


def test_few_messages_are_not_worth_a_look() -> None:
    data = b"".join(message(0, None, b"v") for _ in range(49))
    assert not message_set._has_stride(data, 0, len(data))
    data += message(0, None, b"v")
    assert message_set._has_stride(data, 0, len(data))
    assert not message_set._has_stride(data, 1, len(data))
