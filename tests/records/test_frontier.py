"""How far record bytes reach, read off the heads of their entries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka08.records.compression import Codec
from pykafka08.records.frontier import read_frontier
from pykafka08.records.rewrite import assign_offsets
from pykafka08.records.writer import encode_batch


def entries(magic: int, codec: Codec, count: int, base: int) -> bytes:
    data = encode_batch(
        magic, codec, timestamps=[1] * count, keys=[None] * count, values=[b"v%d" % index for index in range(count)]
    )
    return bytes(assign_offsets(data, base, leader_epoch=0).data)


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_after_the_last_whole_entry(magic: int, codec: Codec) -> None:
    first, second = entries(magic, codec, 3, 100), entries(magic, codec, 2, 103)
    assert read_frontier(first) == 103
    assert read_frontier(memoryview(first + second)) == 105
    for cut in range(1, 12):
        whole = 104 if codec is Codec.NONE and magic < 2 else 103
        assert read_frontier((first + second)[:-cut]) == whole


def test_formats_may_be_mixed() -> None:
    mixed = entries(0, Codec.NONE, 1, 0) + entries(1, Codec.GZIP, 4, 1) + entries(2, Codec.NONE, 2, 5)
    assert read_frontier(mixed) == 7


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_nothing_whole(magic: int) -> None:
    data = entries(magic, Codec.NONE, 1, 9)
    for size in range(len(data)):
        assert read_frontier(data[:size]) is None


@pytest.mark.parametrize("size", [-1, 0, 13])
def test_a_size_that_cannot_be(size: int) -> None:
    data = bytearray(entries(2, Codec.NONE, 1, 9))
    data[8:12] = size.to_bytes(4, "big", signed=True)
    assert read_frontier(data) is None


def test_what_follows_damage_is_not_counted() -> None:
    good = entries(2, Codec.NONE, 2, 0)
    bad = bytearray(entries(2, Codec.NONE, 2, 2))
    bad[16] = 9
    assert read_frontier(good + bad + entries(2, Codec.NONE, 2, 4)) == 2


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    frontier = read_frontier(data)
    assert frontier is None or isinstance(frontier, int)
