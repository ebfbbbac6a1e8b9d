"""Nodes of the cluster as a whole: controller, cluster id, producer ids, features, the migration to KRaft.

Kafka's writers: KafkaController, ProducerIdManager, ZkData.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from pykafka08.errors import MalformedNodeError
from pykafka08.zookeeper.nodes.document import JsonNode, Key, NumberNode, json_value
from pykafka08.zookeeper.nodes.shapes import integer, long, object_, scalar, string

__all__ = ["ClusterId", "Controller", "ControllerEpoch", "Features", "Migration", "ProducerIdBlock"]


@dataclass(frozen=True, kw_only=True)
class Controller(JsonNode):
    """The broker that is the controller.  Version 0 stands for the bare number that was written before 0.8."""

    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("version", "version", integer, False),
        Key("brokerid", "broker_id", integer),
        Key("timestamp", "timestamp", scalar, False),
        Key("kraftControllerEpoch", "kraft_controller_epoch", integer, False),
    )

    broker_id: int
    timestamp: str | int | None = None
    kraft_controller_epoch: int | None = None
    """From 3.4 on; -1 while a broker in ZooKeeper mode has the part."""

    @classmethod
    def decode(cls, data: bytes, path: str) -> Controller:
        document = json_value(data, path)
        if isinstance(document, int):
            document = {"version": 0, "brokerid": document}
        if not isinstance(document, dict):
            raise MalformedNodeError(path, "its data is neither a JSON object nor a broker id")
        return cls._decode_object(document, path)

    def encode(self) -> bytes:
        return str(self.broker_id).encode() if self.version == 0 else super().encode()


class ControllerEpoch(NumberNode):
    """How many controllers there have been."""


@dataclass(frozen=True, kw_only=True)
class ClusterId(JsonNode):
    """The id that brokers of 0.10.1 and later tell clients.  ``version`` is a string in this node alone."""

    KEYS: ClassVar[tuple[Key, ...]] = (Key("version", "version", scalar, False), Key("id", "cluster_id", string))

    version: str | int = "1"  # type: ignore[assignment]
    cluster_id: str


@dataclass(frozen=True, kw_only=True)
class ProducerIdBlock(JsonNode):
    """The producer ids that a broker took last, both ends included, as decimal strings; all None before the first."""

    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("version", "version", integer, False),
        Key("broker", "broker_id", integer),
        Key("block_start", "block_start", string),
        Key("block_end", "block_end", string),
    )

    broker_id: int | None = None
    block_start: str | None = None
    block_end: str | None = None

    @classmethod
    def decode(cls, data: bytes, path: str) -> ProducerIdBlock:
        return super().decode(data, path) if data else cls()

    def encode(self) -> bytes:
        return b"" if self.broker_id is None else super().encode()


@dataclass(frozen=True, kw_only=True)
class Features(JsonNode):
    """The finalized features (KIP-584); ``features`` maps names to levels, whose form depends on the version."""

    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("version", "version", integer, False),
        Key("features", "features", object_),
        Key("status", "status", integer),
    )

    features: Mapping[str, object] = field(default_factory=dict)
    status: int


@dataclass(frozen=True, kw_only=True)
class Migration(JsonNode):
    """How far the migration to KRaft is (KIP-866)."""

    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("version", "version", integer, False),
        Key("kraft_controller_id", "kraft_controller_id", integer),
        Key("kraft_controller_epoch", "kraft_controller_epoch", integer),
        Key("kraft_metadata_offset", "kraft_metadata_offset", long),
        Key("kraft_metadata_epoch", "kraft_metadata_epoch", integer),
    )

    version: int = 0
    kraft_controller_id: int
    kraft_controller_epoch: int
    kraft_metadata_offset: int
    kraft_metadata_epoch: int

    @property
    def has_begun(self) -> bool:
        """Whether a KRaft controller has taken over: what is written to ZooKeeper then is lost, or does harm."""
        return self.kraft_controller_id >= 0
