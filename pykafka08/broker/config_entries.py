"""Descriptions of configs: every config of a resource with its value in effect, its source and its synonyms.

Source: DescribeConfigs answers of real brokers; KIP-226.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pykafka08.broker.broker_configs import broker_keys
from pykafka08.broker.config_keys import ConfigKey, ConfigSource, ConfigType
from pykafka08.broker.configs import ALL_BROKERS, Configs, Layer
from pykafka08.broker.group_configs import client_metrics_keys, group_keys
from pykafka08.broker.topic_configs import topic_keys

__all__ = [
    "ConfigEntry",
    "all_brokers_entries",
    "broker_entries",
    "client_metrics_entries",
    "group_entries",
    "topic_entries",
]

SINCE_CLIENT_METRICS_DEFAULTS = (4, 1)
SINCE_GROUP_SYNONYMS = (4, 3)


class ConfigEntry(NamedTuple):
    """One config; ``value`` is None if it is not set or is a password."""

    name: str
    value: str | None
    source: ConfigSource
    type: ConfigType
    synonyms: list[Layer]
    is_read_only: bool = False
    is_sensitive: bool = False


def topic_entries(configs: Configs, own: Mapping[str, str], node_id: str) -> Iterator[ConfigEntry]:
    """The configs of a topic, whose own configs are ``own``, in an answer of broker ``node_id``."""
    return _owned(configs, topic_keys(configs.personality), own, ConfigSource.TOPIC, node_id)


def group_entries(configs: Configs, group_id: str, node_id: str) -> Iterator[ConfigEntry]:
    """The configs of a group; before 4.3 the answer does not name the broker config of a default."""
    own = configs.groups.get(group_id, {})
    for entry in _owned(configs, group_keys(configs.personality), own, ConfigSource.GROUP, node_id):
        layers = [layer for layer in entry.synonyms if layer.source is ConfigSource.GROUP]
        if configs.personality >= SINCE_GROUP_SYNONYMS and len(entry.synonyms) > len(layers):
            yield entry
            continue
        value, _ = configs.inherited(group_keys(configs.personality)[entry.name], node_id)
        source = entry.source if layers else ConfigSource.DEFAULT
        yield entry._replace(source=source, synonyms=[*layers, Layer(entry.name, value, ConfigSource.DEFAULT)])


def client_metrics_entries(configs: Configs, name: str) -> Iterator[ConfigEntry]:
    """The configs of a subscription; before 4.1 a missing subscription has none."""
    own = configs.client_metrics.get(name)
    keys = client_metrics_keys() if own is not None or configs.personality >= SINCE_CLIENT_METRICS_DEFAULTS else {}
    return _owned(configs, keys, own or {}, ConfigSource.CLIENT_METRICS, ALL_BROKERS)


def _owned(
    configs: Configs, keys: Mapping[str, ConfigKey], own: Mapping[str, str], own_source: ConfigSource, node_id: str
) -> Iterator[ConfigEntry]:
    for name, key in keys.items():
        layers = configs.broker_layers(key.fallbacks[0][0], node_id) if key.fallbacks else []
        value, source = configs.inherited(key, node_id)
        if name in own:
            value, source = own[name], own_source
            layers = [Layer(name, value, source), *layers]
        yield ConfigEntry(name, value, source, key.type, layers)


def broker_entries(configs: Configs, node_id: str) -> Iterator[ConfigEntry]:
    """The configs of a broker: those of its release, and unknown configs that were set."""
    keys = broker_keys(configs.personality)
    extra = {**configs.brokers.get(ALL_BROKERS, {}), **configs.brokers.get(node_id, {})}
    for name in (*keys, *(name for name in extra if name not in keys)):
        key = keys.get(name)
        layers = configs.broker_layers(name, node_id)
        # The value of an unknown config may be a secret.
        is_sensitive = key is None or key.type is ConfigType.PASSWORD
        yield ConfigEntry(
            name,
            layers[0].value if layers and not is_sensitive else None,
            layers[0].source if layers else ConfigSource.DEFAULT,
            ConfigType.UNKNOWN if key is None else key.type,
            [layer._replace(value="") if is_sensitive else layer for layer in layers],
            is_read_only=key is not None and key.is_read_only,
            is_sensitive=is_sensitive,
        )


def all_brokers_entries(configs: Configs) -> Iterator[ConfigEntry]:
    """The dynamic configs of all brokers."""
    for entry in broker_entries(configs, ALL_BROKERS):
        if entry.source is ConfigSource.ALL_BROKERS:
            yield entry._replace(synonyms=entry.synonyms[:1])
