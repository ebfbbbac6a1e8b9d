"""StreamsGroupHeartbeat (API key 88)."""

from __future__ import annotations

from pykafka08.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    bool_,
    int8,
    int16,
    int32,
    int64,
    message,
    string,
    struct,
    struct_,
    uint16,
)

__all__ = [
    "CopartitionGroup",
    "Endpoint",
    "EndpointToPartitions",
    "KeyValue",
    "Status",
    "StreamsGroupHeartbeatRequest",
    "StreamsGroupHeartbeatResponse",
    "Subtopology",
    "TaskIds",
    "TaskOffset",
    "TopicInfo",
    "TopicPartition",
    "Topology",
]


@struct
class KeyValue(Struct):
    """KeyValue."""

    key: str = string()
    value: str = string()


@struct
class TopicInfo(Struct):
    """TopicInfo."""

    name: str = string()
    partitions: int = int32()
    replication_factor: int = int16()
    topic_configs: list[KeyValue] = array(KeyValue)


@struct
class CopartitionGroup(Struct):
    """CopartitionGroup."""

    source_topics: list[int] = array(int16)
    source_topic_regex: list[int] = array(int16)
    repartition_source_topics: list[int] = array(int16)


@struct
class Subtopology(Struct):
    """Subtopology."""

    subtopology_id: str = string()
    source_topics: list[str] = array(string)
    source_topic_regex: list[str] = array(string)
    state_changelog_topics: list[TopicInfo] = array(TopicInfo)
    repartition_sink_topics: list[str] = array(string)
    repartition_source_topics: list[TopicInfo] = array(TopicInfo)
    copartition_groups: list[CopartitionGroup] = array(CopartitionGroup)


@struct
class Topology(Struct):
    """Topology."""

    epoch: int = int32()
    subtopologies: list[Subtopology] = array(Subtopology)


@struct
class TaskIds(Struct):
    """TaskIds."""

    subtopology_id: str = string()
    partitions: list[int] = array(int32)


@struct
class Endpoint(Struct):
    """Endpoint."""

    host: str = string()
    port: int = uint16()


@struct
class TaskOffset(Struct):
    """TaskOffset."""

    subtopology_id: str = string()
    partition: int = int32()
    offset: int = int64()


@message(key=88, versions="0", flexible="0+")
class StreamsGroupHeartbeatRequest(Request["StreamsGroupHeartbeatResponse"]):
    """StreamsGroupHeartbeatRequest."""

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    endpoint_information_epoch: int = int32()
    instance_id: str | None = string(nullable="0+", default=None)
    rack_id: str | None = string(nullable="0+", default=None)
    rebalance_timeout_ms: int = int32(default=-1)
    topology: Topology | None = struct_(Topology, nullable="0+", default=None)
    active_tasks: list[TaskIds] | None = array(TaskIds, nullable="0+", default=None)
    standby_tasks: list[TaskIds] | None = array(TaskIds, nullable="0+", default=None)
    warmup_tasks: list[TaskIds] | None = array(TaskIds, nullable="0+", default=None)
    process_id: str | None = string(nullable="0+", default=None)
    user_endpoint: Endpoint | None = struct_(Endpoint, nullable="0+", default=None)
    client_tags: list[KeyValue] | None = array(KeyValue, nullable="0+", default=None)
    task_offsets: list[TaskOffset] | None = array(TaskOffset, nullable="0+", default=None)
    task_end_offsets: list[TaskOffset] | None = array(TaskOffset, nullable="0+", default=None)
    shutdown_application: bool = bool_()


@struct
class Status(Struct):
    """Status."""

    status_code: int = int8()
    status_detail: str = string()


@struct
class TopicPartition(Struct):
    """TopicPartition."""

    topic: str = string()
    partitions: list[int] = array(int32)


@struct
class EndpointToPartitions(Struct):
    """EndpointToPartitions."""

    user_endpoint: Endpoint = struct_(Endpoint)
    active_partitions: list[TopicPartition] = array(TopicPartition)
    standby_partitions: list[TopicPartition] = array(TopicPartition)


@message(key=88, versions="0", flexible="0+")
class StreamsGroupHeartbeatResponse(Response):
    """StreamsGroupHeartbeatResponse."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    member_id: str = string()
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    acceptable_recovery_lag: int = int32()
    task_offset_interval_ms: int = int32()
    status: list[Status] | None = array(Status, nullable="0+")
    active_tasks: list[TaskIds] | None = array(TaskIds, nullable="0+", default=None)
    standby_tasks: list[TaskIds] | None = array(TaskIds, nullable="0+", default=None)
    warmup_tasks: list[TaskIds] | None = array(TaskIds, nullable="0+", default=None)
    endpoint_information_epoch: int = int32()
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = array(
        EndpointToPartitions, nullable="0+", default=None
    )
