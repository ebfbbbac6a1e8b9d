"""Record, NewRecord, headers."""

from __future__ import annotations

import copy
import pickle

import pytest

from pykafka08.errors import CorruptRecordError
from pykafka08.records.record import NewRecord, Record, TimestampType, TopicPartition, parse_headers
from tests.records.samples import batch, read, record


def test_a_record_is_equal_to_its_like_and_to_nothing_else() -> None:
    one = Record("t", 1, 2, 3, 0, b"k", b"v", (("h", b"x"),), 4)
    assert one == Record("t", 1, 2, 3, TimestampType.CREATE_TIME, b"k", b"v", (("h", b"x"),), 4)
    for name, other in {
        "topic": "u", "partition": 9, "offset": 9, "timestamp_ms": 9, "timestamp_type": 1, "key": None, "value": b"",
        "leader_epoch": 9,
    }.items():  # fmt: skip
        changed = copy.copy(one)
        setattr(changed, name, other)
        assert changed != one, name
    assert Record("t", 1, 2, 3, 0, b"k", b"v", (), 4) != one
    assert one != ("t", 1, 2)


def test_a_record_cannot_be_hashed() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Record("t", 1, 2))


def test_a_record_says_where_it_is_and_what_it_holds() -> None:
    text = repr(Record("orders", 1, 2, 3, 0, b"k", b"x" * 100, (("h", None),), 4))
    assert text.startswith("Record(orders[1]@2, timestamp_ms=3 CREATE_TIME, key=b'k', value=b'xxxx")
    assert "(100 bytes)" in text
    assert text.endswith("headers=(('h', None),), leader_epoch=4)")
    assert repr(Record("t", 0, 5)) == "Record(t[0]@5, key=None, value=None)"


def test_a_record_survives_pickle_with_headers_still_in_bytes() -> None:
    (record_,) = read(batch([record(0, 0, b"k", b"v", b"\x02\x02h\x02x")]))[0].records()
    assert pickle.loads(pickle.dumps(record_)) == record_
    assert record_.headers == (("h", b"x"),)


def test_a_new_record_needs_a_value_only() -> None:
    assert NewRecord(b"v") == (b"v", None, (), None, None)
    assert TopicPartition("t", 3) == ("t", 3)


def test_headers_with_names_that_are_no_utf8_are_still_readable() -> None:
    assert parse_headers(b"\x02\x04\xff\xfe\x01") == (("\ufffd\ufffd", None),)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x01", "count -1"),
        (b"\x7e", "count 63"),
        (b"\x02\x80\x80", "cut off"),
        (b"\x02\x01\x00", "negative length -1"),
        (b"\x02\x04h", "past the end"),
        (b"\x02\x02h\x03", "negative length -2"),
        (b"\x02\x02h\x04x", "past the end"),
        (b"\x02\x02h\x01\x00", "1 bytes are left"),
        (b"\x80\x80\x80\x80\x80\x01", "does not fit"),
    ],
)
def test_damaged_headers_are_an_error(data: bytes, text: str) -> None:
    with pytest.raises(CorruptRecordError, match=text):
        parse_headers(data)


def test_damaged_headers_show_when_they_are_asked_for_and_say_where() -> None:
    (record_,) = read(batch([record(0, 0, b"k", b"v", b"\x02\x7fh")], base_offset=70))[0].records()
    assert (record_.key, record_.value) == (b"k", b"v")
    with pytest.raises(CorruptRecordError) as caught:
        _ = record_.headers
    error = caught.value
    assert (error.topic, error.partition, error.offset, error.next_offset) == ("t", 3, 70, 71)
