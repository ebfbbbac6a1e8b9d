"""StreamsGroupDescribe: state, topology and members of streams groups (API key 89).

Streams groups (KIP-1071): the broker assigns the tasks of Kafka Streams applications.

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
    """Which groups."""

    group_ids: list[str] = array(string)
    include_authorized_operations: bool = bool_()


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
class Subtopology(Struct):
    """A part of the topology that is processed as one."""

    subtopology_id: str = string()
    source_topics: list[str] = array(string)
    repartition_sink_topics: list[str] = array(string)
    state_changelog_topics: list[TopicInfo] = array(TopicInfo)
    repartition_source_topics: list[TopicInfo] = array(TopicInfo)


@struct
class Topology(Struct):
    """What the application processes."""

    epoch: int = int32()
    # None if the group has no topology yet
    subtopologies: list[Subtopology] | None = array(Subtopology, nullable="0+", default=None)


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


@struct
class TaskIds(Struct):
    """Tasks of one part of the topology."""

    subtopology_id: str = string()
    partitions: list[int] = array(int32)


@struct
class Assignment(Struct):
    """Tasks of a member."""

    active_tasks: list[TaskIds] = array(TaskIds)
    standby_tasks: list[TaskIds] = array(TaskIds)
    warmup_tasks: list[TaskIds] = array(TaskIds)


@struct
class Member(Struct):
    """A member."""

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
    assignment: Assignment = struct_(Assignment)  # what it runs now
    target_assignment: Assignment = struct_(Assignment)  # what it shall run
    is_classic: bool = bool_()


@struct
class DescribedGroup(Struct):
    """A group's state, topology and members."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    topology: Topology | None = struct_(Topology, nullable="0+", default=None)
    members: list[Member] = array(Member)
    # a bit for each AclOperation; the default says they were not asked for
    authorized_operations: int = int32(default=-2147483648)


@message(key=89, versions="0", flexible="0+")
class StreamsGroupDescribeResponse(Response):
    """The groups, each with its own error code."""

    throttle_time_ms: int = int32()
    groups: list[DescribedGroup] = array(DescribedGroup)
