"""Which record is handled when: random schedules, of which each keeps the orders and the contiguous finished prefix."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka08.consumer.processing import schedule_of
from pykafka08.consumer.schedule import Order, Schedule
from pykafka08.errors import ConfigError
from pykafka08.records.record import Record, TopicPartition


@given(
    order=st.sampled_from(Order),
    keys=st.lists(st.tuples(st.integers(0, 2), st.sampled_from([None, b"a", b"b", b"c"])), max_size=60),
    seed=st.integers(0, 2**32),
)
def test_orders_and_prefixes_hold_whatever_ends_first(
    order: Order, keys: list[tuple[int, bytes | None]], seed: int
) -> None:
    chance = random.Random(seed)
    schedule = Schedule(order)
    offsets: dict[int, int] = defaultdict(int)
    records = []
    for partition, key in keys:
        offsets[partition] += chance.randint(1, 3)  # compaction leaves gaps
        records.append(Record("t", partition, offsets[partition], key=key))
    waiting, running, begun = list(records), list[Record](), list[Record]()
    finished: set[tuple[int, int]] = set()
    while waiting or running or len(schedule):
        step = chance.random()
        if waiting and step < 0.4:
            schedule.add(waiting.pop(0))
        elif running and step < 0.7:
            ended = running.pop(chance.randrange(len(running)))
            schedule.ended(ended)
            finished.add((ended.partition, ended.offset))
        elif (record := schedule.next()) is not None:
            assert lane(order, record) not in [lane(order, other) for other in running]
            running.append(record)
            begun.append(record)
        for partition in offsets:
            check_prefix(schedule, partition, records, waiting, finished)
    assert len(begun) == len(records)
    assert not schedule.is_running
    by_lane: dict[object, list[int]] = defaultdict(list)
    for record in begun:
        by_lane[lane(order, record)].append(record.offset)
    assert all(seen == sorted(seen) for seen in by_lane.values())


def lane(order: Order, record: Record) -> object:
    if order is Order.PARTITION:
        return record.partition
    return (record.partition, record.key) if record.key is not None else (record.partition, record.offset)


def check_prefix(
    schedule: Schedule, partition: int, records: list[Record], waiting: list[Record], finished: set[tuple[int, int]]
) -> None:
    added = [each.offset for each in records if each.partition == partition and each not in waiting]
    unfinished = [offset for offset in added if (partition, offset) not in finished]
    assert schedule.first(TopicPartition("t", partition)) == min(unfinished, default=None)


def test_a_partition_that_goes_begins_nothing_and_stays_unfinished() -> None:
    schedule = Schedule(Order.KEY)
    tp, other = TopicPartition("t", 0), TopicPartition("t", 1)
    records = [Record("t", 0, offset, key=b"%d" % (offset % 2)) for offset in range(6)]
    for record in (*records, Record("t", 1, 0)):
        schedule.add(record)
    first, second = schedule.next(), schedule.next()
    assert [first, second] == records[:2]
    assert first is not None
    assert second is not None
    schedule.drop(tp)
    assert len(schedule) == 3
    schedule.ended(second)
    assert schedule.running(tp) == 1
    assert schedule.first(tp) == 0
    schedule.ended(first)
    assert schedule.running(tp) == 0
    assert schedule.first(tp) == 2
    last = schedule.next()
    assert last is not None
    assert last.partition == 1
    assert schedule.next() is None
    schedule.ended(last)
    assert schedule.partitions() == (tp,)
    schedule.forget(tp)
    assert schedule.first(tp) is None
    assert schedule.first(other) is None
    assert len(schedule) == 0


def test_a_handler_that_ends_after_its_partition_has_come_back_counts_for_nothing() -> None:
    schedule = Schedule(Order.PARTITION)
    tp = TopicPartition("t", 0)
    old, again, after = (Record("t", 0, offset) for offset in (5, 5, 6))
    schedule.add(old)
    assert schedule.next() is old
    schedule.forget(tp)
    schedule.add(again)
    schedule.add(after)
    assert schedule.next() is None, "the lane is still taken"
    schedule.ended(old)
    assert schedule.first(tp) == 5
    assert schedule.next() is again
    schedule.gave_up(again)
    assert schedule.first(tp) == 5
    assert not schedule.is_running


@pytest.mark.parametrize(("concurrency", "order"), [(0, "key"), (True, "key"), (1.5, "key"), (1, "topic")])
def test_what_means_nothing_is_refused(concurrency: int, order: str) -> None:
    with pytest.raises(ConfigError):
        schedule_of(concurrency, order)
