"""Nodes under ``/config``: settings of topics, clients, users, brokers and addresses, and the notices of their change.

Kafka's writers: AdminUtils, AdminZkClient; its readers: TopicConfigManager (0.8), DynamicConfigManager (0.9 and later).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import ClassVar

from pykafka08.errors import ConfigError, MalformedNodeError
from pykafka08.zookeeper.nodes.document import JsonNode, Key, Node, json_bytes, json_value
from pykafka08.zookeeper.nodes.shapes import integer, string, string_map

__all__ = ["ChangeFormat", "Config", "ConfigChange"]


@dataclass(frozen=True, kw_only=True)
class Config(JsonNode):
    """The settings that differ from the brokers' own; values are always strings."""

    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("version", "version", integer, False),
        Key("config", "config", string_map),
    )

    config: Mapping[str, str] = field(default_factory=dict)


class ChangeFormat(IntEnum):
    """How a notice says whose settings changed; brokers read only the formats that their release knows."""

    TOPIC_NAME = 0
    """A JSON string, the topic: 0.8.1 and 0.8.2.  Kafka from 1.0 on logs an error."""
    TYPE_AND_NAME = 1
    """``entity_type`` and ``entity_name``: 0.9.0 and later."""
    PATH = 2
    """``entity_path``: 0.10.1 and later."""


@dataclass(frozen=True)
class ConfigChange(Node):
    """A notice: the settings at ``entity_path``, such as ``topics/t`` or ``users/u/clients/c``, are new."""

    entity_path: str
    format: ChangeFormat = ChangeFormat.PATH
    unknown: Mapping[str, object] = field(default_factory=dict, repr=False)
    version: int | None = None
    """As it was read, if it is higher than the formats known here."""

    @classmethod
    def decode(cls, data: bytes, path: str) -> ConfigChange:
        document = json_value(data, path)
        if isinstance(document, str):
            return cls(f"topics/{document}", ChangeFormat.TOPIC_NAME)
        if not isinstance(document, dict):
            raise MalformedNodeError(path, "its data is neither a JSON object nor a topic's name")
        try:
            return cls._of_object(document)
        except ValueError as why:
            raise MalformedNodeError(path, f"as the notice of a change {why}") from None

    @classmethod
    def _of_object(cls, document: dict[str, object]) -> ConfigChange:
        rest = dict(document)
        version = integer.read(rest.pop("version", 1))
        if "entity_path" in rest:
            return cls(string.read(rest.pop("entity_path")), ChangeFormat.PATH, rest, version if version > 2 else None)
        if "entity_type" not in rest or "entity_name" not in rest:
            raise ValueError("it has neither the key 'entity_path' nor 'entity_type' and 'entity_name'")
        entity_type, name = string.read(rest.pop("entity_type")), string.read(rest.pop("entity_name"))
        return cls(f"{entity_type}/{name}", ChangeFormat.TYPE_AND_NAME, rest, version if version > 1 else None)

    def encode(self) -> bytes:
        kind, _, name = self.entity_path.partition("/")
        if self.format is ChangeFormat.PATH:
            return json_bytes({"version": self.version or 2, "entity_path": self.entity_path, **self.unknown})
        if not name or "/" in name:
            raise ConfigError(f"the brokers' releases know no settings of {self.entity_path!r}")
        if self.format is ChangeFormat.TYPE_AND_NAME:
            words = {"version": self.version or 1, "entity_type": kind, "entity_name": name}
            return json_bytes({**words, **self.unknown})
        if kind != "topics":
            raise ConfigError(f"brokers of 0.8 have settings of topics only, not of {self.entity_path!r}")
        return json_bytes(name)
