"""StreamsGroupHeartbeat: membership in a streams group (API key 88).

Streams groups (KIP-1071): the broker assigns the tasks of Kafka Streams applications.  What has not changed since the
last heartbeat is None.

Versions, the first release with each, and what is new in it:

     0  4.2     (KIP-1071)
"""

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
    """A tag or a setting."""

    key: str = string()
    value: str = string()


@struct
class TopicInfo(Struct):
    """A topic that the application needs."""

    name: str = string()
    partitions: int = int32()  # 0 if it follows from others
    replication_factor: int = int16()  # 0 for the broker's default
    topic_configs: list[KeyValue] = array(KeyValue)


@struct
class CopartitionGroup(Struct):
    """Topics that must have equally many partitions, by their positions in the lists before."""

    source_topics: list[int] = array(int16)
    source_topic_regex: list[int] = array(int16)
    repartition_source_topics: list[int] = array(int16)


@struct
class Subtopology(Struct):
    """A part of the topology that is processed as one."""

    subtopology_id: str = string()
    source_topics: list[str] = array(string)
    source_topic_regex: list[str] = array(string)
    state_changelog_topics: list[TopicInfo] = array(TopicInfo)
    repartition_sink_topics: list[str] = array(string)
    repartition_source_topics: list[TopicInfo] = array(TopicInfo)
    copartition_groups: list[CopartitionGroup] = array(CopartitionGroup)


@struct
class Topology(Struct):
    """What the application processes."""

    epoch: int = int32()
    subtopologies: list[Subtopology] = array(Subtopology)


@struct
class TaskIds(Struct):
    """Tasks of one part of the topology."""

    subtopology_id: str = string()
    partitions: list[int] = array(int32)


@struct
class Endpoint(Struct):
    """Where the application serves its state."""

    host: str = string()
    port: int = uint16()


@struct
class TaskOffset(Struct):
    """How far a task has come."""

    subtopology_id: str = string()
    partition: int = int32()
    offset: int = int64()


@message(key=88, versions="0", flexible="0+")
class StreamsGroupHeartbeatRequest(Request["StreamsGroupHeartbeatResponse"]):
    """The member, and what has changed."""

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()  # 0 joins, -1 leaves, -2 leaves for a while as a static member
    endpoint_information_epoch: int = int32()
    instance_id: str | None = string(nullable="0+", default=None)
    rack_id: str | None = string(nullable="0+", default=None)
    rebalance_timeout_ms: int = int32(default=-1)
    topology: Topology | None = struct_(Topology, nullable="0+", default=None)  # sent when joining
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
    """Why the group does not run as it should."""

    status_code: int = int8()
    status_detail: str = string()


@struct
class TopicPartition(Struct):
    """Partitions of one topic."""

    topic: str = string()
    partitions: list[int] = array(int32)


@struct
class EndpointToPartitions(Struct):
    """Which partitions are served where."""

    user_endpoint: Endpoint = struct_(Endpoint)
    active_partitions: list[TopicPartition] = array(TopicPartition)
    standby_partitions: list[TopicPartition] = array(TopicPartition)


@message(key=88, versions="0", flexible="0+")
class StreamsGroupHeartbeatResponse(Response):
    """The epoch, and the tasks if they have changed."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    member_id: str = string()
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    acceptable_recovery_lag: int = int32()
    task_offset_interval_ms: int = int32()
    status: list[Status] | None = array(Status, nullable="0+")
    active_tasks: list[TaskIds] | None = array(TaskIds, nullable="0+", default=None)  # None if they have not changed
    standby_tasks: list[TaskIds] | None = array(TaskIds, nullable="0+", default=None)
    warmup_tasks: list[TaskIds] | None = array(TaskIds, nullable="0+", default=None)
    endpoint_information_epoch: int = int32()
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = array(
        EndpointToPartitions, nullable="0+", default=None
    )
