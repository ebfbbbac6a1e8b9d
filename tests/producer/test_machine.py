"""The producer's machine without a loop: linger, size, lines, retries, deadlines, splits."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from pykafka08.error_codes import ErrorCode
from pykafka08.errors import (
    AuthorizationError,
    BrokerError,
    ClosedError,
    ConfigError,
    DeliveryTimeoutError,
    KafkaError,
    RecordTooLargeError,
    RequestTimeoutError,
    TransportError,
    UnknownTopicError,
    UnsupportedVersionError,
    broker_error,
)
from pykafka08.producer.actions import BatchFailed, CheckCreation, RefreshMetadata, RoomFreed, Send, UseTopics
from pykafka08.producer.batch import BATCH_OVERHEAD, RECORD_OVERHEAD
from pykafka08.producer.reactions import Outcome
from pykafka08.producer.sequences import Identity

from .world import OK, World, refreshes, topics_asked, values

NOT_LEADER = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
TOO_LARGE = int(ErrorCode.MESSAGE_TOO_LARGE)
TIMED_OUT = int(ErrorCode.REQUEST_TIMED_OUT)


def test_a_batch_lingers_then_goes_in_one_request() -> None:
    world = World({"t": [0]}, linger_ms=5)
    first, second = world.add(), world.add()
    assert world.sends() == []
    assert world.machine.next_wakeup() == pytest.approx(world.now + 0.005)
    send = world.one(after=0.005)
    assert (send.node_id, [values(batch) for batch in send.batches]) == (0, [[b"v", b"v"]])
    world.answer(send, OK)
    assert [first.offset, second.offset] == [100, 101]
    assert world.machine.counters[:5] == (2, 2, 0, 0, 0)


def test_without_linger_a_batch_goes_at_the_next_poll() -> None:
    world = World({"t": [0]}, linger_ms=0)
    world.add()
    assert len(world.one().batches[0]) == 1


def test_a_full_batch_goes_at_once_and_the_next_record_opens_another() -> None:
    world = World({"t": [0]}, linger_ms=1000, batch_size=BATCH_OVERHEAD + 3 * (RECORD_OVERHEAD + 1))
    for _ in range(3):
        world.add()
    # Nothing more would fit, which is known when the next one comes.
    world.add()
    assert [len(batch) for batch in world.one().batches] == [3]
    assert world.sends(after=2.0) == []  # its partition has one in flight


@pytest.mark.parametrize("batch_size", [0, BATCH_OVERHEAD])
def test_a_batch_size_below_any_record_sends_each_by_itself_without_linger(batch_size: int) -> None:
    world = World({"t": [0]}, linger_ms=1000, batch_size=batch_size)
    handles = [world.add(value=b"%d" % i) for i in range(3)]
    for handle in handles:
        send = world.one()
        assert [len(batch) for batch in send.batches] == [1]
        world.answer(send, OK)
        assert handle.is_acknowledged


def test_partitions_of_a_broker_share_a_request_and_brokers_do_not() -> None:
    world = World({"t": [0, 0, 1], "u": [1]}, linger_ms=0)
    for partition in range(3):
        world.add(partition=partition)
    world.add("u", partition=0)
    sent = {send.node_id: [(batch.topic, batch.partition) for batch in send.batches] for send in world.sends()}
    assert sent == {0: [("t", 0), ("t", 1)], 1: [("t", 2), ("u", 0)]}


def test_batches_due_within_a_moment_share_a_request() -> None:
    world = World({"t": [0, 0]}, linger_ms=8)
    world.add(partition=0)
    world.now += 0.0015
    world.add(partition=1)
    assert len(world.one(after=0.0066).batches) == 2


def test_a_request_is_no_larger_than_max_request_size() -> None:
    world = World({"t": [0] * 4}, linger_ms=0, max_request_size=1000, batch_size=1000)
    for partition in range(4):
        world.add(value=bytes(400), partition=partition)
    assert [len(send.batches) for send in world.sends()] == [2, 2]


def test_no_more_requests_in_flight_than_allowed() -> None:
    settings = {"linger_ms": 0, "max_request_size": 500, "batch_size": 500}
    world = World({"t": [0] * 4}, max_in_flight_requests_per_connection=2, **settings)
    for partition in range(4):
        world.add(value=bytes(400), partition=partition)
    first, second = world.sends()
    assert world.sends() == []
    world.answer(second, OK)
    assert [batch.partition for batch in world.one().batches] == [2]
    world.answer(first, OK)
    assert [batch.partition for batch in world.one().batches] == [3]


def test_one_batch_of_a_partition_in_flight() -> None:
    world = World({"t": [0]}, linger_ms=0)
    world.add(value=b"a")
    send = world.one()
    world.add(value=b"b")
    assert world.sends(after=10) == []
    world.answer(send, OK)
    assert values(world.one().batches[0]) == [b"b"]


def test_order_is_kept_over_a_retry() -> None:
    world = World({"t": [0]}, linger_ms=0, retry_backoff_ms=100)
    a = world.add(value=b"a")
    send = world.one()
    b = world.add(value=b"b")
    world.answer(send, TIMED_OUT)
    assert world.sends(after=0.09) == []
    again = world.one(after=0.011)
    assert values(again.batches[0]) == [b"a"]
    world.answer(again, OK)
    world.answer(world.one(), Outcome(OK, 200))
    assert [a.offset, b.offset] == [100, 200]
    assert world.machine.counters.retries == 1


def test_backoff_doubles_up_to_its_maximum() -> None:
    world = World({"t": [0]}, linger_ms=0, retry_backoff_ms=100, retry_backoff_max_ms=300)
    world.add()
    send = world.one()
    pauses = []
    for _ in range(4):
        world.answer(send, TIMED_OUT)
        before = world.now
        (send,) = world.sends_when_due()
        pauses.append(round(world.now - before, 6))
    assert pauses == [0.1, 0.2, 0.3, 0.3]


@pytest.mark.parametrize(("chance", "pause"), [(0.0, 0.08), (0.999999, 0.12)])
def test_backoff_is_jittered(chance: float, pause: float) -> None:
    world = World({"t": [0]}, linger_ms=0, retry_backoff_ms=100, chance=lambda: chance)
    world.add()
    world.answer(world.one(), TIMED_OUT)
    before = world.now
    world.sends_when_due()
    assert world.now - before == pytest.approx(pause, abs=1e-4)


# --- leaders ----------------------------------------------------------------------------------------------------------


def test_not_leader_asks_for_metadata_and_goes_to_the_new_leader_at_once() -> None:
    world = World({"t": [0]}, linger_ms=0, retry_backoff_ms=1000)
    handle = world.add()
    world.answer(world.one(), NOT_LEADER)
    assert refreshes(world.poll()) == [RefreshMetadata(1)]
    world.metadata({"t": [1]})
    send = world.one()
    assert send.node_id == 1
    world.answer(send, OK)
    assert handle.is_acknowledged


def test_the_same_leader_again_is_asked_only_after_the_backoff() -> None:
    world = World({"t": [0]}, linger_ms=0, retry_backoff_ms=1000)
    world.add()
    world.answer(world.one(), NOT_LEADER)
    world.metadata({"t": [0]})
    assert world.sends(after=0.9) == []
    assert world.one(after=0.11).node_id == 0


def test_the_same_broker_under_a_new_epoch_is_another_leader() -> None:
    world = World({"t": [0]}, linger_ms=0, retry_backoff_ms=1000)
    world.add()
    world.answer(world.one(), NOT_LEADER)
    world.metadata({"t": [0]}, epoch=1)
    assert world.one().node_id == 0


def test_metadata_that_came_while_a_request_was_under_way_is_used_at_once() -> None:
    world = World({"t": [0]}, linger_ms=0, retry_backoff_ms=1000)
    world.add()
    send = world.one()
    world.metadata({"t": [2]})
    world.fail(send, TransportError("closed"))
    actions = world.poll()
    assert [action.node_id for action in actions if isinstance(action, Send)] == [2]
    assert refreshes(actions) == []


def test_a_partition_without_leader_waits_and_asks_again_with_backoff() -> None:
    world = World({"t": [-1]}, linger_ms=0, retry_backoff_ms=100)
    world.add(partition=0)
    assert refreshes(world.poll()) == [RefreshMetadata(1)]
    assert refreshes(world.poll(after=0.05)) == []
    assert refreshes(world.poll(after=0.051)) == [RefreshMetadata(1)]
    world.metadata({"t": [-1]})
    assert refreshes(world.poll(after=0.201)) == [RefreshMetadata(2)]
    world.metadata({"t": [1]})
    assert world.one().node_id == 1


def test_a_queue_in_line_moves_with_its_leader() -> None:
    world = World({"t": [0, 0]}, linger_ms=0, max_in_flight_requests_per_connection=1)
    world.add(partition=0)
    busy = world.one()
    world.add(partition=1)
    assert world.sends() == []
    for leaders in ([0, 1], [0, 0], [0, 2]):  # there and back, and away
        world.metadata({"t": leaders})
    assert [send.node_id for send in world.sends()] == [2]
    world.answer(busy, OK)
    assert world.sends() == []


def test_a_queue_in_line_that_lost_its_leader_for_a_while_is_not_forgotten() -> None:
    world = World({"t": [0]}, linger_ms=0)
    handle = world.add(partition=0)
    world.metadata({"t": [-1]})
    assert world.sends() == []
    world.metadata({"t": [0]})
    world.answer(world.one(), OK)
    assert handle.is_acknowledged


def test_a_lost_connection_is_retried() -> None:
    world = World({"t": [0]}, linger_ms=0)
    handle = world.add()
    world.fail(world.one(), TransportError("closed", broker="b0:9092 (id 0)"))
    (send,) = world.sends_when_due()
    world.answer(send, OK)
    assert handle.is_acknowledged


def test_a_partition_left_out_of_the_answer_is_retried() -> None:
    world = World({"t": [0, 0]}, linger_ms=0)
    lost, kept = world.add(partition=0), world.add(partition=1)
    world.answer(world.one(), None, OK)
    assert kept.is_acknowledged
    (send,) = world.sends_when_due()
    world.answer(send, OK)
    assert lost.is_acknowledged


# --- failures ---------------------------------------------------------------------------------------------------------


def test_a_code_that_no_retry_can_mend_raises_for_each_record() -> None:
    world = World({"t": [0]}, linger_ms=0)
    handles = [world.add(), world.add()]
    world.answer(world.one(), int(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    for handle in handles:
        assert isinstance(handle.error, AuthorizationError)
        assert (handle.error.topic, handle.error.partition) == ("t", 0)
        assert handle.error.broker == "b0:9092 (id 0)"
    assert world.machine.counters[:5] == (2, 0, 2, 0, 0)
    assert RoomFreed() in world.poll()


def test_records_that_the_broker_names_have_texts_of_their_own() -> None:
    world = World({"t": [0]}, linger_ms=0)
    handles = [world.add() for _ in range(3)]
    outcome = Outcome(int(ErrorCode.INVALID_RECORD), message="batch refused", record_errors=[(1, "no key")])
    world.answer(world.one(), outcome)
    assert ["no key" in str(handle.error) for handle in handles] == [False, True, False]
    assert "batch refused" in str(handles[0].error)


def test_corrupt_twice_fails() -> None:
    world = World({"t": [0]}, linger_ms=0)
    handle = world.add()
    world.answer(world.one(), int(ErrorCode.CORRUPT_MESSAGE))
    assert not handle.is_done
    (send,) = world.sends_when_due()
    world.answer(send, int(ErrorCode.CORRUPT_MESSAGE))
    assert isinstance(handle.error, BrokerError)


def test_a_request_that_cannot_be_made_fails_its_records() -> None:
    world = World({"t": [0]}, linger_ms=0)
    handle = world.add()
    cause = ValueError("why")
    error = UnsupportedVersionError("no such version", broker="b0:9092")
    error.__cause__ = cause
    world.fail(world.one(), error)
    assert isinstance(handle.error, UnsupportedVersionError)
    assert (handle.error.broker, handle.error.topic, handle.error.partition) == ("b0:9092", "t", 0)
    assert "no such version" in str(handle.error)
    assert handle.error.__cause__ is cause


# --- deadlines --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("leaders", [[0], [-1]])
def test_a_record_that_is_never_acknowledged_ends_at_its_deadline(leaders: list[int]) -> None:
    world = World({"t": leaders}, delivery_timeout_ms=10_000)
    handle = world.add(partition=0)
    start = world.now
    told = []
    while not handle.is_done:
        for action in world.sleep():
            if isinstance(action, Send):
                world.fail(action, TransportError("refused", broker="b0:9092"))
            elif isinstance(action, BatchFailed):
                told.append((action.topic, action.partition, action.records, action.error))
    assert world.now - start == pytest.approx(10.0)
    assert isinstance(handle.error, DeliveryTimeoutError)
    assert (handle.error.topic, handle.error.partition) == ("t", 0)
    assert ("refused" in str(handle.error)) == (leaders == [0])
    assert str(handle.error).count("[") == 1  # where it was is told once
    assert told == [("t", 0, 1, handle.error)]
    assert world.machine.counters.in_buffer == 0
    assert world.machine.next_wakeup() is None


def test_a_record_that_joins_late_has_most_of_its_time() -> None:
    world = World({"t": [-1]}, delivery_timeout_ms=8_000, linger_ms=0)
    first = world.add(partition=0)
    world.now += 0.9
    second = world.add(partition=0)
    world.now += 0.2
    third = world.add(partition=0)
    assert first.batch is second.batch
    assert second.batch is not third.batch


def test_one_in_flight_ends_for_its_waiters_but_its_partition_stays_taken() -> None:
    world = World({"t": [0]}, delivery_timeout_ms=1_000, linger_ms=0)
    a = world.add(value=b"a")
    send = world.one()
    world.now += 0.5
    b = world.add(value=b"b")
    assert world.sends(after=0.5) == []
    assert isinstance(a.error, DeliveryTimeoutError)
    assert "may or may not be in the log" in str(a.error)
    world.answer(send, OK)  # too late for a
    assert isinstance(a.error, DeliveryTimeoutError)
    world.answer(world.one(), OK)
    assert b.is_acknowledged
    assert world.machine.counters[:5] == (2, 1, 1, 0, 0)


def test_expired_batches_are_not_sent() -> None:
    world = World({"t": [0]}, delivery_timeout_ms=1_000, linger_ms=0)
    world.add(value=b"a")
    send = world.one()
    world.add(value=b"b")
    world.poll(after=1.0)
    world.fail(send, RequestTimeoutError("no answer"))
    c = world.add(value=b"c")
    (send,) = world.sends_when_due()
    assert values(send.batches[0]) == [b"c"]
    world.answer(send, OK)
    assert c.is_acknowledged


# --- topics without metadata ------------------------------------------------------------------------------------------


def test_records_wait_for_their_topics_metadata_and_are_routed_in_order() -> None:
    world = World({}, linger_ms=0)
    handles = [world.add("new", value=b"%d" % i, partition=i % 2) for i in range(6)]
    actions = world.poll()
    assert topics_asked(actions) == ["new"]
    assert not any(isinstance(action, Send) for action in actions)
    world.metadata({"new": [0, 1]})
    sends = world.sends()
    assert {send.node_id: values(send.batches[0]) for send in sends} == {0: [b"0", b"2", b"4"], 1: [b"1", b"3", b"5"]}
    for send in sends:
        world.answer(send, OK)
    assert [handle.offset for handle in handles] == [100, 100, 101, 101, 102, 102]
    assert world.machine.counters[:5] == (6, 6, 0, 0, 0)


def test_records_that_wait_in_several_batches_are_routed_in_order() -> None:
    world = World({}, linger_ms=0, max_block_ms=8_000)
    handles = [world.add("new", partition=0)]
    world.now += 1.5
    handles.append(world.add("new", partition=0))
    assert handles[0].batch is not handles[1].batch
    world.metadata({"new": [0]})
    world.answer(world.one(), OK)
    assert [handle.offset for handle in handles] == [100, 101]


def test_parked_records_keep_keys_headers_and_batch_size() -> None:
    world = World({}, linger_ms=0, batch_size=400)
    handles = [
        world.add("new", value=bytes(50), key=b"k" if i % 2 else None, headers=(("h", b"1"),)) for i in range(40)
    ]
    buffered = world.machine.accumulator.buffered_bytes
    world.metadata({"new": [0]})
    assert world.machine.accumulator.buffered_bytes == buffered
    sizes = []
    while sends := world.sends():
        for send in sends:
            sizes += [batch.size for batch in send.batches]
            assert send.batches[0].headers is not None
            world.answer(send, OK)
    assert max(sizes) <= 400
    assert all(handle.is_acknowledged for handle in handles)
    assert world.machine.accumulator.buffered_bytes == 0


def test_an_unknown_topic_is_asked_for_until_max_block_ms() -> None:
    world = World({}, max_block_ms=5_000, retry_backoff_ms=100, retry_backoff_max_ms=1000)
    handle = world.add("nope")
    world.poll()
    world.metadata({"nope": int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)})
    start, asked = world.now, 0
    while not handle.is_done:
        asked += len(refreshes(world.sleep()))
    assert world.now - start == pytest.approx(5.0)
    assert 5 <= asked <= 10
    assert isinstance(handle.error, UnknownTopicError)
    assert handle.error.topic == "nope"


def test_records_of_a_topic_that_cannot_be_created_fail_with_the_brokers_reason() -> None:
    world = World({}, max_block_ms=60_000, retry_backoff_ms=100, retry_backoff_max_ms=1000)
    handle = world.add("a_b")
    world.poll()
    world.metadata({"a_b": int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)})
    start = world.now
    while CheckCreation("a_b") not in world.sleep():
        assert world.now < start + 3
    reason = broker_error(ErrorCode.INVALID_TOPIC_EXCEPTION, "it collides with a.b", topic="a_b")
    world.machine.topic_refused("a_b", reason)
    assert handle.error is reason
    later = world.add("a_b")
    while CheckCreation("a_b") not in world.sleep():
        assert not later.is_done
    world.metadata({"a_b": [0]})
    world.machine.topic_refused("a_b", reason)  # an answer that comes late
    world.answer(world.one(after=1), OK)
    assert later.is_acknowledged


def test_the_reason_of_a_missing_topic_is_asked_repeatedly() -> None:
    world = World({}, max_block_ms=60_000)
    handle = world.add("later")
    world.poll()
    world.metadata({"later": int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)})
    asked = 0
    while not handle.is_done:
        asked += world.sleep().count(CheckCreation("later"))
    assert 3 <= asked <= 7
    assert isinstance(handle.error, UnknownTopicError)


def test_a_topic_that_never_gets_leaders_times_out_and_says_why() -> None:
    world = World({}, max_block_ms=5_000)
    handle = world.add("t")
    world.metadata({"t": int(ErrorCode.LEADER_NOT_AVAILABLE)})
    world.poll(after=5.0)
    assert isinstance(handle.error, DeliveryTimeoutError)
    assert "LEADER_NOT_AVAILABLE" in str(handle.error)


def test_without_any_metadata_the_deadline_says_so() -> None:
    world = World(None, max_block_ms=5_000)
    handle = world.add("t")
    world.poll(after=5.0)
    assert isinstance(handle.error, DeliveryTimeoutError)
    assert handle.error.topic == "t"


@pytest.mark.parametrize("code", [ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.TOPIC_AUTHORIZATION_FAILED])
def test_a_topic_that_will_never_be_served_fails_its_records_at_once(code: ErrorCode) -> None:
    world = World({})
    handle = world.add("t")
    world.metadata({"t": int(code)})
    assert isinstance(handle.error, BrokerError)
    assert handle.error.code is code


def test_a_partition_out_of_range_is_looked_for_a_second_long() -> None:
    world = World({"t": [0, 0]}, linger_ms=0)
    later, never = world.add(partition=2), world.add(partition=7)
    assert refreshes(world.poll()) == [RefreshMetadata(1)]
    world.metadata({"t": [0, 0]})  # of a broker that is behind
    assert refreshes(world.poll()) == []
    last = world.add(partition=2)
    while not refreshes(world.sleep()):
        pass
    world.metadata({"t": [0, 0, 1]})
    send = world.one()
    assert (send.node_id, len(send.batches[0])) == (1, 2)
    world.answer(send, OK)
    assert later.is_acknowledged
    assert last.is_acknowledged
    asked = 0
    while not never.is_done:
        if refreshes(world.sleep()):
            asked += 1
            world.metadata({"t": [0, 0, 1]})
    assert 1 <= asked <= 4
    assert world.now < 1003
    assert world.machine.counters[:5] == (3, 2, 1, 0, 0)
    assert isinstance(never.error, UnknownTopicError)
    assert "3 partitions" in str(never.error)
    assert (never.error.topic, never.error.partition) == ("t", 7)


def test_a_partitioner_that_raises_is_told_at_once_where_the_topic_is_known() -> None:
    def odd(key: bytes | None, partitions: tuple[int, ...], available: tuple[int, ...]) -> int:
        return 1 // 0 if key == b"b" else 0

    world = World({"t": [0]}, linger_ms=0, partitioner=odd)
    before = world.add(key=b"a")
    with pytest.raises(ConfigError) as caught:
        world.add(key=b"b")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    after = world.add(key=b"c")
    world.answer(world.one(), OK)
    assert before.is_acknowledged
    assert after.is_acknowledged
    assert world.machine.counters[:5] == (2, 2, 0, 0, 0)


def test_values_before_one_that_the_partitioner_refuses_are_counted_and_sent() -> None:
    answers = iter([0, 0, 9])
    world = World({"t": [0]}, linger_ms=0, partitioner=lambda *_: next(answers))
    with pytest.raises(ConfigError):
        world.machine.accumulator.values_added("t", [b"a", b"b", b"c"], 5, world.now)
    send = world.one()
    assert values(send.batches[0]) == [b"a", b"b"]
    world.answer(send, OK)
    assert world.machine.counters[:5] == (2, 2, 0, 0, 0)


def test_a_partitioner_that_raises_fails_its_record_and_no_other() -> None:
    def odd(key: bytes | None, partitions: tuple[int, ...], available: tuple[int, ...]) -> int:
        return 1 // 0 if key == b"b" else {b"a": 0, b"c": 9}[key or b""]

    world = World({}, linger_ms=0, partitioner=odd)
    a, b, c = world.add("t", key=b"a"), world.add("t", key=b"b"), world.add("t", key=b"c")
    world.metadata({"t": [0, 0]})
    world.answer(world.one(), OK)
    assert a.is_acknowledged
    assert isinstance(b.error, ConfigError)
    assert isinstance(b.error.__cause__, ZeroDivisionError)
    assert isinstance(c.error, ConfigError)
    assert world.machine.counters[:5] == (3, 1, 2, 0, 0)


def test_a_topic_that_metadata_lost_keeps_its_records_until_it_comes_back() -> None:
    world = World({"t": [0, 1]}, linger_ms=0)
    world.metadata({"t": int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)})
    handle = world.add(partition=1)
    assert world.sends() == []
    world.metadata({"t": [0, 2]})
    send = world.one()
    assert send.node_id == 2
    world.answer(send, OK)
    assert handle.is_acknowledged


# --- keyless records --------------------------------------------------------------------------------------------------


def test_keyless_records_stay_on_a_partition_for_a_batch() -> None:
    world = World({"t": [0] * 6}, linger_ms=0, batch_size=2000)
    for _ in range(600):
        world.add(value=bytes(50))
    full = (2000 - BATCH_OVERHEAD) // (50 + RECORD_OVERHEAD)
    lengths, partitions = [], set()
    while sends := world.sends():
        for send in sends:
            for batch in send.batches:
                lengths.append(len(batch))
                partitions.add(batch.partition)
            world.answer(send, OK)
    assert sorted(lengths) == [600 % full] + [full] * (600 // full)
    assert partitions == set(range(6))


def test_in_a_transaction_short_batches_add_up_before_the_partition_changes() -> None:
    settings = {"transactional_id": "id", "enable_idempotence": None, "batch_size": 1000}
    world = World({"t": [0] * 6}, is_transactional=True, linger_ms=0, **settings)
    world.machine.identity_given(Identity(1, 0), world.now)
    partitions = []
    for _ in range(40):
        world.add(value=bytes(50))
        send = world.one()
        partitions.append(send.batches[0].partition)
        world.answer(send, OK)
    runs = [1]
    for before, after in pairwise(partitions):
        if before == after:
            runs[-1] += 1
        else:
            runs.append(1)
    # 147 bytes with the batch's own; a run may be two choices of the same partition.
    assert all(run % 6 == 0 for run in runs[:-1])


@pytest.mark.parametrize("batch_size", [131_072, 1_048_576, 16_384])
def test_keyless_single_sends_at_a_low_rate_are_spread(batch_size: int) -> None:
    world = World({"t": [0] * 12}, linger_ms=0, batch_size=batch_size)
    sent: Counter[int] = Counter()
    for _ in range(600):
        world.add()
        send = world.one(after=0.01)
        sent.update(batch.partition for batch in send.batches)
        world.answer(send, OK)
    assert len(sent) == 12
    assert min(sent.values()) >= 25  # 50 on average
    assert max(sent.values()) <= 90


@pytest.mark.parametrize("linger_ms", [0, 5])
def test_keyless_records_stay_on_a_partition_while_it_has_a_batch_in_flight(linger_ms: int) -> None:
    world = World({"t": [0] * 12}, linger_ms=linger_ms)
    partitions = []
    for _ in range(8):
        partitions.append(world.add(value=b"x" * 1000).batch.partition)
        world.sends(after=0.002)
    assert len(set(partitions)) == 1


def test_bulk_sends_fill_their_batches_and_leave_no_small_ones() -> None:
    world = World({"t": [0] * 12}, linger_ms=1000, batch_size=131_072)
    handles = [world.add(value=b"x" * 100) for _ in range(20_000)]
    batches = list(dict.fromkeys(handle.batch for handle in handles))
    assert len({batch.partition for batch in batches}) > 3
    assert all(batch.size > 131_072 - 200 for batch in batches[:-1])


def test_keyless_records_leave_a_partition_that_lost_its_leader() -> None:
    world = World({"t": [0, 0]}, linger_ms=0)
    world.add()
    send = world.one()
    world.answer(send, OK)
    lost = send.batches[0].partition
    world.metadata({"t": [-1 if partition == lost else 0 for partition in range(2)]})
    for _ in range(5):
        world.add()
        send = world.one()
        assert send.batches[0].partition == 1 - lost
        world.answer(send, OK)


def test_many_values_are_taken_at_once_in_order() -> None:
    world = World({"t": [0, 0, 0]}, linger_ms=0, batch_size=1000)
    given = [b"%04d" % i for i in range(500)]
    spans = world.machine.accumulator.values_added("t", given, 7, world.now)
    taken = [value for batch, first, count in spans for value in batch.values[first : first + count]]
    assert taken == given
    assert all(batch.size <= 1000 for batch, _, _ in spans)
    assert world.machine.counters.buffered_bytes == 500 * (4 + RECORD_OVERHEAD)
    assert len({id(batch) for batch, _, _ in spans}) == -(-500 // ((1000 - BATCH_OVERHEAD) // (4 + RECORD_OVERHEAD)))


@pytest.mark.parametrize("partitioner", ["murmur2", "round_robin", "consistent_random"])
def test_many_values_and_single_records_fill_the_same_batches(partitioner: str) -> None:
    one_by_one = World({"t": [0, 0, 0]}, linger_ms=0, batch_size=500, partitioner=partitioner)
    together = World({"t": [0, 0, 0]}, linger_ms=0, batch_size=500, partitioner=partitioner)
    given = [b"%03d" % i * (i % 5) for i in range(200)]
    handles = [one_by_one.add(value=value) for value in given]
    spans = together.machine.accumulator.values_added("t", given, 5, together.now)
    places = [(batch.partition, first + i) for batch, first, count in spans for i in range(count)]
    assert places == [(handle.batch.partition, handle.index) for handle in handles]


def test_many_values_for_an_unknown_topic_are_parked() -> None:
    world = World({}, linger_ms=0)
    spans = world.machine.accumulator.values_added("t", [b"a", b"b", b"c"], 7, world.now)
    world.metadata({"t": [0]})
    send = world.one()
    assert values(send.batches[0]) == [b"a", b"b", b"c"]
    world.answer(send, OK)
    assert [batch.follow(first)[0].is_done for batch, first, _ in spans] == [True] * len(spans)


# --- too large --------------------------------------------------------------------------------------------------------


def test_a_batch_that_is_too_large_goes_in_halves_in_order() -> None:
    world = World({"t": [0]}, linger_ms=0)
    handles = [world.add(value=b"%d" % i) for i in range(5)]
    later = world.add(value=b"later", partition=0)
    assert later.batch is handles[0].batch
    world.answer(world.one(), TOO_LARGE)
    first = world.one()
    assert values(first.batches[0]) == [b"0", b"1", b"2"]
    world.answer(first, Outcome(OK, 10))
    second = world.one()
    assert values(second.batches[0]) == [b"3", b"4", b"later"]
    world.answer(second, Outcome(OK, 13))
    assert [handle.offset for handle in [*handles, later]] == [10, 11, 12, 13, 14, 15]


def test_later_batches_are_made_no_larger_than_the_halves() -> None:
    world = World({"t": [0]}, linger_ms=0)
    for _ in range(10):
        world.add(value=bytes(100))
    world.answer(world.one(), TOO_LARGE)
    for _ in range(10):
        world.add(value=bytes(100))
    sizes = []
    while sends := world.sends():
        for send in sends:
            sizes.append([len(batch) for batch in send.batches])
            world.answer(send, OK)
    assert sizes == [[5], [5], [5], [5]]


def test_many_values_are_made_no_larger_than_the_halves_either() -> None:
    world = World({"t": [0]}, linger_ms=0)
    for _ in range(10):
        world.add(value=bytes(100))
    world.answer(world.one(), TOO_LARGE)
    spans = world.machine.accumulator.values_added("t", [bytes(100)] * 20, 5, world.now)
    assert [count for _, _, count in spans] == [5, 5, 5, 5]


def test_one_record_that_is_too_large_raises_and_the_others_go_on() -> None:
    world = World({"t": [0]}, linger_ms=0)
    handles = [world.add(value=bytes(1000) if i == 3 else b"%d" % i) for i in range(6)]

    while sends := world.sends():
        for send in sends:
            large = any(len(value or b"") >= 1000 for value in send.batches[0].values)
            world.answer(send, TOO_LARGE if large else OK)
    assert [handle.is_acknowledged for handle in handles] == [True, True, True, False, True, True]
    error = handles[3].error
    assert isinstance(error, RecordTooLargeError)
    assert (error.topic, error.partition, error.broker) == ("t", 0, "b0:9092 (id 0)")
    assert world.machine.counters[:5] == (6, 5, 1, 0, 0)


# --- records that the broker's release cannot carry ------------------------------------------------------------------


def refuse_headers(world: World, send: Send) -> list[bool]:
    kept = []
    for batch in tuple(send.batches):
        assert batch.headers is not None
        indices = [index for index, headers in enumerate(batch.headers) if headers]
        rest = world.machine.records_refused(send, batch, indices, UnsupportedVersionError("headers"), world.now)
        kept.append(rest is not None)
    return kept


def test_records_that_cannot_be_carried_are_taken_out_of_the_batch() -> None:
    world = World({"t": [0]}, linger_ms=0)
    handles = [world.add(value=b"%d" % i, headers=(("h", b""),) if i % 2 else ()) for i in range(4)]
    send = world.one()
    assert refuse_headers(world, send) == [True]
    assert values(send.batches[0]) == [b"0", b"2"]
    assert [isinstance(handle.error, UnsupportedVersionError) for handle in handles] == [False, True, False, True]
    world.answer(send, NOT_LEADER)
    (again,) = world.sends_when_due()
    world.answer(again, OK)
    assert [handle.offset for handle in handles] == [100, -1, 101, -1]
    assert world.machine.counters[:5] == (4, 2, 2, 0, 0)


def test_a_batch_of_which_nothing_is_left_frees_its_partition() -> None:
    world = World({"t": [0]}, linger_ms=0)
    world.add(headers=(("h", b""),))
    send = world.one()
    after = world.add(value=b"after")
    assert refuse_headers(world, send) == [False]
    assert send.batches == []
    world.fail(send, UnsupportedVersionError("nothing left"))
    world.answer(world.one(), OK)
    assert after.is_acknowledged


# --- a request that waits while its batches expire --------------------------------------------------------------------


def test_a_batch_that_expires_before_it_is_written_leaves_the_others_of_its_request_alone() -> None:
    world = World({"t": [0, 0]}, linger_ms=0, delivery_timeout_ms=10_000)
    late = world.add(partition=0)
    world.metadata({"t": [-1, -1]})
    world.poll(after=8.0)
    good = world.add(partition=1)
    world.metadata({"t": [0, 0]})
    send = world.one()
    assert send.batches == [late.batch, good.batch]
    world.poll(after=3.0)
    assert isinstance(late.error, DeliveryTimeoutError)
    world.answer(send, None, OK)
    assert good.is_acknowledged
    assert world.machine.counters[:5] == (2, 1, 1, 0, 0)


def test_a_request_of_which_all_batches_expired_frees_its_partitions() -> None:
    world = World({"t": [0]}, linger_ms=0, delivery_timeout_ms=10_000)
    late = world.add()
    send = world.one()
    world.poll(after=10.0)
    assert isinstance(late.error, DeliveryTimeoutError)
    world.fail(send, RequestTimeoutError("all had ended"))
    after = world.add()
    actions = world.poll()
    assert refreshes(actions) == []
    (again,) = (action for action in actions if isinstance(action, Send))
    world.answer(again, OK)
    assert after.is_acknowledged


# --- flush and close --------------------------------------------------------------------------------------------------


def test_release_all_ends_the_linger_of_what_is_under_way() -> None:
    world = World({"t": [0, 0]}, linger_ms=60_000)
    a, b = world.add(partition=0), world.add(partition=1)
    world.machine.release_all(world.now)
    assert world.machine.under_way() == [a.batch, b.batch]
    assert len(world.one().batches) == 2
    world.add(partition=0)
    world.machine.release_all(world.now)
    assert len(world.machine.under_way()) == 3


def backing_off_after_expiry() -> World:
    """The one record has expired in its backoff, which goes on for another 0.9 s."""
    world = World(
        {"t": [0]}, linger_ms=20_000, delivery_timeout_ms=60_000, retry_backoff_ms=1000, retry_backoff_max_ms=1000
    )
    world.add(partition=0)
    world.machine.release_all(world.now)
    send = world.one()
    world.now += 59.9
    world.fail(send, TransportError("gone"))
    world.poll(after=0.2)
    assert world.machine.counters.in_buffer == 0
    return world


def test_release_all_holds_for_a_partition_that_backs_off() -> None:
    world = backing_off_after_expiry()
    handle = world.add(partition=0)
    world.machine.release_all(world.now)
    assert handle.batch.is_closed
    start = world.now
    (send,) = world.sends_when_due()
    assert world.now - start < 1.0
    world.answer(send, OK)
    assert handle.is_acknowledged


def test_another_leader_ends_the_backoff_of_a_partition_whose_batch_expired() -> None:
    world = backing_off_after_expiry()
    world.add(partition=0)
    world.machine.release_all(world.now)
    world.metadata({"t": [1]})
    assert world.one().node_id == 1


def test_release_all_holds_for_records_that_wait_for_metadata() -> None:
    world = World({}, linger_ms=60_000)
    world.add(value=b"before")
    world.machine.release_all(world.now)
    world.add(value=b"after")
    world.metadata({"t": [0]})
    assert values(world.one().batches[0]) == [b"before"]


def test_close_fails_what_is_left_wherever_it_is() -> None:
    world = World({"t": [0, -1, 0]}, linger_ms=0)
    in_flight = world.add(partition=0)
    send = world.one()
    handles = [in_flight, world.add(partition=0), world.add(partition=1), world.add("parked")]
    world.machine.close(ClosedError("closed"))
    assert all(isinstance(handle.error, ClosedError) for handle in handles)
    assert world.machine.counters[:5] == (4, 0, 4, 0, 0)
    world.answer(send, OK)
    assert [action for action in world.poll(after=1000) if not isinstance(action, (RoomFreed, UseTopics))] == []
    assert world.machine.next_wakeup() is None


def test_errors_are_of_the_librarys_tree() -> None:
    world = World({"t": [0]}, linger_ms=0)
    handle = world.add()
    world.answer(world.one(), 12345)
    assert isinstance(handle.error, KafkaError)
    assert "12345" in str(handle.error)


def test_metadata_that_is_behind_keeps_the_order_of_a_new_partition() -> None:
    world = World({"t": [0, 0]}, linger_ms=1000, batch_size=2000)
    handles = [world.add(value=b"1" * 1000, partition=1)]
    world.metadata({"t": [0]})  # of a broker that does not know the partition yet
    handles += [world.add(value=b"2" * 1500, partition=1), world.add(value=b"3", partition=1)]
    world.poll()
    world.metadata({"t": [0, 0]})
    order: list[bytes | None] = []
    while not all(handle.is_done for handle in handles):
        for send in world.sends_when_due():
            order += [value[:1] for batch in send.batches for value in values(batch) if value is not None]
            world.answer(send, OK)
    assert order == [b"1", b"2", b"3"]
