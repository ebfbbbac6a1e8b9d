"""Deserializers against what the Java classes of 4.3.1 print for the same bytes."""

from __future__ import annotations

import struct

import pytest

from pykafka08.cli.deserializers import deserializer, java_floating
from pykafka08.errors import KafkaError


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("String", b"12345678", b"12345678"),
        ("String", b"\xff\xc3(a", b"\xef\xbf\xbd\xef\xbf\xbd(a"),
        ("Integer", b"\xff\xc3(a", b"-3987359"),
        ("Integer", b"\0\0\0\x2a", b"42"),
        ("Long", b"12345678", b"3544952156018063160"),
        ("Long", b"\xff" * 7 + b"\xfe", b"-2"),
        ("Short", b"ab", b"24930"),
        ("Boolean", b"\1", b"true"),
        ("Boolean", b"\0", b"false"),
        ("Float", b"null", b"1.8988725E28"),
        ("Float", b"\xff\xc3(a", b"NaN"),
        ("Float", b"\0\0\0\x2a", b"5.9E-44"),
        ("Double", b"12345678", b"1.0300843656201408E-71"),
        ("Double", b"\xff" * 7 + b"\xfe", b"NaN"),
        ("Bytes", b"\xff\xc3(a\\", b"\\xFF\\xC3(a\\x5C"),
        ("Bytes", b"\0\0\0*", b"\\x00\\x00\\x00*"),
        ("UUID", b"123e4567-e89b-12d3-a456-426614174000", b"123e4567-e89b-12d3-a456-426614174000"),
    ],
)
def test_bytes_become_the_text_that_java_prints(name: str, data: bytes, expected: bytes) -> None:
    assert deserializer(f"{name}Deserializer")(data) == expected
    assert deserializer(f"org.apache.kafka.common.serialization.{name}Deserializer")(data) == expected


@pytest.mark.parametrize("name", ["Boolean", "Double", "Float", "Integer", "Long", "Short", "UUID"])
@pytest.mark.parametrize("size", [0, 3, 9])
def test_a_wrong_size_is_an_error(name: str, size: int) -> None:
    with pytest.raises(KafkaError, match=f"{name}Deserializer"):
        deserializer(f"{name}Deserializer")(b"x" * size)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (-1.5, "-1.5"),
        (0.001, "0.001"),
        (0.000999, "9.99E-4"),
        (9999999.0, "9999999.0"),
        (10000000.0, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (123456.789, "123456.789"),
        (0.1, "0.1"),
        (5e-324, "4.9E-324"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_doubles_are_written_as_java_writes_them(value: float, expected: str) -> None:
    assert java_floating(value, 17) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(0.1, "0.1"), (3.4028235e38, "3.4028235E38"), (16777216.0, "1.6777216E7")]
)
def test_floats_need_fewer_digits(value: float, expected: str) -> None:
    assert java_floating(struct.unpack(">f", struct.pack(">f", value))[0], 9) == expected
