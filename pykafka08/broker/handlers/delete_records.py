"""DeleteRecords: moves the start of partitions' logs; -1 means their end.  Source: KIP-107."""

from __future__ import annotations

from pykafka08.broker.call import Call, Reply
from pykafka08.broker.handlers import handles
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

__all__ = ["delete_records"]

TO_THE_END = -1


@handles(DeleteRecordsRequest)
def delete_records(call: Call, request: DeleteRecordsRequest) -> Reply:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=asked.name, partitions=[_delete(call, asked.name, each) for each in asked.partitions]
            )
            for asked in request.topics
        ]
    )


def _delete(call: Call, name: str, asked: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    partition, code = call.led_partition(call.cluster.topics.find(name), name, asked.partition_index)
    if partition is not None:
        log = partition.log
        offset = log.end_offset if asked.offset == TO_THE_END else asked.offset
        if log.start_offset <= offset <= log.end_offset:
            log.trim(offset)
            partition.changed()
        elif offset > log.end_offset or offset < 0:
            code = ErrorCode.OFFSET_OUT_OF_RANGE
    return DeleteRecordsPartitionResult(
        partition_index=asked.partition_index,
        low_watermark=partition.log.start_offset if partition is not None and not code else -1,
        error_code=code,
    )
