"""DescribeProducers: the producer states of a partition.  Source: KIP-664."""

from __future__ import annotations

from pykafka08.broker.call import Call, Reply
from pykafka08.broker.handlers import handles
from pykafka08.broker.log import PartitionLog
from pykafka08.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

__all__ = ["describe_producers"]


@handles(DescribeProducersRequest)
def describe_producers(call: Call, request: DescribeProducersRequest) -> Reply:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name, partitions=[_partition(call, topic.name, index) for index in topic.partition_indexes]
            )
            for topic in request.topics
        ]
    )


def _partition(call: Call, name: str, index: int) -> PartitionResponse:
    partition, code = call.led_partition(call.cluster.topics.find(name), name, index)
    return PartitionResponse(
        partition_index=index,
        error_code=code,
        active_producers=[] if partition is None else _producers(partition.log),
    )


def _producers(log: PartitionLog) -> list[ProducerState]:
    return [
        ProducerState(
            producer_id=producer_id,
            producer_epoch=epoch,
            last_sequence=-1 if last is None else last.last_sequence,
            last_timestamp=-1 if last is None else last.timestamp_ms,
            coordinator_epoch=-1,
            current_txn_start_offset=log.transactions.first_offset(producer_id),
        )
        for producer_id, epoch, last in log.sequences.latest()
    ]
