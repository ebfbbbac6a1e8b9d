"""Every exception this library raises on purpose, and nothing else.

    KafkaError
    ├── ConfigError                  a keyword argument or option has no possible meaning
    ├── ClosedError                  the client was closed, or never opened
    ├── WrongEventLoopError          a call from another thread, event loop or process than the client's own
    ├── ConcurrentReadError          a second task reads from a consumer while one waits for records
    ├── ClientFailedError            an internal task died; its cause is chained
    ├── TransportError               the network said no: refused, reset, closed, name not found
    │   └── NoBrokersError           no address of the bootstrap list answered as Kafka
    ├── SecurityError                TLS or SASL failed, and trying again does not change that
    │   ├── TlsError                 the TLS handshake failed, or the peer does not speak TLS
    │   │   └── CertificateError     the broker's certificate is not accepted; says the reason
    │   └── AuthenticationError      SASL authentication failed: credentials, mechanism, or the broker's own proof
    ├── ProtocolError
    │   ├── LocalProtocolError       we, or the application, asked for something that cannot be encoded
    │   └── RemoteProtocolError      the peer sent bytes that are not Kafka's protocol
    │       ├── ResponseTooLargeError  an answer has more bytes than receive_message_max_bytes
    │       └── CorruptRecordError   a record batch is damaged; says topic, partition and offset
    ├── UnsupportedVersionError      the broker's release lacks the API, the version or the field
    ├── RequestTimeoutError          a deadline passed; the text says what was waited for
    │   ├── ConsumerTimeoutError     no record came within consumer_timeout_ms; the stream can be read on
    │   └── DeliveryTimeoutError     a record was not acknowledged within the delivery deadline
    ├── BufferFullError              the producer's memory bound is reached
    ├── RecordTypeError              a key, value or header to produce has a type that is not bytes-like
    ├── RecordTooLargeError          a record is larger than a request, a fetch or max_unpacked_bytes allows
    ├── NoOffsetError                a partition has no position and its reset policy is "none"
    ├── LogTruncationError           records that were read are lost from the log, and the reset policy is "none"
    ├── MirrorError                  a mirror stops, since it would lose, double or mix records
    ├── PartitionRevokedError        a commit for a partition that this member does not, or no longer, own
    ├── PollIntervalExceededError    the application asked for no record within max_poll_interval_ms
    ├── TransactionAbortedError      the transaction was aborted, and nothing of it counts; the next one can begin
    ├── TransactionStateError        a call that has no place where the transaction is: nested, outside of a block
    ├── ZooKeeperError               ZooKeeper said no, or could not be asked; has the ``path``, below the chroot
    │   ├── NoNodeError              there is no node at the path (or its parent, for what is to be created)
    │   ├── NodeExistsError          there is one already
    │   ├── BadVersionError          somebody else has written the node since it was read
    │   ├── NotEmptyError            a node with children is not deleted
    │   ├── NoAuthError              the node's access list does not let this client do that
    │   ├── MalformedNodeError       what the node holds is not what Kafka writes there; says ``why``
    │   ├── ZooKeeperConnectionError no server of the ensemble answered in time, or the connection ended in the call
    │   ├── SessionExpiredError      the call belonged to a session that is over; its ephemeral nodes are gone
    │   ├── ZooKeeperAuthError       the credentials were refused
    │   ├── AdminRefusedError        a change that would do harm or nothing; nothing was written
    │   └── ConsumerRebalanceFailedError  a member of an old group could not take its share of the partitions
    └── BrokerError                  the broker answered with an error code
        ├── UnknownTopicError
        ├── OffsetOutOfRangeError
        ├── ProducerFencedError      a newer producer has the transactional id; this one is of no use any more
        └── AuthorizationError

Errors carry their facts as attributes (``broker``, ``api``, ``topic``, ``partition``, ``offset``); the text says what
happened, where, and what can be done.  Exceptions of other libraries are mapped at the transport border alone.
"""

from __future__ import annotations

from pykafka08.errors.broker import (
    AuthorizationError,
    BrokerError,
    OffsetOutOfRangeError,
    ProducerFencedError,
    UnknownTopicError,
    broker_error,
)
from pykafka08.errors.client import (
    AuthenticationError,
    BufferFullError,
    CertificateError,
    ClientFailedError,
    ClosedError,
    ConcurrentReadError,
    ConfigError,
    ConsumerTimeoutError,
    CorruptRecordError,
    DeliveryTimeoutError,
    LocalProtocolError,
    LogTruncationError,
    MirrorError,
    NoBrokersError,
    NoOffsetError,
    PartitionRevokedError,
    PollIntervalExceededError,
    ProtocolError,
    RecordTooLargeError,
    RecordTypeError,
    RemoteProtocolError,
    RequestTimeoutError,
    ResponseTooLargeError,
    SecurityError,
    TlsError,
    TransactionAbortedError,
    TransactionStateError,
    TransportError,
    UnsupportedVersionError,
    WrongEventLoopError,
)
from pykafka08.errors.root import KafkaError
from pykafka08.errors.zookeeper import (
    AdminRefusedError,
    BadVersionError,
    ConsumerRebalanceFailedError,
    MalformedNodeError,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    SessionExpiredError,
    ZooKeeperAuthError,
    ZooKeeperConnectionError,
    ZooKeeperError,
)

__all__ = [
    "AdminRefusedError",
    "AuthenticationError",
    "AuthorizationError",
    "BadVersionError",
    "BrokerError",
    "BufferFullError",
    "CertificateError",
    "ClientFailedError",
    "ClosedError",
    "ConcurrentReadError",
    "ConfigError",
    "ConsumerRebalanceFailedError",
    "ConsumerTimeoutError",
    "CorruptRecordError",
    "DeliveryTimeoutError",
    "KafkaError",
    "LocalProtocolError",
    "LogTruncationError",
    "MalformedNodeError",
    "MirrorError",
    "NoAuthError",
    "NoBrokersError",
    "NoNodeError",
    "NoOffsetError",
    "NodeExistsError",
    "NotEmptyError",
    "OffsetOutOfRangeError",
    "PartitionRevokedError",
    "PollIntervalExceededError",
    "ProducerFencedError",
    "ProtocolError",
    "RecordTooLargeError",
    "RecordTypeError",
    "RemoteProtocolError",
    "RequestTimeoutError",
    "ResponseTooLargeError",
    "SecurityError",
    "SessionExpiredError",
    "TlsError",
    "TransactionAbortedError",
    "TransactionStateError",
    "TransportError",
    "UnknownTopicError",
    "UnsupportedVersionError",
    "WrongEventLoopError",
    "ZooKeeperAuthError",
    "ZooKeeperConnectionError",
    "ZooKeeperError",
    "broker_error",
]
