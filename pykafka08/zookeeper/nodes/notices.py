"""Notices that brokers leave for the controller, which deletes them.  Clients never write any.

Kafka's writers: ReplicationUtils, KafkaZkClient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pykafka08.zookeeper.nodes.commands import PartitionName
from pykafka08.zookeeper.nodes.document import JsonNode, Key, nested
from pykafka08.zookeeper.nodes.shapes import each, integer

__all__ = ["IsrChange", "LogDirEvent"]


@dataclass(frozen=True, kw_only=True)
class IsrChange(JsonNode):
    """Partitions whose set of replicas in sync their leader changed."""

    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("version", "version", integer, False),
        Key("partitions", "partitions", each(nested(PartitionName))),
    )

    partitions: Sequence[PartitionName]


@dataclass(frozen=True, kw_only=True)
class LogDirEvent(JsonNode):
    """A broker whose log folder failed (``event`` 1)."""

    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("version", "version", integer, False),
        Key("broker", "broker_id", integer),
        Key("event", "event", integer),
    )

    broker_id: int
    event: int = 1
