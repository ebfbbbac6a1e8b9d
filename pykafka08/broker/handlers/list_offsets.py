"""ListOffsets: offsets by time, and the ends of a log.

v0 answers a list of segment bases (see ``PartitionLog.offsets_before``); v1 and later the first record at or after a
time, which for readers of committed records (v2) lies before the last stable offset.  Times below zero are questions:
-1 the end, -2 the start, -3 the record with the greatest time (v7), -4 the local start (v8), -5 the end of tiered
storage (v9), -6 its start (v11).
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

READ_COMMITTED = 1
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL = -1, -2, -3, -4


@handles(ListOffsetsRequest)
def list_offsets(call: Call, request: ListOffsetsRequest) -> Reply:
    is_committed = request.isolation_level == READ_COMMITTED
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=asked.name,
                partitions=[_partition(call, asked.name, each, is_committed=is_committed) for each in asked.partitions],
            )
            for asked in request.topics
        ]
    )


def _partition(
    call: Call, name: str, asked: ListOffsetsPartition, *, is_committed: bool
) -> ListOffsetsPartitionResponse:
    partition, code = call.led_partition(
        call.cluster.topics.find(name), name, asked.partition_index, asked.current_leader_epoch
    )
    answer = ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=code)
    if partition is None:
        return answer
    if call.version == 0:
        answer.old_style_offsets = partition.log.offsets_before(asked.timestamp, asked.max_num_offsets)
        return answer
    found = _find(partition, asked.timestamp, partition.log.stable_offset if is_committed else partition.log.end_offset)
    answer.offset, answer.timestamp = found.offset, found.timestamp_ms
    if call.version >= 4:
        answer.leader_epoch = found.leader_epoch
    return answer


def _find(partition: Partition, timestamp: int, end: int) -> TimedOffset:
    log = partition.log
    if timestamp == LATEST:
        return TimedOffset(end, -1, partition.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return TimedOffset(log.start_offset, -1, partition.leader_epoch)
    found = NO_OFFSET
    if timestamp == MAX_TIMESTAMP:
        found = log.offset_of_max_time()
    elif timestamp >= 0:
        found = log.offset_for_time(timestamp)
    return found if found.offset < end else NO_OFFSET
