"""Frames out of a stream, however it is cut."""

from __future__ import annotations

import random
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykafka08.errors import RemoteProtocolError, ResponseTooLargeError, TlsError
from pykafka08.protocol.framing import MAX_FRAME_BYTES, FrameSplitter


def framed(*bodies: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(body)) + body for body in bodies)


MOST_PIECES = 200
SIZES = st.one_of(st.integers(1, 20), st.integers(8_000, 8_400), st.integers(60_000, 70_000), st.just(200_000))


@settings(max_examples=150)
@given(st.lists(SIZES, max_size=6), st.lists(st.integers(1, 90_000), min_size=1, max_size=8))
def test_any_cut_gives_the_same_frames(sizes: list[int], cuts: list[int]) -> None:
    bodies = [bytes((index + 1,)) * size for index, size in enumerate(sizes)]
    stream = framed(*bodies)
    splitter, found, at, turn = FrameSplitter(), [], 0, 0
    while at < len(stream):
        piece = stream[at : at + max(cuts[turn % len(cuts)], len(stream) // MOST_PIECES)]
        splitter.feed(piece)
        found += list(splitter)
        at += len(piece)
        turn += 1
    assert [bytes(frame) for frame in found] == bodies
    assert not splitter.is_mid_frame


@settings(max_examples=100)
@given(st.lists(SIZES, max_size=6), st.lists(st.integers(1, 90_000), min_size=1, max_size=8))
def test_bytes_received_in_place(sizes: list[int], cuts: list[int]) -> None:
    bodies = [bytes((index + 1,)) * size for index, size in enumerate(sizes)]
    stream, at, turn = framed(*bodies), 0, 0
    splitter, found = FrameSplitter(), []
    while at < len(stream):
        room = splitter.next_buffer(-1)
        assert len(room) > 0
        size = min(len(room), max(cuts[turn % len(cuts)], len(stream) // MOST_PIECES), len(stream) - at)
        room[:size] = stream[at : at + size]
        splitter.bytes_received(size)
        found += list(splitter)
        at += size
        turn += 1
    assert [bytes(frame) for frame in found] == bodies


def test_one_byte_at_a_time() -> None:
    splitter, found = FrameSplitter(), []
    for byte in framed(b"a", b"bc", b"d" * 300):
        splitter.feed(bytes((byte,)))
        found += list(splitter)
    assert found == [b"a", b"bc", b"d" * 300]


def test_a_large_frame_is_received_into_its_own_memory() -> None:
    splitter = FrameSplitter()
    splitter.feed(struct.pack(">i", 1_000_000))
    room = splitter.next_buffer(65536)
    assert len(room) == 1_000_000
    room[:] = bytes(1_000_000)
    splitter.bytes_received(1_000_000)
    (frame,) = splitter
    assert isinstance(frame, memoryview)
    assert frame.obj is room.obj
    assert list(splitter) == []


def test_mid_frame() -> None:
    splitter = FrameSplitter()
    assert not splitter.is_mid_frame
    splitter.feed(b"\0\0")
    assert splitter.is_mid_frame
    splitter.feed(b"\0\1")
    assert splitter.is_mid_frame
    splitter.feed(b"x")
    assert list(splitter) == [b"x"]
    assert not splitter.is_mid_frame
    splitter.feed(struct.pack(">i", 100_000) + b"begun")
    assert splitter.is_mid_frame


@pytest.mark.parametrize("size", [-1, -(2**31), 1001, 2**31 - 1])
def test_an_impossible_size_ends_the_stream(size: int) -> None:
    splitter = FrameSplitter(max_frame_bytes=1000)
    splitter.feed(framed(b"good") + struct.pack(">i", size) + b"x" * 100)
    frames = iter(splitter)
    assert next(frames) == b"good"
    with pytest.raises(RemoteProtocolError, match=f"a frame of {size} bytes is announced") as caught:
        next(frames)
    assert isinstance(caught.value, ResponseTooLargeError) is (size > 0)
    assert getattr(caught.value, "size", size) == size
    splitter.feed(framed(b"more"))
    with pytest.raises(RemoteProtocolError):
        list(splitter)
    assert not splitter.is_mid_frame


def test_the_largest_frame_is_accepted() -> None:
    splitter = FrameSplitter(max_frame_bytes=1000)
    splitter.feed(framed(b"x" * 1000))
    assert list(splitter) == [b"x" * 1000]
    assert MAX_FRAME_BYTES == 104857600


@pytest.mark.parametrize(
    ("beginning", "meaning"),
    [
        (b"HTTP/1.1 400 Bad Request", "the peer speaks HTTP"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "the peer answered with a TLS alert"),
        (b"\x16\x03\x01\x02\x00", "the peer speaks TLS"),
        (b"SSH-2.0-OpenSSH", "the peer speaks SSH"),
    ],
)
def test_other_protocols_are_named(beginning: bytes, meaning: str) -> None:
    splitter = FrameSplitter()
    splitter.feed(beginning)
    with pytest.raises(TlsError if "alert" in meaning else RemoteProtocolError, match=f"^{meaning}"):
        list(splitter)


def test_memory_of_large_frames_is_used_again_once_nobody_holds_it() -> None:
    splitter = FrameSplitter()
    seen = set()
    for number in range(200):
        body = bytes((number,)) * (1_000_000 + number)
        splitter.feed(framed(body))
        (frame,) = splitter
        assert frame == body
        assert isinstance(frame, memoryview)
        seen.add(id(frame.obj))
        del frame
    assert len(seen) < 10


def test_a_frame_stays_what_it_is_while_a_view_of_it_is_held() -> None:
    numbers = random.Random(3)
    splitters = FrameSplitter(), FrameSplitter()
    held: list[tuple[memoryview, bytes]] = []
    for number in range(300):
        size = numbers.choice((70_000, 90_000, 130_000, 300_000)) + numbers.randrange(5_000)
        body = bytes((number % 256,)) * size
        splitter = splitters[number % 2]
        splitter.feed(framed(body)[:-10])
        assert list(splitter) == []
        splitter.feed(body[-10:])
        (frame,) = splitter
        start = numbers.randrange(size)
        held.append((memoryview(memoryview(frame))[start : start + 50], body[start : start + 50]))
        del frame
        while len(held) > numbers.randrange(1, 30):
            held.pop(numbers.randrange(len(held)))
        assert all(view == wanted for view, wanted in held)
