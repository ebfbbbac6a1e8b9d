"""CreateTopics (API key 19)."""

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
    """CreatableReplicaAssignment."""

    partition_index: int = int32()
    broker_ids: list[int] = array(int32)


@struct
class CreatableTopicConfig(Struct):
    """CreatableTopicConfig."""

    name: str = string()
    value: str | None = string(nullable="0+")


@struct
class CreatableTopic(Struct):
    """CreatableTopic."""

    name: str = string()
    num_partitions: int = int32()
    replication_factor: int = int16()
    assignments: list[CreatableReplicaAssignment] = array(CreatableReplicaAssignment)
    configs: list[CreatableTopicConfig] = array(CreatableTopicConfig)


@message(key=19, versions="0-7", flexible="5+")
class CreateTopicsRequest(Request["CreateTopicsResponse"]):
    """CreateTopicsRequest."""

    topics: list[CreatableTopic] = array(CreatableTopic)
    timeout_ms: int = int32(default=60000)
    validate_only: bool = bool_(versions="1+")


@struct
class CreatableTopicConfigs(Struct):
    """CreatableTopicConfigs."""

    name: str = string(versions="5+")
    value: str | None = string(versions="5+", nullable="5+")
    read_only: bool = bool_(versions="5+")
    config_source: int = int8(versions="5+", default=-1, ignorable=True)
    is_sensitive: bool = bool_(versions="5+")


@struct
class CreatableTopicResult(Struct):
    """CreatableTopicResult."""

    name: str = string()
    topic_id: UUID = uuid_(versions="7+", ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(versions="1+", nullable="0+", ignorable=True)
    topic_config_error_code: int = int16(versions="5+", tag=0, tagged="5+", ignorable=True)
    num_partitions: int = int32(versions="5+", default=-1, ignorable=True)
    replication_factor: int = int16(versions="5+", default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = array(
        CreatableTopicConfigs, versions="5+", nullable="5+", ignorable=True
    )


@message(key=19, versions="0-7", flexible="5+")
class CreateTopicsResponse(Response):
    """CreateTopicsResponse."""

    throttle_time_ms: int = int32(versions="2+", ignorable=True)
    topics: list[CreatableTopicResult] = array(CreatableTopicResult)
