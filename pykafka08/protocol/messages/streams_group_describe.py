"""StreamsGroupDescribe (API key 89)."""

from __future__ import annotations

from pykafka08.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    bool_,
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
    "Assignment",
    "DescribedGroup",
    "Endpoint",
    "KeyValue",
    "Member",
    "StreamsGroupDescribeRequest",
    "StreamsGroupDescribeResponse",
    "Subtopology",
    "TaskIds",
    "TaskOffset",
    "TopicInfo",
    "Topology",
]


@message(key=89, versions="0", flexible="0+")
class StreamsGroupDescribeRequest(Request["StreamsGroupDescribeResponse"]):
    """StreamsGroupDescribeRequest."""

    group_ids: list[str] = array(string)
    include_authorized_operations: bool = bool_()


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
class Subtopology(Struct):
    """Subtopology."""

    subtopology_id: str = string()
    source_topics: list[str] = array(string)
    repartition_sink_topics: list[str] = array(string)
    state_changelog_topics: list[TopicInfo] = array(TopicInfo)
    repartition_source_topics: list[TopicInfo] = array(TopicInfo)


@struct
class Topology(Struct):
    """Topology."""

    epoch: int = int32()
    subtopologies: list[Subtopology] | None = array(Subtopology, nullable="0+", default=None)


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


@struct
class TaskIds(Struct):
    """TaskIds."""

    subtopology_id: str = string()
    partitions: list[int] = array(int32)


@struct
class Assignment(Struct):
    """Assignment."""

    active_tasks: list[TaskIds] = array(TaskIds)
    standby_tasks: list[TaskIds] = array(TaskIds)
    warmup_tasks: list[TaskIds] = array(TaskIds)


@struct
class Member(Struct):
    """Member."""

    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string(nullable="0+", default=None)
    rack_id: str | None = string(nullable="0+", default=None)
    client_id: str = string()
    client_host: str = string()
    topology_epoch: int = int32()
    process_id: str = string()
    user_endpoint: Endpoint | None = struct_(Endpoint, nullable="0+", default=None)
    client_tags: list[KeyValue] = array(KeyValue)
    task_offsets: list[TaskOffset] = array(TaskOffset)
    task_end_offsets: list[TaskOffset] = array(TaskOffset)
    assignment: Assignment = struct_(Assignment)
    target_assignment: Assignment = struct_(Assignment)
    is_classic: bool = bool_()


@struct
class DescribedGroup(Struct):
    """DescribedGroup."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    topology: Topology | None = struct_(Topology, nullable="0+", default=None)
    members: list[Member] = array(Member)
    authorized_operations: int = int32(default=-2147483648)


@message(key=89, versions="0", flexible="0+")
class StreamsGroupDescribeResponse(Response):
    """StreamsGroupDescribeResponse."""

    throttle_time_ms: int = int32()
    groups: list[DescribedGroup] = array(DescribedGroup)
