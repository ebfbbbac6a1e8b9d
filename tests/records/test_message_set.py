"""Magic 0 and 1: known bytes, wrappers, damage, and what must not be nested."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykafka08.errors import CorruptRecordError, LocalProtocolError, UnsupportedVersionError
from pykafka08.records import message_set, messages_native
from pykafka08.records.compression import Codec, compress, decompress
from pykafka08.records.message_set import encode_message_set
from pykafka08.records.reader import read_batches
from tests.records.samples import CODECS, entry_bounds, message, put_right, read

HELLO = {
    0: "000000000000000000000013 87a77ab2 00 00 ffffffff 00000005 68656c6c6f",
    1: "00000000000000000000001b ca1882f4 01 00 0000015d3ef79800 ffffffff 00000005 68656c6c6f",
}


def wrapper(magic: int, inner: bytes, codec: Codec = Codec.GZIP, **more: int) -> bytes:
    return message(magic, None, compress(codec, inner, magic=magic), attributes=int(codec), **more)


@pytest.mark.parametrize("magic", [0, 1])
def test_known_bytes(magic: int) -> None:
    data = bytes.fromhex(HELLO[magic])
    written = encode_message_set(magic, Codec.NONE, timestamps=[1_500_000_000_000], keys=[None], values=[b"hello"])
    assert written == data
    (item,) = read(data)[0]
    assert (item.key, item.value, item.offset) == (None, b"hello", 0)
    assert item.timestamp_ms == (1_500_000_000_000 if magic else -1)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", CODECS[0])
def test_a_set_that_we_write_is_one_wrapper_with_the_last_offset(magic: int, codec: Codec) -> None:
    data = encode_message_set(
        magic, codec, timestamps=[7, 9, 8], keys=[None, b"k", b""], values=[b"a", None, b""], offsets=[30, 31, 35]
    )
    (found,) = read(data)
    assert [(item.offset, item.key, item.value) for item in found] == [
        (30, None, b"a"),
        (31, b"k", None),
        (35, b"", b""),
    ]
    assert [item.timestamp_ms for item in found] == ([7, 9, 8] if magic else [-1, -1, -1])
    if codec:
        ((start, end),) = entry_bounds(data)
        offset, _, _, its_magic, attributes = struct.unpack_from(">qiIbb", data, start)
        assert (offset, its_magic, attributes) == (35, magic, codec)
        value_at = 22 if magic == 0 else 30
        (size,) = struct.unpack_from(">i", data, value_at)
        inner = decompress(codec, data[value_at + 4 : value_at + 4 + size], magic=magic)
        assert end == value_at + 4 + size
        numbers = [struct.unpack_from(">q", inner, place)[0] for place, _ in entry_bounds(inner)]
        assert numbers == ([30, 31, 35] if magic == 0 else [0, 1, 5])
        if magic:
            assert struct.unpack_from(">q", data, 18) == (9,)  # the largest timestamp
    else:
        assert len(entry_bounds(data)) == 3


def test_offsets_in_a_wrapper_of_magic_1_count_back_from_its_end() -> None:
    inner = b"".join(message(1, None, b"v", offset=number) for number in (0, 1, 2))
    assert [item.offset for item in read(wrapper(1, inner, offset=1002))[0]] == [1000, 1001, 1002]
    # Absolute ones, as some brokers stored them, come out right as well.
    inner = b"".join(message(1, None, b"v", offset=number) for number in (1000, 1001, 1002))
    assert [item.offset for item in read(wrapper(1, inner, offset=1002))[0]] == [1000, 1001, 1002]


def test_inner_messages_of_different_timestamp_types_follow_their_wrapper() -> None:
    inner = message(1, None, b"a", offset=0, timestamp=3, attributes=8) + message(1, None, b"b", offset=1, timestamp=4)
    (found,) = read(wrapper(1, inner, offset=1))
    assert [(item.timestamp_ms, item.timestamp_type) for item in found] == [(3, 0), (4, 0)]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("depth", [2, 3, 50])
@pytest.mark.parametrize("codec", CODECS[0][1:])
def test_a_wrapper_in_a_wrapper_is_damage_at_any_depth(magic: int, depth: int, codec: Codec) -> None:
    data = message(magic, None, b"core")
    for _ in range(depth):
        data = wrapper(magic, data, codec)
    with pytest.raises(CorruptRecordError, match="wrapper message inside a wrapper message"):
        read(data)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize(
    ("inner", "text"),
    [
        (lambda magic: b"", "empty set"),
        (lambda magic: b"\x00" * 11, "cut off"),
        (lambda magic: message(magic, None, b"abcdefgh")[:-1], "cut off"),
        (lambda magic: message(magic, None, b"a") + message(magic, None, b"b")[:20], "cut off"),
        (lambda magic: message(1 - magic, None, b"12345678"), "has magic"),
        (lambda magic: message(magic, None, b"a")[:8] + b"\xff\xff\xff\xff" + message(magic, None, b"a")[12:], "lies"),
        (lambda magic: message(magic, None, b"a")[:8] + b"\x00\x00\x00\x02" + message(magic, None, b"a")[12:], "lies"),
        (lambda magic: message(magic, None, b"a")[:-1] + b"b", "checksum"),
    ],
)  # fmt: skip
def test_damage_inside_a_wrapper(magic: int, inner: object, text: str) -> None:
    with pytest.raises(CorruptRecordError, match=text) as caught:
        read(wrapper(magic, inner(magic), offset=44))  # type: ignore[operator]
    assert (caught.value.topic, caught.value.partition, caught.value.offset) == ("t", 3, 44)
    assert caught.value.next_offset == 45


@pytest.mark.parametrize("magic", [0, 1])
def test_damage_of_a_wrapper_itself(magic: int) -> None:
    for codec in (4, 5, 6, 7):
        with pytest.raises(CorruptRecordError, match=f"codec {codec} does not exist in magic {magic}"):
            read(message(magic, None, b"x", attributes=codec))
    with pytest.raises(CorruptRecordError, match="holds no set"):
        read(message(magic, None, None, attributes=1))
    with pytest.raises(CorruptRecordError, match="gzip"):
        read(message(magic, None, b"this is no gzip", attributes=1))


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("attributes", [0, 0x10, 0x80, 0xF0])
def test_attributes_that_mean_nothing_are_passed_over(magic: int, attributes: int) -> None:
    body = bytearray(message(magic, b"k", b"v"))
    body[17] = attributes
    (found,) = read(bytes(put_right(body)))
    assert found.values() == [b"v"]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("size", [-2, -(1 << 31), 1, 3, 2_000_000_000])
@pytest.mark.parametrize("part", ["key", "value"])
def test_sizes_that_lie_inside_a_message(magic: int, size: int, part: str) -> None:
    data = bytearray(message(magic, b"kk", b"vv", offset=8))
    key_at = 18 if magic == 0 else 26
    struct.pack_into(">i", data, key_at if part == "key" else key_at + 6, size)
    good = message(magic, None, b"good", offset=7)
    with pytest.raises(CorruptRecordError, match="does not fit the message") as caught:
        read(bytes(put_right(data)))
    assert (caught.value.offset, caught.value.next_offset) == (8, 9)
    batches = read_batches(good + bytes(data), topic="t", partition=3, fetch_offset=0)
    assert [item.offset for item in next(batches)] == [7]
    with pytest.raises(CorruptRecordError):
        next(batches)


def test_what_cannot_be_written() -> None:
    with pytest.raises(LocalProtocolError, match="one length"):
        encode_message_set(0, Codec.NONE, timestamps=[1], keys=[None, None], values=[b"", b""])
    with pytest.raises(LocalProtocolError, match="at least one"):
        encode_message_set(0, Codec.NONE, timestamps=[], keys=[], values=[])
    with pytest.raises(LocalProtocolError, match="cannot be encoded"):
        encode_message_set(0, Codec.NONE, timestamps=[1], keys=[None], values=["text"])  # type: ignore[list-item]
    with pytest.raises(LocalProtocolError, match="cannot be encoded"):
        encode_message_set(1, Codec.NONE, timestamps=[1 << 63], keys=[None], values=[b""])
    with pytest.raises(UnsupportedVersionError, match=r"zstd needs magic 2.*0\.11"):
        encode_message_set(1, Codec.ZSTD, timestamps=[1], keys=[None], values=[b""])


CONTENT = st.none() | st.binary(max_size=70)


@settings(max_examples=100, deadline=None)
@given(
    magic=st.integers(0, 1),
    attributes=st.integers(0, 15),
    rows=st.lists(st.tuples(st.integers(0, 1 << 62), st.integers(-1, 1 << 62), CONTENT, CONTENT), min_size=1),
)
def test_compiled_code_packs_the_same(
    magic: int, attributes: int, rows: list[tuple[int, int, bytes | None, bytes | None]]
) -> None:
    columns = tuple(map(list, zip(*rows, strict=True)))
    expected = b"".join(message_set._pack_each(magic, attributes, *columns))  # type: ignore[arg-type]
    assert messages_native.pack_messages(magic, attributes, *columns) == expected  # type: ignore[arg-type]


@settings(max_examples=50, deadline=None)
@given(magic=st.integers(0, 1), stamp=st.integers(-1, 1 << 62), sizes=st.lists(st.integers(0, 9), min_size=60))
def test_messages_that_are_packed_together_have_the_same_bytes(magic: int, stamp: int, sizes: list[int]) -> None:
    values = [bytes([index % 251]) * size for index, size in enumerate(sizes)]
    keys, stamps, offsets = [None] * len(values), [stamp] * len(values), range(5, 5 + len(values))
    assert message_set._is_run(magic, stamps, keys, values)
    expected = message_set._pack_each(magic, 3, offsets, stamps, keys, values)
    assert b"".join(message_set._pack_run(magic, 3, offsets, stamps, keys, values)) == b"".join(expected)
    assert not message_set._is_run(1, [*stamps[:-1], stamp + 1], keys, values)
    assert not message_set._is_run(magic, stamps, [*keys[:-1], b""], values)  # type: ignore[list-item]
    assert not message_set._is_run(magic, stamps, keys, [*values[:-1], None])


@settings(max_examples=100, deadline=None)
@given(
    magic=st.integers(0, 1),
    codec=st.sampled_from(CODECS[0]),
    rows=st.lists(
        st.tuples(
            st.integers(1, 1000), st.integers(-1, 1 << 62), st.none() | st.binary(max_size=99), st.none() | st.binary()
        ),
        min_size=1,
        max_size=30,
    ),
)
def test_any_set_comes_back(magic: int, codec: Codec, rows: list[tuple[int, int, bytes | None, bytes | None]]) -> None:
    offsets = [sum(row[0] for row in rows[: place + 1]) for place in range(len(rows))]
    data = encode_message_set(
        magic, codec, timestamps=[row[1] for row in rows], keys=[row[2] for row in rows],
        values=[row[3] for row in rows], offsets=offsets,
    )  # fmt: skip
    found = [item for entry in read(data) for item in entry]
    assert [item.offset for item in found] == offsets
    assert [(item.key, item.value) for item in found] == [row[2:] for row in rows]
    assert [item.timestamp_ms for item in found] == [row[1] if magic else -1 for row in rows]
