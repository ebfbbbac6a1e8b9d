"""AlterReplicaLogDirs (API key 34)."""

from __future__ import annotations

from pykafka08.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    int16,
    int32,
    message,
    string,
    struct,
)

__all__ = [
    "AlterReplicaLogDir",
    "AlterReplicaLogDirPartitionResult",
    "AlterReplicaLogDirTopic",
    "AlterReplicaLogDirTopicResult",
    "AlterReplicaLogDirsRequest",
    "AlterReplicaLogDirsResponse",
]


@struct
class AlterReplicaLogDirTopic(Struct):
    """AlterReplicaLogDirTopic."""

    name: str = string()
    partitions: list[int] = array(int32)


@struct
class AlterReplicaLogDir(Struct):
    """AlterReplicaLogDir."""

    path: str = string()
    topics: list[AlterReplicaLogDirTopic] = array(AlterReplicaLogDirTopic)


@message(key=34, versions="0-2", flexible="2+")
class AlterReplicaLogDirsRequest(Request["AlterReplicaLogDirsResponse"]):
    """AlterReplicaLogDirsRequest."""

    dirs: list[AlterReplicaLogDir] = array(AlterReplicaLogDir)


@struct
class AlterReplicaLogDirPartitionResult(Struct):
    """AlterReplicaLogDirPartitionResult."""

    partition_index: int = int32()
    error_code: int = int16()


@struct
class AlterReplicaLogDirTopicResult(Struct):
    """AlterReplicaLogDirTopicResult."""

    topic_name: str = string()
    partitions: list[AlterReplicaLogDirPartitionResult] = array(AlterReplicaLogDirPartitionResult)


@message(key=34, versions="0-2", flexible="2+")
class AlterReplicaLogDirsResponse(Response):
    """AlterReplicaLogDirsResponse."""

    throttle_time_ms: int = int32()
    results: list[AlterReplicaLogDirTopicResult] = array(AlterReplicaLogDirTopicResult)
