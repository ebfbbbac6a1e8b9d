"""What an answer, or the lack of one, makes the producer do with a batch.

Codes that the tables do not name follow the flags of :class:`ErrorCode`; other exceptions fail the batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from pykafka08.error_codes import ErrorCode
from pykafka08.errors import (
    BrokerError,
    ClosedError,
    KafkaError,
    RemoteProtocolError,
    RequestTimeoutError,
    ResponseTooLargeError,
    TransportError,
    UnsupportedVersionError,
)
from pykafka08.protocol.messages.init_producer_id import InitProducerIdRequest

__all__ = [
    "ERROR_REACTIONS",
    "REACTIONS",
    "REFUSED_BEFORE_APPEND",
    "Outcome",
    "Reaction",
    "is_repeated",
    "leaves_doubt",
    "reaction_to_code",
    "reaction_to_error",
]


class Reaction(Enum):
    """What happens to the batch; order within its partition is kept by all of them."""

    ACKNOWLEDGE = "it is in the log"
    RETRY = "send it again after a backoff"
    RETRY_ONCE = "send it again; the same answer a second time fails it"
    REFRESH_AND_RETRY = "ask who leads the partition, then send it again"
    SPLIT = "send it again in two halves; a single record fails"
    RENUMBER = "one before it is missing: send it again behind that one, or else under new numbers"
    NEW_IDENTITY = "get another producer id, and send it again under new numbers"
    SEND_PLAIN = "send it again without numbers; where the application demands them it fails"
    FAIL = "raise for each of its records"


class Outcome(NamedTuple):
    """A broker's answer for one batch; ``record_errors`` maps the indices of refused records to their texts.

    ``log_start_offset`` is -1 where the broker does not tell it (before 1.0).
    """

    code: int
    base_offset: int = -1
    log_append_time_ms: int = -1
    message: str | None = None
    record_errors: Sequence[tuple[int, str | None]] = ()
    log_start_offset: int = -1
    invalid: str | None = None
    """The impossible value of an acknowledgement; None if it is valid."""


REACTIONS: Mapping[int, Reaction] = {
    ErrorCode.NONE: Reaction.ACKNOWLEDGE,
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: Reaction.ACKNOWLEDGE,
    # Brokers before 2.4 say the same of a record without a key on a compacted topic: no retry helps there.
    ErrorCode.CORRUPT_MESSAGE: Reaction.RETRY_ONCE,
    ErrorCode.MESSAGE_TOO_LARGE: Reaction.SPLIT,
    ErrorCode.RECORD_LIST_TOO_LARGE: Reaction.SPLIT,
    # These five are for numbered batches; another one that meets them fails.
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: Reaction.RENUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID: Reaction.RENUMBER,
    ErrorCode.INVALID_PRODUCER_EPOCH: Reaction.NEW_IDENTITY,
    ErrorCode.PRODUCER_FENCED: Reaction.NEW_IDENTITY,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: Reaction.NEW_IDENTITY,
    # A topic that keeps magic 0 or 1 cannot hold numbers.
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: Reaction.SEND_PLAIN,
}

REFUSED_BEFORE_APPEND: frozenset[ErrorCode] = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        # The transaction's coordinator is asked before the batch is written.
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Codes that a leader says before it writes.  Others, such as NOT_LEADER, may come of a batch that it has written."""

ERROR_REACTIONS: Mapping[type[KafkaError], Reaction] = {
    TransportError: Reaction.REFRESH_AND_RETRY,
    RequestTimeoutError: Reaction.REFRESH_AND_RETRY,
    ResponseTooLargeError: Reaction.FAIL,
    RemoteProtocolError: Reaction.REFRESH_AND_RETRY,
    # The connection was given up on this side; where the client itself closes, the machine has ended before.
    ClosedError: Reaction.RETRY,
}


def reaction_to_code(code: int) -> Reaction:
    if code in REACTIONS:
        return REACTIONS[code]
    known = ErrorCode.of(code)
    if not isinstance(known, ErrorCode):
        return Reaction.FAIL
    if known.is_stale_metadata:
        return Reaction.REFRESH_AND_RETRY
    return Reaction.RETRY if known.is_retriable else Reaction.FAIL


def reaction_to_error(error: KafkaError) -> Reaction:
    """To a request that ended without an answer for the batch."""
    if isinstance(error, BrokerError):
        return reaction_to_code(int(error.code))
    if isinstance(error, UnsupportedVersionError) and error.api == InitProducerIdRequest.name:
        return Reaction.SEND_PLAIN
    return next(
        (reaction for kind, reaction in ERROR_REACTIONS.items() if isinstance(error, kind)),
        Reaction.FAIL,
    )


def leaves_doubt(error: KafkaError) -> bool:
    """True if the batch may be in the log though its attempt ended with ``error``."""
    if isinstance(error, BrokerError):
        return error.code not in REFUSED_BEFORE_APPEND
    if isinstance(error, ResponseTooLargeError):
        return True
    return reaction_to_error(error) in (Reaction.RETRY, Reaction.REFRESH_AND_RETRY)


def is_repeated(error: KafkaError, before: KafkaError | None) -> bool:
    """The attempt before ended with the same code."""
    return isinstance(error, BrokerError) and isinstance(before, BrokerError) and error.code == before.code
