"""A batch whose fate is not known: it keeps its numbers and its size, whatever is said of it, or its records raise."""

from __future__ import annotations

import pytest

from pykafka08.error_codes import ErrorCode
from pykafka08.errors import KafkaError, TransportError, UnsupportedVersionError
from pykafka08.producer.actions import Send
from pykafka08.producer.batch import BATCH_OVERHEAD, RECORD_OVERHEAD
from pykafka08.producer.reactions import Outcome

from .numbered import NumberedWorld, numbers, sent
from .world import OK, Handle, World, values

OUT_OF_ORDER = int(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
UNKNOWN_PRODUCER = int(ErrorCode.UNKNOWN_PRODUCER_ID)
TOO_LARGE = int(ErrorCode.MESSAGE_TOO_LARGE)
CUT = TransportError("cut")
OF_FIVE = BATCH_OVERHEAD + 5 * (RECORD_OVERHEAD + 1)
"""Size of a batch of five records of one byte."""


def again(world: World) -> Send:
    """The one request that goes when the backoff is over."""
    (send,) = world.sends_when_due()
    return send


def assert_raised_in_doubt(record: Handle) -> None:
    assert isinstance(record.error, KafkaError)
    assert record.error.may_be_written
    assert "may or may not be in the log" in str(record.error)


def five(world: World) -> list[Handle]:
    records = [world.add(value=b"%d" % number) for number in range(5)]
    world.machine.release_all(world.now)
    return records


@pytest.mark.parametrize("code", [ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE], ids=str)
@pytest.mark.parametrize("doubt", [CUT, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND])
def test_it_is_not_split(code: ErrorCode, doubt: TransportError | ErrorCode) -> None:
    """The topic's limit was lowered, or the new leader's is lower: by halves nobody would know the whole again."""
    world = NumberedWorld(batch_size=OF_FIVE)
    world.warm()
    records = five(world)
    send = world.one()
    if isinstance(doubt, ErrorCode):
        world.answer(send, int(doubt))
    else:
        world.fail(send, doubt)
    world.answer(again(world), int(code))
    for record in records:
        assert_raised_in_doubt(record)
    world.add(value=b"next")
    assert sent([again(world)]) == [(b"next", 1, 0)]


@pytest.mark.parametrize("code", [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS], ids=str)
def test_one_that_was_surely_refused_before_is_split(code: ErrorCode) -> None:
    world = NumberedWorld(batch_size=OF_FIVE)
    world.warm()
    records = five(world)
    world.answer(world.one(), int(code))
    world.answer(again(world), TOO_LARGE)
    while not all(record.is_done for record in records):
        for send in world.sends_when_due():
            world.answer(send, OK)
    assert all(record.is_acknowledged for record in records)


def test_halves_of_a_batch_without_numbers_are_in_doubt_as_it_was() -> None:
    world = World({"t": [0]}, linger_ms=0, batch_size=OF_FIVE, enable_idempotence=False)
    records = five(world)
    world.fail(world.one(), CUT)
    world.answer(again(world), TOO_LARGE)
    half = again(world)
    assert values(half.batches[0]) == [b"0", b"1"]
    world.answer(half, int(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    for record in records[:2]:
        assert_raised_in_doubt(record)


@pytest.mark.parametrize("outcome", [Outcome(OUT_OF_ORDER), Outcome(UNKNOWN_PRODUCER, log_start_offset=500)], ids=str)
def test_it_is_not_numbered_anew_by_a_broker_that_misses_what_was_before_it(outcome: Outcome) -> None:
    """It may have been read before the log was cut, or before its segment was deleted, or lie in it unremembered."""
    world = NumberedWorld()
    world.warm()
    first, second = world.in_flight(2)
    for send in (first, second):
        world.fail(send, CUT)
    fresh = world.add(value=b"fresh")
    seen = []
    while not fresh.is_done:
        send = again(world)
        seen += sent([send])
        world.answer(send, outcome if send.batches[0].producer_epoch == 0 else OK)
    assert seen == [(b"0", 0, 1)] * 2 + [(b"1", 0, 2)] * 2 + [(b"fresh", 1, 0)]
    assert fresh.is_acknowledged
    for send in (first, second):
        error = send.batches[0].error
        assert error is not None
        assert error.may_be_written


def test_one_behind_a_missing_one_ends_where_the_numbers_start_anew() -> None:
    world = NumberedWorld()
    world.warm()
    refused, in_doubt, behind = world.in_flight(3)
    world.answer(refused, int(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    world.fail(in_doubt, CUT)
    world.answer(behind, OUT_OF_ORDER)
    assert sent([again(world)]) == [(b"2", 1, 0)]
    error = in_doubt.batches[0].error
    assert error is not None
    assert error.may_be_written


@pytest.mark.parametrize("why", ["format", "release"])
def test_it_does_not_go_without_its_numbers(why: str) -> None:
    world = NumberedWorld()
    world.warm()
    first, second = world.in_flight(2)
    for send in (first, second):
        world.fail(send, CUT)
    fresh = world.add(value=b"fresh")
    send = again(world)
    if why == "format":
        world.answer(send, int(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT))
    else:
        world.fail(send, UnsupportedVersionError("old", api="InitProducerId"), was_written=False)
    plain = again(world)
    assert (values(plain.batches[0]), numbers(plain.batches[0])) == ([b"fresh"], (-1, -1, -1))
    world.answer(plain, OK)
    assert fresh.is_acknowledged
    for each in (first, second):
        error = each.batches[0].error
        assert error is not None
        assert error.may_be_written


def test_what_no_connection_was_made_for_is_not_in_doubt() -> None:
    world = NumberedWorld(delivery_timeout_ms=1000, retry_backoff_ms=100)
    record = world.add()
    while not record.is_done:
        for action in world.sleep():
            if isinstance(action, Send):
                world.fail(action, TransportError("refused"), was_written=False)
    assert record.error is not None
    assert not record.error.may_be_written
    assert "may or may not" not in str(record.error)


def test_records_that_an_older_leader_refuses_are_in_doubt_as_they_were() -> None:
    world = World({"t": [0]}, linger_ms=0, batch_size=1000, enable_idempotence=False)
    with_headers, without = world.add(headers=(("h", b""),)), world.add()
    world.machine.release_all(world.now)
    world.fail(world.one(), CUT)
    send = again(world)
    world.machine.records_refused(send, send.batches[0], [0], UnsupportedVersionError("headers"), world.now)
    assert with_headers.error is not None
    assert with_headers.error.may_be_written
    world.answer(send, int(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    assert_raised_in_doubt(without)
