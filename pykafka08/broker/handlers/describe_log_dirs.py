"""DescribeLogDirs: sizes of the partitions that this broker has a replica of.  Source: KIP-113, KIP-827.

The one directory is named by the broker property ``log.dirs``; the size of its volume is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator

from pykafka08.acl_operations import AclResourceType
from pykafka08.broker.call import Call, Reply
from pykafka08.broker.handlers import handles
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

__all__ = ["describe_log_dirs"]

ERROR_VERSION = 3


@handles(DescribeLogDirsRequest)
def describe_log_dirs(call: Call, request: DescribeLogDirsRequest) -> Reply:
    denied = call.denied(AclResourceType.CLUSTER)
    if denied:
        return DescribeLogDirsResponse(error_code=denied if call.version >= ERROR_VERSION else ErrorCode.NONE)
    code = call.scripted_error()
    if code and call.version >= ERROR_VERSION:
        return DescribeLogDirsResponse(error_code=code)
    configs, node_id = call.cluster.configs, str(call.node.node_id)
    directory = configs.broker_value("log.dirs", node_id) or configs.broker_value("log.dir", node_id) or "memory"
    wanted = None if request.topics is None else {each.topic: set(each.partitions) for each in request.topics}
    return DescribeLogDirsResponse(
        results=[DescribeLogDirsResult(error_code=code, log_dir=directory, topics=list(_topics(call, wanted)))]
    )


def _topics(call: Call, wanted: dict[str, set[int]] | None) -> Iterator[DescribeLogDirsTopic]:
    """``wanted``: the partitions asked for, by topic; None for all."""
    for topic in call.cluster.topics:
        partitions = [
            DescribeLogDirsPartition(
                partition_index=each.index,
                partition_size=each.log.bytes_from(each.log.start_offset, 1 << 62),
                offset_lag=0,
            )
            for each in topic.partitions
            if call.node.node_id in each.replicas
            if wanted is None or each.index in wanted.get(topic.name, ())
        ]
        if partitions:
            yield DescribeLogDirsTopic(name=topic.name, partitions=partitions)
