"""Hostile bytes for every codec: whatever they are, data within the limit or one error, and little memory."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import cramjam
import lz4.frame
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pykafka08.errors import CorruptRecordError, RecordTooLargeError
from pykafka08.records import scratch
from pykafka08.records.compression import Codec, Compression

PACKED = list(Codec)[1:]
LIMIT = 1 << 20
#: How data of each format begins, so that noise comes further than the first look.
BEGINNINGS = {
    Codec.GZIP: [b"", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"],
    Codec.SNAPPY: [b"", b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01", b"\x82SNAPPY\x00" + bytes(11)],
    Codec.LZ4: [
        b"",
        *(b"\x04\x22\x4d\x18" + rest for rest in (b"\x60\x40\x82", b"\x70\x40\xad", b"\x68\x70", b"\x64")),
    ],
    Codec.ZSTD: [b"", *(b"\x28\xb5\x2f\xfd" + rest for rest in (b"\x00\x58", b"\x20\xff", b"\xe0", b"\x60"))],
}
# The same examples in every run: whoever wants to look further takes that away and raises the number.
MANY = settings(
    max_examples=60, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def unpacked_or_refused(compression: Compression, codec: Codec, data: bytes, magic: int = 2) -> bytes | None:
    """The unpacked data; None for damage and above the limit.  Any other exception fails the test.

    Reading in parts gives the same data, up to the damage.
    """
    parts: list[bytes] = []
    with suppress(CorruptRecordError, RecordTooLargeError):
        for part in compression.unpacked_parts(codec, data, limit=LIMIT, magic=magic):
            parts.append(part)
            if sum(map(len, parts)) > LIMIT:
                break
    try:
        plain = compression.decompress(codec, data, limit=LIMIT, magic=magic)
    except (CorruptRecordError, RecordTooLargeError):
        return None
    assert b"".join(parts) == plain
    assert type(plain) is bytes
    assert len(plain) <= LIMIT
    return plain


@pytest.mark.parametrize("codec", PACKED)
@MANY
@given(data=st.data())
def test_noise(compression: Compression, codec: Codec, data: st.DataObject) -> None:
    noise = data.draw(st.sampled_from(BEGINNINGS[codec])) + data.draw(st.binary(max_size=200))
    for magic in (0, 2):
        unpacked_or_refused(compression, codec, noise, magic)


@pytest.mark.parametrize("codec", PACKED)
@MANY
@given(data=st.data())
def test_damaged_in_a_few_places(compression: Compression, codec: Codec, data: st.DataObject) -> None:
    plain = data.draw(st.binary(max_size=300)) * data.draw(st.sampled_from((1, 5, 400)))
    packed = bytearray(compression.compress(codec, plain))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(packed) - 1))
        packed[place] ^= 1 << data.draw(st.integers(0, 7))
    unpacked_or_refused(compression, codec, bytes(packed))
    # What damage leaves behind in kept contexts and buffers reaches no other batch.
    assert compression.decompress(codec, compression.compress(codec, plain)) == plain


@pytest.mark.parametrize("codec", PACKED)
@MANY
@given(data=st.data())
def test_garbage_behind_the_data(compression: Compression, codec: Codec, data: st.DataObject) -> None:
    packed = compression.compress(codec, b"text " * 50)
    garbage = data.draw(st.binary(min_size=1, max_size=3).filter(any))  # gzip may be padded with zeros
    assert unpacked_or_refused(compression, codec, packed + garbage) is None


@pytest.mark.parametrize("codec", PACKED)
@MANY
@given(data=st.data())
def test_cut_off_anywhere(compression: Compression, codec: Codec, data: st.DataObject) -> None:
    plain = data.draw(st.binary(min_size=100, max_size=200)) * 1000
    packed = compression.compress(codec, plain)
    size = data.draw(st.integers(0, len(packed) - 1))
    found = unpacked_or_refused(compression, codec, packed[:size])
    if codec is Codec.SNAPPY and found is not None:
        assert plain.startswith(found)  # the end of a block is the end of a stream
        assert len(found) % (32 << 10) == 0
    else:
        assert found is None


@pytest.mark.parametrize("claim", [300, 1 << 20, (1 << 20) + 1, 1 << 40, (1 << 64) - 1])
def test_a_zstd_frame_that_lies_about_its_content(compression: Compression, claim: int) -> None:
    block = (len(b"text") << 3 | 1).to_bytes(3, "little") + b"text"
    frame = b"\x28\xb5\x2f\xfd\xe0" + claim.to_bytes(8, "little") + block
    honest = b"\x28\xb5\x2f\xfd\xe0" + (4).to_bytes(8, "little") + block
    assert compression.decompress(Codec.ZSTD, honest) == b"text"
    for data in (frame, frame + honest, honest + frame):
        with pytest.raises(CorruptRecordError):
            compression.decompress(Codec.ZSTD, data, limit=LIMIT)


@pytest.mark.parametrize("claim", [1, 5, 1 << 20, 1 << 40, (1 << 64) - 1])
def test_an_lz4_frame_that_lies_about_its_content(compression: Compression, claim: int) -> None:
    frame = bytearray(lz4.frame.compress(b"text", store_size=True, block_linked=False))
    assert compression.decompress(Codec.LZ4, frame) == b"text"
    frame[6:14] = claim.to_bytes(8, "little")
    with pytest.raises(CorruptRecordError):
        compression.decompress(Codec.LZ4, frame, limit=LIMIT)
    # Below magic 1 the checksum of the header is put right, so that the claim itself is seen.
    assert unpacked_or_refused(compression, Codec.LZ4, bytes(frame), 0) in (None, b"text")


@pytest.mark.parametrize("sizes", [(1,), (1000,), (0, 1000, 0), (70_000, 200_000), (5, 300_000, 5)])
def test_zstd_frames_without_content_size(compression: Compression, sizes: tuple[int, ...]) -> None:
    """As Java's producer writes them."""
    plain = [bytes(range(256)) * (size // 256 + 1) for size in sizes]
    packer = zstandard.ZstdCompressor(write_content_size=False, write_checksum=len(sizes) > 1)
    packed = b"".join(packer.compress(part) for part in plain)
    assert compression.decompress(Codec.ZSTD, packed) == b"".join(plain)
    size = sum(map(len, plain))
    assert len(compression.decompress(Codec.ZSTD, packed, limit=size)) == size
    with pytest.raises(RecordTooLargeError, match="max_unpacked_bytes"):
        compression.decompress(Codec.ZSTD, packed, limit=size - 1)


def test_lz4_frames_as_aiokafka_writes_them(compression: Compression) -> None:
    """With a checksum behind each block."""
    plain = bytes(range(256)) * 1000
    packer = cramjam.lz4.Compressor(level=9, content_checksum=False, block_linked=False)
    packer.compress(plain)
    packed = bytes(packer.finish())
    assert packed[4] & 16
    assert compression.decompress(Codec.LZ4, packed) == plain
    assert unpacked_or_refused(compression, Codec.LZ4, packed[:-1]) is None


@pytest.mark.parametrize("codec", PACKED)
def test_threads_share_one_compression(compression: Compression, codec: Codec) -> None:
    """Contexts and buffers are nobody else's while they are in use."""
    together = threading.Barrier(3)

    def work(number: int) -> bool:
        plain = b"".join(b"%d of %d;" % (index, number) for index in range(4000))
        together.wait(60)
        return all(
            compression.decompress(codec, compression.compress(codec, plain[: 1000 * step])) == plain[: 1000 * step]
            for step in range(1, 25)
        )

    with ThreadPoolExecutor(3) as threads:
        assert all(threads.map(work, range(3)))


def test_kept_buffers_are_few_and_of_bounded_size() -> None:
    rooms = [scratch.take(size) for size in (1, 100_000, scratch.LARGEST_KEPT, scratch.LARGEST_KEPT + 1) * 3]
    assert len({id(room) for room in rooms}) == len(rooms)
    for room in rooms:
        scratch.give_back(room)
    kept = [scratch.take(0) for _ in rooms]
    assert sum(map(len, kept)) <= 4 * scratch.LARGEST_KEPT + len(kept) * (128 << 10)
    for room in kept:
        scratch.give_back(room)
