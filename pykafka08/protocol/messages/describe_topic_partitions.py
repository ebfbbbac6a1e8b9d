"""DescribeTopicPartitions: topics in pages, with replicas that may become leaders (API key 75).

KRaft only.  The cursor of a response starts the next request.

Versions, the first release with each, and what is new in it:

     0  3.8     (KIP-966)
"""

from __future__ import annotations

from uuid import UUID

from pykafka08.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    bool_,
    int16,
    int32,
    message,
    string,
    struct,
    struct_,
    uuid_,
)

__all__ = [
    "Cursor",
    "DescribeTopicPartitionsRequest",
    "DescribeTopicPartitionsResponse",
    "DescribeTopicPartitionsResponsePartition",
    "DescribeTopicPartitionsResponseTopic",
    "TopicRequest",
]


@struct
class TopicRequest(Struct):
    """A topic by name."""

    name: str = string()


@struct
class Cursor(Struct):
    """Where a page begins."""

    topic_name: str = string()
    partition_index: int = int32()


@message(key=75, versions="0", flexible="0+")
class DescribeTopicPartitionsRequest(Request["DescribeTopicPartitionsResponse"]):
    """Which topics, and where to begin."""

    topics: list[TopicRequest] = array(TopicRequest)
    response_partition_limit: int = int32(default=2000)  # partitions in one response
    cursor: Cursor | None = struct_(Cursor, nullable="0+", default=None)  # None begins at the first


@struct
class DescribeTopicPartitionsResponsePartition(Struct):
    """A partition and its replicas."""

    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()  # -1 for none
    leader_epoch: int = int32(default=-1, ignorable=True)
    replica_nodes: list[int] = array(int32)
    isr_nodes: list[int] = array(int32)
    # not in sync, but with all committed records
    eligible_leader_replicas: list[int] | None = array(int32, nullable="0+", default=None)
    last_known_elr: list[int] | None = array(int32, nullable="0+", default=None)
    offline_replicas: list[int] = array(int32, ignorable=True)


@struct
class DescribeTopicPartitionsResponseTopic(Struct):
    """A topic and its partitions."""

    error_code: int = int16()
    name: str | None = string(nullable="0+")
    topic_id: UUID = uuid_(ignorable=True)
    is_internal: bool = bool_(ignorable=True)
    partitions: list[DescribeTopicPartitionsResponsePartition] = array(DescribeTopicPartitionsResponsePartition)
    # a bit for each AclOperation; the default says they were not asked for
    topic_authorized_operations: int = int32(default=-2147483648)


@message(key=75, versions="0", flexible="0+")
class DescribeTopicPartitionsResponse(Response):
    """A page."""

    throttle_time_ms: int = int32(ignorable=True)
    topics: list[DescribeTopicPartitionsResponseTopic] = array(DescribeTopicPartitionsResponseTopic)
    next_cursor: Cursor | None = struct_(Cursor, nullable="0+", default=None)  # None after the last page
