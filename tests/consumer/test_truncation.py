"""Logs that are cut: the machine notices, and goes on where its policy says (KIP-320)."""

from __future__ import annotations

import pytest

from pykafka08.consumer.actions import SendEpochs, SendFetch, SendListOffsets
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import LogTruncationError, TransportError, UnsupportedVersionError
from pykafka08.records.record import TopicPartition
from tests.consumer.world import World

A = TopicPartition("a", 0)
B = TopicPartition("a", 1)


def world_with(batches: int, **settings: object) -> World:
    """``batches`` of 10 records, each in an epoch of its own, all read."""
    world = World({A: 1}, **settings)
    for _ in range(batches):
        world.logs[A].append(10)
        world.logs[A].leader_epoch += 1
    world.logs[A].leader_epoch -= 1
    world.start()
    world.answer_all()
    world.read_offsets()
    assert world.machine.position(A) == 10 * batches
    return world


def lead_again(world: World, end: int, leader: int = 2) -> None:
    """Another leader, whose log ends at ``end``, is known."""
    world.logs[A].truncate(end)
    world.move_leader(A, leader)
    world.refresh()
    world.poll()


def question(world: World) -> SendEpochs:
    (asked,) = [flight for flight in world.flights if isinstance(flight, SendEpochs)]
    return asked


def test_a_new_leader_that_has_all_is_asked_once() -> None:
    world = world_with(2)
    lead_again(world, 20)
    asked = question(world)
    assert asked.node_id == 2
    assert [(ask.tp, ask.last_epoch, ask.leader_epoch) for ask in asked.asks] == [(A, 1, 2)]
    world.answer(asked)
    assert [(fetch.node_id, fetch.asks[0].offset) for fetch in world.fetches() if fetch.node_id == 2] == [(2, 20)]
    assert world.machine.position(A) == 20
    world.refresh()
    world.poll()
    assert not [flight for flight in world.flights if isinstance(flight, SendEpochs)]


def test_nothing_is_fetched_before_the_leader_has_answered() -> None:
    world = world_with(1)
    world.flights.clear()
    lead_again(world, 10)
    assert [type(flight) for flight in world.flights] == [SendEpochs]
    world.wait(10)
    assert [type(flight) for flight in world.flights] == [SendEpochs]


def test_an_epoch_that_we_have_read_needs_no_question() -> None:
    world = World({A: 1})
    world.logs[A].leader_epoch = 3
    world.logs[A].append(4)
    world.start()
    world.answer_all()
    world.refresh()
    world.poll()
    assert {type(flight) for flight in world.flights} == {SendFetch}


@pytest.mark.parametrize("policy", ["earliest", "latest"])
def test_a_cut_log_is_read_from_where_it_was_cut(policy: str) -> None:
    world = world_with(3, auto_offset_reset="earliest")
    object.__setattr__(world.config, "auto_offset_reset", policy)
    lead_again(world, 10)
    world.logs[A].append(7)
    world.answer(question(world))
    assert world.machine.position(A) == 10
    world.answer_all()
    assert world.read_offsets() == {A: list(range(10, 17))}
    (note,) = [note for note in world.notes if note.event == "log.truncated"]
    assert note.facts == {"topic": "a", "partition": 0, "position": 30, "to": 10}


def test_without_a_policy_a_cut_log_is_an_error_until_somebody_seeks() -> None:
    world = world_with(3)
    object.__setattr__(world.config, "auto_offset_reset", "none")
    lead_again(world, 10)
    for _ in range(2):
        world.answer(question(world))
        with pytest.raises(LogTruncationError) as caught:
            world.next_batch()
        assert (caught.value.topic, caught.value.partition) == ("a", 0)
        assert (caught.value.offset, caught.value.end_offset) == (30, 10)
        assert "from 10 to 29" in str(caught.value)
        world.wait(2)
    world.machine.assignment.seek(A, 10)
    world.poll()
    world.logs[A].append(1)
    world.answer_all()
    world.answer_all()
    assert world.read_offsets() == {A: [10]}


def test_a_log_that_knows_none_of_our_epochs() -> None:
    world = world_with(3)
    log = world.logs[A]
    log.truncate(0)
    log.leader_epoch = 7
    log.append(5)
    world.move_leader(A, 2)
    world.refresh()
    world.poll()
    world.answer(question(world))
    (listing,) = [flight for flight in world.flights if isinstance(flight, SendListOffsets)]
    world.answer(listing)
    world.answer_all()
    assert world.read_offsets() == {A: [0, 1, 2, 3, 4]}


def test_what_was_fetched_and_not_read_is_fetched_again_and_what_was_read_is_compared() -> None:
    world = World({A: 1}, max_partition_fetch_bytes=100)
    log = world.logs[A]
    log.append(1)
    log.leader_epoch = 1
    log.append(1)
    world.start()
    world.answer_all()
    world.answer_all()
    batch = world.next_batch()
    assert batch is not None
    assert (batch.next_offset, world.machine.assignment.state(A).fetch_offset) == (1, 2)
    lead_again(world, 1)
    log.append(3)
    assert [ask.last_epoch for ask in question(world).asks] == [1]
    world.answer(question(world))
    assert [ask.last_epoch for ask in question(world).asks] == [0]
    world.answer(question(world))
    world.answer_all()
    assert world.read_offsets() == {A: [1, 2, 3]}
    assert not [note for note in world.notes if note.event == "log.truncated"]


def test_a_fetch_that_diverges_is_as_good_as_the_question() -> None:
    world = world_with(3)
    # The leader was away and came back with less; metadata has not told yet.
    world.logs[A].truncate(20)
    world.logs[A].leader_epoch = 5
    world.logs[A].append(15)
    world.answer_all()
    assert world.machine.position(A) == 20
    world.answer_all()
    assert world.read_offsets() == {A: list(range(20, 35))}


def test_a_log_of_the_same_length_with_other_records_goes_on() -> None:
    world = world_with(2)
    world.logs[A].truncate(10)
    world.logs[A].append(10)  # of epoch 1 again, as far as anybody can tell
    world.logs[A].epochs[-1] = (0, 0)
    world.answer_all()
    assert world.machine.position(A) == 20
    assert world.fetch().asks[0].last_epoch == 0
    world.logs[A].append(1)
    world.answer_all()
    assert world.read_offsets() == {A: [20]}


def test_a_leader_without_epochs_is_not_told_ours() -> None:
    world = world_with(1)
    fetch = world.fetch()
    assert fetch.asks[0].last_epoch == 0
    world.answer(fetch, code=int(ErrorCode.OFFSET_OUT_OF_RANGE))
    assert world.fetch().asks[0].last_epoch == -1
    world.logs[A].append(2)
    world.answer_all()
    assert world.read_offsets() == {A: [10, 11]}
    assert world.fetch().asks[0].last_epoch == -1


def test_brokers_that_do_not_tell_consumers_are_not_asked_twice() -> None:
    world = world_with(1)
    lead_again(world, 10)
    asked = question(world)
    world.flights.remove(asked)
    world.machine.epochs_failed(asked, UnsupportedVersionError("no"), world.now)
    world.poll()
    assert {type(flight) for flight in world.flights} == {SendFetch}


def test_a_question_that_fails_is_put_again() -> None:
    world = world_with(1)
    world.flights.clear()
    lead_again(world, 10)
    asked = question(world)
    world.flights.remove(asked)
    world.machine.epochs_failed(asked, TransportError("reset"), world.now)
    world.poll()
    assert world.flights == []
    assert world.refreshes
    world.wait(2)
    world.answer(question(world), code=int(ErrorCode.FENCED_LEADER_EPOCH))
    world.wait(2)
    world.answer(question(world))
    assert [fetch.node_id for fetch in world.fetches()] == [2]


def test_a_seek_with_an_epoch_is_compared() -> None:
    world = World({A: 1})
    world.logs[A].append(10)
    world.logs[A].leader_epoch = 1
    world.logs[A].append(10)
    world.logs[A].leader_epoch = 4
    world.refresh()
    world.machine.assignment.assign([A])
    world.machine.assignment.seek(A, 15, leader_epoch=0)
    world.poll()
    assert [ask.last_epoch for ask in question(world).asks] == [0]
    world.answer(question(world))
    assert world.machine.position(A) == 10


def test_a_partition_added_without_metadata_is_compared_when_its_leader_is_known() -> None:
    world = World({A: 1})
    world.logs[A].append(10)
    world.logs[A].leader_epoch = 1
    world.machine.assignment.assign([A])
    world.machine.assignment.seek(A, 5, leader_epoch=0)
    world.poll()
    world.refresh()
    world.poll()
    world.answer(question(world))
    world.answer_all()
    assert world.read_offsets() == {A: [5, 6, 7, 8, 9]}


def test_a_pause_keeps_what_is_known_of_the_epoch() -> None:
    world = world_with(2)
    world.machine.assignment.pause(A, world.machine.position(A))
    lead_again(world, 10)
    world.machine.assignment.resume(A)
    world.poll()
    world.answer(question(world))
    assert world.machine.position(A) == 10
