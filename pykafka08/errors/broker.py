"""What a broker answers: an error code as an exception."""

from __future__ import annotations

from pykafka08.error_codes import ErrorCode
from pykafka08.errors.root import KafkaError

__all__ = [
    "AuthorizationError",
    "BrokerError",
    "OffsetOutOfRangeError",
    "ProducerFencedError",
    "UnknownTopicError",
    "broker_error",
]


class BrokerError(KafkaError):
    """A broker answered with an error code.

    ``code`` is an :class:`ErrorCode`, or the bare number where it is not in the table.
    """

    def __init__(
        self,
        code: int,
        message: str | None = None,
        *,
        broker: str | None = None,
        api: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
        offset: int | None = None,
    ) -> None:
        self.code = ErrorCode.of(code)
        if isinstance(self.code, ErrorCode):
            text = f"{self.code.name} ({int(self.code)}): {message or self.code.meaning}"
        else:
            text = f"error code {code}: {message or 'not known to this release of pykafka08'}"
        super().__init__(text, broker=broker, api=api, topic=topic, partition=partition, offset=offset)

    @property
    def is_retriable(self) -> bool:
        """True if the same request may succeed later."""
        return isinstance(self.code, ErrorCode) and self.code.is_retriable


class UnknownTopicError(BrokerError):
    """The cluster does not have the topic, or the client may not see it."""


class OffsetOutOfRangeError(BrokerError):
    """The asked offset is not, or no longer, in the log."""


class AuthorizationError(BrokerError):
    """The principal may not use the topic, group, cluster or transactional id."""


class ProducerFencedError(BrokerError):
    """Another producer has taken the transactional id, or the transaction took longer than its time-out.

    Nothing can be written with this producer any more.
    """


_CLASS_OF_CODE: dict[int, type[BrokerError]] = {
    ErrorCode.OFFSET_OUT_OF_RANGE: OffsetOutOfRangeError,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: UnknownTopicError,
    ErrorCode.UNKNOWN_TOPIC_ID: UnknownTopicError,
    ErrorCode.PRODUCER_FENCED: ProducerFencedError,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: AuthorizationError,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: AuthorizationError,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: AuthorizationError,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: AuthorizationError,
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: AuthorizationError,
}


def broker_error(
    code: int,
    message: str | None = None,
    *,
    broker: str | None = None,
    api: str | None = None,
    topic: str | None = None,
    partition: int | None = None,
    offset: int | None = None,
) -> BrokerError:
    """The exception for ``code``: a subclass of BrokerError where an application would catch one."""
    kind = _CLASS_OF_CODE.get(code, BrokerError)
    return kind(code, message, broker=broker, api=api, topic=topic, partition=partition, offset=offset)
