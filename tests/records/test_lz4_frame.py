"""LZ4 frames: the header checksum that Kafka got wrong, and frames of other writers."""

from __future__ import annotations

import struct

import cramjam
import lz4.frame
import pytest

from pykafka08.errors import CorruptRecordError
from pykafka08.records.lz4_frame import Lz4, xxh32_short

LIMIT = 1 << 20
PACKED_BY_LZ4, PACKED_BY_CRAMJAM = Lz4(lz4.frame), Lz4()
TEXT = b"frames of blocks of bytes, " * 9000


def compress(data: bytes, level: int | None = None, magic: int = 2) -> bytes:
    return PACKED_BY_LZ4.compress(data, level, magic)


def decompress(data: bytes | bytearray, limit: int, magic: int = 2) -> bytes:
    return PACKED_BY_LZ4.decompress(data, limit, magic)


def test_known_answers_of_xxh32() -> None:
    # The answers for no input and for "abc" are those that the hash's specification gives.
    assert xxh32_short(b"") == 0x02CC5D05
    assert xxh32_short(b"abc") == 0x32D153FF


@pytest.mark.parametrize(("magic", "checksum"), [(0, 0x1A), (1, 0x82), (2, 0x82)])
def test_the_header_that_each_format_wants(magic: int, checksum: int) -> None:
    for packed_by in (PACKED_BY_LZ4, PACKED_BY_CRAMJAM):
        frame = packed_by.compress(TEXT, None, magic)
        assert frame[:7] == b"\x04\x22\x4d\x18\x60\x40" + bytes([checksum])
        assert packed_by.decompress(frame, LIMIT, magic) == TEXT


@pytest.mark.parametrize(
    ("descriptor", "right", "wrong"), [(0x40, 0x82, 0x1A), (0x50, 0xFB, 0x77), (0x60, 0x51, 0xD6), (0x70, 0x73, 0x10)]
)
def test_both_checksums_of_each_block_size(descriptor: int, right: int, wrong: int) -> None:
    header = bytes([0x60, descriptor])
    assert xxh32_short(header) >> 8 & 255 == right
    assert xxh32_short(b"\x04\x22\x4d\x18" + header) >> 8 & 255 == wrong


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_magic_0_takes_any_checksum_and_the_others_take_the_right_one(magic: int) -> None:
    for checksum in (0x82, 0x1A, 0x00):
        frame = bytearray(compress(TEXT))
        frame[6] = checksum
        if magic == 0 or checksum == 0x82:
            assert decompress(bytes(frame), LIMIT, magic) == TEXT
            assert frame[6] == checksum
        else:
            with pytest.raises(CorruptRecordError):
                decompress(bytes(frame), LIMIT, magic)


def test_our_frames_are_frames_to_others() -> None:
    assert lz4.frame.decompress(compress(TEXT)) == TEXT
    assert bytes(cramjam.lz4.decompress(compress(TEXT, 12))) == TEXT


@pytest.mark.parametrize("block_size", [4, 5, 6, 7])
@pytest.mark.parametrize("is_linked", [False, True])
@pytest.mark.parametrize("has_extras", [False, True])
def test_frames_of_every_shape_are_read(block_size: int, is_linked: bool, has_extras: bool) -> None:
    frame = lz4.frame.compress(
        TEXT * 20, block_size=block_size, block_linked=is_linked, content_checksum=has_extras,
        block_checksum=has_extras, store_size=has_extras,
    )  # fmt: skip
    assert decompress(frame, 8 << 20) == TEXT * 20
    # With the content size the descriptor is longer, and its checksum somewhere else.
    broken = bytearray(frame)
    broken[14 if has_extras else 6] ^= 0xFF
    assert decompress(broken, 8 << 20, 0) == TEXT * 20


@pytest.mark.parametrize("packed_by", [PACKED_BY_LZ4, PACKED_BY_CRAMJAM])
def test_a_block_that_does_not_shrink_is_stored(packed_by: Lz4) -> None:
    frame = packed_by.compress(b"\x00\x01\x02", None, 2)
    assert struct.unpack_from("<I", frame, 7) == (3 | 1 << 31,)
    assert decompress(frame, 3) == b"\x00\x01\x02"


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        (b"", "no lz4 frame"),
        (b"\x04\x22\x4d\x18\x60\x40", "no lz4 frame"),
        (b"\x04\x22\x4d\x18\xa0\x40\x82" + bytes(4), "unknown flags"),
        (b"\x04\x22\x4d\x18\x62\x40\x82" + bytes(8), "unknown flags"),
        (b"\x04\x22\x4d\x18\x61\x40\x82" + bytes(6), "cut off"),
        (b"\x04\x22\x4d\x18\x60\x30\x82" + bytes(4), "unknown flags"),
        (b"\x04\x22\x4d\x18\x60\x40\x82" + b"\x01\x00\x01\x00" + bytes(70_000), "larger than the frame allows"),
        (b"\x04\x22\x4d\x18\x60\x40\x82" + b"\xff\x00\x00\x00abc", "cut off"),
        (b"\x04\x22\x4d\x18\x64\x40\xa7" + bytes(4), "cut off"),
        (b"\x04\x22\x4d\x18\x60\x40\x82" + b"\x03\x00\x00\x00\xff\xff\xff" + bytes(4), "damaged"),
    ],
)
def test_damaged_frames(frame: bytes, text: str) -> None:
    with pytest.raises(CorruptRecordError, match=text):
        decompress(frame, LIMIT)
