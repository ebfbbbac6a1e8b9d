"""The idempotent producer's machine: its id, the numbers of its batches, and every answer that concerns them."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from pykafka08.error_codes import ErrorCode
from pykafka08.errors import (
    AuthorizationError,
    BrokerError,
    ConfigError,
    DeliveryTimeoutError,
    KafkaError,
    ProducerFencedError,
    RemoteProtocolError,
    RequestTimeoutError,
    TransportError,
    UnsupportedVersionError,
)
from pykafka08.producer.actions import AskIdentity, Send
from pykafka08.producer.batch import BATCH_OVERHEAD, RECORD_OVERHEAD
from pykafka08.producer.reactions import Outcome
from pykafka08.producer.sequences import LAST_EPOCH, PROVEN_S, Identity

from .numbered import NumberedWorld, numbers, refused, sent
from .world import OK, World, values

NOT_LEADER = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
OUT_OF_ORDER = int(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
UNKNOWN_PRODUCER = int(ErrorCode.UNKNOWN_PRODUCER_ID)
DENIED = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
NO_API = UnsupportedVersionError("the broker has no InitProducerId API", api="InitProducerId")


# --- the producer id --------------------------------------------------------------------------------------------------


def test_an_id_is_asked_for_at_once_and_nothing_is_sent_before_it() -> None:
    world = World({"t": [0]}, linger_ms=0, enable_idempotence=None)
    world.add()
    actions = world.poll()
    assert [action for action in actions if isinstance(action, AskIdentity)] == [AskIdentity(0)]
    assert not any(isinstance(action, Send) for action in actions)
    assert world.sends(after=1) == []
    world.machine.identity_given(Identity(7, 3), world.now)
    send = world.one()
    world.machine.number(send.batches[0])
    assert numbers(send.batches[0]) == (7, 3, 0)


def test_another_broker_is_asked_after_a_backoff() -> None:
    world = NumberedWorld(refusal=TransportError("refused"), retry_backoff_ms=100)
    record = world.add()
    world.poll()
    assert world.sends(after=0.09) == []
    assert world.asked == [0]
    while len(world.asked) < 4:
        world.sleep()
    assert world.asked == [0, 1, 2, 0]
    world.refusal = None
    world.answer(world.sends_when_due()[0], OK)
    assert record.is_acknowledged
    assert world.warnings == []


@pytest.mark.parametrize(
    "error",
    [
        RequestTimeoutError("late"),
        refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        refused(ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
    ids=str,
)
def test_a_broker_that_has_no_id_now_is_no_reason_to_go_without(error: KafkaError) -> None:
    world = NumberedWorld(refusal=error, delivery_timeout_ms=10_000)
    record = world.add()
    while not record.is_done:
        assert not any(isinstance(action, Send) for action in world.sleep())
    assert isinstance(record.error, DeliveryTimeoutError)
    assert "producer id" in str(record.error)
    assert not record.error.may_be_written
    assert len(world.asked) > 5


@pytest.mark.parametrize("error", [NO_API, refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)], ids=str)
def test_where_there_is_none_records_go_without_and_one_warning_says_so(error: KafkaError) -> None:
    world = NumberedWorld(refusal=error)
    for _ in range(3):
        record = world.add()
        send = world.one()
        assert numbers(send.batches[0]) == (-1, -1, -1)
        world.answer(send, OK)
        assert record.is_acknowledged
    assert world.warnings == [error]
    assert world.asked == [0]


def test_without_numbers_one_batch_of_a_partition_is_in_flight() -> None:
    world = NumberedWorld(refusal=NO_API)
    world.warm()
    world.in_flight(1)
    world.add()
    assert world.sends() == []


@pytest.mark.parametrize("error", [NO_API, refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)], ids=str)
def test_where_there_is_none_and_the_application_demands_it_records_fail(error: KafkaError) -> None:
    world = NumberedWorld(refusal=error, enable_idempotence=True)
    first = world.add()
    assert world.sends() == []
    world.poll()
    later = world.add(partition=0)
    world.poll()
    for record in (first, later):
        assert type(record.error) is type(error)
        assert not record.error.may_be_written
    assert world.warnings == []
    assert world.machine.counters[:5] == (2, 0, 2, 0, 0)


def test_records_fail_until_a_broker_gives_a_valid_producer_id() -> None:
    error = RemoteProtocolError("the broker's answer gives producer id -1", broker="b", api="InitProducerId")
    world = NumberedWorld(refusal=error, is_invalid=True, delivery_timeout_ms=60_000)
    record = world.add()
    while len(world.asked) < 3:
        assert not record.is_done
        world.sleep()
    world.poll()
    assert world.asked == [0, 1, 2]
    assert isinstance(record.error, RemoteProtocolError)
    assert (record.error.broker, record.error.topic) == ("b", "t")
    assert not record.error.may_be_written
    pauses = []
    for _ in range(6):
        before = world.now
        world.sleep()
        pauses.append(world.now - before)
    assert sorted(pauses) == pauses
    assert pauses[-1] >= 0.5
    world.refusal = None
    world.sleep()
    later = world.add()
    world.answer(world.one(), OK)
    assert later.is_acknowledged
    assert world.warnings == []


@pytest.mark.parametrize("may_be_more", [False, True])
def test_an_impossible_acknowledgement_fails_the_batch_in_doubt(may_be_more: bool) -> None:
    world = NumberedWorld()
    world.warm()
    first = world.add(partition=0)
    send = world.one()
    later = world.add(partition=0) if may_be_more else None
    world.answer(send, Outcome(0, -1, invalid="base offset -1"))
    assert isinstance(first.error, RemoteProtocolError)
    assert first.error.may_be_written
    assert (first.error.topic, first.error.partition, first.error.api) == ("t", 0, "Produce")
    if later is not None:
        world.answer(world.sends_when_due()[0], OK)
        assert later.is_acknowledged


@pytest.mark.parametrize("acks", [0, 1])
def test_with_fewer_acks_no_id_is_asked_for_and_nothing_is_said(acks: int) -> None:
    world = NumberedWorld(acks=acks)
    world.warm()
    assert (world.asked, world.warnings) == ([], [])
    with pytest.raises(ConfigError, match=f"acks={acks}"):
        NumberedWorld(acks=acks, enable_idempotence=True)


# --- numbers ----------------------------------------------------------------------------------------------------------


def test_numbers_count_the_records_of_each_partition() -> None:
    world = NumberedWorld(0, 1, batch_size=1000)
    for many in (2, 3):
        for partition in (0, 1):
            for _ in range(many):
                world.add(partition=partition)
        sends = world.sends()
        assert [numbers(send.batches[0]) for send in sends] == [(1, 0, 0 if many == 2 else 2)] * 2
        for send in sends:
            world.answer(send, OK)


def test_the_first_goes_alone_and_five_follow_once_the_broker_knows_the_producer() -> None:
    world = NumberedWorld()
    for i in range(8):
        world.add(value=b"%d" % i)
    first = world.one()
    assert world.sends(after=1) == []
    world.answer(first, OK)
    sends = world.sends()
    assert sent(sends) == [(b"%d" % i, 0, i) for i in range(1, 6)]
    world.answer(sends[0], OK)
    assert sent(world.sends()) == [(b"6", 0, 6)]


def test_0_11_remembers_one_batch_so_that_one_is_in_flight() -> None:
    world = NumberedWorld(produce_version=3)
    world.warm()
    world.in_flight(1)
    world.add()
    assert world.sends(after=1) == []


def test_after_a_pause_the_first_goes_alone_again() -> None:
    world = NumberedWorld()
    world.warm()
    world.now += PROVEN_S + 1
    world.in_flight(1)
    world.add()
    assert world.sends() == []


def test_no_batch_goes_to_a_new_leader_while_the_old_one_owes_an_answer() -> None:
    world = NumberedWorld(0)
    world.warm()
    (send,) = world.in_flight(1)
    world.metadata({"t": [1]})
    world.add(value=b"next")
    assert world.sends(after=1) == []
    world.answer(send, OK)
    assert world.one().node_id == 1


def test_an_open_batch_waits_for_those_in_flight_but_not_for_long() -> None:
    world = NumberedWorld(linger_ms=5, batch_size=1000)
    world.add()
    world.answer(world.one(after=0.005), OK)
    world.add()
    first = world.one(after=0.005)
    world.add()
    assert world.sends(after=0.019) == []
    second = world.one(after=0.001)
    world.add()
    assert world.sends(after=0.01) == []
    for send in (first, second):
        world.answer(send, OK)
    assert len(world.sends()) == 1


def test_batches_sent_again_keep_their_numbers_and_order() -> None:
    world = NumberedWorld(retry_backoff_ms=100)
    world.warm()
    for send in world.in_flight(5):
        world.fail(send, TransportError("cut"))
    assert world.sends(after=0.07) == []
    (first,) = world.sends_when_due()  # alone until it is acknowledged
    assert sent([first]) == [(b"0", 0, 1)]
    world.answer(first, OK)
    others = world.sends()
    assert sent(others) == [(b"%d" % i, 0, i + 1) for i in range(1, 5)]
    for send in others:
        world.answer(send, OK)
    assert world.machine.counters[:3] == (6, 6, 0)
    assert world.machine.counters.retries == 5


def test_answers_may_come_in_any_order() -> None:
    world = NumberedWorld()
    world.warm()
    sends = world.in_flight(3)
    for place in (2, 0):
        world.answer(sends[place], Outcome(OK, 10 + place))
    world.fail(sends[1], TransportError("cut"))
    (again,) = world.sends_when_due()
    assert sent([again]) == [(b"1", 0, 2)]
    world.answer(again, OK)
    assert world.machine.counters.acknowledged == 4


def test_a_record_that_ends_before_its_request_is_written_takes_no_number() -> None:
    world = NumberedWorld(delivery_timeout_ms=1000)
    world.warm()
    late = world.add()
    # Taken by the driver, whose connection is not open.
    (send,) = [action for action in world.machine.poll(world.now) if isinstance(action, Send)]
    world.poll(after=1.1)
    assert isinstance(late.error, DeliveryTimeoutError)
    world.fail(send, RequestTimeoutError("all records had ended"))
    world.add(value=b"next")
    assert sent(world.sends()) == [(b"next", 0, 1)]


def test_numbers_wrap_at_31_bits_on_the_wire_alone() -> None:
    world = NumberedWorld()
    world.warm()
    queue = world.machine.accumulator.topics["t"].queues[0]
    queue.sequences.next = 2**31 - 1
    world.in_flight(2)
    assert [batch.base_sequence for batch in queue.batches] == [2**31 - 1, 2**31]


# --- what may be missing from the log ---------------------------------------------------------------------------------


def test_after_a_batch_of_unknown_fate_the_next_starts_a_new_epoch() -> None:
    world = NumberedWorld(delivery_timeout_ms=1000, retry_backoff_ms=100)
    world.warm()
    (send,) = world.in_flight(1)
    lost = send.batches[0]
    world.poll(after=1.1)
    assert isinstance(lost.error, DeliveryTimeoutError)
    assert lost.error.may_be_written
    world.add(value=b"next")
    assert world.sends() == []  # the request may still be answered
    world.fail(send, RequestTimeoutError("no answer"))
    assert sent(world.sends()) == [(b"next", 1, 0)]


def test_a_late_answer_settles_what_was_in_doubt() -> None:
    world = NumberedWorld(delivery_timeout_ms=1000)
    world.warm()
    (send,) = world.in_flight(1)
    world.poll(after=1.1)
    world.add(value=b"next")
    world.answer(send, OK)
    assert sent(world.sends()) == [(b"next", 0, 2)]
    assert world.machine.counters[:3] == (3, 1, 1)


def test_an_acknowledgement_behind_it_settles_what_was_in_doubt() -> None:
    world = NumberedWorld(delivery_timeout_ms=1000, retry_backoff_ms=100)
    world.warm()
    (first,) = world.in_flight(1)
    world.now += 0.5
    (second,) = world.in_flight(1)
    for send in (first, second):
        world.fail(send, TransportError("cut"))
    world.now += 0.6
    (again,) = world.sends_when_due()  # the first has expired by now
    assert sent([again]) == [(b"0", 0, 2)]
    world.answer(again, OK)
    world.add(value=b"next")
    assert sent(world.sends()) == [(b"next", 0, 3)]


def test_a_refused_batch_that_was_the_last_gives_its_numbers_back() -> None:
    world = NumberedWorld()
    world.warm()
    (send,) = world.in_flight(1)
    world.answer(send, DENIED)
    assert isinstance(send.batches[0].error, AuthorizationError)
    world.add(value=b"next")
    assert sent(world.sends()) == [(b"next", 0, 1)]


def test_batches_behind_a_refused_one_get_new_numbers_in_order() -> None:
    world = NumberedWorld()
    world.warm()
    refused_one, *behind = world.in_flight(4)
    world.answer(refused_one, DENIED)
    for send in behind:
        assert world.sends() == []
        world.answer(send, OUT_OF_ORDER)
    (again,) = world.sends_when_due()
    assert sent([again]) == [(b"1", 1, 0)]
    world.answer(again, OK)
    assert sent(world.sends()) == [(b"2", 1, 1), (b"3", 1, 2)]


def test_a_batch_in_doubt_before_a_refused_one_keeps_its_numbers() -> None:
    world = NumberedWorld()
    world.warm()
    in_doubt, refused_one, behind = world.in_flight(3)
    world.answer(in_doubt, int(ErrorCode.REQUEST_TIMED_OUT))  # it is in the log
    world.answer(refused_one, DENIED)
    world.answer(behind, OUT_OF_ORDER)
    (again,) = world.sends_when_due()
    assert sent([again]) == [(b"0", 0, 1)]
    world.answer(again, OK)
    assert sent(world.sends_when_due()) == [(b"2", 1, 0)]


def test_a_refused_batch_that_an_earlier_attempt_may_have_written_says_so() -> None:
    world = NumberedWorld(retry_backoff_ms=100)
    world.warm()
    (send,) = world.in_flight(1)
    record = send.batches[0]
    world.fail(send, TransportError("cut"))
    (again,) = world.sends_when_due()
    world.answer(again, DENIED)
    assert isinstance(record.error, AuthorizationError)
    assert record.error.may_be_written
    assert "may or may not be in the log" in str(record.error)
    world.add(value=b"next")
    assert sent(world.sends_when_due()) == [(b"next", 1, 0)]


def test_when_a_producer_id_has_no_epoch_left_another_is_asked_for() -> None:
    world = NumberedWorld(delivery_timeout_ms=1000)
    world.warm()
    world.machine.identity_given(Identity(1, LAST_EPOCH), world.now)
    (send,) = world.in_flight(1)
    assert numbers(send.batches[0]) == (1, LAST_EPOCH, 0)
    world.poll(after=1.1)
    world.fail(send, TransportError("cut"))
    world.add(value=b"next")
    (again,) = world.sends_when_due()
    assert numbers(again.batches[0]) == (2, 0, 0)


# --- answers ----------------------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """What happens to a batch answered with ``code``, by where it stands."""

    code: ErrorCode
    first: str
    behind: str
    retried: str
    """The same answer to its second attempt, which is alone in flight."""


ROWS = [
    Row(ErrorCode.DUPLICATE_SEQUENCE_NUMBER, "acknowledged", "acknowledged", "acknowledged"),
    Row(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "same numbers", "same numbers", "next epoch"),
    Row(ErrorCode.UNKNOWN_PRODUCER_ID, "same numbers", "same numbers", "next epoch"),
    Row(ErrorCode.INVALID_PRODUCER_EPOCH, "new id", "new id", "new id"),
    Row(ErrorCode.INVALID_PRODUCER_ID_MAPPING, "new id", "new id", "new id"),
    Row(ErrorCode.PRODUCER_FENCED, "new id", "new id", "new id"),
    Row(ErrorCode.NOT_LEADER_OR_FOLLOWER, "same numbers", "same numbers", "same numbers"),
    Row(ErrorCode.REQUEST_TIMED_OUT, "same numbers", "same numbers", "same numbers"),
    Row(ErrorCode.NOT_ENOUGH_REPLICAS, "same numbers", "same numbers", "same numbers"),
    Row(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, "same numbers", "same numbers", "same numbers"),
    Row(ErrorCode.CORRUPT_MESSAGE, "same numbers", "same numbers", "failed"),
    Row(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "failed", "failed", "failed"),
    Row(ErrorCode.INVALID_RECORD, "failed", "failed", "failed"),
    Row(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, "no numbers", "no numbers", "no numbers"),
]


def fate(world: NumberedWorld, send: Send, before: tuple[int, int, int]) -> str:
    """What became of the batch of ``send``, whose numbers were ``before``."""
    (batch,) = send.batches
    if batch.is_done:
        return "acknowledged" if batch.error is None else "failed"
    for again in world.sends_when_due():
        if batch in again.batches:
            producer_id, epoch, base = numbers(batch)
            if (producer_id, epoch, base) == before:
                return "same numbers"
            if producer_id < 0:
                return "no numbers"
            assert base == 0
            return "new id" if producer_id != before[0] else "next epoch"
    raise AssertionError(f"{batch} neither ended nor went again")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.code.name)
def test_an_answer_to_the_first_in_flight(row: Row) -> None:
    world = NumberedWorld()
    world.warm()
    first, *behind = world.in_flight(3)
    before = numbers(first.batches[0])
    world.answer(first, int(row.code))
    for send in behind:
        world.fail(send, TransportError("cut"))
    assert fate(world, first, before) == row.first


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.code.name)
def test_an_answer_to_one_behind_another(row: Row) -> None:
    world = NumberedWorld()
    world.warm()
    first, behind = world.in_flight(2)
    before = numbers(behind.batches[0])
    world.answer(behind, int(row.code))
    world.answer(first, OK)
    assert fate(world, behind, before) == row.behind


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.code.name)
def test_an_answer_to_a_second_attempt(row: Row) -> None:
    world = NumberedWorld()
    world.warm()
    (send,) = world.in_flight(1)
    before = numbers(send.batches[0])
    if row.first == "same numbers":
        world.answer(send, int(row.code))
    else:
        world.answer(send, int(ErrorCode.NOT_ENOUGH_REPLICAS))
    (again,) = world.sends_when_due()
    assert numbers(again.batches[0]) == before
    world.answer(again, int(row.code))
    assert fate(world, again, before) == row.retried


@pytest.mark.parametrize(
    "code",
    [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.PRODUCER_FENCED],
    ids=lambda code: code.name,
)
def test_a_refused_producer_id_fails_what_may_be_written_and_sends_the_rest_anew(code: ErrorCode) -> None:
    world = NumberedWorld()
    world.warm()
    first, second = world.in_flight(2)
    world.answer(first, int(ErrorCode.REQUEST_TIMED_OUT))
    world.fail(second, TransportError("cut"))
    fresh = world.add(value=b"fresh")
    (again,) = world.sends_when_due()
    world.answer(again, int(code))
    (sent_anew,) = world.sends_when_due()
    assert sent([sent_anew]) == [(b"fresh", 0, 0)]
    assert numbers(sent_anew.batches[0])[0] == 2
    for send in (first, second):
        error = send.batches[0].error
        assert isinstance(error, KafkaError)
        assert error.may_be_written
    world.answer(sent_anew, OK)
    assert fresh.is_acknowledged


def test_a_duplicate_without_an_offset_is_acknowledged_without_one() -> None:
    world = NumberedWorld()
    record = world.add()
    world.answer(world.one(), int(ErrorCode.DUPLICATE_SEQUENCE_NUMBER))
    assert record.is_acknowledged
    assert record.offset == -1


@pytest.mark.parametrize(("log_start", "expected"), [(101, "next epoch"), (500, "next epoch"), (100, "same numbers")])
def test_a_producer_that_was_forgotten_with_deleted_segments_starts_anew_at_once(log_start: int, expected: str) -> None:
    world = NumberedWorld()
    world.warm()  # acknowledged at offset 100
    (send,) = world.in_flight(1)
    before = numbers(send.batches[0])
    world.answer(send, Outcome(UNKNOWN_PRODUCER, log_start_offset=log_start))
    assert fate(world, send, before) == expected


# --- splits -----------------------------------------------------------------------------------------------------------


def test_halves_have_the_numbers_of_the_whole() -> None:
    world = NumberedWorld(batch_size=BATCH_OVERHEAD + 5 * (RECORD_OVERHEAD + 1))
    world.warm()
    records = [world.add(value=b"%d" % i) for i in range(8)]
    world.machine.release_all(world.now)
    whole, behind = world.sends()
    world.answer(whole, int(ErrorCode.MESSAGE_TOO_LARGE))
    world.answer(behind, OUT_OF_ORDER)
    seen = []
    while not all(record.is_done for record in records):
        for send in world.sends_when_due():
            seen.append((values(send.batches[0]), numbers(send.batches[0])[1:]))
            world.answer(send, OK)
    assert seen == [([b"0", b"1"], (0, 1)), ([b"2", b"3", b"4"], (0, 3)), ([b"5", b"6", b"7"], (0, 6))]


# --- brokers and topics without numbers -------------------------------------------------------------------------------


def test_a_topic_in_an_old_format_gets_its_records_without_numbers_and_one_warning() -> None:
    world = NumberedWorld(0, 1)
    old_format = int(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)
    for partition in (0, 1):
        records = [world.add(partition=partition) for _ in range(3)]
        world.answer(world.one(), old_format)
        for record in records:
            send = world.one()
            assert numbers(send.batches[0]) == (-1, -1, -1)
            world.answer(send, OK)
            assert record.is_acknowledged
    assert len(world.warnings) == 1
    assert isinstance(world.warnings[0], BrokerError)


def test_a_leader_of_an_old_release_gets_its_records_without_numbers() -> None:
    world = NumberedWorld(0, 1)
    for partition in (0, 1):
        world.warm(partition)
    for send in world.in_flight(2):
        world.fail(send, NO_API)
    world.add(partition=1)
    again, other = sorted(world.sends_when_due(), key=lambda send: send.node_id)
    assert (values(again.batches[0]), numbers(again.batches[0])) == ([b"0"], (-1, -1, -1))
    assert numbers(other.batches[0]) == (1, 0, 1)  # the other leader has them still
    world.answer(again, OK)
    (last,) = [send for send in world.sends() if send.node_id == 0]
    assert values(last.batches[0]) == [b"1"]
    assert len(world.warnings) == 1


@pytest.mark.parametrize("error", [NO_API, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT], ids=["release", "format"])
def test_where_the_application_demands_numbers_records_without_fail(error: KafkaError | ErrorCode) -> None:
    world = NumberedWorld(enable_idempotence=True)
    record = world.add()
    send = world.one()
    if isinstance(error, ErrorCode):
        world.answer(send, int(error))
        assert isinstance(record.error, BrokerError)
    else:
        world.fail(send, error)
        assert isinstance(record.error, UnsupportedVersionError)
    assert world.warnings == []


# --- for transactions -------------------------------------------------------------------------------------------------


def test_a_transactional_producer_waits_for_the_id_it_is_given() -> None:
    world = NumberedWorld(is_transactional=True)
    world.add()
    assert world.sends(after=5) == []
    assert world.asked == []
    world.machine.identity_given(Identity(9, 4), world.now)
    assert numbers(world.one().batches[0]) == (9, 4, 0)


def test_a_given_epoch_starts_the_numbers_of_every_partition() -> None:
    world = NumberedWorld(0, 1, is_transactional=True)
    world.machine.identity_given(Identity(9, 4), world.now)
    for partition in (0, 1):
        world.warm(partition)
    world.machine.identity_given(Identity(9, 5), world.now)
    for partition in (0, 1):
        world.add(partition=partition)
    assert [numbers(send.batches[0]) for send in world.sends()] == [(9, 5, 0)] * 2


@pytest.mark.parametrize("code", [ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH], ids=str)
def test_a_transactional_producer_takes_no_epoch_and_no_id_by_itself(code: ErrorCode) -> None:
    world = NumberedWorld(is_transactional=True)
    world.machine.identity_given(Identity(9, 4), world.now)
    record = world.add()
    world.answer(world.one(), int(code))
    assert isinstance(record.error, BrokerError)
    assert isinstance(record.error, ProducerFencedError) == (code is ErrorCode.PRODUCER_FENCED)
    assert world.asked == []


def test_what_is_not_in_flight_can_be_failed() -> None:
    world = NumberedWorld(0, 1)
    world.warm()
    (send,) = world.in_flight(1)
    world.now += 1
    waiting = [world.add(value=b"w", partition=0) for _ in range(7)]
    parked = world.add("later")
    unsent = waiting[4:]
    assert len(world.sends()) == 4
    world.machine.fail_unsent(TransportError("aborted"), world.now)
    assert [record.is_done for record in waiting] == [False] * 4 + [True] * 3
    assert parked.is_done
    for record in (*unsent, parked):
        assert isinstance(record.error, TransportError)
        assert not record.error.may_be_written
    world.answer(send, OK)
    assert send.batches[0].error is None
