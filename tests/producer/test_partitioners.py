"""Hashes against known answers of the producers they copy; the choices for records without a key."""

from __future__ import annotations

import random
import zlib
from collections import Counter
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka08.errors import ConfigError
from pykafka08.producer.murmur2 import hash_by_bytes, hash_by_words
from pykafka08.producer.partitioners import (
    PARTITIONERS,
    RANDOM_STICKY_S,
    Chooser,
    arrays_hash_code,
    chooser_factory,
    murmur2,
    murmur2_partition,
    scala_masked_partition,
    scala_partition,
)

ALL = tuple(range(6))


def make(name: str, seed: int = 1, batch_size: int = 1000) -> Chooser:
    return chooser_factory(name, random.Random(seed), batch_size)()


class Topic(NamedTuple):
    partitions: tuple[int, ...]
    available: tuple[int, ...]
    lengths: dict[int, int]
    name: str = "t"

    def backlog(self, partition: int) -> int:
        return self.lengths.get(partition, 0)


def choose(
    chooser: Chooser,
    key: bytes | None = None,
    partitions: tuple[int, ...] = ALL,
    available: tuple[int, ...] | None = None,
    backlog: dict[int, int] | None = None,
    now: float = 0.0,
) -> int:
    topic = Topic(partitions, partitions if available is None else available, backlog or {})
    return chooser.choose(key, topic, now)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_equals_javas(key: bytes, expected: int) -> None:
    assert murmur2(key) == expected
    assert murmur2_partition(key, 7) == (expected & 0x7FFFFFFF) % 7


@pytest.mark.parametrize("size", [*range(20), 255, 256, 257, 1000])
def test_both_ways_to_compute_murmur2_are_the_same(size: int) -> None:
    chance = random.Random(size)
    for key in (chance.randbytes(size), bytes(size), b"\xff" * size):
        assert hash_by_bytes(key) == hash_by_words(key) == murmur2(key) & 0xFFFFFFFF


@pytest.mark.parametrize(
    ("key", "expected"),
    [(b"", 1), (b"a", 128), (b"\xff", 30), (b"abc", 126145), (b"\x80\x80\x80", 31**3 - 128 * (31 * 31 + 31 + 1))],
)
def test_arrays_hash_code_equals_javas(key: bytes, expected: int) -> None:
    assert arrays_hash_code(key) == expected


@given(st.binary(max_size=64))
def test_arrays_hash_code_is_the_signed_polynomial(key: bytes) -> None:
    exact = 31 ** len(key) + sum(
        int.from_bytes(key[i : i + 1], "big", signed=True) * 31 ** (len(key) - 1 - i) for i in range(len(key))
    )
    assert (arrays_hash_code(key) - exact) % 2**32 == 0
    assert -(2**31) <= arrays_hash_code(key) < 2**31


def test_the_two_scala_producers_differ_for_negative_hashes() -> None:
    key = next(k for k in (bytes([i, j]) for i in range(256) for j in range(256)) if arrays_hash_code(k) < 0)
    h = arrays_hash_code(key)
    assert scala_partition(key, 1000) == -h % 1000
    assert scala_masked_partition(key, 1000) == (h + 2**31) % 1000


def test_keys_go_by_crc32_as_with_librdkafka_and_empty_ones_at_random() -> None:
    chooser = make("consistent_random")
    assert {choose(chooser, b"key") for _ in range(20)} == {zlib.crc32(b"key") % 6}
    assert len({choose(chooser, b"") for _ in range(200)}) == 6
    assert len({choose(chooser, None) for _ in range(200)}) == 6


@pytest.mark.parametrize("name", [name for name in PARTITIONERS if name != "round_robin"])
@given(key=st.binary(min_size=1, max_size=40))
def test_a_key_keeps_its_partition_whatever_is_available(name: str, key: bytes) -> None:
    chooser = make(name)
    assert choose(chooser, key) == choose(chooser, key, available=(0,), now=1e6)


@pytest.mark.parametrize("name", list(PARTITIONERS))
def test_keyless_records_go_where_a_leader_is(name: str) -> None:
    chooser = make(name)
    assert {choose(chooser, available=(2, 5), now=i * 1000.0) for i in range(100)} == {2, 5}
    assert choose(chooser, available=()) in ALL


def test_sticky_asks_again_after_16_kib_or_batch_size() -> None:
    assert make("murmur2", batch_size=4096).stickiness == 4096
    assert make("murmur2", batch_size=131_072).stickiness == 16_384
    assert make("crc32", batch_size=1 << 20).stickiness == 16_384
    assert make("round_robin").stickiness == 0


def test_sticky_spreads_evenly_and_spares_partitions_with_long_queues() -> None:
    chooser = make("murmur2")
    even = Counter(choose(chooser) for _ in range(6000))
    assert set(even) == set(ALL)
    assert min(even.values()) > 800
    loaded = Counter(choose(chooser, backlog={0: 9}) for _ in range(5100))
    # Weights 1, 10, 10, 10, 10, 10.
    assert loaded[0] < 200
    assert min(loaded[p] for p in ALL[1:]) > 800


def test_sticky_compares_a_sample_of_many_partitions_and_spreads_evenly() -> None:
    chooser = make("murmur2")
    many = tuple(range(100))
    chosen = Counter(choose(chooser, available=many) for _ in range(20_000))
    assert set(chosen) == set(many)
    assert min(chosen.values()) > 120


def test_random_sticky_stays_ten_minutes() -> None:
    chooser = make("random_sticky")
    first = choose(chooser, now=0.0)
    assert {choose(chooser, now=float(t)) for t in range(0, int(RANDOM_STICKY_S), 10)} == {first}
    later = {choose(chooser, now=RANDOM_STICKY_S * turn) for turn in range(1, 60)}
    assert later == set(ALL)


def test_random_sticky_leaves_a_partition_that_lost_its_leader() -> None:
    chooser = make("random_sticky")
    first = choose(chooser)
    rest = tuple(p for p in ALL if p != first)
    assert choose(chooser, available=rest) in rest


def test_round_robin_takes_all_in_turn_with_and_without_keys() -> None:
    chooser = make("round_robin")
    turns = [choose(chooser, b"same" if i % 2 else None) for i in range(12)]
    assert sorted(turns[:6]) == list(ALL)
    assert turns[:6] == turns[6:]
    assert all((b - a) % 6 == 1 for a, b in pairwise(turns))


def test_a_function_is_asked_and_its_answer_checked() -> None:
    seen = []

    def last(key: bytes | None, partitions: tuple[int, ...], available: tuple[int, ...]) -> int:
        seen.append((key, partitions, available))
        return partitions[-1] if key else 99

    chooser = chooser_factory(last, random.Random(1), 1000)()
    assert choose(chooser, b"k", available=(1,)) == 5
    assert seen == [(b"k", ALL, (1,))]
    with pytest.raises(ConfigError, match="99"):
        choose(chooser, None)


def test_an_unknown_name_is_a_config_error_that_lists_the_known() -> None:
    with pytest.raises(ConfigError, match=r"murmur3.*murmur2, round_robin"):
        chooser_factory("murmur3", random.Random(1), 1)


@pytest.mark.parametrize("answer", [True, False, 1.0, "1", None, [1], -1, 6])
def test_an_answer_of_a_function_that_is_no_partition_is_refused(answer: object) -> None:
    chooser = chooser_factory(lambda *_: answer, random.Random(1), 1000)()  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="none of the 6 partitions") as caught:
        choose(chooser, b"k")
    assert caught.value.topic == "t"


def test_what_a_function_raises_is_the_cause_of_a_config_error() -> None:
    chooser = chooser_factory(lambda *_: 1 // 0, random.Random(1), 1000)()
    with pytest.raises(ConfigError, match="ZeroDivisionError") as caught:
        choose(chooser, b"k")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert caught.value.topic == "t"
