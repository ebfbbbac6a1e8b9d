"""OffsetFetch (API key 9)."""

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
    """OffsetFetchRequestTopic."""

    name: str = string(versions="0-7")
    partition_indexes: list[int] = array(int32, versions="0-7")


@struct
class OffsetFetchRequestTopics(Struct):
    """OffsetFetchRequestTopics."""

    name: str = string(versions="8-9", ignorable=True)
    topic_id: UUID = uuid_(versions="10+", ignorable=True)
    partition_indexes: list[int] = array(int32, versions="8+")


@struct
class OffsetFetchRequestGroup(Struct):
    """OffsetFetchRequestGroup."""

    group_id: str = string(versions="8+")
    member_id: str | None = string(versions="9+", nullable="9+", default=None, ignorable=True)
    member_epoch: int = int32(versions="9+", default=-1, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None = array(OffsetFetchRequestTopics, versions="8+", nullable="8+")


@message(key=9, versions="0-10", flexible="6+")
class OffsetFetchRequest(Request["OffsetFetchResponse"]):
    """OffsetFetchRequest."""

    group_id: str = string(versions="0-7")
    topics: list[OffsetFetchRequestTopic] | None = array(OffsetFetchRequestTopic, versions="0-7", nullable="2-7")
    groups: list[OffsetFetchRequestGroup] = array(OffsetFetchRequestGroup, versions="8+")
    require_stable: bool = bool_(versions="7+")


@struct
class OffsetFetchResponsePartition(Struct):
    """OffsetFetchResponsePartition."""

    partition_index: int = int32(versions="0-7")
    committed_offset: int = int64(versions="0-7")
    committed_leader_epoch: int = int32(versions="5-7", default=-1, ignorable=True)
    metadata: str | None = string(versions="0-7", nullable="0-7")
    error_code: int = int16(versions="0-7")


@struct
class OffsetFetchResponseTopic(Struct):
    """OffsetFetchResponseTopic."""

    name: str = string(versions="0-7")
    partitions: list[OffsetFetchResponsePartition] = array(OffsetFetchResponsePartition, versions="0-7")


@struct
class OffsetFetchResponsePartitions(Struct):
    """OffsetFetchResponsePartitions."""

    partition_index: int = int32(versions="8+")
    committed_offset: int = int64(versions="8+")
    committed_leader_epoch: int = int32(versions="8+", default=-1, ignorable=True)
    metadata: str | None = string(versions="8+", nullable="8+")
    error_code: int = int16(versions="8+")


@struct
class OffsetFetchResponseTopics(Struct):
    """OffsetFetchResponseTopics."""

    name: str = string(versions="8-9", ignorable=True)
    topic_id: UUID = uuid_(versions="10+", ignorable=True)
    partitions: list[OffsetFetchResponsePartitions] = array(OffsetFetchResponsePartitions, versions="8+")


@struct
class OffsetFetchResponseGroup(Struct):
    """OffsetFetchResponseGroup."""

    group_id: str = string(versions="8+")
    topics: list[OffsetFetchResponseTopics] = array(OffsetFetchResponseTopics, versions="8+")
    error_code: int = int16(versions="8+")


@message(key=9, versions="0-10", flexible="6+")
class OffsetFetchResponse(Response):
    """OffsetFetchResponse."""

    throttle_time_ms: int = int32(versions="3+", ignorable=True)
    topics: list[OffsetFetchResponseTopic] = array(OffsetFetchResponseTopic, versions="0-7")
    error_code: int = int16(versions="2-7", ignorable=True)
    groups: list[OffsetFetchResponseGroup] = array(OffsetFetchResponseGroup, versions="8+")
