"""What an error code in a Fetch or ListOffsets answer makes the consumer do: one table, the wire's flags as default.

Codes that are not listed follow :class:`ErrorCode`: stale metadata means refresh, retriable means back off, anything
else is raised to the application.
"""

from __future__ import annotations

from enum import Enum

from pykafka08.error_codes import ErrorCode
from pykafka08.errors import (
    ConfigError,
    KafkaError,
    LocalProtocolError,
    RemoteProtocolError,
    ResponseTooLargeError,
    SecurityError,
    UnsupportedVersionError,
)

__all__ = ["FAILURES", "REACTIONS", "Reaction", "reaction_to", "reaction_to_failure"]


class Reaction(Enum):
    """What to do about one partition's error code."""

    DELIVER = "there is no error"
    BACK_OFF = "ask again after the retry backoff"
    REFRESH = "the leader may have moved: refresh metadata, ask again after the retry backoff"
    REFRESH_THEN_RAISE = "as REFRESH, but an error when it lasts longer than the patience"
    RESET = "the position is outside the log: apply auto_offset_reset"
    RAISE_ONCE = "tell the application once for the topic, ask again now and then, go on with the other partitions"
    RAISE = "tell the application, go on with the other partitions"


REACTIONS: dict[ErrorCode, Reaction] = {
    ErrorCode.NONE: Reaction.DELIVER,
    ErrorCode.OFFSET_OUT_OF_RANGE: Reaction.RESET,
    # A broker that restarts, or that has not heard of a new topic yet, says these for a moment.
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Reaction.REFRESH_THEN_RAISE,
    ErrorCode.UNKNOWN_TOPIC_ID: Reaction.REFRESH_THEN_RAISE,
    ErrorCode.INCONSISTENT_TOPIC_ID: Reaction.REFRESH_THEN_RAISE,
    # 0.8 uses it for whatever it has no code for, such as a log that is being opened.
    ErrorCode.UNKNOWN_SERVER_ERROR: Reaction.REFRESH_THEN_RAISE,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: Reaction.RAISE_ONCE,
    # The broker's own log is damaged: asking again does not mend it.
    ErrorCode.CORRUPT_MESSAGE: Reaction.RAISE,
}


def reaction_to(code: int) -> Reaction:
    """The row for ``code``, or what the code's own flags say."""
    known = ErrorCode.of(code)
    if not isinstance(known, ErrorCode):
        return Reaction.RAISE
    row = REACTIONS.get(known)
    if row is not None:
        return row
    if known.is_stale_metadata:
        return Reaction.REFRESH
    return Reaction.BACK_OFF if known.is_retriable else Reaction.RAISE


#: What to do when a request had no answer, by the kind of error; first match counts.
FAILURES: tuple[tuple[type[KafkaError], Reaction], ...] = (
    (UnsupportedVersionError, Reaction.RAISE),
    (LocalProtocolError, Reaction.RAISE),
    (ConfigError, Reaction.RAISE),
    # A retry would get an answer of the same size.
    (ResponseTooLargeError, Reaction.RAISE),
    # The cluster client has tried for a while before it gives this error.
    (SecurityError, Reaction.RAISE),
    # The connection was closed over it; a broker that goes on like this is to be heard of.
    (RemoteProtocolError, Reaction.REFRESH_THEN_RAISE),
    # Broker gone, cut off or slow, for as long as it may take: it may come back.
    (KafkaError, Reaction.REFRESH),
)


def reaction_to_failure(error: KafkaError) -> Reaction:
    """The first row that ``error`` is an instance of."""
    return next(reaction for kind, reaction in FAILURES if isinstance(error, kind))
