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
    assert schedule.under_way(tp) == 1
    assert schedule.first(tp) == 0
    schedule.ended(first)
    assert schedule.under_way(tp) == 0
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


@pytest.mark.parametrize("drains", [True, False])
def test_a_partition_that_goes_is_handled_up_to_the_last_record_that_was_begun(drains: bool) -> None:
    """Else what was finished out of turn would be handled again by the next owner."""
    schedule = Schedule(Order.KEY)
    tp = TopicPartition("t", 0)
    for offset, key in enumerate((b"slow", b"slow", b"a", b"a", b"slow", b"a")):
        schedule.add(Record("t", 0, offset, key=key))
    slow, *fast = schedule.next(), schedule.next()
    assert slow is not None
    for _ in range(2):  # of the key "a", offsets 2 and 3
        record = fast.pop()
        assert record is not None
        schedule.ended(record)
        fast.append(schedule.next())
    assert [each and each.offset for each in fast] == [5]
    schedule.drop(tp, drains=drains)
    assert schedule.under_way(tp) == (4 if drains else 2)
    schedule.ended(slow)
    handled = []
    while (record := schedule.next()) is not None:
        handled.append(record.offset)
        schedule.ended(record)
    assert handled == ([1, 4] if drains else [])
    assert fast[0] is not None
    schedule.ended(fast[0])
    assert schedule.first(tp) == (None if drains else 1)
    assert schedule.under_way(tp) == 0
    assert len(schedule) == 0


@given(seed=st.integers(0, 2**32), cut=st.integers(0, 30))
def test_what_was_handled_is_not_handled_again_by_the_next_schedule(seed: int, cut: int) -> None:
    """The first one ends amid its work; the second is given all from the first record that is not finished."""
    chance = random.Random(seed)
    tp = TopicPartition("t", 0)
    records = [Record("t", 0, 2 * number, key=b"%d" % chance.randrange(4)) for number in range(20)]
    finished: list[int] = []
    first = Schedule(Order.KEY)
    for record in records:
        first.add(record)
    work(first, chance, finished, enough=chance.randrange(20))
    first.cut(tp, cut)
    finished = [offset for offset in finished if offset < cut]
    second = Schedule(Order.KEY)
    second.leave_out(tp, first.finished_out_of_turn(tp))
    start = first.first(tp)
    if start is None:
        start = max(finished, default=-1) + 1
    for record in records:
        if record.offset >= start:
            second.add(record)
    work(second, chance, finished, enough=100)
    assert sorted(finished) == [record.offset for record in records]
    assert second.first(tp) is None


def test_a_partition_that_goes_is_handled_up_to_what_an_earlier_schedule_finished() -> None:
    schedule = Schedule(Order.KEY)
    tp = TopicPartition("t", 0)
    schedule.leave_out(tp, [2])
    for offset in range(5):
        schedule.add(Record("t", 0, offset, key=b"%d" % offset))
    schedule.drop(tp)
    handled = []
    while (record := schedule.next()) is not None:
        handled.append(record.offset)
        schedule.ended(record)
    assert handled == [0, 1]
    assert schedule.first(tp) == 3


def work(schedule: Schedule, chance: random.Random, finished: list[int], enough: int) -> None:
    """Handle records, three at a time, until so many are finished; the others give up."""
    running: list[Record] = []
    while len(finished) < enough:
        record = schedule.next() if len(running) < 3 else None
        if record is not None:
            running.append(record)
        elif not running:
            return
        else:
            ended = running.pop(chance.randrange(len(running)))
            schedule.ended(ended)
            finished.append(ended.offset)
    for record in running:
        schedule.gave_up(record)


def test_records_of_a_log_that_was_cut_count_for_nothing() -> None:
    schedule = Schedule(Order.KEY)
    tp = TopicPartition("t", 0)
    for offset in range(8):
        schedule.add(Record("t", 0, offset, key=b"%d" % offset))
    running = [schedule.next() for _ in range(6)]
    for record in (running[1], running[4]):
        assert record is not None
        schedule.ended(record)
    schedule.cut(tp, 3)
    assert schedule.first(tp) == 0
    assert schedule.under_way(tp) == 2, "offsets 0 and 2; 3 and 5 are handled, but of another log"
    for offset in range(3, 6):  # what the log holds there now
        schedule.add(Record("t", 0, offset, key=b"%d" % offset))
    for record in (running[0], running[2], running[3], running[5]):
        assert record is not None
        schedule.ended(record)
    assert schedule.first(tp) == 3
    again = [schedule.next() for _ in range(3)]
    assert [each and each.offset for each in again] == [4, 3, 5]
    for record in again:
        assert record is not None
        schedule.ended(record)
    assert schedule.first(tp) is None


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
