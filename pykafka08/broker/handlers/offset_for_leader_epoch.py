"""OffsetForLeaderEpoch: where a leader's epoch ended, to find truncation.  Source: KIP-101, KIP-320."""

from __future__ import annotations

from pykafka08.broker.call import Call, Reply
from pykafka08.broker.handlers import handles
from pykafka08.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

__all__ = ["offset_for_leader_epoch"]


@handles(OffsetForLeaderEpochRequest)
def offset_for_leader_epoch(call: Call, request: OffsetForLeaderEpochRequest) -> Reply:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=asked.topic, partitions=[_end(call, asked.topic, each) for each in asked.partitions]
            )
            for asked in request.topics
        ]
    )


def _end(call: Call, name: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    partition, code = call.led_partition(
        call.cluster.topics.find(name), name, asked.partition, asked.current_leader_epoch
    )
    answer = EpochEndOffset(error_code=code, partition=asked.partition)
    if partition is not None:
        if asked.leader_epoch == partition.leader_epoch:
            answer.leader_epoch, answer.end_offset = asked.leader_epoch, partition.log.end_offset
        else:
            answer.leader_epoch, answer.end_offset = partition.log.epoch_end(asked.leader_epoch)
    return answer
