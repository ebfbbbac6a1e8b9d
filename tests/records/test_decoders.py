"""The decoders of magic 2 against each other: one result, and one error where the bytes are no records."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykafka08.errors import CorruptRecordError, RemoteProtocolError
from pykafka08.records import decode_loop, decode_native, decode_numpy, decode_stride
from pykafka08.records.batch_records import BatchRecords
from pykafka08.records.columns import Columns
from pykafka08.records.packed import PackedRecords
from tests.records.samples import batch, read, record, varint
from tests.records.test_batch import BROKEN_BODIES, GOOD

HEADER = b"\x02\x02h\x02x"
FIELD = (
    st.none() | st.binary(max_size=30) | st.sampled_from([b"x" * size for size in (57, 63, 64, 127, 128, 8190, 9000)])
)
ROWS = st.lists(
    st.tuples(
        st.integers(0, 200) | st.sampled_from([8191, 1 << 20]),
        st.integers(-70, 70) | st.integers(-(1 << 41), 1 << 41),
        FIELD,
        FIELD,
        st.sampled_from([b"\x00", b"\x00", HEADER]),
    ),
    min_size=1,
    max_size=30,
)  # fmt: skip


def packed_of(data: bytes) -> list[BatchRecords]:
    payloads = [found.payload for found in read(data)]
    assert all(isinstance(payload, BatchRecords) for payload in payloads)
    return payloads  # type: ignore[return-value]


def contents(columns: Columns) -> tuple[object, ...]:
    bounds = iter(() if columns.header_edges is None else columns.header_edges.tolist())
    spans = [(start, end) if end > start else None for start, end in zip(bounds, bounds, strict=True)]
    return (
        columns.offsets.tolist(), columns.timestamps_ms.tolist(), columns.keys(), columns.values(), spans,
        columns.key_edges is None, columns.value_edges is None,
        columns.key_nulls is None, columns.value_nulls is None,
    )  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(sets=st.lists(ROWS, min_size=1, max_size=3), append_time=st.booleans(), base_offset=st.integers(0, 1 << 62))
def test_any_batches(
    sets: list[list[tuple[int, int, bytes | None, bytes | None, bytes]]], append_time: bool, base_offset: int
) -> None:
    data, expected = b"", []
    for rows in sets:
        delta, records = -1, []
        for step, timestamp, key, value, headers in rows:
            delta += 1 + step
            records.append(record(delta, timestamp, key, value, headers))
            parsed = () if headers == b"\x00" else (("h", b"x"),)
            expected.append((base_offset + delta, 2000 if append_time else 1000 + timestamp, key, value, parsed))
        data += batch(records, base_offset=base_offset, last_delta=delta + 5, attributes=8 * append_time)
        base_offset += delta + 6
    packed: list[PackedRecords] = list(packed_of(data))
    results = []
    for decoder in (decode_loop, decode_native):
        columns = decoder.read_columns(packed)
        rows_read = zip(
            columns.offsets, columns.timestamps_ms, columns.keys(), columns.values(), columns.headers(), strict=True
        )
        assert list(rows_read) == expected
        results.append(contents(columns))
        made = []
        for one in packed:
            records, end = decoder.read_records(one, one.start, one.count)
            assert end == one.end
            made += [(each.offset, each.timestamp_ms, each.key, each.value, each.headers) for each in records]
            assert decoder.read_values(one) == ([each.value for each in records], one.end)
        assert made == expected
    assert results[0] == results[1]
    vectorised = decode_numpy.read_columns(packed)
    if vectorised is None:  # unusual, such as a record of 8 KiB, or a delta of 35 bits
        assert max(len(row[2] or b"") + len(row[3] or b"") for rows in sets for row in rows) > 4000 or any(
            abs(row[1]) >= 1 << 33 for rows in sets for row in rows
        )
    else:
        assert contents(vectorised) == results[0]


def outcome(call: Callable[[PackedRecords], object], packed: PackedRecords) -> object:
    try:
        found = call(packed)
    except (IndexError, RemoteProtocolError) as error:
        return "damaged" if not isinstance(error, CorruptRecordError) else (error.offset, error.next_offset)
    if isinstance(found, Columns):
        return contents(found)
    assert isinstance(found, tuple)
    return "damaged" if found[1] != packed.end else found


@settings(max_examples=400, deadline=None)
@given(
    places=st.lists(st.tuples(st.integers(0, 80), st.sampled_from([0, 1, 2, 14, 127, 128, 129, 254, 255])), max_size=4),
    base_timestamp=st.sampled_from([0, 1000, (1 << 63) - 1, -(1 << 63), (1 << 63) - 40]),
)
def test_hostile_bytes_have_one_outcome(places: list[tuple[int, int]], base_timestamp: int) -> None:
    body = bytearray(
        GOOD + record(1, -3, None, b"v" * 20, HEADER) + record(2, 300, b"k", None) + record(3, 0, b"", b"")
    )
    for place, byte in places:
        if place < len(body):
            body[place] = byte
    (packed,) = packed_of(batch(bytes(body), count=4, last_delta=3, base_timestamp=base_timestamp))
    for name in ("read_values", "read_columns"):
        judges = [getattr(decoder, name) for decoder in (decode_loop, decode_native)]
        if name == "read_columns":
            first, second = (outcome(lambda one, read=judge: read([one]), packed) for judge in judges)  # type: ignore[misc]
        else:
            first, second = (outcome(judge, packed) for judge in judges)
        assert first == second, name
    vectorised = decode_numpy.read_columns([packed])
    assert vectorised is None or contents(vectorised) == first


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 150), min_size=1, max_size=60),
    alphabet=st.sampled_from([b'abc"{}:, 0123456789', bytes(range(128, 256)), bytes(range(1, 256))]),
    has_keys=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_usual_batches_are_read_by_numpy(sizes: list[int], alphabet: bytes, has_keys: bool, seed: int) -> None:
    chance = random.Random(seed)
    data, base_offset = b"", 0
    for _ in range(3):
        rows = [
            record(row, row // 3, b"key%d" % row if has_keys else None, bytes(chance.choices(alphabet, k=size)))
            for row, size in enumerate(sizes)
        ]
        data += batch(rows, base_offset=base_offset)
        base_offset += len(rows)
    packed: list[PackedRecords] = list(packed_of(data))
    vectorised = decode_numpy.read_columns(packed)
    expected = decode_loop.read_columns(packed)
    if alphabet[0] < 128 and alphabet[-1] < 128:
        assert vectorised is not None
    if vectorised is not None:
        assert contents(vectorised) == contents(expected)
        assert decode_numpy.slices(vectorised, vectorised.value_edges, vectorised.value_nulls) == expected.values()
    assert [each.value for one in packed_of(data) for chunk in one.chunks() for each in chunk] == expected.values()
    assert list(chain.from_iterable(map(BatchRecords.keys, packed_of(data)))) == expected.keys()


ALIKE = st.tuples(
    st.none() | st.binary(min_size=3, max_size=3),
    st.none() | st.binary(max_size=200),
    st.integers(-2, 3000),
    st.booleans(),
)


def alike_records(key: bytes | None, value: bytes | None, step: int) -> list[bytes]:
    values = [value if value is None else value[row % 5 :] + value[: row % 5] for row in range(300)]
    return [record(row, row * step, key, each) for row, each in enumerate(values)]


@settings(max_examples=60, deadline=None)
@given(fields=ALIKE, step=st.sampled_from([-2, -1, 0, 1, 3, 100]))  # others may begin with records of several lengths
def test_records_of_one_length(fields: tuple[bytes | None, bytes | None, int, bool], step: int) -> None:
    key, value, _, append_time = fields
    (packed,) = packed_of(batch(alike_records(key, value, step), base_offset=7, attributes=8 * append_time))
    columns = decode_stride.read_columns([packed])
    assert columns is not None
    assert contents(columns) == contents(decode_loop.read_columns([packed]))


@settings(max_examples=60, deadline=None)
@given(
    fields=st.lists(ALIKE, min_size=2, max_size=4),
    gaps=st.lists(st.integers(-1, 3), min_size=4, max_size=4),
    odd=st.integers(0, 8),
)
def test_batches_of_records_of_one_length(
    fields: list[tuple[bytes | None, bytes | None, int, bool]], gaps: list[int], odd: int
) -> None:
    data, offset = b"", 7
    for number, (key, value, step, append_time) in enumerate(fields):
        rows = alike_records(key, value, step)
        if number == odd:
            rows = [record(row, 0, key, bytes(row % 7 + 3)) for row in range(300)]
        data += batch(rows, base_offset=offset, attributes=8 * append_time)
        offset += len(rows) + gaps[number]  # -1: an offset comes twice
    batches = packed_of(data)
    columns = decode_stride.read_columns(batches)
    nulls = {(key is None, value is None) for key, value, _, _ in fields}
    are_alike = odd >= len(fields) and len(nulls) == 1 and -1 not in gaps[: len(fields) - 1]
    assert (columns is not None) == are_alike
    if columns is not None:
        assert contents(columns) == contents(decode_loop.read_columns(batches))


@settings(max_examples=200, deadline=None)
@given(
    fields=ALIKE,
    places=st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), min_size=1, max_size=3),
    row=st.integers(0, 299),
)
def test_bytes_changed_among_records_of_one_length(
    fields: tuple[bytes | None, bytes | None, int, bool], places: list[tuple[int, int]], row: int
) -> None:
    rows = alike_records(*fields[:3])
    body = bytearray(b"".join(rows))
    start = sum(len(each) for each in rows[:row])
    for place, byte in places:
        body[start + place % len(rows[row])] = byte
    (packed,) = packed_of(batch(bytes(body), base_offset=7, count=300, last_delta=299))
    columns = decode_stride.read_columns([packed])
    if columns is not None:
        assert contents(columns) == outcome(lambda one: decode_loop.read_columns([one]), packed)


@pytest.mark.parametrize("damage", [0, 5000, 9990])
def test_many_records_with_one_damaged(damage: int) -> None:
    rows = [record(row, row, None, b"value %d" % row) for row in range(1000)]
    data = bytearray(b"".join(rows))
    place = sum(len(row) for row in rows[: damage // 10])
    data[place] ^= 2
    (packed,) = packed_of(batch(bytes(data), count=1000))
    assert decode_numpy.read_columns([packed]) is None
    made = []
    with pytest.raises(CorruptRecordError):  # noqa: PT012 - the records before it come
        for chunk in packed.chunks():
            made += chunk
    assert len(made) == damage // 10 // 256 * 256
    for ask in (packed.values, packed.keys, packed.columns):
        with pytest.raises(CorruptRecordError):
            ask()


@pytest.mark.parametrize("decoder", [decode_loop, decode_native])
@pytest.mark.parametrize("name", BROKEN_BODIES)
def test_every_kind_of_damage(decoder: object, name: str) -> None:
    body, count = BROKEN_BODIES[name]
    (packed,) = packed_of(batch(body, base_offset=50, count=count, last_delta=0))
    assert outcome(lambda one: decoder.read_columns([one]), packed) == (50, 51)  # type: ignore[attr-defined]
    assert outcome(decoder.read_values, packed) == "damaged"  # type: ignore[attr-defined]
    assert outcome(lambda one: decoder.read_records(one, one.start, one.count), packed) == "damaged"  # type: ignore[attr-defined]


VIEWS: list[Callable[[BatchRecords], list[bytes | None]]] = [
    lambda packed: [each.value for chunk in packed.chunks() for each in chunk],
    lambda packed: packed.values(),
    lambda packed: packed.columns().values(),
]


@pytest.mark.parametrize("view", [*VIEWS, lambda packed: packed.keys()])
@pytest.mark.parametrize("count", [3, 300, 700])
@pytest.mark.parametrize("delta", [-1, 5000])
def test_an_offset_outside_the_batch_is_damage_wherever_it_stands(
    view: Callable[[BatchRecords], object], count: int, delta: int
) -> None:
    rows = [record(row if row != count // 2 else delta, 0, b"k", b"v") for row in range(count)]
    (packed,) = packed_of(batch(rows, last_delta=count - 1))
    with pytest.raises(CorruptRecordError, match="an offset is outside the batch"):
        view(packed)


@pytest.mark.parametrize("null", [b"\x81\x00", b"\x81\x80\x00", b"\x81\x80\x80\x80\x00"])
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("count", [3, 300, 700])
def test_nulls_may_be_longer_than_one_byte(view: Callable[[BatchRecords], object], count: int, null: bytes) -> None:
    rows = [record(row, 0, None, b"v") for row in range(count)]
    fields = b"\x00\x00" + varint(count - 2) + null + null + b"\x00"
    rows[-2] = varint(len(fields)) + fields
    (packed,) = packed_of(batch(rows))
    assert view(packed) == [*[b"v"] * (count - 2), None, b"v"]
    assert packed.keys() == [None] * count


def test_no_records_have_no_bytes() -> None:
    with pytest.raises(CorruptRecordError, match="claims no records") as caught:
        packed_of(batch(GOOD, count=0, last_delta=0, base_offset=50))
    assert (caught.value.offset, caught.value.next_offset) == (50, 51)
