"""Nodes under ``/admin``: what the controller is asked to do.  It deletes each when it is done.

Kafka's writers: AdminUtils, ReassignPartitionsCommand, PreferredReplicaLeaderElectionCommand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pykafka08.errors import MalformedNodeError
from pykafka08.zookeeper.nodes.document import JsonNode, JsonObject, Key, Node, json_bytes, json_object, nested
from pykafka08.zookeeper.nodes.shapes import each, integer, string

__all__ = ["DeletedTopics", "PartitionName", "PartitionReassignment", "PreferredElection", "Reassignment"]


@dataclass(frozen=True, kw_only=True)
class PartitionName(JsonObject):
    """A partition, as lists of them name it."""

    KEYS: ClassVar[tuple[Key, ...]] = (Key("topic", "topic", string), Key("partition", "partition", integer))

    topic: str
    partition: int


@dataclass(frozen=True, kw_only=True)
class PartitionReassignment(PartitionName):
    """A partition and the brokers that shall have it, the preferred one first."""

    KEYS: ClassVar[tuple[Key, ...]] = (*PartitionName.KEYS, Key("replicas", "replicas", each(integer)))

    replicas: Sequence[int]


@dataclass(frozen=True, kw_only=True)
class Reassignment(JsonNode):
    """The partitions that move."""

    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("version", "version", integer, False),
        Key("partitions", "partitions", each(nested(PartitionReassignment))),
    )

    partitions: Sequence[PartitionReassignment]


@dataclass(frozen=True, kw_only=True)
class PreferredElection(JsonNode):
    """The partitions whose first replica shall lead again."""

    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("version", "version", integer, False),
        Key("partitions", "partitions", each(nested(PartitionName))),
    )

    partitions: Sequence[PartitionName]


@dataclass(frozen=True)
class DeletedTopics(Node):
    """The parent of the topics to delete: empty in every release.  A draft had their names in it, which is read."""

    topics: Sequence[str] = ()
    data: bytes = b""

    @classmethod
    def decode(cls, data: bytes, path: str) -> DeletedTopics:
        if not data.lstrip().startswith(b"{"):
            return cls(data=data)
        topics = json_object(data, path).get("topics", [])
        try:
            return cls(each(string).read(topics), data)
        except ValueError as why:
            raise MalformedNodeError(path, f"the key 'topics' {why}") from None

    def encode(self) -> bytes:
        return self.data or (json_bytes({"version": 1, "topics": list(self.topics)}) if self.topics else b"")
