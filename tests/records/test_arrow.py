"""Fetched batches as pyarrow RecordBatches: the same rows as the records, whatever formats are mixed."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pykafka08.errors import CorruptRecordError
from pykafka08.records import arrow
from pykafka08.records.arrow import SCHEMA, ArrowFields, to_arrow
from pykafka08.records.compression import Codec
from pykafka08.records.fetched import FetchedBatch
from pykafka08.records.record import Record
from pykafka08.records.writer import assign_offsets, encode_batch
from tests.records.samples import FORMATS, batch, encode, read, record


def rows_of(table: pa.RecordBatch) -> list[tuple[object, ...]]:
    table.validate(full=True)
    assert table.schema == SCHEMA
    milliseconds = table.column("timestamp").cast(pa.int64()).to_pylist()
    return [
        (
            row["topic"], row["partition"], row["offset"], -1 if milliseconds[index] is None else milliseconds[index],
            row["key"], row["value"], tuple((header["key"], header["value"]) for header in row["headers"]),
        )
        for index, row in enumerate(table.to_pylist())
    ]  # fmt: skip


def expected(records: list[Record]) -> list[tuple[object, ...]]:
    return [
        (each.topic, each.partition, each.offset, each.timestamp_ms, each.key, each.value, each.headers)
        for each in records
    ]


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
def test_a_batch_of_every_format(magic: int, codec: Codec) -> None:
    for found in read(encode(magic, codec, 7)):
        assert rows_of(found.to_arrow()) == expected(found.records())


def test_batches_of_all_formats_in_one() -> None:
    data, offset = b"", 0
    for magic, codec in [*FORMATS, *reversed(FORMATS), (2, Codec.NONE), (2, Codec.NONE)]:
        data += assign_offsets(encode(magic, codec, 6), offset).data
        offset += 6
    found = read(data)
    assert rows_of(to_arrow(found)) == expected([each for one in found for each in one])
    assert to_arrow(found).num_rows == offset


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_batches_between_which_others_are_are_copied_once(magic: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data, offset = b"", 0
    for codec in [Codec.NONE, Codec.GZIP, Codec.SNAPPY] * 40:
        data += assign_offsets(encode_set(magic, codec), offset).data
        offset += 3
    found = read(data)
    assert len(found) == 120
    monkeypatch.setattr(arrow, "_LARGEST", len(data) + 120 * 3 * 8)  # what all have at most once
    assert rows_of(to_arrow(found)) == expected([each for one in found for each in one])


def encode_set(magic: int, codec: Codec) -> bytes:
    """Three records; the keys of some sets are all null."""
    keys = [None, b"k", b""] if codec is Codec.GZIP else [None] * 3
    values = [b"v" * 30, None, b""] if codec is not Codec.SNAPPY else [None] * 3
    return bytes(encode_batch(magic, codec, timestamps=[1, 2, 3], keys=keys, values=values))


def test_several_topics_and_partitions_keep_their_order() -> None:
    first, second = (
        read(batch([record(0, 0, b"a", b"1"), record(1, 0, b"b", b"2")])),
        read(batch([record(0, 0, None, b"3")])),
    )
    second[0].topic, second[0].partition = "other", 9
    rows = rows_of(to_arrow([*first, *second, *first]))
    assert [row[0] for row in rows] == ["t", "t", "other", "t", "t"]
    assert [row[1] for row in rows] == [3, 3, 9, 3, 3]
    assert [row[4] for row in rows] == [b"a", b"b", None, b"a", b"b"]


def test_nothing_is_an_empty_batch() -> None:
    assert rows_of(to_arrow([])) == []


@pytest.mark.parametrize("nulls", ["all", "none", "some"])
def test_nulls_of_keys_and_values(nulls: str) -> None:
    def field(row: int) -> bytes | None:
        return None if nulls == "all" or (nulls == "some" and row % 2) else b"%d" % row

    found = read(batch([record(row, 0, field(row), field(row + 1)) for row in range(5)]))
    assert rows_of(to_arrow(found)) == expected(found[0].records())
    mixed: list[FetchedBatch] = [
        *found,
        *read(batch([record(0, 0, None, b"v")])),
        *read(batch([record(0, 0, b"k", None)])),
    ]
    assert rows_of(to_arrow(mixed)) == expected([each for one in mixed for each in one])


def test_the_first_damaged_batch_is_named() -> None:
    good = batch([record(0, 0, b"k", b"v")])
    bad = batch(b"\x0e\x00\x00\x00\x7e\x02vv\x00", base_offset=7, count=1, last_delta=0)
    worse = batch(b"\x0e\x00\x00\x00\x7e\x02vv\x00", base_offset=9, count=1, last_delta=0)
    with pytest.raises(CorruptRecordError) as caught:
        to_arrow(read(good + bad + worse))
    assert (caught.value.topic, caught.value.partition) == ("t", 3)
    assert (caught.value.offset, caught.value.next_offset) == (7, 8)


def test_one_who_asks_for_numbers_gets_the_times_that_records_do_not_have() -> None:
    """As Spark's own source does: -1 ms."""
    found = read(bytes(encode_batch(2, Codec.NONE, timestamps=[-1, 5], keys=None, values=[b"a", b"b"])))
    assert ArrowFields(found).timestamps("us").cast(pa.int64()).to_pylist() == [-1000, 5000]
    assert to_arrow(found).column("timestamp").cast(pa.int64()).to_pylist() == [None, 5]
