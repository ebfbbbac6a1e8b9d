"""What the clients raise by themselves: settings, deadlines, the network, the state of a producer or consumer."""

from __future__ import annotations

from collections.abc import Mapping

from pykafka08.errors.root import KafkaError

__all__ = [
    "AuthenticationError",
    "BufferFullError",
    "CertificateError",
    "ClientFailedError",
    "ClosedError",
    "ConcurrentReadError",
    "ConfigError",
    "ConsumerTimeoutError",
    "CorruptRecordError",
    "DeliveryTimeoutError",
    "LocalProtocolError",
    "LogTruncationError",
    "MirrorError",
    "NoBrokersError",
    "NoOffsetError",
    "PartitionRevokedError",
    "PollIntervalExceededError",
    "ProtocolError",
    "RecordTooLargeError",
    "RecordTypeError",
    "RemoteProtocolError",
    "RequestTimeoutError",
    "ResponseTooLargeError",
    "SecurityError",
    "TlsError",
    "TransactionAbortedError",
    "TransactionStateError",
    "TransportError",
    "UnsupportedVersionError",
    "WrongEventLoopError",
]


class ConfigError(KafkaError, ValueError):
    """A keyword argument or option has no possible meaning; nothing was sent."""


class ClosedError(KafkaError):
    """The client was closed, or is used before it was opened."""


class WrongEventLoopError(KafkaError, RuntimeError):
    """The call comes from another thread, event loop or forked process than the client was opened in."""


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


class SecurityError(KafkaError):
    """TLS or SASL failed in a way that trying again does not change."""


class TlsError(SecurityError):
    """The TLS handshake failed: versions, cipher suites, the client's certificate, or a peer without TLS."""


class CertificateError(TlsError):
    """The broker's certificate is not accepted.

    ``reason`` is one of "expired", "not yet valid", "wrong host", "self-signed", "unknown CA", "wrong purpose",
    "revoked" and "other".
    """

    def __init__(self, message: str, *, reason: str = "other", broker: str | None = None) -> None:
        super().__init__(message, broker=broker)
        self.reason = reason


class AuthenticationError(SecurityError):
    """SASL authentication failed: wrong credentials or mechanism, or a broker that cannot prove its identity.

    ``mechanism`` is the SASL mechanism, None if it is not known.
    """

    def __init__(self, message: str, *, mechanism: str | None = None, broker: str | None = None) -> None:
        super().__init__(message, broker=broker)
        self.mechanism = mechanism


class ProtocolError(KafkaError):
    """Bytes and Kafka's protocol disagree."""


class LocalProtocolError(ProtocolError):
    """This side asked for something that the protocol cannot express."""


class RemoteProtocolError(ProtocolError):
    """The peer sent something that is not Kafka's protocol; the connection is closed."""


class ResponseTooLargeError(RemoteProtocolError):
    """A broker's answer has more bytes than ``receive_message_max_bytes`` allows; the connection is closed.

    ``size`` is the number of its bytes, None if it is not known.
    """

    def __init__(self, message: str, *, size: int | None = None, broker: str | None = None) -> None:
        super().__init__(message, broker=broker)
        self.size = size


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


class ConsumerTimeoutError(RequestTimeoutError):
    """No record came within ``consumer_timeout_ms``; the stream can be read on."""


class DeliveryTimeoutError(RequestTimeoutError):
    """A record was not acknowledged within ``delivery_timeout_ms``; it may or may not be in the log."""


class BufferFullError(KafkaError):
    """The producer holds ``buffer_memory`` bytes of records that are not acknowledged yet."""


class RecordTypeError(KafkaError, TypeError):
    """A record to produce has a key, a value or a header of a type that Kafka cannot carry."""


class RecordTooLargeError(KafkaError):
    """A record is larger than the producer, the broker, the fetch size or ``max_unpacked_bytes`` allows.

    ``next_offset`` is the offset after the record's batch, where reading can continue.  Producers leave it None.
    """

    def __init__(
        self,
        message: str,
        *,
        broker: str | None = None,
        api: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
        offset: int | None = None,
        next_offset: int | None = None,
    ) -> None:
        super().__init__(message, broker=broker, api=api, topic=topic, partition=partition, offset=offset)
        self.next_offset = next_offset


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


class MirrorError(KafkaError):
    """A mirror cannot go on without losing, doubling or mixing records; nothing more is copied."""


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
