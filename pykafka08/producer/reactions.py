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
    TransportError,
)

__all__ = [
    "ERROR_REACTIONS",
    "REACTIONS",
    "Outcome",
    "Reaction",
    "is_repeated",
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
    FAIL = "raise for each of its records"


class Outcome(NamedTuple):
    """A broker's answer for one batch; ``record_errors`` maps the indices of refused records to their texts."""

    code: int
    base_offset: int = -1
    log_append_time_ms: int = -1
    message: str | None = None
    record_errors: Sequence[tuple[int, str | None]] = ()


REACTIONS: Mapping[ErrorCode, Reaction] = {
    ErrorCode.NONE: Reaction.ACKNOWLEDGE,
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: Reaction.ACKNOWLEDGE,
    # Brokers before 2.4 say the same of a record without a key on a compacted topic: no retry helps there.
    ErrorCode.CORRUPT_MESSAGE: Reaction.RETRY_ONCE,
    ErrorCode.MESSAGE_TOO_LARGE: Reaction.SPLIT,
    ErrorCode.RECORD_LIST_TOO_LARGE: Reaction.SPLIT,
}

ERROR_REACTIONS: Mapping[type[KafkaError], Reaction] = {
    TransportError: Reaction.REFRESH_AND_RETRY,
    RequestTimeoutError: Reaction.REFRESH_AND_RETRY,
    RemoteProtocolError: Reaction.REFRESH_AND_RETRY,
    # The connection was given up on this side; where the client itself closes, the machine has ended before.
    ClosedError: Reaction.RETRY,
}


def reaction_to_code(code: int) -> Reaction:
    known = ErrorCode.of(code)
    if not isinstance(known, ErrorCode):
        return Reaction.FAIL
    if known in REACTIONS:
        return REACTIONS[known]
    if known.is_stale_metadata:
        return Reaction.REFRESH_AND_RETRY
    return Reaction.RETRY if known.is_retriable else Reaction.FAIL


def reaction_to_error(error: KafkaError) -> Reaction:
    """To a request that ended without an answer for the batch."""
    if isinstance(error, BrokerError):
        return reaction_to_code(int(error.code))
    return next(
        (reaction for kind, reaction in ERROR_REACTIONS.items() if isinstance(error, kind)),
        Reaction.FAIL,
    )


def is_repeated(error: KafkaError, before: KafkaError | None) -> bool:
    """The attempt before ended with the same code."""
    return isinstance(error, BrokerError) and isinstance(before, BrokerError) and error.code == before.code
