"""Record sets for the tests of this folder: well made, by hand, and with their checksums put right after a change."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from pykafka08.records.checksums import crc32, crc32c
from pykafka08.records.compression import Codec
from pykafka08.records.reader import FetchedBatch, read_batches
from pykafka08.records.record import Headers
from pykafka08.records.writer import encode_batch

__all__ = ["CODECS", "FORMATS", "batch", "encode", "entry_bounds", "message", "put_right", "read", "varint"]

#: Codecs that each magic knows.
CODECS = {0: list(Codec)[:4], 1: list(Codec)[:4], 2: list(Codec)}
FORMATS = [(magic, codec) for magic, codecs in CODECS.items() for codec in codecs]

KEYS = (b"k0", None, b"", b"k3", None)
VALUES = (b"v0", b"v1" * 100, None, b"", b"v4" * 9000)
TIMESTAMPS = (1_500_000_000_000, 1_500_000_000_007, 1_499_999_999_000, 1_500_000_100_000, 1_500_000_000_000)
HEADERS: tuple[Headers, ...] = ((), (("a", b"1"), ("é", None)), (), (("", b""),), ())


def encode(magic: int, codec: Codec = Codec.NONE, count: int = 5, **more: object) -> bytes:
    """A set of ``count`` records that holds every special case."""
    rows = range(count)
    return bytes(
        encode_batch(
            magic,
            codec,
            timestamps=[TIMESTAMPS[row % 5] for row in rows],
            keys=[KEYS[row % 5] for row in rows],
            values=[VALUES[row % 5] for row in rows],
            headers=[HEADERS[row % 5] for row in rows] if magic == 2 else None,
            **more,  # type: ignore[arg-type]
        )
    )


def read(data: bytes, fetch_offset: int = 0, **more: object) -> list[FetchedBatch]:
    """All batches of a set."""
    return list(read_batches(data, topic="t", partition=3, fetch_offset=fetch_offset, **more))  # type: ignore[arg-type]


def varint(value: int) -> bytes:
    """Zig-zag, base 128; written apart from the library's."""
    raw = value * 2 if value >= 0 else -value * 2 - 1
    out = []
    while raw > 127:
        out.append(raw % 128 + 128)
        raw //= 128
    return bytes([*out, raw])


def record(
    offset_delta: int, timestamp_delta: int, key: bytes | None, value: bytes | None, headers: bytes = b"\x00"
) -> bytes:
    """One record of magic 2, by hand."""
    body = b"\x00" + varint(timestamp_delta) + varint(offset_delta)
    for part in (key, value):
        body += varint(-1) if part is None else varint(len(part)) + part
    body += headers
    return varint(len(body)) + body


def batch(
    records: bytes | Sequence[bytes],
    *,
    base_offset: int = 0,
    count: int | None = None,
    last_delta: int | None = None,
    attributes: int = 0,
    base_timestamp: int = 1000,
    max_timestamp: int = 2000,
    leader_epoch: int = 4,
    producer: tuple[int, int, int] = (-1, -1, -1),
) -> bytes:
    """A batch of magic 2 with a right checksum, by hand."""
    count = len(records) if count is None else count
    last_delta = count - 1 if last_delta is None else last_delta
    body = records if isinstance(records, bytes) else b"".join(records)
    rest = struct.pack(">hiqq", attributes, last_delta, base_timestamp, max_timestamp)
    rest += struct.pack(">qhii", *producer, count) + body
    return struct.pack(">qiibI", base_offset, len(rest) + 9, leader_epoch, 2, crc32c(rest)) + rest


def message(
    magic: int, key: bytes | None, value: bytes | None, *, offset: int = 0, attributes: int = 0, timestamp: int = 5
) -> bytes:
    """A message of magic 0 or 1 with a right checksum, by hand."""
    body = struct.pack(">bb", magic, attributes) + (struct.pack(">q", timestamp) if magic else b"")
    for part in (key, value):
        body += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    return struct.pack(">qiI", offset, len(body) + 4, crc32(body)) + body


def entry_bounds(data: bytes | bytearray) -> list[tuple[int, int]]:
    """Start and end of each whole entry, as far as the sizes make sense."""
    bounds = []
    position = 0
    while position + 18 <= len(data):
        end = position + 12 + int.from_bytes(data[position + 8 : position + 12], "big", signed=True)
        if not position + 18 <= end <= len(data):
            break
        bounds.append((position, end))
        position = end
    return bounds


def put_right(data: bytearray) -> bytearray:
    """Write right checksums into all entries of a set that was changed, so that the change reaches what is behind."""
    for start, end in entry_bounds(data):
        if data[start + 16] == 2 and end - start > 21:
            struct.pack_into(">I", data, start + 17, crc32c(data[start + 21 : end]))
        elif data[start + 16] < 2:
            struct.pack_into(">I", data, start + 12, crc32(data[start + 16 : end]))
    return data
