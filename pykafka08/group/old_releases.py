"""Which 0.8 is that?  Asked only where committed offsets are wanted: two of the three releases close the connection.

    0.8.2    answers FindCoordinator v0, keeps offsets in Kafka (v1)
    0.8.1    closes on it, answers OffsetFetch v0, keeps offsets in ZooKeeper
    0.8.0    closes on both, keeps none

A connection that ends for another reason must not pass for an answer, or offsets would go to the wrong store: each
question is put twice, on connections that have just carried Metadata.
"""

from __future__ import annotations

from typing import Any

import anyio

from pykafka08.cluster.client import Client, Purpose
from pykafka08.errors import TransportError, UnsupportedVersionError
from pykafka08.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka08.protocol.messages.metadata import MetadataRequest
from pykafka08.protocol.messages.offset_fetch import OffsetFetchRequest
from pykafka08.protocol.schema import Request
from pykafka08.protocol.versions import BrokerVersions

__all__ = ["UNCERTAIN", "no_groups_before_0_9", "versions_of_0_8"]

UNCERTAIN = "0.8"
"""What the handshake calls all three."""
TRIES = 2


def no_groups_before_0_9(cause: UnsupportedVersionError) -> UnsupportedVersionError:
    """What a member is told whose broker coordinates no groups."""
    error = UnsupportedVersionError(
        "brokers share partitions among a group's consumers from Kafka 0.9 on, and this one is older: LegacyConsumer, "
        "or --zookeeper of the console consumer, is a member of the groups that ZooKeeper keeps",
        broker=cause.broker,
        api=cause.api,
    )
    error.__cause__ = cause
    return error


async def versions_of_0_8(client: Client, node_id: int, group_id: str, deadline: float) -> BrokerVersions:
    """What that broker serves; UnsupportedVersionError if it keeps no offsets."""
    if await _answers(client, node_id, FindCoordinatorRequest(key=group_id), deadline):
        return BrokerVersions.of_release("0.8.2")
    if await _answers(client, node_id, OffsetFetchRequest(group_id=group_id, topics=[]), deadline):
        return BrokerVersions.of_release("0.8.1")
    raise UnsupportedVersionError("the broker (Kafka 0.8.0) keeps no offsets of groups", api=OffsetFetchRequest.name)


async def _answers(client: Client, node_id: int, question: Request[Any], deadline: float) -> bool:
    for _ in range(TRIES):
        await _request(client, node_id, MetadataRequest(topics=[]), deadline)
        try:
            await _request(client, node_id, question, deadline)
        except TransportError:
            continue
        return True
    return False


async def _request(client: Client, node_id: int, message: Request[Any], deadline: float) -> None:
    left = min(max(0.0, deadline - anyio.current_time()), client.config.request_timeout_ms / 1000)
    await client.request(node_id, message, timeout=left, purpose=Purpose.MEMBERSHIP, version=0)
