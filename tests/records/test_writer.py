"""Columns to sets of every format, and the sizes that a producer reckons with."""

from __future__ import annotations

import struct

import pytest
from aiokafka.record.memory_records import MemoryRecords
from hypothesis import given, settings
from hypothesis import strategies as st

from pykafka08.errors import LocalProtocolError, UnsupportedVersionError
from pykafka08.records import batch_packing
from pykafka08.records.compression import Codec
from pykafka08.records.record import Headers
from pykafka08.records.writer import batch_overhead, encode_batch, record_size, set_producer_state
from tests.records.samples import FORMATS, batch, encode, read, record, varint

Row = tuple[int, bytes | None, bytes | None, Headers]

HEADER_LISTS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3).map(tuple)
ROWS = st.lists(
    st.tuples(
        st.integers(-1, 1 << 42), st.none() | st.binary(max_size=80), st.none() | st.binary(max_size=80), HEADER_LISTS
    ),
    min_size=1,
    max_size=30,
)


def write(magic: int, codec: Codec, rows: list[Row]) -> bytes:
    timestamps, keys, values, headers = (list(column) for column in zip(*rows, strict=True))
    return bytes(
        encode_batch(
            magic, codec, timestamps=timestamps, keys=keys, values=values, headers=headers if magic == 2 else None
        )
    )


@settings(max_examples=200, deadline=None)
@given(rows=ROWS, form=st.sampled_from(FORMATS))
def test_what_is_written_is_read_back(rows: list[Row], form: tuple[int, Codec]) -> None:
    magic, codec = form
    found = [item for entry in read(write(magic, codec, rows)) for item in entry]
    assert [item.offset for item in found] == list(range(len(rows)))
    assert [(item.key, item.value) for item in found] == [row[1:3] for row in rows]
    if magic:
        assert [item.timestamp_ms for item in found] == [row[0] for row in rows]
    if magic == 2:
        assert [item.headers for item in found] == [row[3] for row in rows]


#: aiokafka reads no lz4 in magic 0; brokers 0.8.2 and 0.9 are the judges of that.
READ_BY_AIOKAFKA = [form for form in FORMATS if form != (0, Codec.LZ4)]


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, form=st.sampled_from(READ_BY_AIOKAFKA))
def test_what_is_written_is_read_by_another_client(rows: list[Row], form: tuple[int, Codec]) -> None:
    magic, codec = form
    records = MemoryRecords(write(magic, codec, rows))
    found = []
    while (entry := records.next_batch()) is not None:
        assert entry.validate_crc()
        found += list(entry)
    assert [(item.offset, item.key, item.value) for item in found] == [
        (place, *row[1:3]) for place, row in enumerate(rows)
    ]
    if magic == 2:
        assert [tuple(item.headers) for item in found] == [row[3] for row in rows]


@settings(max_examples=100, deadline=None)
@given(rows=ROWS, form=st.sampled_from([(magic, Codec.NONE) for magic in (0, 1, 2)]))
def test_sizes_are_never_below_what_is_written(rows: list[Row], form: tuple[int, Codec]) -> None:
    magic, codec = form
    bound = batch_overhead(magic)
    for _, key, value, headers in rows:
        bound += record_size(magic, key, value, headers if magic == 2 else ())
    assert len(write(magic, codec, rows)) <= bound


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_sizes_are_not_far_above_it(magic: int) -> None:
    assert batch_overhead(magic) == (26, 34, 61)[magic]
    assert record_size(magic, b"k" * 100, b"v" * 1000) <= 1100 + 40
    assert record_size(2, None, None, (("é", b"1234"),)) == record_size(2, None, None) + 8


def test_batches_are_the_bytes_that_the_format_says() -> None:
    rows: list[Row] = [
        (1000, None, b"a", ()), (1003, b"k", None, (("h", b"x"), ("g", None))), (999, b"", b"v" * 70, ()),
        (9192, b"K" * 9000, b"", ()), (1 << 41, None, b"w" * 9000, ()),
    ]  # fmt: skip
    by_hand = batch(
        [
            record(0, 0, None, b"a"),
            record(1, 3, b"k", None, b"\x04\x02h\x02x\x02g\x01"),
            record(2, -1, b"", b"v" * 70),
            record(3, 8192, b"K" * 9000, b""),
            record(4, (1 << 41) - 1000, None, b"w" * 9000),
        ],
        base_timestamp=1000,
        max_timestamp=1 << 41,
        leader_epoch=-1,
    )
    assert write(2, Codec.NONE, rows) == by_hand


@pytest.mark.parametrize("size", [0, 1, 62, 63, 64, 8100, 8159, 8160, 8161, 8191, 8192, 1 << 21])
@pytest.mark.parametrize("key", [None, b"", b"k"])
def test_sizes_around_the_ends_of_the_tables(size: int, key: bytes | None) -> None:
    values = [b"x" * size, b"y" * size]
    written = encode_batch(2, Codec.NONE, timestamps=[5, 5 + size], keys=[key] * 2, values=values)
    rows = [record(row, size * row, key, value) for row, value in enumerate(values)]
    assert written == batch(rows, base_timestamp=5, max_timestamp=5 + size, leader_epoch=-1)


@pytest.mark.parametrize("headers", [(), (("h", None), ("", b"x"))])
@pytest.mark.parametrize("value", [None, b"", b"v" * 70, b"w" * 9000])
@pytest.mark.parametrize("key", [None, b"", b"k", b"K" * 9000])
def test_a_record_alone_is_packed_as_among_others(key: bytes | None, value: bytes | None, headers: Headers) -> None:
    columns = ([7], [key], [value], [headers] if headers else None, None)
    alone = b"".join(batch_packing.records_of(*columns))
    assert alone == b"".join(batch_packing.pack_records(*columns))
    ((found,),) = read(write(2, Codec.NONE, [(7, key, value, headers)]))
    assert (found.timestamp_ms, found.key, found.value, found.headers) == (7, key, value, headers)


@pytest.mark.parametrize("key", [None, b"k"])
@pytest.mark.parametrize("count", [8191, 8192, 8193, (1 << 16) + 1])
def test_counts_around_the_ends_of_the_tables(count: int, key: bytes | None) -> None:
    for _ in range(2):  # the second time from the tables that the first one made longer
        written = encode_batch(2, Codec.NONE, timestamps=[7] * count, keys=[key] * count, values=[b"v"] * count)
        assert written == batch(
            [record(row, 0, key, b"v") for row in range(count)], base_timestamp=7, max_timestamp=7, leader_epoch=-1
        )
    assert len(batch_packing._OFFSETS) <= 1 << 16


RUNS = {
    "one": [100],
    "shortest": [32],
    "too short": [31],
    "around the longer offsets": [63, 65],
    "many": [40, 1, 60, 200],
}


@pytest.mark.parametrize("runs", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("size", [1, 60, 8191])
def test_runs_of_one_timestamp(runs: list[int], size: int) -> None:
    steps = [0, 9000, 3, 70]
    timestamps = [10_000 - 63 * step for step, run in zip(steps, runs, strict=False) for _ in range(run)]
    values = [b"x" * (size + row % 3) for row in range(len(timestamps))]
    written = encode_batch(2, Codec.NONE, timestamps=timestamps, keys=[None] * len(values), values=values)
    rows = [
        record(row, timestamp - 10_000, None, value)
        for row, (timestamp, value) in enumerate(zip(timestamps, values, strict=True))
    ]
    assert written == batch(rows, base_timestamp=10_000, max_timestamp=10_000, leader_epoch=-1)


@pytest.mark.parametrize(
    "value", [0, 1, -1, 8191, 8192, -8192, (1 << 20) - 1, 1 << 20, (1 << 27) - 1, 1 << 27, -(1 << 62)]
)
def test_long_varints_are_those_of_the_slow_way(value: int) -> None:
    assert batch_packing._varint(value) == varint(value)


def test_what_a_batch_says_about_its_producer() -> None:
    data = encode(2, producer_id=1 << 40, producer_epoch=12, base_sequence=99, is_transactional=True, leader_epoch=6)
    (found,) = read(data)
    assert (found.producer_id, found.producer_epoch, found.base_sequence) == (1 << 40, 12, 99)
    assert found.is_transactional
    assert not found.is_control
    assert found.leader_epoch == 6


@pytest.mark.parametrize("codec", list(Codec))
def test_a_sealed_batch_can_be_given_another_sequence(codec: Codec) -> None:
    sealed = encode(2, codec)
    changed = set_producer_state(sealed, 7, 1, 55)
    assert changed is not sealed
    assert bytes(changed) == encode(2, codec, producer_id=7, producer_epoch=1, base_sequence=55)
    again = set_producer_state(changed, -1, -1, -1)
    assert again is changed
    assert bytes(again) == sealed


def test_what_cannot_be_written() -> None:
    one = {"timestamps": [1], "keys": [None], "values": [b"v"]}
    with pytest.raises(UnsupportedVersionError, match=r"headers of records need magic 2.*0\.11"):
        encode_batch(1, Codec.NONE, **one, headers=[(("h", b""),)])  # type: ignore[arg-type]
    assert encode_batch(1, Codec.NONE, **one, headers=[()])  # type: ignore[arg-type]
    with pytest.raises(UnsupportedVersionError, match="zstd"):
        encode_batch(0, Codec.ZSTD, **one)  # type: ignore[arg-type]
    with pytest.raises(LocalProtocolError, match="magic 3"):
        encode_batch(3, Codec.NONE, **one)  # type: ignore[arg-type]
    for change in ({"keys": []}, {"timestamps": [1, 2]}, {"headers": [(), ()]}, {"values": []}):
        with pytest.raises(LocalProtocolError, match="one length"):
            encode_batch(2, Codec.NONE, **{**one, **change})  # type: ignore[arg-type]
    for change in ({"values": ["text"]}, {"values": [5]}, {"keys": ["k"]}, {"timestamps": [1 << 63]}):
        with pytest.raises(LocalProtocolError, match="cannot be encoded"):
            encode_batch(2, Codec.NONE, **{**one, **change})  # type: ignore[arg-type]
    for header in (("h", "text"), (b"name", b""), ("\ud800", b""), (None, b"")):
        with pytest.raises(LocalProtocolError, match="cannot be encoded"):
            encode_batch(2, Codec.NONE, **one, headers=[(header,)])  # type: ignore[arg-type]


def test_the_header_of_a_batch() -> None:
    data = encode(2, Codec.ZSTD, base_sequence=3)
    assert struct.unpack_from(">qi", data) == (0, len(data) - 12)
    assert struct.unpack_from(">hi", data, 21) == (4, 4)
    assert struct.unpack_from(">ii", data, 53) == (3, 5)
