"""Five codecs, with and without the faster packages: round trips, foreign data, damage, bombs."""

from __future__ import annotations

import gzip
import random
import subprocess
import sys
import textwrap
import zlib
from collections.abc import Callable
from contextlib import suppress

import cramjam
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pykafka08.errors import ConfigError, CorruptRecordError, RecordTooLargeError
from pykafka08.records.compression import Codec, Compression, check_level, compress
from tests.records.libraries import CHOICES

PACKED = list(Codec)[1:]
NOISE = random.Random(8).randbytes(100_000)
SAMPLES = {
    "empty": b"",
    "one byte": b"x",
    "zeros": bytes(300_000),
    "noise": NOISE,
    "text": b"the same sentence again and again, " * 5000,
    "one block of lz4": NOISE[: 64 << 10],
    "one block of snappy": NOISE[: 32 << 10],
}


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", list(Codec))
def test_what_was_packed_comes_back(compression: Compression, codec: Codec, magic: int, sample: str) -> None:
    packed = compression.compress(codec, memoryview(SAMPLES[sample]), magic=magic)
    assert type(packed) is bytes
    for kind in (bytes, bytearray, memoryview):
        assert compression.decompress(codec, kind(packed), magic=magic) == SAMPLES[sample]


@pytest.mark.parametrize("codec", PACKED)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=5000), repeat=st.integers(1, 40))
def test_any_data_comes_back(compression: Compression, codec: Codec, data: bytes, repeat: int) -> None:
    assert compression.decompress(codec, compression.compress(codec, data * repeat)) == data * repeat


@pytest.mark.parametrize(
    ("codec", "pack"),
    [
        (Codec.GZIP, lambda data: gzip.compress(data)),
        (Codec.GZIP, lambda data: bytes(cramjam.gzip.compress(data))),
        (Codec.SNAPPY, lambda data: bytes(cramjam.snappy.compress_raw(data))),
        (Codec.LZ4, lambda data: bytes(cramjam.lz4.compress(data))),
        (Codec.ZSTD, lambda data: bytes(cramjam.zstd.compress(data))),
    ],
)
@pytest.mark.parametrize("sample", SAMPLES)
def test_what_others_packed_is_read(
    compression: Compression, codec: Codec, pack: Callable[[bytes], bytes], sample: str
) -> None:
    assert compression.decompress(codec, pack(SAMPLES[sample])) == SAMPLES[sample]


@pytest.mark.parametrize("codec", PACKED)
def test_several_members_one_after_another_are_one_text(compression: Compression, codec: Codec) -> None:
    members = [b"first " * 1000, b"", b"third", NOISE]
    assert compression.decompress(
        codec, b"".join(compression.compress(codec, member) for member in members)
    ) == b"".join(members)


def test_thousands_of_gzip_members_take_no_quadratic_time(compression: Compression) -> None:
    """Each member hands back what it did not use; with the whole rest each time this would copy 20 GB."""
    member = gzip.compress(b"x", mtime=0)
    assert compression.decompress(Codec.GZIP, member * 50_000) == b"x" * 50_000


@pytest.mark.parametrize("codec", PACKED)
def test_cut_off_data_is_an_error_at_every_byte(compression: Compression, codec: Codec) -> None:
    packed = compression.compress(codec, b"some text that is packed, " * 20)
    for size in range(len(packed)):
        if codec is Codec.SNAPPY and size == 16:
            continue  # the header of a stream without blocks: a whole, empty stream
        with pytest.raises(CorruptRecordError):
            compression.decompress(codec, packed[:size])


@pytest.mark.parametrize("codec", PACKED)
def test_changed_data_is_an_error_of_ours_or_other_data(compression: Compression, codec: Codec) -> None:
    chance = random.Random(9)
    packed = compression.compress(codec, SAMPLES["text"][:3000] + NOISE[:300])
    for _ in range(2000):
        damaged = bytearray(packed)
        for _ in range(chance.choice((1, 1, 4))):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        with suppress(CorruptRecordError):  # any other exception fails the test
            assert len(compression.decompress(codec, damaged, limit=1 << 20)) <= 1 << 20


@pytest.mark.parametrize("codec", list(Codec))
def test_the_limit_is_exact(compression: Compression, codec: Codec) -> None:
    packed = compression.compress(codec, SAMPLES["text"])
    size = len(SAMPLES["text"])
    assert compression.decompress(codec, packed, limit=size) == SAMPLES["text"]
    with pytest.raises(RecordTooLargeError, match="max_unpacked_bytes"):
        compression.decompress(codec, packed, limit=size - 1)


@pytest.mark.parametrize("codec", PACKED)
def test_the_limit_counts_all_members_together(compression: Compression, codec: Codec) -> None:
    packed = compression.compress(codec, bytes(1000))
    assert len(compression.decompress(codec, packed * 3, limit=3000)) == 3000
    with pytest.raises(RecordTooLargeError, match="max_unpacked_bytes"):
        compression.decompress(codec, packed * 3, limit=2999)


TRY_BOMB = textwrap.dedent("""
    import resource, sys
    from pykafka08.errors import RecordTooLargeError
    from pykafka08.records.compression import Codec, Compression
    compression = Compression(sys.argv[2:])
    bomb, codec = sys.stdin.buffer.read(), Codec[sys.argv[1]]
    compression.decompress(codec, compression.compress(codec, b"imports what it needs"))
    before = resource.getrusage(resource.RUSAGE_SELF)
    try:
        compression.decompress(codec, bomb)
    except RecordTooLargeError as error:
        after = resource.getrusage(resource.RUSAGE_SELF)
        print(after.ru_maxrss - before.ru_maxrss, str(error))
""")


def bomb_of(codec: Codec, mebibytes: int) -> bytes:
    """Zeros, packed without ever holding them where the format has blocks that can be repeated."""
    if codec is Codec.SNAPPY:
        stream = compress(codec, bytes(32 << 10))
        return stream[:16] + stream[16:] * (mebibytes * 32)
    if codec is Codec.LZ4:
        frame = compress(codec, bytes(64 << 10))
        return frame[:7] + frame[7:-4] * (mebibytes * 16) + frame[-4:]
    return compress(codec, bytes(mebibytes << 20))


@pytest.mark.parametrize("codec", PACKED)
def test_a_bomb_is_refused_before_it_fills_the_memory(codec: Codec, libraries: str) -> None:
    bomb = bomb_of(codec, 256)
    assert len(bomb) < 16 << 20
    made = subprocess.run(
        [sys.executable, "-c", TRY_BOMB, codec.name, *CHOICES[libraries]],
        input=bomb,
        capture_output=True,
        check=True,
        timeout=50,
    ).stdout.split(maxsplit=1)
    assert b"max_unpacked_bytes=67108864" in made[1]
    assert int(made[0]) < 80 << 10  # KiB


def test_the_names_of_codecs() -> None:
    assert [codec.label for codec in Codec] == ["none", "gzip", "snappy", "lz4", "zstd"]
    assert Codec.parse("GZip") is Codec.GZIP
    assert Codec.parse(None) is Codec.NONE
    assert Codec.parse(4) is Codec.ZSTD
    assert Codec.parse(Codec.LZ4) is Codec.LZ4
    for wrong in ("brotli", 5, -1):
        with pytest.raises(ConfigError, match="none, gzip, snappy, lz4, zstd"):
            Codec.parse(wrong)


def test_levels(compression: Compression, libraries: str) -> None:
    text = b"".join(b'{"id":%d,"name":"n%d"}' % (n * 7919 % 10_007, n % 13) for n in range(5000))
    for codec, low, high in ((Codec.GZIP, 1, 9), (Codec.ZSTD, 1, 19)):
        small, large = compression.compress(codec, text, level=high), compression.compress(codec, text, level=low)
        assert len(small) < len(large)
        assert compression.decompress(codec, small) == compression.decompress(codec, large) == text
    if "lz4" not in CHOICES[libraries]:
        with pytest.raises(ConfigError, match="package lz4"):
            compression.compress(Codec.LZ4, text, level=9)
    else:
        assert len(compression.compress(Codec.LZ4, text, level=17)) < len(compression.compress(Codec.LZ4, text))
        assert compression.decompress(Codec.LZ4, compression.compress(Codec.LZ4, text, level=17)) == text


@pytest.mark.parametrize(
    ("codec", "level"), [(Codec.NONE, 1), (Codec.SNAPPY, 1), (Codec.GZIP, 0), (Codec.GZIP, 10), (Codec.ZSTD, 23)]
)
def test_levels_that_do_not_exist(codec: Codec, level: int) -> None:
    with pytest.raises(ConfigError, match=codec.label):
        check_level(codec, level)


def test_a_zstd_window_of_2_gib_is_an_error(compression: Compression) -> None:
    frame = b"\x28\xb5\x2f\xfd\x00" + bytes([21 << 3]) + b"\x09\x00\x00x"
    with pytest.raises(CorruptRecordError):
        compression.decompress(Codec.ZSTD, frame)


def test_zstd_frames_that_are_to_be_passed_over(compression: Compression) -> None:
    skipped = b"\x50\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"notes"
    packed = compression.compress(Codec.ZSTD, b"text")
    assert compression.decompress(Codec.ZSTD, packed + skipped) == b"text"


def test_raw_deflate_and_zlib_streams_are_no_gzip(compression: Compression) -> None:
    with pytest.raises(CorruptRecordError):
        compression.decompress(Codec.GZIP, zlib.compress(b"text"))


@pytest.mark.parametrize("codec", PACKED)
def test_the_largest_batch_under_the_default_limit_is_read(compression: Compression, codec: Codec) -> None:
    plain = compression.decompress(codec, bomb_of(codec, 64))
    assert len(plain) == 64 << 20
    assert not plain.strip(b"\0")
