"""The console consumer's lines, against what the formatters of 2.8.2 and 4.3.1 wrote for the same records."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pykafka08.cli.formats import format_properties
from pykafka08.errors import ConfigError, KafkaError
from pykafka08.records.record import Record

EVERYTHING = {
    f"print.{name}": "true" for name in ("timestamp", "partition", "offset", "delivery", "epoch", "headers", "key")
}


def full(**changes: object) -> Record:
    fields: dict[str, object] = {
        "topic": "t",
        "partition": 3,
        "offset": 7,
        "timestamp_ms": 1234,
        "timestamp_type": 0,
        "key": b"k",
        "value": b"v",
        "headers": (("h1", b"v1"), ("h2", None), ("é", b"x")),
        "leader_epoch": 5,
    }
    return Record(**{**fields, **changes})  # type: ignore[arg-type]


def bare() -> Record:
    return full(timestamp_ms=-1, timestamp_type=-1, key=None, value=None, headers=(), leader_epoch=-1)


class Batch(list[Record]):
    def values(self) -> list[bytes | None]:
        return [record.value for record in self]

    def __iter__(self) -> Iterator[Record]:
        return super().__iter__()


def shown(properties: dict[str, str], *records: Record, limit: int = 100) -> bytes:
    record_format, unknown = format_properties(properties)
    assert not unknown
    return record_format.compile().batch(Batch(records), limit)


@pytest.mark.parametrize(
    ("record", "properties", "expected"),
    [
        (full(), {}, b"v\n"),
        (bare(), {}, b"null\n"),
        (
            full(),
            EVERYTHING,
            "CreateTime:1234\tPartition:3\tOffset:7\tDelivery:NOT_PRESENT\tEpoch:NOT_PRESENT\th1:v1,h2:null,é:x\tk\tv\n".encode(),
        ),
        (
            bare(),
            EVERYTHING,
            b"NO_TIMESTAMP\tPartition:3\tOffset:7\tDelivery:NOT_PRESENT\tEpoch:NOT_PRESENT\tNO_HEADERS\tnull\tnull\n",
        ),
        (full(timestamp_type=1), {"print.timestamp": "true"}, b"LogAppendTime:1234\tv\n"),
        (full(), {"print.value": "false"}, b""),
        (full(), {"print.value": "false", "print.key": "true"}, b"k\n"),
        (full(), {"print.key": " TRUE "}, b"k\tv\n"),
        (full(), {"print.key": ""}, b"v\n"),
        (full(), {"print.key": "yes"}, b"v\n"),
        (full(), {"print.key": "true", "key.separator": "::", "line.separator": "|"}, b"k::v|"),
        (full(), {"print.key": "true", "key.separator": ""}, b"kv\n"),
        (bare(), {"print.key": "true", "null.literal": "NULL"}, b"NULL\tNULL\n"),
        (full(), {"print.headers": "true", "headers.separator": ";"}, "h1:v1;h2:null;é:x\tv\n".encode()),
        (full(), {"print.headers": "true", "null.literal": "N"}, "h1:v1,h2:N,é:x\tv\n".encode()),
        (full(value=b"a\nb\0\xff"), {}, b"a\nb\0\xff\n"),
        (full(value=b"\0\0\0\x2a"), {"value.deserializer": "IntegerDeserializer"}, b"42\n"),
        (full(key=b"\0\x07"), {"print.key": "true", "key.deserializer": "ShortDeserializer"}, b"7\tv\n"),
        (bare(), {"value.deserializer": "org.apache.kafka.common.serialization.StringDeserializer"}, b"null\n"),
    ],
)
def test_a_record_is_shown_as_kafkas_tool_shows_it(record: Record, properties: dict[str, str], expected: bytes) -> None:
    assert shown(properties, record) == expected


@pytest.mark.parametrize("properties", [{}, {"print.offset": "true"}])
def test_a_limit_cuts_a_batch(properties: dict[str, str]) -> None:
    records = [full(offset=offset, value=b"%d" % offset) for offset in range(5)]
    assert shown(properties, *records, limit=2) == shown(properties, *records[:2])
    assert shown(properties, *records, limit=5) == shown(properties, *records)
    assert shown(properties, *records).count(b"\n") == 5


def test_unknown_properties_are_named() -> None:
    _, unknown = format_properties({"print.key": "true", "print.keys": "true", "schema.registry.url": "x"})
    assert unknown == ["print.keys", "schema.registry.url"]


def test_an_unknown_deserializer_is_wrong_usage() -> None:
    with pytest.raises(ConfigError, match="AvroDeserializer"):
        format_properties({"value.deserializer": "io.confluent.AvroDeserializer"})


def test_a_record_that_does_not_fit_its_deserializer_is_an_error() -> None:
    with pytest.raises(KafkaError, match="IntegerDeserializer needs 4 bytes, the record has 1"):
        shown({"value.deserializer": "IntegerDeserializer"}, full())


CONTROLS = [
    (b"plain text, \xc3\xa9\xe4\xb8\xad \xf0\x9f\x98\x80, tab\t and newline\n", None),
    (b"\x1b[31mred\x1b]0;title\x07", b"\\x1b[31mred\\x1b]0;title\\x07"),
    (b"over\rwritten\x08\x7f\0", b"over\\rwritten\\x08\\x7f\\x00"),
    (b"one byte \x9b2J, two \xc2\x9b2J", b"one byte \\x9b2J, two \\x9b2J"),
    ("arabic letter mark \u061c".encode(), b"arabic letter mark \\u061c"),
    ("right to left \u202egnp.exe \u2066x".encode(), b"right to left \\u202egnp.exe \\u2066x"),
    (b"\xff\xfe binary", b"\\xff\\xfe binary"),
]


@pytest.mark.parametrize(("data", "expected"), CONTROLS)
def test_control_characters_are_escaped_only_on_a_terminal(data: bytes, expected: bytes | None) -> None:
    record = full(key=data, value=data, headers=(("h\x1b", data),))
    properties = {"print.key": "true", "print.headers": "true"}
    shown_there = format_properties(properties)[0].compile(for_terminal=True)
    there = data if expected is None else expected
    assert shown_there.batch(Batch([record]), 1) == b"h\\x1b:%b\t%b\t%b\n" % (there, there, there)
    assert shown_there.line(record) == shown_there.batch(Batch([record]), 1)
    assert shown(properties, record) == b"h\x1b:%b\t%b\t%b\n" % (data, data, data)
    values_alone = format_properties({})[0]
    assert values_alone.compile(for_terminal=True).batch(Batch([record, bare()]), 2) == there + b"\nnull\n"
    assert values_alone.compile().batch(Batch([record]), 1) == data + b"\n"
