"""pykafka08: an asyncio and trio client for every Apache Kafka from 0.8.0 to 4.x, in pure Python.

A map of the package, from the top down; each line imports only from lines below it:

    cli                         the console tools
    mirror                      topics of one cluster copied to another
    zookeeper                   what old clusters keep in ZooKeeper: groups, layout, administration
    producer  consumer  admin   what applications use
    group                       the member of a consumer group, and its offsets
    cluster                     metadata, routing, one client per cluster
    connection                  one TCP or TLS connection: pipelining, deadlines, versions, authentication
    driver                      the loop that performs what a machine says, and the waiter
    protocol  records           bytes <-> messages, bytes <-> records
    kafka_properties            Kafka's Java properties as settings
    wire  config  backoff
    security                    TLS, SASL, secrets
    errors  setting_hints  error_codes

``broker`` is the embedded broker, beside the tower.  ARCHITECTURE.md, in this folder, follows one record through.

Names are imported on first use, so that ``import pykafka08`` alone costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "Admin": "admin.admin",
    "AdminRefusedError": "errors",
    "AuthenticationError": "errors",
    "AuthorizationError": "errors",
    "BadVersionError": "errors",
    "BrokerError": "errors",
    "BufferFullError": "errors",
    "CertificateError": "errors",
    "ClientFailedError": "errors",
    "ClosedError": "errors",
    "Codec": "records.compression",
    "ConcurrentReadError": "errors",
    "ConfigEntry": "admin.values",
    "ConfigError": "errors",
    "Consumer": "consumer.consumer",
    "ConsumerHealth": "consumer.health",
    "ConsumerRebalanceFailedError": "errors",
    "ConsumerTimeoutError": "errors",
    "CorruptRecordError": "errors",
    "Delivery": "producer.delivery",
    "DeliveryTimeoutError": "errors",
    "EmbeddedCluster": "broker.server",
    "EmbeddedZooKeeper": "broker.zookeeper.server",
    "ErrorCode": "error_codes",
    "GroupDescription": "admin.values",
    "GroupHealth": "consumer.health",
    "GroupListing": "admin.values",
    "GroupMember": "admin.values",
    "GroupMigration": "zookeeper.migration",
    "GroupMove": "mirror.copy_state",
    "KafkaError": "errors",
    "LegacyConsumer": "zookeeper.legacy_consumer",
    "LegacyHealth": "zookeeper.legacy.health",
    "LocalProtocolError": "errors",
    "LogTruncationError": "errors",
    "MalformedNodeError": "errors",
    "MigratedPartition": "zookeeper.migration",
    "MigrationReport": "zookeeper.migration",
    "Mirror": "mirror.mirror",
    "MirrorError": "errors",
    "MirrorReport": "mirror.copy_state",
    "NewRecord": "records.record",
    "NewTopic": "admin.values",
    "NoAuthError": "errors",
    "NoBrokersError": "errors",
    "NoNodeError": "errors",
    "NoOffsetError": "errors",
    "NodeExistsError": "errors",
    "NotEmptyError": "errors",
    "OAuthToken": "security.oauth.token",
    "OffsetAndMetadata": "group.requests",
    "OffsetAndTimestamp": "consumer.offsets",
    "OffsetOutOfRangeError": "errors",
    "PartitionReport": "mirror.copy_state",
    "PartitionRevokedError": "errors",
    "PollIntervalExceededError": "errors",
    "Producer": "producer.producer",
    "ProducerFencedError": "errors",
    "ProducerHealth": "producer.health",
    "ProtocolError": "errors",
    "RebalanceListener": "group.coordinator",
    "Record": "records.record",
    "RecordMetadata": "producer.delivery",
    "RecordTooLargeError": "errors",
    "RecordTypeError": "errors",
    "RemoteProtocolError": "errors",
    "RequestTimeoutError": "errors",
    "ResponseTooLargeError": "errors",
    "Secret": "security.secret",
    "SecurityError": "errors",
    "SentRecords": "producer.delivery",
    "SessionExpiredError": "errors",
    "SubscriptionPattern": "group.pattern",
    "TlsError": "errors",
    "TopicDescription": "admin.values",
    "TopicPartition": "records.record",
    "TopicPlan": "mirror.plan",
    "TransactionAbortedError": "errors",
    "TransactionStateError": "errors",
    "TransportError": "errors",
    "UnknownTopicError": "errors",
    "UnsupportedVersionError": "errors",
    "WrongEventLoopError": "errors",
    "ZooKeeperAuthError": "errors",
    "ZooKeeperConnectionError": "errors",
    "ZooKeeperError": "errors",
    "compiled": "form",
}

__all__ = [
    "Admin",
    "AdminRefusedError",
    "AuthenticationError",
    "AuthorizationError",
    "BadVersionError",
    "BrokerError",
    "BufferFullError",
    "CertificateError",
    "ClientFailedError",
    "ClosedError",
    "Codec",
    "ConcurrentReadError",
    "ConfigEntry",
    "ConfigError",
    "Consumer",
    "ConsumerHealth",
    "ConsumerRebalanceFailedError",
    "ConsumerTimeoutError",
    "CorruptRecordError",
    "Delivery",
    "DeliveryTimeoutError",
    "EmbeddedCluster",
    "EmbeddedZooKeeper",
    "ErrorCode",
    "GroupDescription",
    "GroupHealth",
    "GroupListing",
    "GroupMember",
    "GroupMigration",
    "GroupMove",
    "KafkaError",
    "LegacyConsumer",
    "LegacyHealth",
    "LocalProtocolError",
    "LogTruncationError",
    "MalformedNodeError",
    "MigratedPartition",
    "MigrationReport",
    "Mirror",
    "MirrorError",
    "MirrorReport",
    "NewRecord",
    "NewTopic",
    "NoAuthError",
    "NoBrokersError",
    "NoNodeError",
    "NoOffsetError",
    "NodeExistsError",
    "NotEmptyError",
    "OAuthToken",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetOutOfRangeError",
    "PartitionReport",
    "PartitionRevokedError",
    "PollIntervalExceededError",
    "Producer",
    "ProducerFencedError",
    "ProducerHealth",
    "ProtocolError",
    "RebalanceListener",
    "Record",
    "RecordMetadata",
    "RecordTooLargeError",
    "RecordTypeError",
    "RemoteProtocolError",
    "RequestTimeoutError",
    "ResponseTooLargeError",
    "Secret",
    "SecurityError",
    "SentRecords",
    "SessionExpiredError",
    "SubscriptionPattern",
    "TlsError",
    "TopicDescription",
    "TopicPartition",
    "TopicPlan",
    "TransactionAbortedError",
    "TransactionStateError",
    "TransportError",
    "UnknownTopicError",
    "UnsupportedVersionError",
    "WrongEventLoopError",
    "ZooKeeperAuthError",
    "ZooKeeperConnectionError",
    "ZooKeeperError",
    "compiled",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'pykafka08' has no attribute {name!r}")
    value = getattr(import_module(f"pykafka08.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})


if TYPE_CHECKING:
    from pykafka08.admin.admin import Admin
    from pykafka08.admin.values import (
        ConfigEntry,
        GroupDescription,
        GroupListing,
        GroupMember,
        NewTopic,
        TopicDescription,
    )
    from pykafka08.broker.server import EmbeddedCluster
    from pykafka08.broker.zookeeper.server import EmbeddedZooKeeper
    from pykafka08.consumer.consumer import Consumer
    from pykafka08.consumer.health import ConsumerHealth, GroupHealth
    from pykafka08.consumer.offsets import OffsetAndTimestamp
    from pykafka08.error_codes import ErrorCode
    from pykafka08.errors import (
        AdminRefusedError,
        AuthenticationError,
        AuthorizationError,
        BadVersionError,
        BrokerError,
        BufferFullError,
        CertificateError,
        ClientFailedError,
        ClosedError,
        ConcurrentReadError,
        ConfigError,
        ConsumerRebalanceFailedError,
        ConsumerTimeoutError,
        CorruptRecordError,
        DeliveryTimeoutError,
        KafkaError,
        LocalProtocolError,
        LogTruncationError,
        MalformedNodeError,
        MirrorError,
        NoAuthError,
        NoBrokersError,
        NodeExistsError,
        NoNodeError,
        NoOffsetError,
        NotEmptyError,
        OffsetOutOfRangeError,
        PartitionRevokedError,
        PollIntervalExceededError,
        ProducerFencedError,
        ProtocolError,
        RecordTooLargeError,
        RecordTypeError,
        RemoteProtocolError,
        RequestTimeoutError,
        ResponseTooLargeError,
        SecurityError,
        SessionExpiredError,
        TlsError,
        TransactionAbortedError,
        TransactionStateError,
        TransportError,
        UnknownTopicError,
        UnsupportedVersionError,
        WrongEventLoopError,
        ZooKeeperAuthError,
        ZooKeeperConnectionError,
        ZooKeeperError,
    )
    from pykafka08.form import compiled
    from pykafka08.group.coordinator import RebalanceListener
    from pykafka08.group.pattern import SubscriptionPattern
    from pykafka08.group.requests import OffsetAndMetadata
    from pykafka08.mirror.copy_state import GroupMove, MirrorReport, PartitionReport
    from pykafka08.mirror.mirror import Mirror
    from pykafka08.mirror.plan import TopicPlan
    from pykafka08.producer.delivery import Delivery, RecordMetadata, SentRecords
    from pykafka08.producer.health import ProducerHealth
    from pykafka08.producer.producer import Producer
    from pykafka08.records.compression import Codec
    from pykafka08.records.record import NewRecord, Record, TopicPartition
    from pykafka08.security.oauth.token import OAuthToken
    from pykafka08.security.secret import Secret
    from pykafka08.zookeeper.legacy.health import LegacyHealth
    from pykafka08.zookeeper.legacy_consumer import LegacyConsumer
    from pykafka08.zookeeper.migration import GroupMigration, MigratedPartition, MigrationReport
