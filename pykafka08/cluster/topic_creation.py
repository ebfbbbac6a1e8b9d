"""The reason why a topic is never created, which Metadata of a KRaft cluster does not tell.  Pure.

Such a cluster creates topics after it has answered, and its answers then name the topic as unknown for ever.  The
controller is asked to create the topic without doing it (``validate_only``).
"""

from __future__ import annotations

from collections.abc import Callable

from pykafka08.error_codes import ErrorCode
from pykafka08.errors import KafkaError, UnsupportedVersionError, broker_error
from pykafka08.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from pykafka08.protocol.versions import BrokerVersions

__all__ = ["CREATION_S", "PERMANENT", "creation_check", "creation_refusal"]

CREATION_S = 0.5
"""How long the creation of a topic may take before the controller is asked."""

DEFAULTS_VERSION = 4
"""The first version in which the broker chooses partitions and replicas, as it does where it creates a topic itself."""

PERMANENT = frozenset(
    {
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.INVALID_PARTITIONS,
    }
)
"""Codes that asking again does not change.  Whether this client may create topics says nothing about other clients."""


def creation_check(topic: str, timeout: float) -> Callable[[BrokerVersions], CreateTopicsRequest]:
    """The request; UnsupportedVersionError where the broker is too old, and tells the reason in Metadata."""

    def make(versions: BrokerVersions) -> CreateTopicsRequest:
        if versions.pick(CreateTopicsRequest) < DEFAULTS_VERSION:
            raise UnsupportedVersionError("the broker tells in Metadata why it creates no topic", api="CreateTopics")
        return CreateTopicsRequest(
            topics=[CreatableTopic(name=topic, num_partitions=-1, replication_factor=-1)],
            timeout_ms=int(timeout * 1000),
            validate_only=True,
        )

    return make


def creation_refusal(topic: str, response: CreateTopicsResponse, broker: str | None) -> KafkaError | None:
    """Why the topic is never created; None if nothing is known against it."""
    for result in response.topics:
        if result.name == topic and result.error_code in PERMANENT:
            return broker_error(
                result.error_code, result.error_message, broker=broker, api=CreateTopicsRequest.name, topic=topic
            )
    return None
