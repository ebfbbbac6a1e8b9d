"""Every exception this library raises on purpose, and nothing else.

    KafkaError
    ├── ConfigError                  a keyword argument or option has no possible meaning
    ├── ClosedError                  the client was closed, or never opened
    ├── ConcurrentReadError          a second task reads from a consumer while one waits for records
    ├── ClientFailedError            an internal task died; its cause is chained
    ├── TransportError               the network said no: refused, reset, closed, name not found
    │   └── NoBrokersError           no address of the bootstrap list answered as Kafka
    ├── ProtocolError
    │   ├── LocalProtocolError       we, or the application, asked for something that cannot be encoded
    │   └── RemoteProtocolError      the peer sent bytes that are not Kafka's protocol
    │       └── CorruptRecordError   a record batch is damaged; says topic, partition and offset
    ├── UnsupportedVersionError      the broker's release lacks the API, the version or the field
    ├── RequestTimeoutError          a deadline passed; the text says what was waited for
    │   └── DeliveryTimeoutError     a record was not acknowledged within the delivery deadline
    ├── BufferFullError              the producer's memory bound is reached
    ├── RecordTypeError              a key, value or header to produce has a type that is not bytes-like
    ├── RecordTooLargeError          a record is larger than a request or a fetch may be
    ├── NoOffsetError                a partition has no position and its reset policy is "none"
    ├── LogTruncationError           records that were read are lost from the log, and the reset policy is "none"
    ├── PartitionRevokedError        a commit for a partition that this member does not, or no longer, own
    ├── PollIntervalExceededError    the application asked for no record within max_poll_interval_ms
    ├── TransactionAbortedError      the transaction was aborted, and nothing of it counts; the next one can begin
    ├── TransactionStateError        a call that has no place where the transaction is: nested, outside of a block
    └── BrokerError                  the broker answered with an error code
        ├── UnknownTopicError
        ├── OffsetOutOfRangeError
        ├── ProducerFencedError      a newer producer has the transactional id; this one is of no use any more
        └── AuthorizationError

Errors carry their facts as attributes (``broker``, ``api``, ``topic``, ``partition``, ``offset``); the text says what
happened, where, and what can be done.  Exceptions of other libraries are mapped at the transport border alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from pykafka08.error_codes import ErrorCode

__all__ = [
    "AuthorizationError",
    "BrokerError",
    "BufferFullError",
    "ClientFailedError",
    "ClosedError",
    "ConcurrentReadError",
    "ConfigError",
    "CorruptRecordError",
    "DeliveryTimeoutError",
    "KafkaError",
    "LocalProtocolError",
    "LogTruncationError",
    "NoBrokersError",
    "NoOffsetError",
    "OffsetOutOfRangeError",
    "PartitionRevokedError",
    "PollIntervalExceededError",
    "ProducerFencedError",
    "ProtocolError",
    "RecordTooLargeError",
    "RecordTypeError",
    "RemoteProtocolError",
    "RequestTimeoutError",
    "TransactionAbortedError",
    "TransactionStateError",
    "TransportError",
    "UnknownTopicError",
    "UnsupportedVersionError",
    "broker_error",
]


class KafkaError(Exception):
    """Root of the tree.

    ``broker`` is ``"host:port"`` or ``"host:port (id N)"``; attributes that do not apply are None.
    """

    may_be_written = False
    """Of a record that failed: an attempt whose answer was lost may have put it into the log all the same."""

    def __init__(
        self,
        message: str,
        *,
        broker: str | None = None,
        api: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
        offset: int | None = None,
    ) -> None:
        super().__init__(message)
        self.broker = broker
        self.api = api
        self.topic = topic
        self.partition = partition
        self.offset = offset

    @property
    def message(self) -> str:
        """The text without the facts that ``str()`` adds."""
        return str(self.args[0]) if self.args else ""

    def __str__(self) -> str:
        text = self.message
        facts = [
            f"{name} {value}"
            for name, value in (
                ("broker", self.broker),
                ("api", self.api),
                ("topic", repr(self.topic) if self.topic is not None else None),
                ("partition", self.partition),
                ("offset", self.offset),
            )
            if value is not None
        ]
        return f"{text} [{', '.join(facts)}]" if facts else text


class ConfigError(KafkaError, ValueError):
    """A keyword argument or option has no possible meaning; nothing was sent."""


class ClosedError(KafkaError):
    """The client was closed, or is used before it was opened."""


class ConcurrentReadError(KafkaError, RuntimeError):
    """A second task reads from a consumer while one waits for records; the first is not disturbed."""


class ClientFailedError(KafkaError):
    """An internal task of the client ended with an error, which is chained as ``__cause__``."""


class TransportError(KafkaError):
    """A connection could not be made, or ended."""


class NoBrokersError(TransportError):
    """No bootstrap address answered as a Kafka broker; ``causes`` maps each address to its own error."""

    def __init__(self, message: str, causes: Mapping[str, BaseException] | None = None) -> None:
        super().__init__(message)
        self.causes = dict(causes or {})


class ProtocolError(KafkaError):
    """Bytes and Kafka's protocol disagree."""


class LocalProtocolError(ProtocolError):
    """This side asked for something that the protocol cannot express."""


class RemoteProtocolError(ProtocolError):
    """The peer sent something that is not Kafka's protocol; the connection is closed."""


class CorruptRecordError(RemoteProtocolError):
    """A record batch is damaged.

    ``offset`` is the batch's first offset; ``next_offset`` is where reading can go on after it, None if unknown.
    """

    def __init__(
        self,
        message: str,
        *,
        topic: str | None = None,
        partition: int | None = None,
        offset: int | None = None,
        next_offset: int | None = None,
        broker: str | None = None,
    ) -> None:
        super().__init__(message, broker=broker, topic=topic, partition=partition, offset=offset)
        self.next_offset = next_offset


class UnsupportedVersionError(KafkaError):
    """The broker's release lacks the API, the version or the field that the call needs."""


class RequestTimeoutError(KafkaError, TimeoutError):
    """A deadline passed."""


class DeliveryTimeoutError(RequestTimeoutError):
    """A record was not acknowledged within ``delivery_timeout_ms``; it may or may not be in the log."""


class BufferFullError(KafkaError):
    """The producer holds ``buffer_memory`` bytes of records that are not acknowledged yet."""


class RecordTypeError(KafkaError, TypeError):
    """A record to produce has a key, a value or a header of a type that Kafka cannot carry."""


class RecordTooLargeError(KafkaError):
    """A record is larger than the producer, the broker or the fetch size allows."""


class NoOffsetError(KafkaError):
    """A partition has no valid position and ``auto_offset_reset`` is ``"none"``.

    ``earliest`` and ``latest`` are the bounds of the log.
    """

    def __init__(
        self, message: str, *, topic: str, partition: int, offset: int | None, earliest: int, latest: int
    ) -> None:
        super().__init__(message, topic=topic, partition=partition, offset=offset)
        self.earliest = earliest
        self.latest = latest


class LogTruncationError(KafkaError):
    """The log has lost records that were read, in an election of a leader that lacked them.

    ``offset`` is the position; the records from ``end_offset`` to before it are lost, None if that is not known.
    """

    def __init__(self, message: str, *, topic: str, partition: int, offset: int | None, end_offset: int | None) -> None:
        super().__init__(message, topic=topic, partition=partition, offset=offset)
        self.end_offset = end_offset


class PartitionRevokedError(KafkaError):
    """The partition is another member's, or may be: its offset was not committed, and its records come again there."""


class PollIntervalExceededError(KafkaError):
    """The consumer left its group: ``idle`` seconds passed without a call for records, more than ``limit``.

    Raised once; the call after it joins the group again.
    """

    def __init__(self, message: str, *, idle: float, limit: float) -> None:
        super().__init__(message)
        self.idle = idle
        self.limit = limit


class TransactionAbortedError(KafkaError):
    """The transaction was, or has to be, aborted; its ``__cause__`` says why.  The producer can begin the next one."""


class TransactionStateError(KafkaError):
    """The call has no place where the producer's transaction is: a second one in the first, or a record outside."""


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
