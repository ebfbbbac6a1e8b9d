"""Varints: their bounds, and bytes that end too early or say too much."""

from __future__ import annotations

import pytest

from pykafka08 import wire
from pykafka08.errors import LocalProtocolError, RemoteProtocolError


@pytest.mark.parametrize("value", [0, 127, 128, 2**32 - 1])
def test_unsigned_varints_come_back(value: int) -> None:
    data = wire.encode_unsigned_varint(value)
    assert wire.read_unsigned_varint(b"x" + data, 1) == (value, 1 + len(data))
    assert wire.unsigned_varint_size(value) == len(data)


@pytest.mark.parametrize("value", [0, -1, 63, -64, 64, 2**31 - 1, -(2**31)])
def test_varints_come_back(value: int) -> None:
    data = wire.encode_varint(value)
    assert wire.read_varint(data, 0) == wire.read_varlong(data, 0) == (value, len(data))
    assert wire.varint_size(value) == len(data)


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63)])
def test_varlongs_come_back(value: int) -> None:
    assert wire.read_varlong(wire.encode_varint(value), 0) == (value, 10)


@pytest.mark.parametrize("read", [wire.read_unsigned_varint, wire.read_varint, wire.read_varlong])
@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff\xff"])
def test_cut_off(read, data: bytes) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(RemoteProtocolError, match="cut off"):
        read(data, 0)


@pytest.mark.parametrize(
    ("read", "data"),
    [
        (wire.read_unsigned_varint, b"\xff\xff\xff\xff\x10"),
        (wire.read_varint, b"\x80\x80\x80\x80\x80\x00"),
        (wire.read_varlong, b"\xff" * 9 + b"\x02"),
    ],
)
def test_too_large(read, data: bytes) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(RemoteProtocolError, match="does not fit"):
        read(data, 0)


def test_a_negative_number_has_no_unsigned_form() -> None:
    with pytest.raises(LocalProtocolError, match="-1"):
        wire.encode_unsigned_varint(-1)


def test_take() -> None:
    assert wire.take(b"abc", 1, 2, 3) == 3
    with pytest.raises(RemoteProtocolError, match="negative"):
        wire.take(b"abc", 1, -1, 3)
    with pytest.raises(RemoteProtocolError, match="past the end"):
        wire.take(b"abc", 1, 3, 3)
