"""Snappy in the framing that Kafka took from Java's xerial, and raw."""

from __future__ import annotations

import struct

import cramjam
import pytest
import snappy

from pykafka08.errors import CorruptRecordError, RecordTooLargeError
from pykafka08.records.snappy_stream import Snappy

HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
TEXT = b"blocks after blocks after blocks. " * 4000
LIMIT = 1 << 20


def compress(data: bytes) -> bytes:
    return Snappy().compress(data, None, 2)


def decompress(data: bytes, limit: int) -> bytes:
    return Snappy().decompress(data, limit, 2)


def raw(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data))


def block(data: bytes) -> bytes:
    return struct.pack(">i", len(raw(data))) + raw(data)


def test_what_we_write_is_a_header_and_blocks_of_32_kib() -> None:
    stream = compress(TEXT)
    assert stream.startswith(HEADER)
    position, plain = len(HEADER), []
    while position < len(stream):
        (size,) = struct.unpack_from(">i", stream, position)
        plain.append(snappy.uncompress(stream[position + 4 : position + 4 + size]))
        position += 4 + size
    assert [len(part) for part in plain[:-1]] == [32 << 10] * (len(plain) - 1)
    assert b"".join(plain) == TEXT


def test_blocks_of_any_size_raw_data_and_streams_in_a_row_are_read() -> None:
    small = HEADER + b"".join(block(TEXT[start : start + 1024]) for start in range(0, len(TEXT), 1024))
    assert decompress(small, LIMIT) == TEXT
    assert decompress(raw(TEXT), LIMIT) == TEXT
    assert decompress(small + compress(b"more"), LIMIT) == TEXT + b"more"
    assert decompress(HEADER, LIMIT) == b""
    assert decompress(HEADER + block(b""), LIMIT) == b""


@pytest.mark.parametrize(
    ("stream", "text"),
    [
        (b"", "no size"),
        (HEADER[:12], "inside its header"),
        (HEADER + b"\x00\x00", "inside a block size"),
        (HEADER + struct.pack(">i", 0), "0 bytes does not fit"),
        (HEADER + struct.pack(">i", -5) + b"abcde", "-5 bytes does not fit"),
        (HEADER + struct.pack(">i", 50) + raw(b"abc"), "50 bytes does not fit"),
        (HEADER + block(b"abc")[:-1], "does not fit"),
        (HEADER + struct.pack(">i", 5) + b"\xff\xff\xff\xff\x0f", "claims to unpack to 4294967295"),
        (HEADER + struct.pack(">i", 2) + b"\xff\xff", "no size"),
        (b"\xff\xff\xff\xff\xff\xff\x01", "no size"),
        (b"\x80\x80\x04" + raw(b"abc")[1:], "claims to unpack to 65536"),
        (b"\x04" + raw(b"abc")[1:], "damaged"),
        (b"\x02" + raw(b"abc")[1:], "damaged"),
    ],
)
def test_damaged_streams(stream: bytes, text: str) -> None:
    with pytest.raises(CorruptRecordError, match=text):
        decompress(stream, LIMIT)


def test_a_claim_above_the_limit_is_refused_before_anything_is_unpacked() -> None:
    with pytest.raises(RecordTooLargeError, match="max_unpacked_bytes=1199"):
        decompress(HEADER + block(bytes(600)) * 2, 1199)
    assert len(decompress(HEADER + block(bytes(600)) * 2, 1200)) == 1200
