"""ListOffsets: offsets by time, and the ends of a log.

v0 answers a list of segment bases (see ``PartitionLog.offsets_before``); v1 and later the first record at or after a
time.  Times below zero are questions: -1 the end, -2 the start, -3 the record with the greatest time (v7), -4 the local
start (v8), -5 the end of tiered storage (v9), -6 its start (v11).
"""

from __future__ import annotations

from pykafka08.broker.call import Call, Reply
from pykafka08.broker.handlers import handles
from pykafka08.broker.log import NO_OFFSET, TimedOffset
from pykafka08.broker.state import Partition
from pykafka08.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

__all__ = ["list_offsets"]

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL = -1, -2, -3, -4


@handles(ListOffsetsRequest)
def list_offsets(call: Call, request: ListOffsetsRequest) -> Reply:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=asked.name, partitions=[_partition(call, asked.name, each) for each in asked.partitions]
            )
            for asked in request.topics
        ]
    )


def _partition(call: Call, name: str, asked: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
    partition, code = call.led_partition(
        call.cluster.topics.find(name), name, asked.partition_index, asked.current_leader_epoch
    )
    answer = ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=code)
    if partition is None:
        return answer
    if call.version == 0:
        answer.old_style_offsets = partition.log.offsets_before(asked.timestamp, asked.max_num_offsets)
        return answer
    found = _find(partition, asked.timestamp)
    answer.offset, answer.timestamp = found.offset, found.timestamp_ms
    if call.version >= 4:
        answer.leader_epoch = found.leader_epoch
    return answer


def _find(partition: Partition, timestamp: int) -> TimedOffset:
    log = partition.log
    if timestamp == LATEST:
        return TimedOffset(log.end_offset, -1, partition.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return TimedOffset(log.start_offset, -1, partition.leader_epoch)
    if timestamp == MAX_TIMESTAMP:
        return log.offset_of_max_time()
    return log.offset_for_time(timestamp) if timestamp >= 0 else NO_OFFSET
