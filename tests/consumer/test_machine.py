"""The consumer's machine without a loop: numbers as time, a World instead of brokers."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from pykafka08.consumer.actions import FetchedPartition, ListedOffset, SendFetch, SendListOffsets
from pykafka08.consumer.partition import EARLIEST, LATEST
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import (
    AuthorizationError,
    BrokerError,
    ConfigError,
    CorruptRecordError,
    NoOffsetError,
    RecordTooLargeError,
    RemoteProtocolError,
    TransportError,
    UnknownTopicError,
    UnsupportedVersionError,
)
from pykafka08.records.record import TopicPartition
from tests.consumer.world import World, batch_bytes

A = TopicPartition("a", 0)
B = TopicPartition("a", 1)
C = TopicPartition("c", 0)


def read_while(world: World, happens: Callable[[], None]) -> None:
    """Read, and let things happen, until there is something to read or an error."""
    while world.next_batch() is None:
        happens()


def test_position_is_looked_up_then_records_are_fetched_and_handed_out() -> None:
    world = World({A: 1})
    world.logs[A].append(3)
    world.refresh()
    world.machine.assignment.assign([A])
    world.poll()
    (listing,) = world.flights
    assert isinstance(listing, SendListOffsets)
    assert [(ask.tp, ask.timestamp) for ask in listing.asks] == [(A, EARLIEST)]
    assert world.machine.position(A) is None
    world.answer(listing)
    assert world.machine.position(A) == 0
    assert [(ask.tp, ask.offset) for ask in world.fetch().asks] == [(A, 0)]
    world.answer_all()
    batch = world.next_batch()
    assert batch is not None
    assert [record.offset for record in batch] == [0, 1, 2]
    assert world.machine.position(A) == 3


def test_latest_starts_at_the_end() -> None:
    world = World({A: 1}, auto_offset_reset="latest")
    world.logs[A].append(5)
    world.start()
    assert world.fetch().asks[0].offset == 5


def test_the_next_fetch_leaves_before_the_last_one_is_read() -> None:
    world = World({A: 1})
    world.logs[A].append(3)
    world.start()
    world.answer_all()
    # Nothing was read, and the records after those are asked for already.
    assert world.fetch().asks[0].offset == 3


def test_one_fetch_in_flight_per_broker() -> None:
    world = World({A: 1, B: 1, C: 2})
    world.start()
    assert [(fetch.node_id, [ask.tp for ask in fetch.asks]) for fetch in world.fetches()] == [(1, [A, B]), (2, [C])]
    world.wait(10.0)
    assert len(world.fetches()) == 2


def test_a_partition_with_enough_in_the_buffer_is_not_asked_until_it_is_read() -> None:
    world = World({A: 1}, max_partition_fetch_bytes=100)
    for _ in range(6):
        world.logs[A].append(1)  # 72 bytes each, so one in an answer
    world.start()
    world.answer_all()
    assert world.fetch().asks[0].offset == 1
    world.answer_all()
    assert world.fetches() == []
    assert world.next_batch() is not None
    assert world.fetches() == []  # decoded, but not done with
    assert world.next_batch() is not None
    assert world.fetch().asks[0].offset == 2


def test_the_buffer_of_the_client_is_bounded() -> None:
    tps = {TopicPartition("t", number): number % 2 for number in range(20)}
    world = World(tps, max_partition_fetch_bytes=1000, fetch_buffer_bytes=4000)
    for log in world.logs.values():
        for _ in range(50):
            log.append(10)
    world.start()
    for _ in range(200):
        for flight in list(world.flights):
            # Brokers before 0.10.1: what the partitions' limits add up to.
            world.answer(flight, is_capped=False)
    states = world.machine.assignment.states.values()
    buffered = sum(state.buffered_bytes for state in states)
    assert 0 < buffered <= 4000
    assert world.fetches() == []
    # All are read in the end, whatever their turn.
    seen: dict[TopicPartition, list[int]] = {tp: [] for tp in tps}
    while True:
        for tp, offsets in world.read_offsets().items():
            seen[tp] += offsets
        if all(len(offsets) == 500 for offsets in seen.values()):
            break
        for flight in list(world.flights):
            world.answer(flight, is_capped=False)
    assert all(offsets == list(range(500)) for offsets in seen.values())


def test_a_capped_broker_is_told_how_much_room_there_is() -> None:
    world = World({A: 1, B: 1}, max_partition_fetch_bytes=1000, fetch_buffer_bytes=1950)
    for _ in range(100):
        world.logs[A].append(10)
    world.start()
    assert world.fetch().max_bytes == 1000, "four answers have room, but for one of a partition's size"
    world.answer_all()
    buffered = world.machine.assignment.state(A).buffered_bytes
    assert 800 < buffered < 950
    assert world.fetch().max_bytes == 1000
    world = World({A: 1, B: 1}, max_partition_fetch_bytes=1000, fetch_buffer_bytes=40_000)
    world.start()
    assert world.fetch().max_bytes == 2_500


def test_an_answer_counts_whole_until_all_of_it_is_read() -> None:
    world = World({A: 1, B: 1}, max_partition_fetch_bytes=1000, fetch_buffer_bytes=1600)
    world.start()
    world.answer_all()  # the broker is known to keep to max_bytes from now on
    for tp in (A, B):
        world.logs[tp].append(30)
    world.answer_all()
    states = world.machine.assignment.states
    size = states[A].buffered_bytes
    assert 600 < 2 * size < 1000
    assert world.fetches() == []
    assert world.next_batch() is not None
    assert world.machine.position(A) == 30
    assert world.machine.position(B) in (0, 30)
    world.poll()
    assert states[A].buffered_bytes + states[B].buffered_bytes == size
    assert 1600 - size > 1000, "there is room, but for the other half of the answer"
    assert world.fetches() == []
    assert world.next_batch() is not None
    assert world.next_batch() is None
    world.poll()
    assert len(world.fetches()) == 1


def test_each_broker_has_its_share_of_the_buffer() -> None:
    world = World({A: 1, C: 2}, fetch_buffer_bytes=6000)
    world.start()
    assert [fetch.max_bytes for fetch in world.fetches()] == [3000, 3000]


def test_partitions_that_do_not_fit_one_fetch_take_turns_within_one_poll() -> None:
    tps = {TopicPartition("t", number): 1 for number in range(10)}
    world = World(tps, max_partition_fetch_bytes=1000, fetch_buffer_bytes=4000)
    world.start()
    asked = []
    for _ in range(5):
        fetch = world.fetch()
        assert len(fetch.asks) == 4
        assert fetch.max_wait == pytest.approx(0.2)
        asked += [ask.tp for ask in fetch.asks]
        world.answer(fetch, is_capped=False)
    assert sorted(asked) == sorted([*tps, *tps])


def test_a_poll_is_short_while_a_partition_sits_out_and_grows_with_the_time() -> None:
    world = World({A: 1, B: 1}, max_partition_fetch_bytes=100)
    for _ in range(4):
        world.logs[A].append(1)
    world.start()
    assert world.fetch().max_wait == 0.5
    world.answer_all()
    world.answer_all()
    waits = []
    for _ in range(8):
        (ask,) = world.fetch().asks
        assert ask.tp == B
        waits.append(world.fetch().max_wait)
        world.now += waits[-1]
        world.answer_all()
    assert waits == pytest.approx([0.005, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32])
    world.read_offsets()
    world.answer_all()
    assert {ask.tp for ask in world.fetch().asks} == {A, B}
    assert world.fetch().max_wait == 0.5


def test_a_poll_ends_when_a_partition_is_to_be_tried_again() -> None:
    world = World({A: 1, B: 1})
    world.start()
    fetch = world.fetch()
    world.flights.remove(fetch)
    answers = [FetchedPartition(A, int(ErrorCode.UNKNOWN_LEADER_EPOCH)), FetchedPartition(B, 0)]
    world.machine.fetch_answered(fetch, answers, world.now, is_capped=True)
    world.poll()
    assert [ask.tp for ask in world.fetch().asks] == [B]
    assert world.fetch().max_wait == pytest.approx(0.1)  # the retry backoff


# Seek, pause, assignment


def test_seek_drops_what_is_buffered_and_what_is_in_flight() -> None:
    world = World({A: 1})
    world.logs[A].append(4)
    world.start()
    world.answer_all()
    stale = world.fetch()
    world.logs[A].append(4)
    world.machine.assignment.seek(A, 2)
    assert world.next_batch() is None
    world.answer(stale)
    assert world.next_batch() is None
    assert world.fetch().asks[0].offset == 2
    world.answer_all()
    assert world.read_offsets() == {A: [2, 3, 4, 5, 6, 7]}


def test_seek_while_the_position_is_looked_up() -> None:
    world = World({A: 1}, auto_offset_reset="latest")
    world.logs[A].append(4)
    world.refresh()
    world.machine.assignment.assign([A])
    world.poll()
    (listing,) = world.flights
    world.machine.assignment.seek(A, 1)
    world.answer(listing)
    assert world.machine.position(A) == 1
    world.answer_all()
    assert world.read_offsets() == {A: [1, 2, 3]}


def test_assign_then_seek_asks_for_no_offset() -> None:
    world = World({A: 1})
    world.refresh()
    world.machine.assignment.assign([A])
    world.machine.assignment.seek(A, 0)
    world.poll()
    assert [type(flight) for flight in world.flights] == [SendFetch]


def test_pause_hands_out_nothing_and_resume_goes_on_at_the_position() -> None:
    world = World({A: 1, B: 1})
    world.logs[A].append(2)
    world.logs[A].append(2)
    world.logs[B].append(2)
    world.start()
    world.answer_all()
    batch = world.next_batch()
    assert batch is not None
    assert (batch.partition, batch.next_offset) == (0, 2)
    world.machine.assignment.pause(A, world.machine.position(A))
    assert world.machine.assignment.paused() == (A,)
    assert world.read_offsets() == {B: [0, 1]}
    world.answer_all()
    world.answer_all()
    assert world.read_offsets() == {}
    assert [ask.tp for ask in world.fetch().asks] == [B]
    world.machine.assignment.resume(A)
    world.poll()
    world.answer_all()
    world.answer_all()
    assert world.read_offsets() == {A: [2, 3]}
    assert world.machine.assignment.paused() == ()


def test_an_answer_for_a_partition_that_was_taken_away_and_given_back_is_dropped() -> None:
    world = World({A: 1, B: 1})
    world.logs[A].append(2)
    world.start()
    fetch = world.fetch()
    world.machine.assignment.assign([B])
    world.machine.assignment.assign([A, B])
    world.answer(fetch)
    assert world.read_offsets() == {}
    assert world.machine.position(A) is None
    world.answer_all(SendListOffsets)
    world.answer_all()
    world.answer_all()
    assert world.read_offsets() == {A: [0, 1]}


def test_assign_keeps_the_positions_of_partitions_that_stay() -> None:
    world = World({A: 1, B: 1})
    world.logs[A].append(2)
    world.start()
    world.answer_all()
    assert world.read_offsets() == {A: [0, 1]}
    world.machine.assignment.assign([A])
    assert world.machine.position(A) == 2
    assert world.machine.assignment.partitions() == (A,)
    with pytest.raises(ConfigError, match="not assigned") as caught:
        world.machine.position(B)
    assert (caught.value.topic, caught.value.partition) == B


def test_seek_to_an_end_of_the_log() -> None:
    world = World({A: 1})
    world.logs[A].append(7)
    world.start()
    world.machine.assignment.seek_to_end_of_log(A, LATEST)
    assert world.machine.position(A) is None
    world.poll()
    world.answer_all(SendListOffsets)
    assert world.machine.position(A) == 7


def test_new_partitions_of_a_subscribed_topic_are_read_from_their_beginning() -> None:
    world = World({A: 1}, auto_offset_reset="latest")
    world.logs[A].append(2)
    world.machine.assignment.subscribe(["a"])
    world.refresh()
    world.poll()
    world.answer_all()
    assert world.machine.position(A) == 2
    world.logs[B] = type(world.logs[A])(1)
    world.logs[B].append(3)
    world.refresh()
    assert world.machine.assignment.partitions() == (A, B)
    world.poll()
    for _ in range(3):
        world.answer_all()
    assert world.read_offsets() == {B: [0, 1, 2]}


def test_a_topic_made_again_is_read_from_its_beginning() -> None:
    world = World({A: 1}, with_ids=True, auto_offset_reset="latest")
    world.logs[A].append(5)
    world.start()
    assert world.machine.position(A) == 5
    world.ids["a"] = UUID(int=77)
    world.logs[A] = type(world.logs[A])(1)
    world.logs[A].append(2)
    world.refresh()
    world.poll()
    for _ in range(3):
        world.answer_all()
    assert world.read_offsets() == {A: [0, 1]}
    assert world.fetch().asks[0].topic_id == UUID(int=77)
    assert "topic.made_again" in [note.event for note in world.notes]
    assert world.started_anew == [A]


def test_out_of_range_is_believed_when_the_topic_is_known_to_be_the_same() -> None:
    world = World({A: 1}, with_ids=True, auto_offset_reset="latest")
    world.start()
    world.machine.assignment.seek(A, 40)
    world.poll()
    world.answer_all()
    world.answer_all()
    assert (world.flights, world.refreshes) == ([], [world.generation])
    world.ids["a"] = UUID(int=77)
    world.logs[A].append(2)
    world.refresh()
    world.poll()
    for _ in range(3):
        world.answer_all()
    assert world.read_offsets() == {A: [0, 1]}  # from the beginning of the new topic, not from its end


# Leaders


def test_a_new_leader_is_asked_at_once_and_the_old_ones_answer_is_dropped() -> None:
    world = World({A: 1})
    world.logs[A].append(2)
    world.start()
    old = world.fetch()
    answer = world.fetched(1, A, 0)
    world.move_leader(A, 2)
    world.refresh()
    world.poll()
    (new,) = [fetch for fetch in world.fetches() if fetch is not old]
    assert (new.node_id, new.asks[0].offset, new.asks[0].leader_epoch) == (2, 0, 1)
    world.flights.remove(old)
    world.machine.fetch_answered(old, [answer], world.now, is_capped=True)
    assert world.read_offsets() == {}
    world.answer(new)
    assert world.read_offsets() == {A: [0, 1]}


def test_not_leader_refreshes_metadata_and_backs_off() -> None:
    world = World({A: 1})
    world.start()
    world.move_leader(A, 2)
    world.answer_all()
    assert world.refreshes == [1]
    assert world.fetches() == []
    assert world.machine.next_wakeup() == pytest.approx(world.now + 0.1)
    world.refresh()
    world.poll()
    assert world.fetch().node_id == 2  # no need to wait: it is another broker


def test_backoff_doubles_up_to_its_bound_and_starts_anew_after_success() -> None:
    world = World({A: 1})
    world.start()
    pauses = []
    for _ in range(6):
        world.answer(world.fetch(), code=int(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        wakeup = world.machine.next_wakeup()
        assert wakeup is not None
        pauses.append(wakeup - world.now)
        world.wait(pauses[-1])
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0, 1.0])
    assert len(world.refreshes) == 6
    assert world.machine.assignment.state(A).troubled_since == 100.0
    world.answer_all()
    world.answer(world.fetch(), code=int(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert world.machine.next_wakeup() == pytest.approx(world.now + 0.1)


def test_a_partition_without_a_leader_waits_and_asks_for_metadata() -> None:
    world = World({A: -1})
    world.refresh()
    world.machine.assignment.assign([A])
    world.poll()
    assert world.flights == []
    assert world.refreshes == [1]
    world.wait(0.05)
    assert world.refreshes == [1]
    world.wait(0.06)
    assert world.refreshes == [1, 1]
    world.move_leader(A, 3)
    world.refresh()
    world.poll()
    (listing,) = world.flights
    assert listing.node_id == 3


def test_a_broker_that_is_gone_is_tried_again_for_ever() -> None:
    world = World({A: 1})
    world.start()
    for _ in range(100):
        fetch = world.fetch()
        world.flights.remove(fetch)
        world.machine.fetch_failed(fetch, TransportError("connection refused", broker="b1:9092"), world.now)
        world.poll()
        assert world.next_batch() is None
        world.wait(1.3)
    world.logs[A].append(1)
    world.answer_all()
    assert world.read_offsets() == {A: [0]}


# Errors that the application hears of


@pytest.mark.parametrize("code", [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CORRUPT_MESSAGE, 4711])
def test_a_fatal_code_is_raised_and_the_other_partitions_go_on(code: int) -> None:
    world = World({A: 1, B: 1})
    world.logs[B].append(2)
    world.start()
    fetch = world.fetch()
    world.flights.remove(fetch)
    answers = [FetchedPartition(A, int(code)), world.fetched(1, B, 0)]
    world.machine.fetch_answered(fetch, answers, world.now, is_capped=True)
    with pytest.raises(BrokerError) as caught:
        world.next_batch()
    error = caught.value
    assert (error.topic, error.partition, error.code, error.broker) == ("a", 0, code, "b1:9092 (id 1)")
    assert isinstance(error, AuthorizationError) == (code == ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert world.read_offsets() == {B: [0, 1]}
    # It is tried again, but not at once.
    assert [ask.tp for ask in world.fetch().asks] == [B]
    world.answer_all()
    world.wait(1.0)
    world.answer_all()
    assert {ask.tp for ask in world.fetch().asks} == {A, B}


def test_an_error_comes_after_what_was_fetched_before_it() -> None:
    world = World({A: 1})
    world.logs[A].append(2)
    world.start()
    world.answer_all()
    world.answer(world.fetch(), code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    assert world.fetches() == []
    batch = world.next_batch()
    assert batch is not None
    assert batch.next_offset == 2
    with pytest.raises(AuthorizationError):
        world.next_batch()


def test_an_unknown_topic_is_an_error_only_when_it_lasts() -> None:
    world = World({A: 1})
    world.start()
    began = world.now

    def know_nothing() -> None:
        for fetch in world.fetches():
            world.answer(fetch, code=int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        world.wait(0.3)

    with pytest.raises(UnknownTopicError) as caught:
        read_while(world, know_nothing)
    assert caught.value.topic == "a"
    assert 60 <= world.now - began < 62


def test_a_topic_that_metadata_refuses_is_raised() -> None:
    world = World({A: -1})
    world.refresh(errors={"a": int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)})
    world.machine.assignment.assign([A])
    world.poll()
    with pytest.raises(AuthorizationError) as caught:
        world.next_batch()
    assert caught.value.topic == "a"


def test_a_broker_too_old_is_an_error_of_each_partition() -> None:
    world = World({A: 1, B: 1})
    world.start()
    fetch = world.fetch()
    world.flights.remove(fetch)
    world.machine.fetch_failed(fetch, UnsupportedVersionError("too old", api="Fetch"), world.now)
    places = []
    for _ in range(2):
        with pytest.raises(UnsupportedVersionError) as caught:
            world.next_batch()
        places.append((caught.value.topic, caught.value.partition))
    assert places == [A, B]


def test_a_broker_that_talks_nonsense_for_long_is_an_error() -> None:
    world = World({A: 1})
    world.start()
    began = world.now

    def talk_nonsense() -> None:
        for fetch in world.fetches():
            world.flights.remove(fetch)
            world.machine.fetch_failed(fetch, RemoteProtocolError("not Kafka"), world.now)
        world.wait(0.5)

    with pytest.raises(RemoteProtocolError):
        read_while(world, talk_nonsense)
    assert 60 <= world.now - began < 63


def test_a_partition_missing_in_the_answer_is_tried_again() -> None:
    world = World({A: 1})
    world.logs[A].append(1)
    world.start()
    fetch = world.fetch()
    world.flights.remove(fetch)
    world.machine.fetch_answered(fetch, [FetchedPartition(C, 0, b"")], world.now, is_capped=True)
    world.poll()
    assert world.fetches() == []
    world.wait(0.2)
    world.answer_all()
    assert world.read_offsets() == {A: [0]}


# Out of range


def test_out_of_range_is_reset_to_the_earliest() -> None:
    world = World({A: 1})
    for _ in range(3):
        world.logs[A].append(2)
    world.start()
    world.logs[A].start = 4
    world.answer_all()
    (listing,) = world.flights
    assert isinstance(listing, SendListOffsets)
    world.answer(listing)
    world.answer_all()
    assert world.read_offsets() == {A: [4, 5]}
    assert [note.event for note in world.notes] == ["offset.out_of_range", "position.reset"]
    assert world.notes[1].facts == {"topic": "a", "partition": 0, "lost": 0, "to": 4}


def test_what_was_fetched_before_the_range_was_left_is_read_first() -> None:
    world = World({A: 1}, max_partition_fetch_bytes=100)
    for _ in range(5):
        world.logs[A].append(2)
    world.start()
    world.answer_all()
    assert world.fetch().asks[0].offset == 2
    world.logs[A].start = 6
    world.answer_all()
    world.answer_all()  # asked once more without the epoch that was read last
    # Out of range, but there is something to read first.
    assert world.flights == []
    assert world.read_offsets() == {A: [0, 1]}
    world.answer_all(SendListOffsets)
    for _ in range(3):
        world.answer_all()
    assert world.read_offsets()[A][0] == 6


def test_out_of_range_without_a_policy_names_both_bounds() -> None:
    world = World({A: 1}, auto_offset_reset="none")
    for _ in range(3):
        world.logs[A].append(2)
    world.logs[A].start = 2
    world.refresh()
    world.machine.assignment.assign([A])
    world.machine.assignment.seek(A, 99)
    world.poll()
    for _ in range(3):
        world.answer_all()
    for _ in range(2):
        with pytest.raises(NoOffsetError) as caught:
            world.next_batch()
        error = caught.value
        assert (error.topic, error.partition, error.offset, error.earliest, error.latest) == ("a", 0, 99, 2, 6)
        # Asked once more after a while, for whoever goes on without a seek.
        world.poll()
        assert world.flights == []
        world.wait(1.0)
        world.answer_all()
        world.answer_all()
    world.machine.assignment.seek(A, error.earliest)
    world.poll()
    world.answer_all()
    assert world.read_offsets() == {A: [2, 3, 4, 5]}


def test_take_error_is_for_who_asks_for_a_position() -> None:
    world = World({A: 1}, auto_offset_reset="none")
    world.refresh()
    world.machine.assignment.assign([A])
    world.poll()
    assert world.machine.take_error(A, world.now) is None
    assert not world.machine.assignment.is_settled()
    world.answer_all()
    world.answer_all()
    assert world.machine.assignment.is_settled()
    assert isinstance(world.machine.take_error(A, world.now), NoOffsetError)
    assert world.machine.take_error(A, world.now) is None


@pytest.mark.parametrize(
    "answers", [[], [ListedOffset(A, 0, -1)], [ListedOffset(A, int(ErrorCode.OFFSET_NOT_AVAILABLE))]]
)
def test_a_look_up_without_an_answer_is_repeated(answers: list[ListedOffset]) -> None:
    world = World({A: 1})
    world.refresh()
    world.machine.assignment.assign([A])
    world.poll()
    (listing,) = world.flights
    world.flights.clear()
    assert isinstance(listing, SendListOffsets)
    world.machine.offsets_listed(listing, answers, world.now)
    world.poll()
    assert world.flights == []
    world.wait(0.2)
    world.answer_all()
    assert world.machine.position(A) == 0


def test_a_look_up_whose_broker_is_gone_is_repeated() -> None:
    world = World({A: 1})
    world.refresh()
    world.machine.assignment.assign([A])
    world.poll()
    (listing,) = world.flights
    world.flights.clear()
    assert isinstance(listing, SendListOffsets)
    world.machine.listing_failed(listing, TransportError("reset"), world.now)
    world.poll()
    assert world.refreshes == [1]
    world.wait(0.2)
    world.answer_all()
    assert world.machine.position(A) == 0


# Damage


def damaged(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


def answer_with(world: World, data: bytes) -> None:
    fetch = world.fetch()
    world.flights.remove(fetch)
    answers = [FetchedPartition(A, 0, memoryview(data)), *(FetchedPartition(ask.tp, 0) for ask in fetch.asks[1:])]
    world.machine.fetch_answered(fetch, answers, world.now, is_capped=True)
    world.poll()


def test_damage_on_the_way_is_mended_by_fetching_again() -> None:
    world = World({A: 1})
    world.logs[A].append(2)
    world.logs[A].append(2)
    world.start()
    good = world.logs[A].read(0, 1000)
    answer_with(world, damaged(good))
    assert world.read_offsets() == {A: [0, 1]}
    assert "records.damaged" in [note.event for note in world.notes]
    for _ in range(2):
        world.answer_all()
    assert world.read_offsets() == {A: [2, 3]}


def test_lasting_damage_is_raised_at_its_place_and_can_be_passed() -> None:
    world = World({A: 1, B: 1})
    world.logs[A].append(2)
    world.logs[A].append_bytes(damaged(batch_bytes(2, [2, 3])), 3)
    world.logs[A].append(2)
    world.logs[B].append(1)
    world.start()
    world.answer_all()
    assert world.read_offsets() == {A: [0, 1], B: [0]}
    world.answer_all()
    world.answer_all()
    with pytest.raises(CorruptRecordError) as caught:
        world.next_batch()
    error = caught.value
    assert (error.topic, error.partition, error.offset, error.next_offset) == ("a", 0, 2, 4)
    assert error.broker == "b1:9092 (id 1)"
    # The other partition is not held up, and this one is tried again after a while.
    world.logs[B].append(1)
    world.answer_all()
    world.answer_all()
    assert world.read_offsets() == {B: [1]}
    world.wait(1.0)
    world.answer_all()
    world.answer_all()
    with pytest.raises(CorruptRecordError):
        world.next_batch()
    assert error.next_offset is not None
    world.machine.assignment.seek(A, error.next_offset)
    world.poll()
    world.answer_all()
    world.answer_all()
    assert world.read_offsets() == {A: [4, 5]}


@pytest.mark.parametrize(
    "data",
    [
        b"\xff" * 40,
        bytes(40),
        batch_bytes(0, [0])[:16] + b"\x07" + bytes(60),
        batch_bytes(0, [0])[:8] + (20).to_bytes(4, "big") + batch_bytes(0, [0])[12:],
    ],
)
def test_garbage_is_raised_after_a_second_try(data: bytes) -> None:
    world = World({A: 1})
    world.start()
    answer_with(world, data)
    assert world.fetches() == []
    assert world.next_batch() is None
    answer_with(world, data)
    with pytest.raises(CorruptRecordError) as caught:
        world.next_batch()
    assert (caught.value.topic, caught.value.partition) == A


def test_records_below_the_asked_offset_only_are_an_error() -> None:
    world = World({A: 1})
    world.start()
    world.machine.assignment.seek(A, 10)
    world.poll()
    world.answer_all()  # of before the seek
    answer_with(world, batch_bytes(3, [3, 4]))
    with pytest.raises(CorruptRecordError, match="none at or above") as caught:
        world.next_batch()
    assert caught.value.offset == 10
    assert world.machine.position(A) == 10


def test_a_batch_that_cannot_be_unpacked_is_fetched_again_from_the_record_before() -> None:
    world = World({A: 1})
    world.logs[A].append(4)
    world.start()
    world.answer_all()
    assert world.next_batch() is not None
    error = CorruptRecordError("bad varint", topic="a", partition=0, offset=0, next_offset=4)
    world.machine.records_damaged(A, 2, error, world.now)
    assert world.machine.position(A) == 2
    world.poll()
    world.answer_all()
    world.answer_all()
    assert world.read_offsets() == {A: [2, 3]}
    with pytest.raises(CorruptRecordError):
        world.machine.records_damaged(A, 2, error, world.now)


# Sizes


def test_a_cut_off_batch_makes_the_ask_grow_to_its_size() -> None:
    world = World({A: 1}, max_partition_fetch_bytes=100)
    world.logs[A].append(1, size=1000)
    world.logs[A].append(1)
    size = len(world.logs[A].batches[0][2])
    world.start()
    whole = world.logs[A].read(0, 100)
    for cut in (50, 8):
        answer_with(world, whole[:cut])
        assert world.read_offsets() == {}
    assert world.fetch().asks[0].max_bytes == 2 * size
    answer_with(world, whole)
    assert world.read_offsets() == {A: [0]}
    assert world.fetch().asks[0].max_bytes == 100


@pytest.mark.parametrize("cut", [50, 8])
def test_a_batch_beyond_every_bound_is_an_error(cut: int) -> None:
    world = World({A: 1}, max_partition_fetch_bytes=100, fetch_max_bytes=500)
    world.start()
    whole = batch_bytes(0, [0], size=1000)
    with pytest.raises(RecordTooLargeError, match="fetch_max_bytes=500") as caught:
        read_while(world, lambda: answer_with(world, whole[:cut]))
    error = caught.value
    assert (error.topic, error.partition, error.offset) == ("a", 0, 0)
    world.machine.assignment.seek(A, 1)
    world.poll()
    assert world.fetch().asks[0].offset == 1


def test_a_batch_that_claims_more_than_came_although_it_was_asked_for_is_damaged() -> None:
    world = World({A: 1}, max_partition_fetch_bytes=2000, fetch_max_bytes=5000)
    world.start()
    whole = batch_bytes(0, [0], size=1000)
    with pytest.raises(CorruptRecordError, match=f"claims {len(whole)} bytes.* holds 50") as caught:
        read_while(world, lambda: answer_with(world, whole[:50]))
    error = caught.value
    assert (error.topic, error.partition, error.offset, error.broker) == ("a", 0, 0, "b1:9092 (id 1)")


# Order and fairness


def test_what_was_fetched_of_partitions_takes_turns() -> None:
    world = World({A: 1, B: 1})
    for log in world.logs.values():
        log.append(1)
        log.append(1)
    world.start()
    world.answer_all()
    for log in world.logs.values():
        log.append(1)
    world.poll()
    world.answer_all()
    order = []
    while (batch := world.next_batch()) is not None:
        order.append((batch.partition, batch.base_offset))
    assert order == [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (1, 2)]


def test_partitions_that_were_answered_come_last_in_the_next_fetch() -> None:
    world = World({A: 1, B: 1})
    world.logs[A].append(1)
    world.start()
    assert [ask.tp for ask in world.fetch().asks] == [A, B]
    world.answer_all()
    assert [ask.tp for ask in world.fetch().asks] == [B, A]


def test_the_position_crosses_gaps() -> None:
    world = World({A: 1})
    world.logs[A].append(10, gaps=[0, 3, 8, 9])
    world.logs[A].append(5, gaps=[0, 1])
    world.start()
    world.answer_all()
    batch = world.next_batch()
    assert batch is not None
    assert [record.offset for record in batch] == [1, 2, 4, 5, 6, 7]
    assert world.machine.position(A) == 10
    assert world.read_offsets() == {A: [12, 13, 14]}
    assert world.fetch().asks[0].offset == 15


def test_all_codes_of_an_old_broker_mean_something() -> None:
    # 0.8 says -1 for what it has no code for: not at once an error, and not for ever none.
    world = World({A: 1})
    world.start()
    world.answer(world.fetch(), code=-1)
    assert world.next_batch() is None
    assert world.refreshes == [1]


def test_partitions_that_an_answer_leaves_out_have_nothing_new() -> None:
    world = World({A: 1, B: 1})
    world.logs[B].append(2)
    world.start()
    fetch = world.fetch()
    world.flights.remove(fetch)
    world.machine.fetch_answered(fetch, [world.fetched(1, B, 0)], world.now, is_capped=True, is_partial=True)
    world.poll()
    assert [(ask.tp, ask.offset) for ask in world.fetch().asks] == [(A, 0), (B, 2)]
    assert world.machine.assignment.state(A).failures == 0
    fetch = world.fetch()
    world.flights.remove(fetch)
    world.machine.fetch_answered(fetch, [], world.now, is_capped=True)  # which had to name them all
    assert world.machine.assignment.state(A).failures == 1
