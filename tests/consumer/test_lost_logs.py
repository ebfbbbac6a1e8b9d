"""Logs that are lost, in part or whole: nothing known of the records that are gone counts for those that come after."""

from __future__ import annotations

import copy
import pickle
from uuid import UUID

import anyio
import pytest

from pykafka08 import Consumer, EmbeddedCluster, Record, TopicPartition, UnknownTopicError
from pykafka08.consumer.actions import CutOff, SendListOffsets
from pykafka08.consumer.partition import LogName, PartitionState
from pykafka08.consumer.reader import Reader
from pykafka08.error_codes import ErrorCode
from tests.consumer.embedded import fill, numbers, read, values
from tests.consumer.groups import committed_in, consumer, until
from tests.consumer.world import Log, World

A, B = TopicPartition("a", 0), TopicPartition("a", 1)
T0 = TopicPartition("t", 0)


def make_again(world: World, new_id: int, *batches: int, partitions: tuple[TopicPartition, ...] = (A,)) -> None:
    world.ids["a"] = UUID(int=new_id)
    for tp in partitions:
        world.logs[tp] = Log(1)
        for count in batches:
            world.logs[tp].append(count)
    world.refresh()


# A topic made again, in a group


def group_world(policy: str, **settings: object) -> World:
    world = World({A: 1, B: 1}, with_ids=True, auto_offset_reset=policy, group_id="g", **settings)
    world.ids["a"] = UUID(int=1)
    world.refresh()
    return world


@pytest.mark.parametrize("policy", ["earliest", "latest"])
@pytest.mark.parametrize("sees", ["before", "between", "after"])
def test_partitions_that_come_back_of_a_topic_made_again_begin_at_its_beginning(policy: str, sees: str) -> None:
    """Whether the member hears of the new topic while it has them, has none, or has them again."""
    world = group_world(policy)
    assignment = world.machine.assignment
    assignment.take_over([A, B], is_held=False)
    for tp, epoch in assignment.awaiting_commit().items():
        assert assignment.committed_found(tp, epoch, 40)
    if sees == "before":
        make_again(world, 2, 5, partitions=(A, B))
    assignment.give_up([A, B])
    if sees == "between":
        make_again(world, 2, 5, partitions=(A, B))
    assignment.take_over([A, B], is_held=False)
    if sees == "after":
        make_again(world, 2, 5, partitions=(A, B))
    for tp, epoch in assignment.awaiting_commit().items():
        assert assignment.committed_found(tp, epoch, None)
    world.poll()
    for _ in range(3):
        world.answer_all()
    assert world.read_offsets() == {A: [0, 1, 2, 3, 4], B: [0, 1, 2, 3, 4]}


def test_a_commit_that_is_being_looked_up_is_looked_up_anew() -> None:
    """Other members may have read, and committed, in the new topic; the answer on its way may be of the old one."""
    world = group_world("latest")
    assignment = world.machine.assignment
    assignment.take_over([A], is_held=False)
    (old,) = assignment.awaiting_commit().values()
    make_again(world, 2, 9)
    assert not assignment.committed_found(A, old, 30)
    (new,) = assignment.awaiting_commit().values()
    assert assignment.committed_found(A, new, 6)
    world.poll()
    world.answer_all()
    assert world.read_offsets()[A][-3:] == [6, 7, 8]


def test_an_owner_does_not_ask_for_the_commit_in_the_new_topic() -> None:
    """It could only be its own, of the old one, that came late."""
    world = group_world("latest")
    assignment = world.machine.assignment
    assignment.take_over([A], is_held=False)
    world.logs[A].append(50)
    assignment.committed_found(A, assignment.awaiting_commit()[A], 40)
    world.poll()
    world.answer_all()
    assert world.read_offsets()[A] == list(range(40, 50))
    make_again(world, 2, 60)
    assert assignment.awaiting_commit() == {}
    world.poll()
    for _ in range(2):
        world.answer_all()
    assert world.read_offsets()[A] == list(range(60))


def test_a_member_that_has_read_nothing_asks_for_the_commit_in_the_new_topic() -> None:
    """Before Kafka 4.1 commits are looked up by name: the one that was found may be the new topic's already."""
    world = group_world("latest")
    assignment = world.machine.assignment
    assignment.take_over([A], is_held=False)
    assignment.committed_found(A, assignment.awaiting_commit()[A], 40)
    make_again(world, 2, 60)
    assert assignment.committed_found(A, assignment.awaiting_commit()[A], 40)
    world.poll()
    world.answer_all()
    assert world.read_offsets()[A] == list(range(40, 60))


def test_partitions_that_were_added_while_a_member_had_none_begin_at_their_beginning() -> None:
    """Though ``auto_offset_reset`` is latest: the member knows how many there were when it joined."""
    world = World({A: 1}, auto_offset_reset="latest", group_id="g")
    assignment = world.machine.assignment
    assignment.count_partitions(["a"])
    world.refresh()
    world.logs[B] = Log(1)
    world.logs[B].append(7)
    world.refresh()
    assignment.take_over([B], is_held=False)
    assert assignment.committed_found(B, assignment.awaiting_commit()[B], None)
    world.poll()
    for _ in range(2):
        world.answer_all()
    assert world.read_offsets()[B] == list(range(7))


def test_a_broker_that_has_not_heard_of_the_new_topic_changes_nothing() -> None:
    world = World({A: 1}, with_ids=True)
    world.logs[A].append(5)
    world.start()
    old = world.ids["a"]
    make_again(world, 2, 7)
    world.poll()
    for _ in range(2):
        world.answer_all()
    assert world.read_offsets() == {A: list(range(7))}
    world.ids["a"] = old
    world.refresh()
    world.ids["a"] = UUID(int=2)
    world.refresh()
    world.poll()
    assert world.started_anew == [A]
    assert world.machine.position(A) == 7


# A position that is not in the log


@pytest.mark.parametrize(("group_id", "start"), [("g", 30), (None, 50)])
def test_latest_is_where_a_group_begins_not_where_it_goes_on(group_id: str | None, start: int) -> None:
    """Retention was faster than the group: what is left is not passed over."""
    world = World({A: 1}, auto_offset_reset="latest", group_id=group_id)
    world.logs[A].append(50)
    world.start()
    assert world.machine.position(A) == 50
    world.machine.assignment.seek(A, 10)
    world.logs[A].start = 30
    for _ in range(3):
        world.poll()
        world.answer_all()
    (note,) = [each for each in world.notes if each.event == "position.reset"]
    assert note.facts["to"] == start


@pytest.mark.parametrize("seen_by", ["metadata", "fetch", "nobody"])
def test_without_ids_a_topic_that_was_away_is_read_from_its_beginning(seen_by: str) -> None:
    world = World({A: 1}, auto_offset_reset="latest")
    world.logs[A].append(50)
    world.start()
    if seen_by == "metadata":
        world.refresh(errors={"a": int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)})
    elif seen_by == "fetch":
        world.answer(world.fetch(), code=int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    world.logs[A] = Log(1)
    world.logs[A].append(3)
    world.refresh()
    for _ in range(4):
        world.wait(2)
        world.answer_all()
    assert world.read_offsets() == ({} if seen_by == "nobody" else {A: [0, 1, 2]})


def test_a_broker_that_does_not_know_the_topic_yet_changes_no_policy() -> None:
    world = World({A: 1}, auto_offset_reset="latest")
    world.logs[A].append(5)
    world.refresh()
    world.machine.assignment.assign([A])
    world.machine.assignment.seek(A, 50)
    world.poll()
    world.answer(world.fetch(), code=int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    world.refresh()
    for _ in range(4):
        world.wait(2)
        world.answer_all()
    world.logs[A].append(2)
    world.answer_all()
    assert world.read_offsets() == {A: [5, 6]}


def test_a_topic_that_was_away_for_a_moment_is_the_same_once_it_is_read_on() -> None:
    world = World({A: 1}, auto_offset_reset="latest")
    world.logs[A].append(5)
    world.start()
    world.refresh(errors={"a": int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)})
    world.refresh()
    world.logs[A].append(5)
    for _ in range(2):
        world.wait(2)
        world.answer_all()
    assert world.read_offsets() == {A: [5, 6, 7, 8, 9]}
    world.logs[A].truncate(0)
    for _ in range(3):
        world.wait(2)
        world.answer_all()
    (note,) = [each for each in world.notes if each.event == "position.reset"]
    assert note.facts == {"topic": "a", "partition": 0, "lost": 10, "to": 0}


def test_a_reset_that_goes_back_voids_what_was_read_behind_it() -> None:
    world = World({A: 1})
    world.logs[A].leader_epoch = -1  # before Kafka 0.11
    world.logs[A].append(10)
    world.start()
    world.answer_all()
    world.read_offsets()
    world.logs[A].truncate(0)
    world.logs[A].append(4)
    for _ in range(2):
        world.wait(1)
        world.answer_all(SendListOffsets)
        world.answer_all()
    assert world.cut_off == [CutOff(A, 0)]


@pytest.mark.anyio
@pytest.mark.parametrize("way", ["records", "batches"])
async def test_what_lies_taken_and_not_handed_out_below_a_cut_is_read_again(way: str) -> None:
    world = World({A: 1})
    world.logs[A].append(10)
    world.start()
    world.answer_all()
    reader = Reader(world.machine)
    if way == "records":
        assert reader._load_nowait() == 10
        assert [next(reader.cursor.records).offset for _ in range(3)] == [0, 1, 2]
    else:
        reader._pending.append(reader._hand_out())  # as by a call that was cancelled
    first = 3 if way == "records" else 0
    world.machine.assignment.seek(A, 6)  # the machine's part of the cut
    reader.cut(A, 6)
    assert reader.position(A) == world.machine.position(A) == first
    assert reader.finished(A) == (2 if way == "records" else 0), "the last one taken is still in hand"
    assert list(reader.cursor.records) == []
    world.machine.assignment.seek(A, 1)
    reader.cut(A, 1)
    assert reader.position(A) == reader.finished(A) == 1


def test_a_topic_of_a_pattern_that_is_deleted_is_let_go() -> None:
    other = TopicPartition("b", 0)
    world = World({A: 1, other: 1})
    world.machine.assignment.subscribe(["a", "b"])
    world.start()
    world.machine.assignment.subscribe(["a"])
    for _ in range(70):
        world.refresh(errors={"b": int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)})
        world.answer_all()
        world.wait(1)
    assert world.read_offsets() == {}, "no error either"
    assert world.machine.assignment.partitions() == (A,)
    assert world.started_anew == [other]
    assert [note.event for note in world.notes if note.facts["topic"] == "b"][-1] == "topic.gone"


def test_a_topic_that_was_asked_for_by_name_is_an_error_when_it_is_deleted() -> None:
    world = World({A: 1})
    world.machine.assignment.subscribe(["a"])
    world.start()
    for _ in range(70):
        world.refresh(errors={"a": int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)})
        world.answer_all()
        world.wait(1)
    with pytest.raises(UnknownTopicError):
        world.next_batch()


@pytest.mark.anyio
async def test_a_pattern_without_topics_waits_for_others() -> None:
    async with EmbeddedCluster(topics={"orders": 1}, auto_create_topics=False) as cluster:
        async with consumer(cluster, pattern="orders.*", group_id=None, metadata_max_age_ms=50) as reader:
            cluster.delete_topic("orders")
            await until(lambda: not reader._assignment._topics)
            cluster.create_topic("orders-b", 1)
            await fill(cluster, "orders-b", values(0, 3))
            assert numbers([record.value for record in await read(reader, 3)]) == [0, 1, 2]


# Whose record is it?


def test_names_tell_the_logs_of_a_partition_apart() -> None:
    state = PartitionState(A, 1, 100)
    first = state.tp.topic
    assert state.has_log_of("some copy of the name", 3)
    state.begin_log(10)
    second = state.tp.topic
    assert (second, hash(second), state.tp) == (first, hash(first), A)
    assert state.has_log_of(first, 9)
    assert not state.has_log_of(first, 10)
    assert state.has_log_of(second, 10)
    state.begin_log(12)
    state.begin_log(5)
    assert state.has_log_of(first, 4)
    assert not state.has_log_of(second, 5)
    assert state.has_log_of(state.tp.topic, 5)
    state.begin_log()
    assert not state.has_log_of(first, 0)
    assert not state.has_log_of(second, 0)
    assert state.has_log_of(state.tp.topic, 0)


def test_a_name_is_copied_and_pickled_as_text() -> None:
    name = LogName("orders")
    for copied in (copy.deepcopy(name), pickle.loads(pickle.dumps(name))):
        assert type(copied) is str
        assert copied == name == "orders"


def unclean(cluster: EmbeddedCluster, end_offset: int) -> None:
    cluster.elect_unclean_leader("t", 0, cluster.leader("t", 0), end_offset)


async def fill_fives(cluster: EmbeddedCluster, first: int, last: int) -> None:
    for start in range(first, last, 5):
        await fill(cluster, "t", values(start, start + 5))


def in_group(cluster: EmbeddedCluster, **settings: object) -> Consumer:
    return consumer(cluster, "t", fetch_max_wait_ms=20, auto_commit_interval_ms=20, **settings)


@pytest.mark.anyio
async def test_acknowledging_a_record_of_a_lost_topic_finishes_nothing_of_the_new_one() -> None:
    async with EmbeddedCluster(topics={"t": 1}, auto_create_topics=False) as cluster:
        await fill(cluster, "t", values(0, 50))
        async with in_group(cluster) as reader:
            old = (await read(reader, 50))[-1]
            cluster.delete_topic("t")
            cluster.create_topic("t", 1)
            await fill(cluster, "t", values(100, 160))
            new = await reader.getmany(max_records=60, timeout=60)
            while len(new) < 60:
                new += await reader.getmany(max_records=60 - len(new), timeout=60)
            assert numbers([record.value for record in new]) == list(range(100, 160))
            await reader.getmany(timeout=0)  # finishes them
            await reader.seek(T0, 20)
            held = await reader.getmany(max_records=40, timeout=60)
            reader.acknowledge(old)
            assert reader._reader.finished(T0) == 20
            reader.acknowledge(held[4])
            assert reader._reader.finished(T0) == 25
            await reader.aclose()
        assert await committed_in(cluster, [T0]) == {0: 25}


@pytest.mark.anyio
async def test_acknowledging_a_record_that_was_cut_off_finishes_nothing_that_came_for_it() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill_fives(cluster, 0, 20)
        async with in_group(cluster) as reader:
            old = await read(reader, 20)
            unclean(cluster, 10)
            await fill_fives(cluster, 100, 120)
            new = await reader.getmany(max_records=20, timeout=60)
            assert [record.offset for record in new][:5] == list(range(10, 15))
            for record in old:
                reader.acknowledge(record)
            assert reader._reader.finished(T0) == 10
            reader.acknowledge(new[1])
            assert reader._reader.finished(T0) == 12
            await reader.aclose()
        assert await committed_in(cluster, [T0]) == {0: 12}


@pytest.mark.anyio
async def test_handlers_of_records_that_are_cut_off_finish_nothing_that_came_for_them() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill_fives(cluster, 0, 20)
        gate, stuck, handled = anyio.Event(), anyio.Event(), list[tuple[int, bytes | None]]()

        async def handle(record: Record) -> None:
            if record.value in (b"8", b"12"):
                await gate.wait()
            if record.value == b"103":
                await stuck.wait()
            handled.append((record.offset, record.value))

        async with in_group(cluster) as reader, anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: reader.process(handle, concurrency=4, order="key"))
            await until(lambda: len(handled) == 18)
            unclean(cluster, 10)
            await fill_fives(cluster, 100, 110)
            await until(lambda: (14, b"104") in handled)
            assert reader._reader.finished(T0) == 8
            gate.set()
            await until(lambda: {(8, b"8"), (12, b"12"), (19, b"109")} <= set(handled))  # in whatever order they wake
            assert reader._reader.finished(T0) == 13
            tasks.cancel_scope.cancel()
        assert await committed_in(cluster, [T0]) == {0: 13}
