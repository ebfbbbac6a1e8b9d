"""Frames of other writers, in every codec, that Java, librdkafka or aiokafka read."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable

import cramjam
import lz4.frame
import pytest
import zstandard

from pykafka08.errors import CorruptRecordError
from pykafka08.records.bounds import PART
from pykafka08.records.compression import Codec, Compression
from pykafka08.records.lz4_frame import xxh32_short

TEXT = b"the same sentence again and again, " * 50
LARGE = bytes(range(256)) * (3 * PART // 256) + b"end"
XERIAL = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)


def skippable(content: bytes = b"notes", number: int = 0) -> bytes:
    """A skippable frame, which has the same format in lz4 and zstd."""
    return struct.pack("<II", 0x184D2A50 + number, len(content)) + content


def with_lz4_header(flags: int, extra: bytes) -> bytes:
    """A frame of one independent block of TEXT with these additional flags, and ``extra`` in its header."""
    header = bytes([0x60 | flags, 0x40]) + extra
    block = bytes(cramjam.lz4.compress_block(TEXT, store_size=False))
    checksum = bytes([xxh32_short(header) >> 8 & 255])
    return b"\x04\x22\x4d\x18" + header + checksum + struct.pack("<I", len(block)) + block + bytes(4)


def gzip_member(flags: int, fields: bytes) -> bytes:
    """A member with optional fields in its header."""
    packer = zlib.compressobj(wbits=-15)
    body = packer.compress(TEXT) + packer.flush()
    header = b"\x1f\x8b\x08" + bytes([flags]) + bytes(6) + fields
    return header + body + struct.pack("<II", zlib.crc32(TEXT), len(TEXT))


def lz4_frame(data: bytes, **more: bool) -> bytes:
    return bytes(lz4.frame.compress(data, block_linked=False, **more))


def zstd_frame(data: bytes, **more: bool) -> bytes:
    return zstandard.ZstdCompressor(**more).compress(data)


def raw_snappy(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data))


def chunk(data: bytes) -> bytes:
    return struct.pack(">i", len(raw_snappy(data))) + raw_snappy(data)


FRAMES: dict[str, tuple[Codec, bytes, bytes]] = {
    "gzip, zeros after it": (Codec.GZIP, gzip.compress(TEXT) + bytes(1), TEXT),
    "gzip, many zeros after it": (Codec.GZIP, gzip.compress(TEXT) + bytes(100_000), TEXT),
    "gzip, zeros between members": (
        Codec.GZIP,
        gzip.compress(TEXT) + bytes(512) + gzip.compress(b"2") + bytes(9),
        TEXT + b"2",
    ),
    "gzip, empty members": (Codec.GZIP, gzip.compress(b"") + gzip.compress(TEXT) + gzip.compress(b""), TEXT),
    "gzip, one empty member": (Codec.GZIP, gzip.compress(b""), b""),
    "gzip, a file name": (Codec.GZIP, gzip_member(8, b"name.bin\0"), TEXT),
    "gzip, an extra field and a comment": (Codec.GZIP, gzip_member(4 | 16, b"\x04\x00abcd" + b"why\0"), TEXT),
    "lz4, a skippable frame before it": (Codec.LZ4, skippable() + lz4_frame(TEXT), TEXT),
    "lz4, skippable frames everywhere": (
        Codec.LZ4,
        skippable(b"", 15) + lz4_frame(TEXT) + skippable(bytes(70_000), 3) + lz4_frame(b"2") + skippable(),
        TEXT + b"2",
    ),
    "lz4, the content size": (Codec.LZ4, lz4_frame(TEXT, store_size=True), TEXT),
    "lz4, every checksum": (Codec.LZ4, lz4_frame(TEXT, content_checksum=True, block_checksum=True), TEXT),
    "lz4, a dictionary id": (Codec.LZ4, with_lz4_header(1, struct.pack("<I", 7)), TEXT),
    "lz4, content size and dictionary": (Codec.LZ4, with_lz4_header(9, struct.pack("<QI", len(TEXT), 7)), TEXT),
    "lz4, linked blocks": (Codec.LZ4, bytes(lz4.frame.compress(LARGE, block_linked=True)), LARGE),
    "lz4, empty frames": (Codec.LZ4, lz4_frame(b"") + lz4_frame(TEXT) + lz4_frame(b""), TEXT),
    "lz4, one empty frame": (Codec.LZ4, lz4_frame(b""), b""),
    "zstd, skippable frames everywhere": (
        Codec.ZSTD,
        skippable() + zstd_frame(TEXT) + skippable(b"", 15) + zstd_frame(b"2") + skippable(bytes(9)),
        TEXT + b"2",
    ),
    "zstd, a checksum": (Codec.ZSTD, zstd_frame(TEXT, write_checksum=True), TEXT),
    "zstd, no content size": (Codec.ZSTD, zstd_frame(TEXT, write_content_size=False), TEXT),
    "zstd, empty frames": (Codec.ZSTD, zstd_frame(b"") + zstd_frame(TEXT) + zstd_frame(b""), TEXT),
    "zstd, one empty frame": (Codec.ZSTD, zstd_frame(b""), b""),
    "snappy, one bare block": (Codec.SNAPPY, raw_snappy(TEXT), TEXT),
    "snappy, a bare block that is large": (Codec.SNAPPY, raw_snappy(LARGE), LARGE),
    "snappy, an empty bare block": (Codec.SNAPPY, raw_snappy(b""), b""),
    "snappy, chunks of many sizes": (
        Codec.SNAPPY,
        XERIAL + chunk(b"1") + chunk(TEXT * 99) + chunk(b"") + chunk(b"2"),
        b"1" + TEXT * 99 + b"2",
    ),
    "snappy, streams one after another": (Codec.SNAPPY, (XERIAL + chunk(TEXT)) * 2 + XERIAL, TEXT * 2),
    "snappy, another version": (Codec.SNAPPY, XERIAL[:8] + struct.pack(">ii", 2, 1) + chunk(TEXT), TEXT),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_of_other_writers_are_read(compression: Compression, kind: str) -> None:
    codec, packed, plain = FRAMES[kind]
    assert compression.decompress(codec, packed) == plain
    assert b"".join(compression.unpacked_parts(codec, packed)) == plain


MAKERS: dict[str, tuple[Codec, Callable[[bytes], bytes]]] = {
    "gzip": (Codec.GZIP, gzip.compress),
    "gzip, two members": (Codec.GZIP, lambda data: gzip.compress(data[:99]) + bytes(3) + gzip.compress(data[99:])),
    "snappy": (
        Codec.SNAPPY,
        lambda data: XERIAL + b"".join(chunk(data[at : at + 9999]) for at in range(0, len(data), 9999)),
    ),
    "lz4": (Codec.LZ4, lz4_frame),
    "lz4, all header fields": (
        Codec.LZ4,
        lambda data: lz4_frame(data, content_checksum=True, block_checksum=True, store_size=True),
    ),
    "lz4, two frames": (Codec.LZ4, lambda data: lz4_frame(data[:99]) + lz4_frame(data[99:])),
    "zstd": (Codec.ZSTD, zstd_frame),
    "zstd, as Java writes it": (Codec.ZSTD, lambda data: zstd_frame(data, write_content_size=False)),
    "zstd, two frames": (Codec.ZSTD, lambda data: zstd_frame(data[:99]) + zstd_frame(data[99:], write_checksum=True)),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_large_data_is_unpacked_in_parts(compression: Compression, libraries: str, kind: str) -> None:
    codec, pack = MAKERS[kind]
    sizes = [len(part) for part in compression.unpacked_parts(codec, pack(LARGE), limit=4 * PART)]
    assert b"".join(compression.unpacked_parts(codec, pack(LARGE), limit=4 * PART)) == LARGE
    if codec is not Codec.ZSTD or libraries == "fast packages":  # cramjam has no way to stop within a frame
        assert len(sizes) >= 3
        assert max(sizes) <= 2 * PART


@pytest.mark.parametrize("kind", MAKERS)
def test_damage_is_found_in_parts_as_in_one_piece(compression: Compression, kind: str) -> None:
    codec, pack = MAKERS[kind]
    packed = pack(LARGE)
    for damaged in (packed[:-1], packed[: len(packed) // 2], packed + b"?"):
        with pytest.raises(CorruptRecordError):
            list(compression.unpacked_parts(codec, damaged, limit=4 * PART))


@pytest.mark.parametrize(
    "packed",
    [skippable()[:-1] + b"", skippable()[:6], lz4_frame(TEXT) + skippable()[:-1], skippable() + b"\x02" + bytes(20)],
)
def test_a_truncated_skippable_lz4_frame_is_damaged(compression: Compression, packed: bytes) -> None:
    with pytest.raises(CorruptRecordError):
        compression.decompress(Codec.LZ4, packed)


def test_an_lz4_frame_with_a_wrong_content_size_is_damaged(compression: Compression) -> None:
    for packed in (with_lz4_header(8, struct.pack("<Q", len(TEXT) + 1)), with_lz4_header(0, b"")[:6] + b"?" + bytes(9)):
        with pytest.raises(CorruptRecordError):
            list(compression.unpacked_parts(Codec.LZ4, packed))
