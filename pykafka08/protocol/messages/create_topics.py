"""CreateTopics: creates topics (API key 19).

The controller does it; KRaft brokers pass the request on, brokers with ZooKeeper answer NOT_CONTROLLER.  The call
returns when the controller has created the topic, which other brokers may hear of only later.

Versions, the first release with each, and what is new in it:

     0  0.10.1
     1  0.10.2  validation only; error messages
     2  0.11.0  throttle time (KIP-124)
     3  2.0     the answer comes before the throttling, not after it (KIP-219)
     4  2.4     partitions and replicas may be left to the broker: -1 (KIP-464)
     5  2.4     compact forms, tagged fields (KIP-482); the topic's configuration in the response (KIP-525)
     6  2.7     THROTTLING_QUOTA_EXCEEDED may come back (KIP-599)
     7  2.8     topic ids (KIP-516)
"""

from __future__ import annotations

from uuid import UUID

from pykafka08.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    bool_,
    int8,
    int16,
    int32,
    message,
    string,
    struct,
    uuid_,
)

__all__ = [
    "CreatableReplicaAssignment",
    "CreatableTopic",
    "CreatableTopicConfig",
    "CreatableTopicConfigs",
    "CreatableTopicResult",
    "CreateTopicsRequest",
    "CreateTopicsResponse",
]


@struct
class CreatableReplicaAssignment(Struct):
    """Which brokers shall hold one partition."""

    partition_index: int = int32()
    broker_ids: list[int] = array(int32)  # the preferred leader first


@struct
class CreatableTopicConfig(Struct):
    """A setting of the new topic."""

    name: str = string()
    value: str | None = string(nullable="0+")


@struct
class CreatableTopic(Struct):
    """A topic to create."""

    name: str = string()
    num_partitions: int = int32()  # -1 with assignments, or for the broker's default
    replication_factor: int = int16()  # -1 with assignments, or for the broker's default
    assignments: list[CreatableReplicaAssignment] = array(CreatableReplicaAssignment)
    configs: list[CreatableTopicConfig] = array(CreatableTopicConfig)


@message(key=19, versions="0-7", flexible="5+")
class CreateTopicsRequest(Request["CreateTopicsResponse"]):
    """The topics to create."""

    topics: list[CreatableTopic] = array(CreatableTopic)
    timeout_ms: int = int32(default=60000)  # how long the controller may wait for leaders
    validate_only: bool = bool_(versions="1+")


@struct
class CreatableTopicConfigs(Struct):
    """A setting that the new topic has."""

    name: str = string(versions="5+")
    value: str | None = string(versions="5+", nullable="5+")
    read_only: bool = bool_(versions="5+")
    config_source: int = int8(versions="5+", default=-1, ignorable=True)  # as in DescribeConfigs
    is_sensitive: bool = bool_(versions="5+")


@struct
class CreatableTopicResult(Struct):
    """The result for one topic."""

    name: str = string()
    topic_id: UUID = uuid_(versions="7+", ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(versions="1+", nullable="0+", ignorable=True)
    # why the settings are not shown
    topic_config_error_code: int = int16(versions="5+", tag=0, tagged="5+", ignorable=True)
    num_partitions: int = int32(versions="5+", default=-1, ignorable=True)
    replication_factor: int = int16(versions="5+", default=-1, ignorable=True)
    # None if they may not be shown
    configs: list[CreatableTopicConfigs] | None = array(
        CreatableTopicConfigs, versions="5+", nullable="5+", ignorable=True
    )


@message(key=19, versions="0-7", flexible="5+")
class CreateTopicsResponse(Response):
    """The results."""

    throttle_time_ms: int = int32(versions="2+", ignorable=True)
    topics: list[CreatableTopicResult] = array(CreatableTopicResult)
