"""WriteTxnMarkers: ends a hanging transaction in a partition.  Source: KIP-98, KIP-664."""

from __future__ import annotations

from pykafka08.acl_operations import AclResourceType
from pykafka08.broker.append import append_marker
from pykafka08.broker.call import Call, Reply
from pykafka08.broker.handlers import handles
from pykafka08.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

__all__ = ["write_txn_markers"]


@handles(WriteTxnMarkersRequest)
def write_txn_markers(call: Call, request: WriteTxnMarkersRequest) -> Reply:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[_written(call, marker, topic.name, index) for index in topic.partition_indexes],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


def _written(call: Call, marker: WritableTxnMarker, name: str, index: int) -> WritableTxnMarkerPartitionResult:
    partition, code = None, call.denied(AclResourceType.CLUSTER)
    if not code:
        partition, code = call.led_partition(call.cluster.topics.find(name), name, index)
    if partition is not None:
        append_marker(
            partition,
            marker.producer_id,
            marker.producer_epoch,
            is_commit=marker.transaction_result,
            now_ms=call.cluster.now_ms(),
        )
    return WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
