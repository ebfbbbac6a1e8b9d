"""Range and round robin: worked examples of the JVM's consumer, and properties over 2,000 random groups."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from pykafka08.records.record import TopicPartition
from pykafka08.zookeeper.assignment import (
    java_hash,
    java_order,
    range_assignment,
    round_robin_assignment,
    thread_ids,
)

TOPIC = "t"


def threads(**streams: int) -> list[str]:
    return [thread for member, count in streams.items() for thread in thread_ids(member, count)]


def in_range(partitions: int, readers: list[str]) -> dict[str, list[int]]:
    owners = range_assignment({TOPIC: range(partitions)}, {TOPIC: readers})
    shares: dict[str, list[int]] = {}
    for tp, reader in owners.items():
        shares.setdefault(reader, []).append(tp.partition)
    return shares


def test_range_one_stream_each() -> None:
    assert in_range(4, threads(A=1, B=1, C=1)) == {"A-0": [0, 1], "B-0": [2], "C-0": [3]}


def test_range_with_idle_threads() -> None:
    assert in_range(4, threads(A=2, B=2, C=2)) == {"A-0": [0], "A-1": [1], "B-0": [2], "B-1": [3]}


def test_range_uneven() -> None:
    assert in_range(5, threads(A=2, B=2)) == {"A-0": [0, 1], "A-1": [2], "B-0": [3], "B-1": [4]}
    assert in_range(2, threads(A=3)) == {"A-0": [0], "A-1": [1]}


def test_range_orders_thread_ids_as_strings() -> None:
    shares = in_range(13, threads(c=12))
    assert shares["c-0"] == [0, 1]
    order = ["c-1", "c-10", "c-11", *(f"c-{each}" for each in range(2, 10))]
    assert [shares[thread] for thread in order] == [[each] for each in range(2, 13)]


def test_range_sorts_partitions_by_number_and_takes_gaps() -> None:
    owners = range_assignment({TOPIC: [10, 9, 2]}, {TOPIC: ["a-0", "b-0"]})
    assert [owners[TopicPartition(TOPIC, each)] for each in (2, 9, 10)] == ["a-0", "a-0", "b-0"]


def test_range_is_computed_topic_by_topic() -> None:
    owners = range_assignment({"t": [0], "u": [0], "v": [0]}, {"t": ["a-0", "b-0"], "u": ["b-0"]})
    assert owners == {TopicPartition("t", 0): "a-0", TopicPartition("u", 0): "b-0"}


def test_hash_codes_are_javas() -> None:
    assert [java_hash(text) for text in ("", "a", "Aa", "BB", "orders-10")] == [0, 97, 2112, 2112, -390715897]
    assert java_hash("polygenelubricants") == -(1 << 31)
    assert java_hash("\U0001f600") == 1772899  # two UTF-16 units


def test_strings_are_ordered_by_utf16_units() -> None:
    assert sorted(["\uffee", "\U0001f600"], key=java_order) == ["\U0001f600", "\uffee"]


EVERYONE = {"orders": ["a-0", "b-0"], "clicks": ["a-0", "b-0"]}


@pytest.mark.parametrize(
    ("order", "expected"),
    [("brackets", list(range(12))), ("dash", [10, 11, *range(10)])],
)
def test_round_robin_order_of_one_topic(order: str, expected: list[int]) -> None:
    owners = round_robin_assignment({"orders": range(12)}, {"orders": [f"m{n:02}-0" for n in range(12)]}, order=order)
    assert [tp.partition for tp in sorted(owners, key=lambda tp: owners[tp])] == expected


@pytest.mark.parametrize(
    ("order", "orders_of_a"),
    [("brackets", {0, 2, 4, 6, 8, 10}), ("dash", {1, 3, 5, 7, 9, 10})],
)
def test_round_robin_of_two_topics_as_seen_on_brokers(order: str, orders_of_a: set[int]) -> None:
    owners = round_robin_assignment({"orders": range(12), "clicks": range(3)}, EVERYONE, order=order)
    of_a = {tp for tp, thread in owners.items() if thread == "a-0"}
    assert {tp.partition for tp in of_a if tp.topic == "orders"} == orders_of_a
    assert {tp.partition for tp in of_a if tp.topic == "clicks"} == {0, 2}


@pytest.mark.parametrize("order", ["brackets", "dash"])
def test_round_robin_of_two_topics_and_three_threads(order: str) -> None:
    readers = threads(a=2, b=1)
    owners = round_robin_assignment({"t1": range(3), "t2": range(2)}, {"t1": readers, "t2": readers}, order=order)
    assert {f"{tp.topic}/{tp.partition}": thread for tp, thread in owners.items()} == {
        "t1/0": "a-0",
        "t1/1": "a-1",
        "t1/2": "b-0",
        "t2/0": "a-0",
        "t2/1": "a-1",
    }


def test_round_robin_passes_over_threads_that_do_not_read_the_topic() -> None:
    owners = round_robin_assignment({"t": range(4), "u": range(2)}, {"t": ["a", "b"], "u": ["b"]})
    assert [owners[TopicPartition("t", each)] for each in range(4)] == ["a", "b", "a", "b"]
    assert [owners[TopicPartition("u", each)] for each in range(2)] == ["b", "b"]


def test_round_robin_breaks_ties_by_topic() -> None:
    owners = round_robin_assignment({"BB": [0], "Aa": [0]}, {"Aa": ["a", "b"], "BB": ["a", "b"]})
    assert owners == {TopicPartition("Aa", 0): "a", TopicPartition("BB", 0): "b"}


def test_round_robin_leaves_a_topic_that_nobody_reads() -> None:
    assert round_robin_assignment({"t": [0], "u": [0]}, {"t": ["a"]}) == {TopicPartition("t", 0): "a"}
    assert round_robin_assignment({"t": [0]}, {}) == {}


def random_group(dice: random.Random) -> tuple[dict[str, list[int]], dict[str, list[str]]]:
    topics = [f"topic{n}" for n in range(dice.randint(1, 4))]
    members = [f"g_host{dice.randint(0, 99)}-{n}" for n in range(dice.randint(1, 6))]
    partitions = {topic: dice.sample(range(30), dice.randint(0, 15)) for topic in topics}
    readers: dict[str, list[str]] = {topic: [] for topic in topics}
    for member in members:
        for topic in dice.sample(topics, dice.randint(1, len(topics))):
            readers[topic] += thread_ids(member, dice.randint(1, 12))
    for each in readers.values():
        dice.shuffle(each)
    return partitions, readers


def test_random_groups() -> None:
    dice = random.Random(8)
    for _ in range(3_000):
        partitions, readers = random_group(dice)
        expected = {TopicPartition(t, p) for t, ids in partitions.items() for p in ids if readers[t]}
        shuffled = {t: dice.sample(ids, len(ids)) for t, ids in readers.items()}
        by_range = range_assignment(partitions, readers)
        by_turn = round_robin_assignment(partitions, readers, order=dice.choice(["brackets", "dash"]))
        for owners in (by_range, by_turn):
            assert owners.keys() == expected
            assert all(thread in readers[tp.topic] for tp, thread in owners.items())
        assert by_range == range_assignment(partitions, shuffled)
        assert round_robin_assignment(partitions, readers) == round_robin_assignment(partitions, shuffled)
        for topic, ids in partitions.items():
            shares = Counter(by_range[TopicPartition(topic, each)] for each in ids if readers[topic])
            sizes = [shares[thread] for thread in sorted(set(readers[topic]), key=java_order)]
            assert max(sizes, default=0) - min(sizes, default=0) <= 1
            assert sizes == sorted(sizes, reverse=True)
            in_order = [by_range[TopicPartition(topic, each)] for each in sorted(ids) if readers[topic]]
            assert in_order == sorted(in_order, key=java_order)
        if len({frozenset(each) for each in readers.values()}) == 1:
            sizes = [Counter(by_turn.values())[thread] for thread in set(readers["topic0"])]
            assert max(sizes) - min(sizes) <= 1
