"""The configs of a running cluster: values of brokers, topics and groups, and the source of each value.

A broker's value is its own dynamic value, else the dynamic value for all brokers, else the static value, else the
default of the release.  A topic's or group's value is its own, else the broker's.  Source: KIP-226.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pykafka08.broker.broker_configs import broker_keys
from pykafka08.broker.config_keys import ConfigKey, ConfigSource
from pykafka08.broker.group_configs import group_keys
from pykafka08.broker.journal import Note, keep_nothing
from pykafka08.broker.personality import Personality
from pykafka08.broker.topic_configs import topic_keys

__all__ = ["ALL_BROKERS", "Configs", "Layer"]

ALL_BROKERS = ""
SINCE_ELIGIBLE_REPLICAS = (4, 1)


class Layer(NamedTuple):
    """One value of a config; the first layer that is set is in effect."""

    name: str
    value: str
    source: ConfigSource


class Configs:
    """Static and dynamic configs, except those of topics, which are in ``Topic``.

    ``static`` has the broker properties of the whole cluster; ``nodes`` those of single brokers.
    """

    def __init__(
        self,
        personality: Personality,
        static: Mapping[str, str] | None = None,
        nodes: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self.personality = personality
        self.static = dict(static or {})
        self.nodes = dict(nodes or {})
        self.brokers: dict[str, dict[str, str]] = {}
        """Dynamic configs by node id; ``ALL_BROKERS`` stands for all brokers."""
        self.groups: dict[str, dict[str, str]] = {}
        self.client_metrics: dict[str, dict[str, str]] = {}
        self.note: Note = keep_nothing
        self._topic_defaults: dict[str, str] = {}
        if personality >= SINCE_ELIGIBLE_REPLICAS:
            self.brokers[ALL_BROKERS] = {"min.insync.replicas": self.static.get("min.insync.replicas", "1")}

    def changed(self) -> None:
        """Note that dynamic configs have changed."""
        self._topic_defaults.clear()
        self.note("configs", self.brokers, self.groups, self.client_metrics)

    # -- brokers

    def broker_layers(self, name: str, node_id: str = ALL_BROKERS) -> list[Layer]:
        """The values of a broker's config, the one in effect first."""
        key = broker_keys(self.personality).get(name)
        values = [
            (self.brokers.get(node_id, {}).get(name) if node_id != ALL_BROKERS else None, ConfigSource.BROKER),
            (self.brokers.get(ALL_BROKERS, {}).get(name), ConfigSource.ALL_BROKERS),
            (self.nodes.get(node_id, {}).get(name, self.static.get(name)), ConfigSource.STATIC),
            (None if key is None else key.default, ConfigSource.DEFAULT),
        ]
        return [Layer(name, value, source) for value, source in values if value is not None]

    def broker_value(self, name: str, node_id: str = ALL_BROKERS) -> str | None:
        """The value in effect, or None."""
        layers = self.broker_layers(name, node_id)
        return layers[0].value if layers else None

    # -- topics and groups

    def topic_value(self, config: Mapping[str, str], name: str) -> str:
        """The value in effect for a topic with the own configs ``config``; "" if the release lacks the config."""
        value = config.get(name)
        if value is None:
            value = self._topic_defaults.get(name)
        if value is None:
            key = topic_keys(self.personality).get(name)
            value = self._topic_defaults[name] = "" if key is None else self.inherited(key)[0]
        return value.strip()

    def topic_number(self, config: Mapping[str, str], name: str) -> int:
        """The value in effect for a topic, of a config of type INT or LONG."""
        return int(self.topic_value(config, name))

    def group_number(self, group_id: str, name: str) -> int | None:
        """The value in effect for a group, of a config of type INT; None if the release lacks the config."""
        key = group_keys(self.personality).get(name)
        if key is None:
            return None
        return int(self.groups.get(group_id, {}).get(name) or self.inherited(key)[0])

    def inherited(self, key: ConfigKey, node_id: str = ALL_BROKERS) -> tuple[str, ConfigSource]:
        """The inherited value of a topic or group, and its source."""
        for name, factor in key.fallbacks:
            layer = next(iter(self.broker_layers(name, node_id)), None)
            if layer is None or layer.source is ConfigSource.DEFAULT:
                continue
            if factor == 1:
                return layer.value, layer.source
            # Brokers give a source for the first name only.
            value = int(layer.value)
            return str(value * factor if value >= 0 else -1), ConfigSource.DEFAULT
        return key.default or "", ConfigSource.DEFAULT
