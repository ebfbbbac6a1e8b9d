"""OffsetFetch: how far a group has read (API key 9).

Version 0 reads ZooKeeper, later ones Kafka; both look the same on the wire.  A partition without a committed offset
gives -1, in version 0 together with UNKNOWN_TOPIC_OR_PARTITION.  From version 8 on one request asks for several groups.

Versions, the first release with each, and what is new in it:

     0  0.8.1   from ZooKeeper
     1  0.8.2   from Kafka
     2  0.10.2  None for all topics; an error for the whole group (KIP-88)
     3  0.11.0  throttle time (KIP-124)
     4  2.0     the answer comes before the throttling, not after it (KIP-219)
     5  2.1     leader epochs (KIP-320)
     6  2.4     compact forms, tagged fields (KIP-482)
     7  2.5     waits for open transactions on request (KIP-447)
     8  3.0     several groups (KIP-709)
     9  3.7     member epochs of the new group protocol (KIP-848)
    10  4.2     topic ids instead of names (KIP-848)
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
    int64,
    message,
    string,
    struct,
    uuid_,
)

__all__ = [
    "OffsetFetchRequest",
    "OffsetFetchRequestGroup",
    "OffsetFetchRequestTopic",
    "OffsetFetchRequestTopics",
    "OffsetFetchResponse",
    "OffsetFetchResponseGroup",
    "OffsetFetchResponsePartition",
    "OffsetFetchResponsePartitions",
    "OffsetFetchResponseTopic",
    "OffsetFetchResponseTopics",
]


@struct
class OffsetFetchRequestTopic(Struct):
    """Partitions of one topic, up to version 7."""

    name: str = string(versions="0-7")
    partition_indexes: list[int] = array(int32, versions="0-7")


@struct
class OffsetFetchRequestTopics(Struct):
    """Partitions of one topic, from version 8 on."""

    name: str = string(versions="8-9", ignorable=True)  # up to version 9, then topic_id
    topic_id: UUID = uuid_(versions="10+", ignorable=True)
    partition_indexes: list[int] = array(int32, versions="8+")


@struct
class OffsetFetchRequestGroup(Struct):
    """One of the groups, from version 8 on."""

    group_id: str = string(versions="8+")
    member_id: str | None = string(versions="9+", nullable="9+", default=None, ignorable=True)
    member_epoch: int = int32(versions="9+", default=-1, ignorable=True)  # -1 outside of the new group protocol
    # None asks for all
    topics: list[OffsetFetchRequestTopics] | None = array(OffsetFetchRequestTopics, versions="8+", nullable="8+")


@message(key=9, versions="0-10", flexible="6+")
class OffsetFetchRequest(Request["OffsetFetchResponse"]):
    """Which offsets to tell: topics up to version 7, groups from 8 on."""

    group_id: str = string(versions="0-7")
    # None asks for all
    topics: list[OffsetFetchRequestTopic] | None = array(OffsetFetchRequestTopic, versions="0-7", nullable="2-7")
    groups: list[OffsetFetchRequestGroup] = array(OffsetFetchRequestGroup, versions="8+")
    require_stable: bool = bool_(versions="7+")  # UNSTABLE_OFFSET_COMMIT while a transaction is open


@struct
class OffsetFetchResponsePartition(Struct):
    """The position in one partition, up to version 7."""

    partition_index: int = int32(versions="0-7")
    committed_offset: int = int64(versions="0-7")  # -1 for none
    committed_leader_epoch: int = int32(versions="5-7", default=-1, ignorable=True)
    metadata: str | None = string(versions="0-7", nullable="0-7")
    error_code: int = int16(versions="0-7")


@struct
class OffsetFetchResponseTopic(Struct):
    """The positions in one topic, up to version 7."""

    name: str = string(versions="0-7")
    partitions: list[OffsetFetchResponsePartition] = array(OffsetFetchResponsePartition, versions="0-7")


@struct
class OffsetFetchResponsePartitions(Struct):
    """The position in one partition, from version 8 on."""

    partition_index: int = int32(versions="8+")
    committed_offset: int = int64(versions="8+")  # -1 for none
    committed_leader_epoch: int = int32(versions="8+", default=-1, ignorable=True)
    metadata: str | None = string(versions="8+", nullable="8+")
    error_code: int = int16(versions="8+")


@struct
class OffsetFetchResponseTopics(Struct):
    """The positions in one topic, from version 8 on."""

    name: str = string(versions="8-9", ignorable=True)
    topic_id: UUID = uuid_(versions="10+", ignorable=True)
    partitions: list[OffsetFetchResponsePartitions] = array(OffsetFetchResponsePartitions, versions="8+")


@struct
class OffsetFetchResponseGroup(Struct):
    """The positions of one group, from version 8 on."""

    group_id: str = string(versions="8+")
    topics: list[OffsetFetchResponseTopics] = array(OffsetFetchResponseTopics, versions="8+")
    error_code: int = int16(versions="8+")


@message(key=9, versions="0-10", flexible="6+")
class OffsetFetchResponse(Response):
    """Positions by topic and partition, from version 8 on by group."""

    throttle_time_ms: int = int32(versions="3+", ignorable=True)
    topics: list[OffsetFetchResponseTopic] = array(OffsetFetchResponseTopic, versions="0-7")
    error_code: int = int16(versions="2-7", ignorable=True)
    groups: list[OffsetFetchResponseGroup] = array(OffsetFetchResponseGroup, versions="8+")
