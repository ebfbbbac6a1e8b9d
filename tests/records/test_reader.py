"""Finding batches in the bytes of a Fetch answer, in all three formats and in mixes of them."""

from __future__ import annotations

import struct

import pytest

from pykafka08.errors import CorruptRecordError, RecordTooLargeError
from pykafka08.records.compression import Codec, compress
from pykafka08.records.reader import ControlType, first_entry_size, only_partial, read_batches
from pykafka08.records.record import Record, TimestampType
from pykafka08.records.rewrite import assign_offsets
from tests.records.samples import (
    CODECS,
    FORMATS,
    HEADERS,
    KEYS,
    TIMESTAMPS,
    VALUES,
    batch,
    encode,
    message,
    read,
    record,
)


def stored(magic: int, codec: Codec, base_offset: int, count: int = 5) -> bytes:
    return assign_offsets(encode(magic, codec, count), base_offset, leader_epoch=7).data


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_every_field_of_every_format(magic: int, codec: Codec, kind: type) -> None:
    (found,) = read_batches(kind(stored(magic, codec, 100)), topic="t", partition=3, fetch_offset=100)
    assert (found.topic, found.partition, found.magic, found.codec) == ("t", 3, magic, codec)
    assert (found.base_offset, found.last_offset, found.next_offset) == (100, 104, 105)
    assert (found.producer_id, found.producer_epoch, found.base_sequence) == (-1, -1, -1)
    assert not found.is_control
    assert not found.is_transactional
    assert found.control_type() is None
    timestamp_type = TimestampType.NONE if magic == 0 else TimestampType.CREATE_TIME
    assert found.timestamp_type == timestamp_type
    assert found.max_timestamp_ms == (-1 if magic == 0 else max(TIMESTAMPS))
    assert found.leader_epoch == (7 if magic == 2 else -1)
    expected = [
        Record(
            "t", 3, 100 + row, TIMESTAMPS[row] if magic else -1, timestamp_type, KEYS[row], VALUES[row],
            HEADERS[row] if magic == 2 else (), found.leader_epoch,
        )
        for row in range(5)
    ]  # fmt: skip
    assert found.records() == expected
    assert list(found) == expected
    assert list(found) == expected  # a batch can be read again
    assert found.values() == list(VALUES)
    assert found.keys() == list(KEYS)
    assert len(found) == 5
    of_keys_and_values = sum(len(each) for each in (*KEYS, *VALUES) if each)
    assert found.unpacked_bytes == of_keys_and_values if magic < 2 else found.unpacked_bytes > of_keys_and_values
    assert repr(found) == f"FetchedBatch(t[3] offsets 100..104, 5 records, magic {magic}, {codec.label})"


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
def test_a_set_that_starts_before_the_asked_offset(magic: int, codec: Codec) -> None:
    data = stored(magic, codec, 100, count=300)
    for fetch_offset in (0, 99, 100, 101, 163, 164, 228, 356, 399):
        (found,) = read(data, fetch_offset)
        first = max(fetch_offset, 100)
        assert [item.offset for item in found] == list(range(first, 400))
        assert len(found) == len(found.values()) == len(found.keys()) == 400 - first
        assert found.next_offset == 400
    assert read(data, 400) == []


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
def test_records_are_made_256_at_a_time(magic: int, codec: Codec) -> None:
    (found,) = read(stored(magic, codec, 0, count=600))
    assert [len(chunk) for chunk in found.chunks()] == [256, 256, 88]


def test_all_formats_in_one_buffer() -> None:
    parts, offset = [], 0
    for magic, codec in FORMATS:
        parts.append(stored(magic, codec, offset))
        offset += 5
    batches = read(b"".join(parts))
    assert [(found.magic, found.codec) for found in batches] == FORMATS
    assert [item.offset for found in batches for item in found] == list(range(offset))
    assert [item.offset for found in read(b"".join(parts), 17) for item in found] == list(range(17, offset))


def test_plain_messages_in_a_row_are_one_batch_until_their_kind_changes() -> None:
    data = b"".join(
        (
            message(0, None, b"a", offset=0),
            message(0, None, b"b", offset=1),
            message(1, None, b"c", offset=2, timestamp=10),
            message(1, None, b"d", offset=3, timestamp=30),
            message(1, None, b"e", offset=4, timestamp=20, attributes=8),
        )
    )
    batches = read(data)
    assert [found.values() for found in batches] == [[b"a", b"b"], [b"c", b"d"], [b"e"]]
    assert [found.max_timestamp_ms for found in batches] == [-1, 30, 20]
    assert [found.timestamp_type for found in batches] == [-1, 0, 1]


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
def test_a_cut_off_entry_at_the_end_is_dropped_at_every_length(magic: int, codec: Codec) -> None:
    whole = stored(magic, codec, 0, count=2)
    tail = stored(magic, codec, 2, count=1)
    for size in range(len(tail)):
        assert [item.offset for found in read(whole + tail[:size]) for item in found] == [0, 1]


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
def test_a_fetch_smaller_than_the_batch_can_be_told(magic: int, codec: Codec) -> None:
    data = stored(magic, codec, 0, count=1)
    assert not only_partial(b"")
    for size in range(1, len(data)):
        assert only_partial(data[:size])
        assert first_entry_size(memoryview(data)[:size]) == (len(data) if size >= 12 else None)
        assert read(data[:size]) == []
    assert not only_partial(data)
    assert not only_partial(data + data[:5])


def test_a_negative_size_is_damage_and_not_a_cut_off_entry() -> None:
    data = struct.pack(">qi", 5, -1) + bytes(30)
    assert not only_partial(data)
    with pytest.raises(CorruptRecordError, match="claims a size of -1 bytes"):
        read(data)


def test_gaps_that_compaction_left() -> None:
    rows = [record(1, 0, b"k", b"a"), record(5, 1, b"k", b"b"), record(6, 2, b"k", b"c")]
    data = batch(rows, base_offset=100, last_delta=99)
    for fetch_offset, offsets in ((0, [101, 105, 106]), (102, [105, 106]), (106, [106]), (107, []), (199, [])):
        (found,) = read(data, fetch_offset)
        assert [item.offset for item in found] == offsets
        assert len(found) == len(offsets)
        assert (found.base_offset, found.last_offset, found.next_offset) == (100, 199, 200)


def test_a_batch_that_compaction_emptied_still_moves_the_reader_on() -> None:
    (found,) = read(batch([], base_offset=7, last_delta=4))
    assert (len(found), found.records(), found.values(), found.keys()) == (0, [], [], [])
    assert found.next_offset == 12


def test_gaps_inside_a_wrapper() -> None:
    for magic, numbers in ((0, (20, 22, 25)), (1, (1, 3, 6))):
        inner = b"".join(message(magic, None, b"v", offset=number) for number in numbers)
        wrapper = message(magic, None, pack(inner), offset=25, attributes=int(Codec.GZIP))
        (found,) = read(wrapper)
        assert [item.offset for item in found] == [20, 22, 25]
        assert (found.base_offset, found.next_offset) == (20, 26)
        assert [item.offset for item in read(wrapper, 21)[0]] == [22, 25]


def pack(inner: bytes) -> bytes:
    return compress(Codec.GZIP, inner)


def test_append_time_replaces_the_time_of_every_record() -> None:
    (found,) = read(batch([record(0, 5, None, b"a"), record(1, 9, None, b"b")], attributes=8, max_timestamp=77))
    assert [item.timestamp_ms for item in found] == [77, 77]
    assert {item.timestamp_type for item in found} == {TimestampType.LOG_APPEND_TIME}
    inner = message(1, None, b"a", offset=0, timestamp=1) + message(1, None, b"b", offset=1, timestamp=2)
    (found,) = read(message(1, None, pack(inner), offset=9, attributes=8 | 1, timestamp=77))
    assert [(item.offset, item.timestamp_ms, item.timestamp_type) for item in found] == [(8, 77, 1), (9, 77, 1)]


def test_control_batches_say_what_they_end() -> None:
    for kind, expected in ((0, ControlType.ABORT), (1, ControlType.COMMIT), (2, None), (-1, None)):
        rows = [record(0, 0, struct.pack(">hh", 0, kind), bytes(6))]
        (found,) = read(batch(rows, attributes=0x30, producer=(9, 2, -1)))
        assert found.is_control
        assert found.is_transactional
        assert (found.producer_id, found.producer_epoch, found.base_sequence) == (9, 2, -1)
        assert found.control_type() is expected
    for key in (None, b"\x00\x00\x00"):
        (found,) = read(batch([record(0, 0, key, b"")], attributes=0x20, base_offset=4))
        with pytest.raises(CorruptRecordError, match="no type") as caught:
            found.control_type()
        assert (caught.value.offset, caught.value.next_offset) == (4, 5)


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_every_changed_byte_behind_the_checksum_is_noticed(magic: int) -> None:
    data = stored(magic, Codec.NONE, 40, count=1)
    for position in range(12, len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0x10
        if magic == 2 and position < 16:
            assert read(bytes(damaged))[0].leader_epoch != 7  # the one field that its checksum leaves out
            continue
        with pytest.raises(CorruptRecordError) as caught:
            read(bytes(damaged))
        assert (caught.value.topic, caught.value.partition, caught.value.offset) == ("t", 3, 40)


def test_checks_can_be_switched_off() -> None:
    for magic, codecs in CODECS.items():
        for codec in codecs:
            damaged = bytearray(stored(magic, codec, 0))
            damaged[17 if magic == 2 else 12] ^= 1
            with pytest.raises(CorruptRecordError, match="checksum"):
                read(bytes(damaged))
            (found,) = read(bytes(damaged), check_crcs=False)
            assert found.values() == list(VALUES)


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
def test_reading_goes_on_behind_a_damaged_batch(magic: int, codec: Codec) -> None:
    first, bad, last = (stored(magic, codec, offset, count=3) for offset in (0, 3, 6))
    damaged = bytearray(bad)
    damaged[-1] ^= 0xFF
    data = first + bytes(damaged) + last
    seen: list[int] = []
    errors: list[CorruptRecordError] = []
    offset: int | None = 0
    while offset is not None and offset < 9:
        try:
            for found in read_batches(data, topic="t", partition=3, fetch_offset=offset):
                seen += [item.offset for item in found]
                offset = found.next_offset
        except CorruptRecordError as error:
            errors.append(error)
            offset = error.next_offset
    assert [(error.topic, error.partition) for error in errors] == [("t", 3)]
    if magic == 2 or codec:
        assert seen == [0, 1, 2, 6, 7, 8]
    else:
        assert seen == [0, 1, 2, 3, 4, 6, 7, 8]  # plain messages are damaged one by one


def test_where_to_go_on_is_known_from_what_follows_even_if_the_header_lies() -> None:
    bad = bytearray(batch([record(0, 0, None, b"v")], base_offset=10))
    struct.pack_into(">i", bad, 23, 1_000_000)
    for tail, expected in ((b"", 1_000_011), (batch([record(0, 0, None, b"v")], base_offset=11), 11)):
        with pytest.raises(CorruptRecordError) as caught:
            read(bytes(bad) + tail)
        assert caught.value.next_offset == expected


def test_a_damaged_batch_below_the_asked_offset_is_nobodys_business() -> None:
    bad = bytearray(batch([record(0, 0, None, b"v")], base_offset=10))
    bad[-1] ^= 1
    (found,) = read(bytes(bad) + batch([record(0, 0, None, b"w")], base_offset=11), 11)
    assert found.values() == [b"w"]
    wrapper = message(1, None, b"no gzip at all", offset=10, attributes=1)
    assert read(wrapper, 11) == []


def test_the_limit_of_a_batch_is_the_callers() -> None:
    for magic, codecs in CODECS.items():
        for codec in codecs[1:]:
            data = stored(magic, codec, 0)
            assert len(read(data, max_unpacked_bytes=100_000)[0]) == 5
            with pytest.raises(RecordTooLargeError, match="max_unpacked_bytes=1000") as caught:
                read(data, max_unpacked_bytes=1000)
            assert caught.value.next_offset == 5


def test_the_buffer_is_let_go_once_reading_has_begun() -> None:
    frame = bytearray(encode(2))
    batches = read_batches(memoryview(frame), topic="t", partition=0, fetch_offset=0)
    assert len(next(batches)) == 5
    frame.clear()  # BufferError if a view were still held
    assert next(batches, None) is None
