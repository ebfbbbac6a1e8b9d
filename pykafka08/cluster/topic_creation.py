"""The reason why a topic cannot be created, which Metadata of a KRaft cluster does not contain.  Pure.

Such a cluster creates topics after it has answered, and if that fails, it answers UNKNOWN_TOPIC_OR_PARTITION for ever.
The client therefore sends the controller a CreateTopics request with ``validate_only``.
"""

from __future__ import annotations

from collections.abc import Callable

from pykafka08.error_codes import ErrorCode
from pykafka08.errors import KafkaError, UnsupportedVersionError, broker_error
from pykafka08.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from pykafka08.protocol.versions import BrokerVersions

__all__ = ["CREATION_S", "PERMANENT", "creation_check", "creation_refusal"]

CREATION_S = 0.5
"""Seconds that the creation of a topic may take before the controller is asked."""

DEFAULTS_VERSION = 4
"""The first CreateTopics version in which the broker chooses partitions and replicas, as in automatic creation."""

PERMANENT = frozenset(
    {
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.INVALID_PARTITIONS,
    }
)
"""Codes that no retry changes.  Missing authorization is not among them: another client may create the topic."""


def creation_check(topic: str, timeout: float) -> Callable[[BrokerVersions], CreateTopicsRequest]:
    """The request; UnsupportedVersionError for an older broker, whose Metadata contains the reason."""

    def make(versions: BrokerVersions) -> CreateTopicsRequest:
        if versions.pick(CreateTopicsRequest) < DEFAULTS_VERSION:
            raise UnsupportedVersionError("the broker gives the reason in Metadata", api="CreateTopics")
        return CreateTopicsRequest(
            topics=[CreatableTopic(name=topic, num_partitions=-1, replication_factor=-1)],
            timeout_ms=int(timeout * 1000),
            validate_only=True,
        )

    return make


def creation_refusal(topic: str, response: CreateTopicsResponse, broker: str | None) -> KafkaError | None:
    """The reason why the topic cannot be created; None if no reason is known."""
    for result in response.topics:
        if result.name == topic and result.error_code in PERMANENT:
            return broker_error(
                result.error_code, result.error_message, broker=broker, api=CreateTopicsRequest.name, topic=topic
            )
    return None
