"""Numbering and converting sets, as brokers do."""

from __future__ import annotations

import struct

import pytest

from pykafka08.errors import CorruptRecordError, UnsupportedVersionError
from pykafka08.records.compression import Codec, compress
from pykafka08.records.reader import FetchedBatch
from pykafka08.records.record import TimestampType
from pykafka08.records.rewrite import assign_offsets, convert
from tests.records.samples import (
    FORMATS,
    HEADERS,
    KEYS,
    TIMESTAMPS,
    VALUES,
    batch,
    encode,
    entry_bounds,
    message,
    read,
    record,
)


def contents(batches: list[FetchedBatch]) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(item.offset, item.key, item.value) for found in batches for item in found]


EXPECTED = [(100 + row, KEYS[row], VALUES[row]) for row in range(5)]


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
def test_a_produced_set_is_numbered(magic: int, codec: Codec) -> None:
    produced = encode(magic, codec)
    stored = assign_offsets(bytearray(produced), 100, leader_epoch=9)
    assert stored.count == 5
    assert stored.max_timestamp == (max(TIMESTAMPS) if magic else -1)
    batches = read(stored.data)
    assert contents(batches) == EXPECTED
    assert batches[0].leader_epoch == (9 if magic == 2 else -1)
    if magic or not codec:
        # Nothing is packed again: but for the numbers the bytes are the same.
        assert len(stored.data) == len(produced)
        if magic == 2:
            assert stored.data[17:] == produced[17:]


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
def test_append_time_is_written_where_the_format_has_it(magic: int, codec: Codec) -> None:
    stored = assign_offsets(encode(magic, codec), 100, log_append_time_ms=123_456)
    batches = read(stored.data)
    assert contents(batches) == EXPECTED
    (found,) = batches
    if magic == 0:
        assert (stored.max_timestamp, found.timestamp_type) == (-1, TimestampType.NONE)
    else:
        assert (stored.max_timestamp, found.timestamp_type) == (123_456, TimestampType.LOG_APPEND_TIME)
        assert {item.timestamp_ms for item in found} == {123_456}


def test_several_entries_are_numbered_one_after_another() -> None:
    data = encode(2) + encode(2, Codec.GZIP) + encode(1) + encode(0, Codec.SNAPPY, count=2) + encode(1, Codec.LZ4)
    stored = assign_offsets(data, 10)
    assert stored.count == 22
    assert [item[0] for item in contents(read(stored.data))] == list(range(10, 32))


@pytest.mark.parametrize("numbers", [(-1, -1, -1), (0, 0, 0), (5, 4, 3), (7, 9, 12)])
@pytest.mark.parametrize("magic", [0, 1])
def test_offsets_that_clients_wrote_do_not_matter(magic: int, numbers: tuple[int, ...]) -> None:
    plain = b"".join(message(magic, None, b"%d" % place, offset=number) for place, number in enumerate(numbers))
    expected = [(100, None, b"0"), (101, None, b"1"), (102, None, b"2")]
    assert contents(read(assign_offsets(plain, 100).data)) == expected
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4):
        packed = message(magic, None, compress(codec, plain, magic=magic), offset=-1, attributes=int(codec))
        assert contents(read(assign_offsets(packed, 100).data)) == expected


def test_a_wrapper_of_magic_0_is_packed_again_as_one_with_absolute_offsets() -> None:
    stored = assign_offsets(encode(0, Codec.LZ4), 100).data
    assert len(entry_bounds(stored)) == 1
    assert struct.unpack_from(">q", stored) == (104,)
    assert stored[26:33] == b"\x04\x22\x4d\x18\x60\x40\x1a"


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
def test_damaged_and_cut_off_sets_are_refused(magic: int, codec: Codec) -> None:
    produced = encode(magic, codec)
    damaged = bytearray(produced)
    damaged[-1] ^= 1
    for data in (bytes(damaged), produced[:-1], produced + produced[:20], b"", b"\x00" * 8):
        with pytest.raises(CorruptRecordError):
            assign_offsets(data, 100)


def test_a_produced_batch_must_number_its_records_without_gaps() -> None:
    with pytest.raises(CorruptRecordError, match="its offsets say otherwise"):
        assign_offsets(batch([record(0, 0, None, b"a"), record(4, 0, None, b"b")], last_delta=4), 0)
    with pytest.raises(CorruptRecordError, match="its offsets say otherwise"):
        assign_offsets(batch([], last_delta=0), 0)


@pytest.mark.parametrize(("magic", "codec"), [form for form in FORMATS if form[1] != Codec.ZSTD])
@pytest.mark.parametrize("to_magic", [0, 1, 2])
def test_sets_are_converted_both_ways(magic: int, codec: Codec, to_magic: int) -> None:
    stored = assign_offsets(encode(magic, codec), 100, leader_epoch=9).data
    converted = convert(stored, to_magic)
    batches = read(converted)
    assert contents(batches) == EXPECTED
    assert {(found.magic, found.codec) for found in batches} == {(to_magic, codec)}
    items = [item for found in batches for item in found]
    assert [item.timestamp_ms for item in items] == (list(TIMESTAMPS) if magic and to_magic else [-1] * 5)
    if to_magic == magic:
        assert converted == stored
    if to_magic == magic == 2:
        assert [item.headers for item in items] == list(HEADERS)


def test_gaps_and_append_time_survive_a_conversion() -> None:
    rows = [record(1, 0, None, b"a"), record(5, 0, b"k", None)]
    for codec in (Codec.NONE, Codec.GZIP):
        stored = batch(compress(codec, b"".join(rows)), base_offset=50, count=2, last_delta=9, attributes=8 | codec)
        for to_magic in (0, 1):
            (found,) = read(convert(stored, to_magic))
            assert contents([found]) == [(51, None, b"a"), (55, b"k", None)]
            if to_magic:
                assert found.timestamp_type == TimestampType.LOG_APPEND_TIME
                assert {item.timestamp_ms for item in found} == {2000}
                again = read(convert(convert(stored, to_magic), 2))
                assert contents(again) == contents([found])
                assert again[0].timestamp_type == TimestampType.LOG_APPEND_TIME


def test_what_old_formats_cannot_say_is_left_out() -> None:
    control = batch([record(0, 0, bytes(4), b"")], attributes=0x30, producer=(4, 0, -1))
    emptied = batch([], base_offset=1, last_delta=3)
    kept = batch([record(0, 0, None, b"v")], base_offset=4, attributes=0x10, producer=(4, 0, 7))
    assert contents(read(convert(control + emptied + kept, 1))) == [(4, None, b"v")]
    assert convert(control + emptied, 0) == b""
    assert convert(control + emptied + kept, 2) == control + emptied + kept


def test_zstd_stays_in_magic_2() -> None:
    with pytest.raises(UnsupportedVersionError, match="zstd"):
        convert(encode(2, Codec.ZSTD), 1)
    assert convert(encode(2, Codec.ZSTD), 2) == encode(2, Codec.ZSTD)


def test_a_set_that_no_honest_client_makes_is_damage_not_our_fault() -> None:
    far = message(1, None, b"a", offset=0) + message(1, None, b"b", offset=1 << 60)
    with pytest.raises(CorruptRecordError, match="cannot be written in magic 2"):
        convert(far, 2)
