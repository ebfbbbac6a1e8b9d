"""What the answer to a transactional request makes the producer do, as Java's TransactionManager does it.

Codes that the table does not name: RETRY if they are retriable, else FATAL.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from pykafka08.error_codes import ErrorCode
from pykafka08.errors import (
    AuthorizationError,
    BrokerError,
    ClosedError,
    KafkaError,
    ProducerFencedError,
    RemoteProtocolError,
    RequestTimeoutError,
    TransportError,
    UnsupportedVersionError,
)
from pykafka08.producer.transactions.actions import (
    AddOffsets,
    AddPartitions,
    Call,
    CommitOffsets,
    EndTransaction,
    FindCoordinator,
    InitProducer,
)

__all__ = [
    "REACTIONS",
    "UNCLEAR",
    "Reaction",
    "is_fatal_to_transactions",
    "is_indefinite",
    "may_have_timed_out",
    "reaction_to",
]


class Reaction(IntEnum):
    """Of two that a broker gives at once, the greater counts."""

    DONE = 0
    RETRY = 1
    """Ask again after a backoff."""
    FIND = 2
    """Ask who the coordinator is, then again."""
    ABORT = 3
    """The transaction can only be aborted; the producer can begin the next."""
    FORGOTTEN = 4
    """The coordinator does not know the producer's id any more: abort, and get another."""
    FENCED = 5
    """A newer producer has the transactional id: the end of this one."""
    FATAL = 6
    """The end of this producer."""


_E, _R = ErrorCode, Reaction

_ALL: Mapping[ErrorCode, Reaction] = {
    _E.NONE: _R.DONE,
    _E.NOT_COORDINATOR: _R.FIND,
    _E.COORDINATOR_NOT_AVAILABLE: _R.FIND,
    _E.INVALID_PRODUCER_EPOCH: _R.FENCED,  # what it was called before 2.7
    _E.PRODUCER_FENCED: _R.FENCED,
    _E.UNKNOWN_PRODUCER_ID: _R.FORGOTTEN,
    _E.INVALID_PRODUCER_ID_MAPPING: _R.FORGOTTEN,
    _E.TRANSACTION_ABORTABLE: _R.ABORT,
    _E.TOPIC_AUTHORIZATION_FAILED: _R.ABORT,
    _E.GROUP_AUTHORIZATION_FAILED: _R.ABORT,
}

REACTIONS: Mapping[type[Call], Mapping[ErrorCode, Reaction]] = {
    FindCoordinator: {**_ALL, _E.COORDINATOR_NOT_AVAILABLE: _R.RETRY, _E.UNKNOWN_PRODUCER_ID: _R.FATAL,
                      _E.INVALID_PRODUCER_ID_MAPPING: _R.FATAL},
    InitProducer: {**_ALL, _E.TRANSACTION_ABORTABLE: _R.RETRY, _E.UNKNOWN_PRODUCER_ID: _R.FATAL,
                   _E.INVALID_PRODUCER_ID_MAPPING: _R.FATAL},
    # What was not attempted stood beside a partition that failed.
    AddPartitions: {**_ALL, _E.OPERATION_NOT_ATTEMPTED: _R.RETRY},
    AddOffsets: {**_ALL, _E.INVALID_GROUP_ID: _R.ABORT},
    CommitOffsets: {
        **_ALL,
        _E.REQUEST_TIMED_OUT: _R.FIND,
        _E.ILLEGAL_GENERATION: _R.ABORT,
        _E.UNKNOWN_MEMBER_ID: _R.ABORT,
        _E.FENCED_INSTANCE_ID: _R.ABORT,
        _E.REBALANCE_IN_PROGRESS: _R.ABORT,
        _E.STALE_MEMBER_EPOCH: _R.ABORT,
        _E.OFFSET_METADATA_TOO_LARGE: _R.ABORT,
        _E.INVALID_COMMIT_OFFSET_SIZE: _R.ABORT,
        _E.INVALID_GROUP_ID: _R.ABORT,
    },
    EndTransaction: _ALL,
}  # fmt: skip

UNCLEAR = frozenset({_E.COORDINATOR_NOT_AVAILABLE, _E.NOT_COORDINATOR, _E.REQUEST_TIMED_OUT, _E.UNKNOWN_SERVER_ERROR})
"""The request may have been performed all the same: it is in the coordinator's log, but was not replicated in time, or
the log's leader changed meanwhile.  Kafka's TransactionStateManager gives those errors of its log these codes."""

TIMED_OUT_REACTIONS: Mapping[type[Call], Mapping[ErrorCode, Reaction]] = {
    CommitOffsets: {_E.INVALID_PRODUCER_EPOCH: _R.ABORT, _E.PRODUCER_FENCED: _R.ABORT},
    EndTransaction: {_E.INVALID_TXN_STATE: _R.ABORT},
}
"""With KIP-890 a transaction that has timed out gets these codes, and its abort gives the next epoch (KIP-588).  A
fenced producer may get them too, but its abort is refused with PRODUCER_FENCED."""


def reaction_to(call: Call, code: int) -> Reaction:
    """To a broker's code for ``call``."""
    known = ErrorCode.of(code)
    if not isinstance(known, ErrorCode):
        return Reaction.FATAL
    if may_have_timed_out(call, known):
        return TIMED_OUT_REACTIONS[type(call)][known]
    found = REACTIONS[type(call)].get(known)
    if found is not None:
        return found
    return Reaction.RETRY if known.is_retriable else Reaction.FATAL


def may_have_timed_out(call: Call, code: int) -> bool:
    """True if the coordinator may have aborted the transaction for its time-out without fencing the producer."""
    if isinstance(call, EndTransaction):
        is_asked = call.is_v2 and call.is_commit
    else:
        is_asked = isinstance(call, CommitOffsets) and call.is_v2
    return is_asked and code in TIMED_OUT_REACTIONS[type(call)]


def is_indefinite(error: KafkaError) -> bool:
    """The request may have been performed, or not: ask again."""
    return isinstance(error, (TransportError, RequestTimeoutError, RemoteProtocolError, ClosedError))


_FATAL_CODES = frozenset(
    {_E.PRODUCER_FENCED, _E.CLUSTER_AUTHORIZATION_FAILED, _E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}
)


def is_fatal_to_transactions(error: KafkaError) -> bool:
    """A batch that failed with it ends the producer; with any other error it ends the transaction.

    INVALID_PRODUCER_EPOCH is not among them: a transaction that took too long has it too.  The coordinator knows.
    """
    if isinstance(error, (ProducerFencedError, UnsupportedVersionError)):
        return True
    if isinstance(error, AuthorizationError):
        return error.code in _FATAL_CODES
    return isinstance(error, BrokerError) and error.code in _FATAL_CODES
