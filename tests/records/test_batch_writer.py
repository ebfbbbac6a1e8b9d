"""The two ways to make the records of a batch: byte by byte, and by tables; their bytes are the same."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykafka08.errors import LocalProtocolError
from pykafka08.records.batch_packing import encode_batch, encode_parts, pack_records
from pykafka08.records.batch_writer import write_records
from pykafka08.records.compression import Codec
from pykafka08.records.record import Headers
from tests.records.samples import batch, read, record

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=70)
HEADERS = st.lists(st.tuples(NAMES, st.none() | st.binary(max_size=70)), max_size=3).map(tuple)
CONTENT = st.none() | st.binary(max_size=200)


def assert_same(
    timestamps: list[int],
    keys: Sequence[bytes | None] | None,
    values: Sequence[bytes | None],
    headers: Sequence[Headers] | None = None,
    deltas: Sequence[int] | None = None,
) -> list[bytes]:
    written = write_records(timestamps, keys, values, headers, deltas)
    assert b"".join(written) == b"".join(pack_records(timestamps, keys, values, headers, deltas))
    return written


@settings(max_examples=300, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 1 << 62), CONTENT, CONTENT, HEADERS), min_size=1, max_size=30),
    has_keys=st.booleans(),
    has_headers=st.booleans(),
    gaps=st.none() | st.lists(st.integers(1, 1 << 20), min_size=30, max_size=30),
)
def test_any_records(
    rows: list[tuple[int, bytes | None, bytes | None, Headers]],
    has_keys: bool,
    has_headers: bool,
    gaps: list[int] | None,
) -> None:
    timestamps, keys, values, headers = (list(column) for column in zip(*rows, strict=True))
    deltas = None if gaps is None else [sum(gaps[:place]) for place in range(len(rows))]
    assert_same(timestamps, keys if has_keys else None, values, headers if has_headers else None, deltas)


@pytest.mark.parametrize("step", [0, 1, -1, 63, 64, -64, -65, 1 << 13, -(1 << 13), 1 << 40, -(1 << 40)])
def test_timestamps_that_rise_and_fall(step: int) -> None:
    start = 1 << 60
    timestamps = [start + step * place for place in range(300)]
    assert_same(timestamps, None, [b"v"] * 300)
    assert_same(timestamps, [b"k"] * 300, [b"v"] * 300)


@pytest.mark.parametrize("size", [0, 1, 50, 63, 64, 8191, 8192, (1 << 14) - 1, 1 << 14, 1 << 20])
@pytest.mark.parametrize("key", [None, b"", b"k" * 64])
def test_sizes_around_the_lengths_of_varints(size: int, key: bytes | None) -> None:
    values = [b"x" * size, None, b"y" * size, b""]
    keys = None if key is None else [key, None, key, b"k" * size]
    assert_same([7] * 4, keys, values)


def test_large_values_are_pieces_of_their_own() -> None:
    large = b"x" * (1 << 20)
    pieces = assert_same([1] * 3, None, [b"small", large, b"small"])
    assert any(piece is large for piece in pieces)
    assert any(piece is large for piece in assert_same([1] * 3, [b"k"] * 3, [b"small", large, b"small"]))


def test_many_records_are_cut_into_pieces() -> None:
    pieces = assert_same([1] * 9000, None, [b"v" * 100] * 9000)
    assert max(map(len, pieces)) < 128 << 10
    assert len(assert_same([1] * 9000, [b"k"] * 9000, [b"v" * 100] * 9000)) > 1


@pytest.mark.parametrize("run", [1, 40, 500, 9000])
def test_keys_in_runs_of_one_timestamp(run: int) -> None:
    chance = random.Random(run)
    timestamps = [1_700_000_000_000 + place // run * 70 for place in range(9000)]
    values = [b"v" * chance.choice([1, 60, 63, 64, 70, 8200]) for _ in range(9000)]
    keys = [b"k" * chance.choice([0, 1, 9, 63, 64, 200]) for _ in range(9000)]
    assert_same(timestamps, keys, values)
    assert_same(timestamps, [*keys[:-1], None], values)


@pytest.mark.parametrize("codec", list(Codec))
def test_a_whole_batch_in_pieces(codec: Codec) -> None:
    chance = random.Random(1)
    values = [chance.randbytes(chance.randrange(400)) for _ in range(700)]
    timestamps = [1_700_000_000_000 + place // 9 for place in range(700)]
    parts = encode_parts(codec, timestamps=timestamps, keys=None, values=values, base_sequence=3)
    joined = b"".join(parts)
    assert joined == encode_batch(codec, timestamps=timestamps, keys=[None] * 700, values=values, base_sequence=3)
    (found,) = read(joined)
    assert [item.value for item in found] == values
    assert [item.timestamp_ms for item in found] == timestamps


def test_golden_bytes() -> None:
    headers: list[Headers] = [(("h", b"1"), ("n", None)), ()]
    written = encode_parts(
        Codec.NONE, timestamps=[50, 49], keys=[b"key", None], values=[None, b"hello"], headers=headers
    )
    rows = [record(0, 0, b"key", None, b"\x04\x02h\x021\x02n\x01"), record(1, -1, None, b"hello")]
    assert b"".join(written) == batch(rows, base_timestamp=50, max_timestamp=50, leader_epoch=-1)


@pytest.mark.parametrize(
    ("keys", "values", "headers"),
    [
        (None, ["text"], None),
        (None, [bytearray(b"v")], [((None, b""),)]),
        ([5], [b"v"], None),
        (None, [b"v"], [(("h", "text"),)]),
        (None, [b"v"], [(("\ud800", b""),)]),
    ],
)
def test_what_is_not_bytes_leaves_nothing_behind(keys: list, values: list, headers: list | None) -> None:
    with pytest.raises((TypeError, UnicodeError, AttributeError)):
        write_records([1], keys, values, headers, None)
    with pytest.raises(LocalProtocolError, match="cannot be encoded"):
        encode_batch(Codec.NONE, timestamps=[1], keys=keys, values=values, headers=headers)
    assert_same([1, 2], None, [b"after", b"it"])


FAR = 1 << 63


@pytest.mark.parametrize("count", [1, 40])
@pytest.mark.parametrize("keys", [None, [b"k"]])
@pytest.mark.parametrize(
    ("first", "second", "is_taken"),
    [(0, FAR - 1, True), (-1, FAR - 2, True), (-1, FAR - 1, False), (FAR - 1, -1, True), (FAR - 1, -2, False),
     (1 - FAR, 0, True), (1 - FAR, 1, False), (-FAR, -1, True), (-FAR, 0, False), (FAR - 1, -FAR, False)],
)  # fmt: skip
def test_timestamps_are_at_most_63_bits_apart(
    first: int, second: int, is_taken: bool, keys: list[bytes] | None, count: int
) -> None:
    timestamps = [first] * count + [second] * count
    names = None if keys is None else keys * 2 * count
    if is_taken:
        assert_same(timestamps, names, [b"v"] * 2 * count)
        made = encode_batch(Codec.NONE, timestamps=timestamps, keys=names, values=[b"v"] * 2 * count)
        assert [each.timestamp_ms for found in read(made) for each in found.records()] == timestamps
    else:
        for write in (write_records, pack_records):
            with pytest.raises(ValueError, match="63 bits apart"):
                write(timestamps, names, [b"v"] * 2 * count, None, None)
        with pytest.raises(LocalProtocolError, match="63 bits apart"):
            encode_batch(Codec.NONE, timestamps=timestamps, keys=names, values=[b"v"] * 2 * count)


@pytest.mark.parametrize("wrong", [None, "now", 1 << 70])
def test_a_time_that_is_none_is_told(wrong: Any) -> None:
    with pytest.raises(LocalProtocolError):
        encode_batch(Codec.NONE, timestamps=[5, wrong], keys=None, values=[b"v"] * 2)


@pytest.mark.parametrize("sizes", [range(1, 200), range(8100, 8260), (1, 8191, 8192, 70_000)])
@pytest.mark.parametrize("key_sizes", [None, (8,), range(1, 140), (60, 8160, 8192)])
def test_runs_of_any_sizes(sizes: Sequence[int], key_sizes: Sequence[int] | None) -> None:
    """The tables of interpreted Python where lengths grow by a byte, and where its lists of varints end."""
    count = 300
    values = [bytes([65 + index % 20]) * sizes[index % len(sizes)] for index in range(count)]
    keys = None if key_sizes is None else [b"k" * key_sizes[index % len(key_sizes)] for index in range(count)]
    timestamps = [5 + index // 100 * 300 for index in range(count)]
    assert_same(timestamps, keys, values)
    if keys is not None:
        assert_same(timestamps, [None] * count, values)
        assert_same(timestamps, [*keys[:-1], None], values)
        assert_same(timestamps, [b"", *keys[1:]], values)


@pytest.mark.parametrize("key", [None, b"key", b"k" * 70])
@pytest.mark.parametrize("runs", [(5, 3, 9), (5, 5, 4), (7, 9, 7), (9, 7, 9), (5, 305, 20_000)])
def test_runs_of_timestamps_in_any_order(runs: tuple[int, ...], key: bytes | None) -> None:
    timestamps = [stamp for stamp in runs for _ in range(70)]
    values = [b"v" * (1 + index % 150) for index in range(len(timestamps))]
    assert_same(timestamps, None if key is None else [key] * len(values), values)


def test_interpreted_pieces_are_few_and_small() -> None:
    values = [b"v" * (60 + index % 80) for index in range(9000)]
    pieces = pack_records([5] * len(values), None, values, None, None)
    assert len(pieces) < 20
    assert max(map(len, pieces)) < 128 << 10
