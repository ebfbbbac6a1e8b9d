"""The machine of transactions in a world of numbers: requests come out, answers go in."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from pykafka08.config import ClientConfig, ProducerConfig
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import (
    KafkaError,
    LocalProtocolError,
    ProducerFencedError,
    RemoteProtocolError,
    TransactionAbortedError,
    TransactionStateError,
    TransportError,
    UnsupportedVersionError,
    broker_error,
)
from pykafka08.group.metadata import GroupMetadata
from pykafka08.group.requests import OffsetAndMetadata
from pykafka08.producer.actions import Send
from pykafka08.producer.partitioners import chooser_factory
from pykafka08.producer.reactions import Outcome
from pykafka08.producer.sequences import Identity
from pykafka08.producer.transactions.actions import (
    AddOffsets,
    AddPartitions,
    Answer,
    Call,
    CommitOffsets,
    EndTransaction,
    FindCoordinator,
    IdentityGiven,
    InitProducer,
    KeyType,
    OffsetsOrder,
    PartitionsAdded,
    TransactionAction,
)
from pykafka08.producer.transactions.machine import TransactionMachine
from pykafka08.producer.transactions.reactions import REACTIONS, UNCLEAR, Reaction, reaction_to
from pykafka08.producer.transactions.sending import TransactionalSending, machine_of
from pykafka08.producer.transactions.states import TRANSITIONS, TransactionState
from pykafka08.records.record import TopicPartition
from tests.producer.world import snapshot

E, R, S = ErrorCode, Reaction, TransactionState
FIRST = Identity(7, 0)
SECOND = Identity(7, 1)
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


UNCLEAR_CODES = sorted(UNCLEAR - {E.UNKNOWN_SERVER_ERROR})
"""Those after which the request is repeated."""


def _named(value: ErrorCode | KafkaError) -> str:
    return value.name if isinstance(value, ErrorCode) else "lost"


class World:
    """One machine; ``calls`` and ``notices`` are what it asked for."""

    def __init__(self) -> None:
        self.machine = TransactionMachine("id", lambda attempt: float(attempt))
        self.now = 100.0
        self.is_idle = True
        self.has_gaps = False
        self.notices: list[TransactionAction] = []

    def poll(self) -> Call | None:
        """What is asked next, if anything."""
        found: Call | None = None
        for action in self.machine.poll(self.now, self):
            if isinstance(action, Call):
                assert found is None
                found = action
            else:
                self.notices.append(action)
        return found

    def next(self, kind: type[Call]) -> Call:
        """The next call, of this kind; waits out a pause and answers look-ups."""
        for _ in range(10):
            wakeup = self.machine.next_wakeup()
            if wakeup is not None:
                self.now = max(self.now, wakeup)
            call = self.poll()
            if isinstance(call, FindCoordinator) and kind is not FindCoordinator:
                self.answer(call, Answer(node_id=1 if call.key_type is KeyType.TRANSACTION else 2))
                continue
            assert isinstance(call, kind), call
            return call
        raise AssertionError("it only looks for coordinators")

    def answer(self, call: Call, answer: Answer | ErrorCode | KafkaError = E.NONE) -> None:
        if isinstance(answer, KafkaError):
            self.machine.failed(call, answer, self.now)
            return
        if isinstance(answer, ErrorCode):
            answer = self.coded(call, answer)
        self.machine.answered(call, answer, self.now)

    @staticmethod
    def coded(call: Call, code: ErrorCode) -> Answer:
        """That code, where the call's answer has it."""
        if isinstance(call, AddPartitions):
            return Answer(codes=dict.fromkeys(call.partitions, int(code)))
        if isinstance(call, CommitOffsets):
            return Answer(codes=dict.fromkeys(tuple(call.order.left), int(code)))
        if isinstance(call, EndTransaction) and call.is_v2 and not code:
            return Answer(identity=call.identity._replace(epoch=call.identity.epoch + 1))
        return Answer(int(code), identity=FIRST if isinstance(call, InitProducer) else None, node_id=1)

    def begin(self, *, is_v2: bool = False, is_checked: bool = True) -> None:
        """From nothing into a transaction."""
        self.machine.initialize()
        self.answer(self.next(InitProducer))
        self.machine.begin(is_v2=is_v2, is_checked=is_checked)

    def join(self, *partitions: TopicPartition) -> None:
        """Make partitions part of it."""
        for partition in partitions:
            self.machine.admits(partition)
        if not self.machine.is_v2:
            self.answer(self.next(AddPartitions))

    def order(self, group_id: str = "g") -> OffsetsOrder:
        order = OffsetsOrder(GroupMetadata(group_id), {T0: OffsetAndMetadata(5), T1: OffsetAndMetadata(6)})
        self.machine.offsets_wanted(order)
        return order

    @property
    def state(self) -> TransactionState:
        return self.machine.state


@pytest.fixture
def world() -> World:
    return World()


# --- the way of a transaction ---------------------------------------------------------------------------------------


def test_the_first_epoch(world: World) -> None:
    world.machine.initialize()
    find = world.poll()
    assert find == FindCoordinator(KeyType.TRANSACTION, "id")
    assert world.poll() is None
    world.answer(find, Answer(node_id=3))
    init = world.poll()
    assert init == InitProducer(3, None)
    world.answer(init, Answer(identity=FIRST))
    assert world.state is S.READY
    assert world.poll() is None
    assert IdentityGiven(FIRST) in world.notices


def test_partitions_are_added_before_records_go(world: World) -> None:
    world.begin()
    assert not world.machine.admits(T0)
    assert not world.machine.admits(T1)
    call = world.next(AddPartitions)
    assert call == AddPartitions(1, FIRST, (T0, T1))
    world.answer(call)
    world.poll()
    assert PartitionsAdded() in world.notices
    assert world.machine.admits(T0)
    assert world.machine.admits(T1)
    world.machine.commit()
    world.answer(world.next(EndTransaction))
    assert world.state is S.READY
    world.machine.begin(is_v2=False)
    assert not world.machine.admits(T0)


def test_v2_adds_nothing_and_gets_an_epoch_from_the_end(world: World) -> None:
    world.begin(is_v2=True)
    assert world.machine.admits(T0)
    assert world.poll() is None
    world.machine.commit()
    call = world.next(EndTransaction)
    assert call == EndTransaction(1, FIRST, True, True)
    world.answer(call, Answer(identity=SECOND))
    world.poll()
    assert world.state is S.READY
    assert world.machine.identity == SECOND
    assert IdentityGiven(SECOND) in world.notices


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_transaction_with_nothing_in_it_asks_nobody(world: World, is_commit: bool) -> None:
    world.begin()
    (world.machine.commit if is_commit else world.machine.abort)()
    assert world.poll() is None
    assert world.state is S.READY


@pytest.mark.parametrize("is_v2", [True, False])
def test_offsets(world: World, is_v2: bool) -> None:
    world.begin(is_v2=is_v2)
    order = world.order()
    if not is_v2:
        call = world.next(AddOffsets)
        assert call == AddOffsets(1, FIRST, "g")
        world.answer(call)
    call = world.next(CommitOffsets)
    assert call == CommitOffsets(2, FIRST, order, is_v2)
    world.answer(call, Answer(codes={T0: E.NONE, T1: E.COORDINATOR_LOAD_IN_PROGRESS}))
    assert (list(order.left), order.is_done) == ([T1], False)
    world.answer(world.next(CommitOffsets))
    assert order.is_done
    world.order()  # of the same group: it is part of the transaction already
    world.answer(world.next(CommitOffsets))
    world.machine.commit()
    world.answer(world.next(EndTransaction))
    assert world.state is S.READY


def test_a_commit_waits_for_offsets(world: World) -> None:
    world.begin()
    order = world.order()
    world.machine.commit()
    world.answer(world.next(AddOffsets))
    world.answer(world.next(CommitOffsets))
    assert order.is_done
    world.next(EndTransaction)


def test_an_abort_waits_until_nothing_is_in_flight(world: World) -> None:
    world.begin()
    world.join(T0)
    world.is_idle = False
    world.machine.abort()
    assert world.poll() is None
    world.is_idle = True
    assert world.poll() == EndTransaction(1, FIRST, False, False)


def test_calls_that_have_no_place(world: World) -> None:
    with pytest.raises(TransactionStateError):
        world.machine.begin(is_v2=False)
    world.begin()
    with pytest.raises(TransactionStateError):
        world.machine.begin(is_v2=False)
    world.machine.commit()
    for call in (world.machine.commit, world.order):
        with pytest.raises(TransactionStateError):
            call()
    assert not world.machine.admits(T0)


# --- reactions ------------------------------------------------------------------------------------------------------


def starters() -> Iterator[tuple[type[Call], Callable[[World], Call]]]:
    """For each request a way to the moment when it is under way."""

    def find(world: World) -> Call:
        world.machine.initialize()
        return world.next(FindCoordinator)

    def init(world: World) -> Call:
        world.machine.initialize()
        return world.next(InitProducer)

    def partitions(world: World) -> Call:
        world.begin()
        world.machine.admits(T0)
        return world.next(AddPartitions)

    def add_offsets(world: World) -> Call:
        world.begin()
        world.order()
        return world.next(AddOffsets)

    def offsets(world: World) -> Call:
        world.answer(add_offsets(world))
        return world.next(CommitOffsets)

    def end(world: World) -> Call:
        world.begin()
        world.join(T0)
        world.machine.commit()
        return world.next(EndTransaction)

    yield from zip(REACTIONS, (find, init, partitions, add_offsets, offsets, end), strict=True)


@pytest.mark.parametrize("code", list(ErrorCode), ids=lambda code: code.name)
@pytest.mark.parametrize(("kind", "start"), list(starters()), ids=lambda each: getattr(each, "__name__", ""))
def test_every_code_of_every_request(kind: type[Call], start: Callable[[World], Call], code: ErrorCode) -> None:
    world = World()
    call = start(world)
    reaction = reaction_to(call, code)
    before = world.state
    world.answer(call, code)
    if reaction is R.DONE:
        assert code is E.NONE
    elif reaction in (R.RETRY, R.FIND):
        assert world.state is before
        assert isinstance(world.next(FindCoordinator if reaction is R.FIND else kind), Call)
    elif reaction in (R.ABORT, R.FORGOTTEN):
        assert world.state is S.ABORTABLE_ERROR if before is not S.INITIALIZING else before
        assert getattr(world.machine.error, "code", code) == code
    else:
        assert world.state is S.FATAL_ERROR
        assert isinstance(world.machine.error, ProducerFencedError) is (reaction is R.FENCED)
        assert world.poll() is None


@pytest.mark.parametrize(
    ("kind", "code", "reaction"),
    [
        (InitProducer, E.CONCURRENT_TRANSACTIONS, R.RETRY),
        (InitProducer, E.INVALID_TRANSACTION_TIMEOUT, R.FATAL),
        (InitProducer, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, R.FATAL),
        (AddPartitions, E.UNKNOWN_TOPIC_OR_PARTITION, R.RETRY),
        (AddPartitions, E.TOPIC_AUTHORIZATION_FAILED, R.ABORT),
        (AddPartitions, E.INVALID_TXN_STATE, R.FATAL),
        (AddPartitions, E.INVALID_PRODUCER_ID_MAPPING, R.FORGOTTEN),
        (AddOffsets, E.GROUP_AUTHORIZATION_FAILED, R.ABORT),
        (CommitOffsets, E.ILLEGAL_GENERATION, R.ABORT),
        (CommitOffsets, E.FENCED_INSTANCE_ID, R.ABORT),
        (CommitOffsets, E.UNSUPPORTED_FOR_MESSAGE_FORMAT, R.FATAL),
        (EndTransaction, E.INVALID_TXN_STATE, R.FATAL),
        (EndTransaction, E.TRANSACTION_ABORTABLE, R.ABORT),
        (EndTransaction, E.INVALID_PRODUCER_EPOCH, R.FENCED),
        (EndTransaction, E.COORDINATOR_LOAD_IN_PROGRESS, R.RETRY),
    ],
)
def test_reactions_are_those_of_the_java_producer(kind: type[Call], code: ErrorCode, reaction: Reaction) -> None:
    start = dict(starters())[kind]
    assert reaction_to(start(World()), code) is reaction


def test_the_gravest_of_an_answers_codes_counts(world: World) -> None:
    world.begin()
    world.machine.admits(T0)
    world.machine.admits(T1)
    call = world.next(AddPartitions)
    world.answer(call, Answer(codes={T0: E.OPERATION_NOT_ATTEMPTED, T1: E.TOPIC_AUTHORIZATION_FAILED}))
    assert world.state is S.ABORTABLE_ERROR
    error = world.machine.error
    assert error is not None
    assert (error.topic, error.partition, error.api) == ("t", 1, "AddPartitionsToTxn")


def test_a_coordinator_that_moved_is_looked_for_once(world: World) -> None:
    world.begin()
    world.machine.admits(T0)
    world.answer(world.next(AddPartitions), E.NOT_COORDINATOR)
    world.answer(world.next(FindCoordinator), Answer(node_id=9))
    assert world.next(AddPartitions) == AddPartitions(9, FIRST, (T0,))


def test_pauses_grow_and_are_short_while_markers_are_written(world: World) -> None:
    world.machine.initialize()
    pauses = []
    for code in (E.CONCURRENT_TRANSACTIONS, E.CONCURRENT_TRANSACTIONS, E.COORDINATOR_LOAD_IN_PROGRESS):
        world.answer(world.next(InitProducer), code)
        wakeup = world.machine.next_wakeup()
        assert wakeup is not None
        pauses.append(round(wakeup - world.now, 3))
    assert pauses == [0.02, 0.04, 3.0]


@pytest.mark.parametrize(("kind", "start"), list(starters()), ids=lambda each: getattr(each, "__name__", ""))
def test_pauses_grow_though_the_coordinator_is_found_each_time(
    kind: type[Call], start: Callable[[World], Call]
) -> None:
    world = World()
    call = start(world)
    pauses = []
    for _ in range(5):
        asked_at = world.now
        world.answer(call, E.COORDINATOR_NOT_AVAILABLE)
        call = world.next(kind)
        pauses.append(world.now - asked_at)
    assert pauses == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_before_kip_360_pauses_grow_though_the_identity_is_confirmed_each_time(world: World) -> None:
    spoil_an_old_one(world)
    pauses = []
    for _ in range(4):
        world.answer(world.next(EndTransaction))
        call = world.next(InitProducer)
        asked_at = world.now
        world.answer(call, E.COORDINATOR_LOAD_IN_PROGRESS)
        pauses.append((world.machine.next_wakeup() or 0.0) - asked_at)
    assert pauses == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("seed", range(20))
def test_no_answer_of_a_broker_raises_an_assertion_error(seed: int) -> None:
    """Random answers to the requests of a few transactions: any code, no answer, or impossible values."""
    chance = random.Random(seed)
    codes = [*ErrorCode, E.NONE, E.NONE, E.NONE]
    world = World()
    world.machine.initialize()
    for _ in range(300):
        machine = world.machine
        if machine.state is S.FATAL_ERROR:
            world = World()
            world.machine.initialize()
        elif machine.state is S.READY:
            machine.begin(is_v2=chance.random() < 0.5, is_checked=chance.random() < 0.5)
            machine.admits(T0)
        elif machine.state is S.IN_TRANSACTION and chance.random() < 0.5:
            chance.choice((world.order, machine.commit, machine.abort))()
        elif machine.state is S.ABORTABLE_ERROR:
            machine.abort()
        world.now += 100
        call = world.poll()
        if call is None:
            continue
        if chance.random() < 0.2:
            machine.answer_invalid(call, RemoteProtocolError("cannot be"))
        elif chance.random() < 0.2:
            world.answer(call, TransportError("cut"))
        else:
            world.answer(call, chance.choice(codes))


# --- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [E.INVALID_PRODUCER_EPOCH, E.PRODUCER_FENCED], ids=lambda code: code.name)
def test_late_offsets_do_not_end_a_producer_with_kip_890(world: World, code: ErrorCode) -> None:
    world.begin(is_v2=True)
    world.order()
    world.answer(world.next(CommitOffsets), code)
    assert world.state is S.ABORTABLE_ERROR
    assert not isinstance(world.machine.error, ProducerFencedError)
    world.machine.abort()
    world.answer(world.next(EndTransaction), E.PRODUCER_FENCED)  # another producer has fenced this one
    assert isinstance(world.machine.error, ProducerFencedError)


def test_a_late_commit_does_not_end_a_producer_with_kip_890(world: World) -> None:
    world.begin(is_v2=True)
    world.join(T0)
    world.machine.commit()
    world.answer(world.next(EndTransaction), E.INVALID_TXN_STATE)
    assert world.state is S.ABORTABLE_ERROR
    world.machine.abort()
    world.answer(world.next(EndTransaction), Answer(identity=SECOND))
    assert (world.state, world.machine.identity) == (S.READY, SECOND)


def test_an_epoch_is_requested_if_the_end_of_a_transaction_gives_none(world: World) -> None:
    world.begin(is_v2=True)
    world.join(T0)
    world.machine.commit()
    world.answer(world.next(EndTransaction), Answer())
    assert world.next(InitProducer) == InitProducer(1, FIRST)


@pytest.mark.parametrize(("kind", "start"), list(starters()), ids=lambda each: getattr(each, "__name__", ""))
def test_an_invalid_answer_ends_the_transaction_or_the_producer(
    kind: type[Call], start: Callable[[World], Call]
) -> None:
    world = World()
    call = start(world)
    error = RemoteProtocolError("cannot be")
    world.machine.answer_invalid(call, error)
    assert world.state is (S.ABORTABLE_ERROR if kind is CommitOffsets else S.FATAL_ERROR)
    assert world.machine.error is error
    assert world.machine.verdict().may_be_written is (kind is EndTransaction)


@pytest.mark.parametrize("is_v2", [True, False])
def test_after_an_error_the_next_transaction_has_a_new_epoch(world: World, is_v2: bool) -> None:
    world.begin(is_v2=is_v2)
    world.join(T0)
    world.machine.batch_failed(broker_error(E.OUT_OF_ORDER_SEQUENCE_NUMBER))
    assert world.state is S.ABORTABLE_ERROR
    for call in (world.machine.commit, world.order):
        with pytest.raises(TransactionAbortedError, match="OUT_OF_ORDER") as raised:
            call()
        assert raised.value.__cause__ is world.machine.error
    assert not world.machine.admits(T0)
    world.machine.abort()
    world.answer(world.next(EndTransaction))
    if not is_v2:
        assert world.state is S.INITIALIZING
        assert world.next(InitProducer) == InitProducer(1, FIRST)
    else:
        assert (world.state, world.machine.identity) == (S.READY, SECOND)


@pytest.mark.parametrize("code", [E.INVALID_TXN_STATE, E.NONE], ids=lambda code: code.name)
def test_before_kip_360_the_coordinator_is_asked_first_whose_the_id_is(world: World, code: ErrorCode) -> None:
    spoil_an_old_one(world)
    for again in (E.CONCURRENT_TRANSACTIONS, E.NOT_COORDINATOR, E.NONE):  # each time: the pause between may be long
        call = world.next(EndTransaction)
        assert call == EndTransaction(1, FIRST, False, False)
        world.answer(call, code)
        world.answer(world.next(InitProducer), again)
    assert world.state is S.READY
    world.machine.begin(is_v2=False, is_checked=False)


@pytest.mark.parametrize("code", [E.INVALID_PRODUCER_EPOCH, E.PRODUCER_FENCED], ids=lambda code: code.name)
def test_before_kip_360_an_id_that_is_anothers_now_is_not_taken_back(world: World, code: ErrorCode) -> None:
    spoil_an_old_one(world)
    for passing in (E.CONCURRENT_TRANSACTIONS, E.NOT_COORDINATOR, E.TRANSACTION_ABORTABLE):
        world.answer(world.next(EndTransaction), passing)
        assert world.machine.next_wakeup() is not None
    world.answer(world.next(EndTransaction), TransportError("cut"))
    world.answer(world.next(EndTransaction), code)
    assert world.state is S.FATAL_ERROR
    assert isinstance(world.machine.refusal(), ProducerFencedError)


def test_before_kip_360_a_renewal_that_may_have_been_given_is_asked_for_again(world: World) -> None:
    spoil_an_old_one(world)
    world.answer(world.next(EndTransaction), E.INVALID_TXN_STATE)
    cut = TransportError("cut")
    world.machine.failed(world.next(InitProducer), cut, world.now, was_written=False)
    world.answer(world.next(EndTransaction), E.INVALID_TXN_STATE)
    world.answer(world.next(InitProducer), cut)
    world.next(InitProducer)  # its own epoch may be newer than it knows


def spoil_an_old_one(world: World) -> None:
    """An error in a transaction of which brokers before KIP-360 know nothing yet."""
    world.begin(is_checked=False)
    world.machine.batch_failed(broker_error(E.INVALID_RECORD))
    world.machine.abort()


def test_an_abort_that_the_application_wants_keeps_the_epoch(world: World) -> None:
    world.begin()
    world.join(T0)
    world.machine.abort()
    world.machine.batch_failed(TransactionAbortedError("not sent"))
    world.answer(world.next(EndTransaction))
    assert world.state is S.READY


def test_numbers_that_are_missing_ask_for_a_new_epoch(world: World) -> None:
    world.begin()
    world.join(T0)
    world.has_gaps = True
    world.machine.abort()
    world.answer(world.next(EndTransaction))
    assert world.state is S.INITIALIZING


@pytest.mark.parametrize("kind", [AddPartitions, AddOffsets, CommitOffsets, EndTransaction])
def test_after_a_lost_answer_the_next_transaction_has_a_new_epoch(kind: type[Call]) -> None:
    world = World()
    call = dict(starters())[kind](world)
    world.answer(call, TransportError("cut"))
    world.answer(world.next(kind))
    if kind is AddOffsets:
        world.answer(world.next(CommitOffsets))
    if kind is not EndTransaction:
        world.machine.commit()
        world.answer(world.next(EndTransaction))
    assert world.next(InitProducer) == InitProducer(1, FIRST)


@pytest.mark.parametrize(
    "code",
    [E.TRANSACTION_ABORTABLE, E.INVALID_PRODUCER_ID_MAPPING, E.PRODUCER_FENCED, E.INVALID_TXN_STATE],
    ids=lambda code: code.name,
)
@pytest.mark.parametrize("first", [TransportError("cut"), *UNCLEAR_CODES], ids=_named)
def test_a_commit_that_may_have_been_performed_is_not_said_to_be_aborted(
    world: World, first: KafkaError | ErrorCode, code: ErrorCode
) -> None:
    world.begin()
    world.join(T0)
    world.machine.commit()
    world.answer(world.next(EndTransaction), first)
    world.answer(world.next(EndTransaction), code)
    assert world.state is S.FATAL_ERROR
    error = world.machine.verdict()
    assert error.may_be_written
    assert not isinstance(error, TransactionAbortedError)
    assert not world.machine.refusal().may_be_written  # of what comes later nothing is written


def test_a_request_that_was_not_written_leaves_nothing_in_doubt(world: World) -> None:
    world.begin()
    world.machine.admits(T0)
    refused = TransportError("refused")
    world.machine.failed(world.next(AddPartitions), refused, world.now, was_written=False)
    world.answer(world.next(AddPartitions))
    world.machine.commit()
    world.machine.failed(world.next(EndTransaction), refused, world.now, was_written=False)
    world.answer(world.next(EndTransaction), E.TRANSACTION_ABORTABLE)
    assert world.state is S.ABORTABLE_ERROR
    world.machine.abort()
    world.answer(world.next(EndTransaction))
    world.answer(world.next(InitProducer))
    world.machine.begin(is_v2=False)
    world.join(T0)
    world.machine.commit()
    world.machine.failed(world.next(EndTransaction), refused, world.now, was_written=False)
    world.answer(world.next(EndTransaction))
    assert world.state is S.READY  # with the epoch that it had


def test_an_abort_after_a_lost_start_may_find_nothing(world: World) -> None:
    world.begin()
    world.machine.admits(T0)
    world.answer(world.next(AddPartitions), TransportError("cut"))
    world.machine.abort()
    world.answer(world.next(EndTransaction), E.INVALID_TXN_STATE)
    assert world.state is S.INITIALIZING
    world.answer(world.next(InitProducer))
    assert world.state is S.READY


def test_a_coordinator_whose_log_fails_says_nothing_for_sure(world: World) -> None:
    world.begin()
    world.join(T0)
    world.machine.commit()
    world.answer(world.next(EndTransaction), E.UNKNOWN_SERVER_ERROR)
    assert world.state is S.FATAL_ERROR
    assert world.machine.verdict().may_be_written


@pytest.mark.parametrize("code", UNCLEAR_CODES, ids=_named)
def test_a_start_that_may_have_been_performed_is_aborted(world: World, code: ErrorCode) -> None:
    world.begin()
    world.machine.admits(T0)
    world.answer(world.next(AddPartitions), code)
    world.machine.abort()
    world.answer(world.next(EndTransaction), E.INVALID_TXN_STATE)  # it had not been
    assert world.state is S.READY


@pytest.mark.parametrize("code", [E.COORDINATOR_LOAD_IN_PROGRESS, E.CONCURRENT_TRANSACTIONS], ids=_named)
def test_a_commit_that_was_only_put_off_is_known_to_be_aborted(world: World, code: ErrorCode) -> None:
    world.begin()
    world.join(T0)
    world.machine.commit()
    world.answer(world.next(EndTransaction), code)
    world.answer(world.next(EndTransaction), E.TRANSACTION_ABORTABLE)
    assert world.state is S.ABORTABLE_ERROR


def test_an_id_that_the_coordinator_forgot_is_asked_for_again(world: World) -> None:
    world.begin()
    world.join(T0)
    world.machine.commit()
    world.answer(world.next(EndTransaction), E.INVALID_PRODUCER_ID_MAPPING)
    assert world.state is S.ABORTABLE_ERROR
    world.machine.abort()
    world.answer(world.next(EndTransaction), E.INVALID_PRODUCER_ID_MAPPING)  # had it been open it would end
    assert world.next(InitProducer) == InitProducer(1, FIRST)
    assert world.state is S.INITIALIZING


@pytest.mark.parametrize(
    ("error", "is_fatal"),
    [
        (broker_error(E.PRODUCER_FENCED), True),
        (broker_error(E.INVALID_PRODUCER_EPOCH), False),
        (broker_error(E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED), True),
        (broker_error(E.TOPIC_AUTHORIZATION_FAILED), False),
        (broker_error(E.TRANSACTION_ABORTABLE), False),
        (UnsupportedVersionError("old"), True),
        (TransportError("cut"), False),
    ],
)
def test_what_a_failed_batch_means(world: World, error: KafkaError, is_fatal: bool) -> None:
    world.begin()
    world.join(T0)
    world.machine.batch_failed(error)
    assert world.state is (S.FATAL_ERROR if is_fatal else S.ABORTABLE_ERROR)


def test_a_fatal_error_is_raised_by_everything(world: World) -> None:
    world.begin()
    world.machine.admits(T0)
    call = world.next(AddPartitions)
    world.answer(call, E.PRODUCER_FENCED)
    for _ in range(2):
        for do in (lambda: world.machine.begin(is_v2=False), world.machine.commit, world.order):
            with pytest.raises(ProducerFencedError, match="another producer"):
                do()
    world.machine.batch_failed(TransportError("later"))
    assert isinstance(world.machine.error, ProducerFencedError)


def test_a_request_that_cannot_be_made_is_fatal(world: World) -> None:
    world.begin()
    world.machine.admits(T0)
    world.answer(world.next(AddPartitions), LocalProtocolError("cannot be encoded"))
    assert world.state is S.FATAL_ERROR


def test_late_answers_do_not_touch_a_transaction_that_is_being_aborted(world: World) -> None:
    world.begin()
    world.machine.admits(T0)
    call = world.next(AddPartitions)
    world.machine.abort()
    world.answer(call, E.TOPIC_AUTHORIZATION_FAILED)
    assert world.state is S.ABORTING
    world.now += 60
    assert world.poll() is None
    assert world.state is S.READY


def test_the_states_end_in_one() -> None:
    assert {state for state, after in TRANSITIONS.items() if not after} == {S.FATAL_ERROR}
    reached = {S.UNINITIALIZED}
    while grown := {after for state in reached for after in TRANSITIONS[state]} - reached:
        reached |= grown
    assert reached == set(TransactionState)


def test_the_first_records_of_a_transaction_have_its_own_epoch() -> None:
    config = ProducerConfig(transactional_id="id", linger_ms=0)
    client = ClientConfig(bootstrap_servers=(("b0", 9092),))
    chooser = chooser_factory("murmur2", random.Random(7), config.batch_size)
    sending = machine_of(config, client, make_chooser=chooser, chance=lambda: 0.5)
    assert isinstance(sending, TransactionalSending)
    sending.metadata_changed(snapshot(1, {"t": [0]}), 0.0)
    machine = sending.transactions

    def send() -> Send:
        sending.accumulator.record_added("t", b"v", None, (), 0, 5, 100, 0.0)
        (found,) = [action for action in sending.poll(0.0) if isinstance(action, Send)]
        for batch in found.batches:
            sending.number(batch)
        return found

    def ask() -> Call:
        (found,) = [action for action in sending.poll(0.0) if isinstance(action, Call)]
        return found

    machine.initialize()
    machine.answered(ask(), Answer(node_id=1), 0.0)
    machine.answered(ask(), Answer(identity=FIRST), 0.0)
    for identity in (FIRST, SECOND):
        machine.begin(is_v2=True)
        sending.transaction_began()
        request = send()
        assert [(batch.producer_id, batch.producer_epoch) for batch in request.batches] == [identity]
        sending.request_answered(request, [Outcome(0, 100)], 0.0)
        machine.commit()
        machine.answered(ask(), Answer(identity=SECOND), 0.0)
