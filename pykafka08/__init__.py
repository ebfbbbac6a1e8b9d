"""pykafka08: an asyncio and trio client for every Apache Kafka from 0.8.0 to 4.x, in pure Python.

A map of the package, from the top down; each line imports only from lines below it:

    cli                         the console tools
    producer  consumer          what applications use
    group                       the member of a consumer group, and its offsets
    cluster                     metadata, routing, one client per cluster
    connection                  one TCP connection: pipelining, deadlines, versions
    driver                      the loop that performs what a machine says, and the waiter
    protocol  records           bytes <-> messages, bytes <-> records
    wire  config  backoff  errors  setting_hints  error_codes

``broker`` is the embedded broker, beside the tower.  ARCHITECTURE.md, in this folder, follows one record through.

Names are imported on first use, so that ``import pykafka08`` alone costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "AuthorizationError": "errors",
    "BrokerError": "errors",
    "BufferFullError": "errors",
    "ClientFailedError": "errors",
    "ClosedError": "errors",
    "Codec": "records.compression",
    "ConcurrentReadError": "errors",
    "ConfigError": "errors",
    "Consumer": "consumer.consumer",
    "ConsumerHealth": "consumer.health",
    "CorruptRecordError": "errors",
    "Delivery": "producer.delivery",
    "DeliveryTimeoutError": "errors",
    "EmbeddedCluster": "broker.server",
    "ErrorCode": "error_codes",
    "GroupHealth": "consumer.health",
    "KafkaError": "errors",
    "LocalProtocolError": "errors",
    "LogTruncationError": "errors",
    "NewRecord": "records.record",
    "NoBrokersError": "errors",
    "NoOffsetError": "errors",
    "OffsetAndMetadata": "group.requests",
    "OffsetAndTimestamp": "consumer.offsets",
    "OffsetOutOfRangeError": "errors",
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
    "SentRecords": "producer.delivery",
    "SubscriptionPattern": "group.pattern",
    "TopicPartition": "records.record",
    "TransactionAbortedError": "errors",
    "TransactionStateError": "errors",
    "TransportError": "errors",
    "UnknownTopicError": "errors",
    "UnsupportedVersionError": "errors",
}

__all__ = [
    "AuthorizationError",
    "BrokerError",
    "BufferFullError",
    "ClientFailedError",
    "ClosedError",
    "Codec",
    "ConcurrentReadError",
    "ConfigError",
    "Consumer",
    "ConsumerHealth",
    "CorruptRecordError",
    "Delivery",
    "DeliveryTimeoutError",
    "EmbeddedCluster",
    "ErrorCode",
    "GroupHealth",
    "KafkaError",
    "LocalProtocolError",
    "LogTruncationError",
    "NewRecord",
    "NoBrokersError",
    "NoOffsetError",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetOutOfRangeError",
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
    "SentRecords",
    "SubscriptionPattern",
    "TopicPartition",
    "TransactionAbortedError",
    "TransactionStateError",
    "TransportError",
    "UnknownTopicError",
    "UnsupportedVersionError",
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
    from pykafka08.broker.server import EmbeddedCluster
    from pykafka08.consumer.consumer import Consumer
    from pykafka08.consumer.health import ConsumerHealth, GroupHealth
    from pykafka08.consumer.offsets import OffsetAndTimestamp
    from pykafka08.error_codes import ErrorCode
    from pykafka08.errors import (
        AuthorizationError,
        BrokerError,
        BufferFullError,
        ClientFailedError,
        ClosedError,
        ConcurrentReadError,
        ConfigError,
        CorruptRecordError,
        DeliveryTimeoutError,
        KafkaError,
        LocalProtocolError,
        LogTruncationError,
        NoBrokersError,
        NoOffsetError,
        OffsetOutOfRangeError,
        PartitionRevokedError,
        PollIntervalExceededError,
        ProducerFencedError,
        ProtocolError,
        RecordTooLargeError,
        RecordTypeError,
        RemoteProtocolError,
        RequestTimeoutError,
        TransactionAbortedError,
        TransactionStateError,
        TransportError,
        UnknownTopicError,
        UnsupportedVersionError,
    )
    from pykafka08.group.coordinator import RebalanceListener
    from pykafka08.group.pattern import SubscriptionPattern
    from pykafka08.group.requests import OffsetAndMetadata
    from pykafka08.producer.delivery import Delivery, RecordMetadata, SentRecords
    from pykafka08.producer.health import ProducerHealth
    from pykafka08.producer.producer import Producer
    from pykafka08.records.compression import Codec
    from pykafka08.records.record import NewRecord, Record, TopicPartition
