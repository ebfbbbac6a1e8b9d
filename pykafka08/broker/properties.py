"""Static broker properties, as in ``server.properties``."""

from __future__ import annotations

from collections.abc import Mapping

from pykafka08.broker.authorizer import AUTHORIZER_PROPERTIES
from pykafka08.broker.broker_configs import broker_keys
from pykafka08.broker.cluster_state import Node
from pykafka08.broker.config_keys import value_fault
from pykafka08.broker.personality import Personality
from pykafka08.errors import ConfigError

__all__ = ["StaticProperties", "node_properties"]


ARGUMENTS = {
    "advertised.listeners": "set advertised_host (--advertised-host)",
    "broker.id": "brokers are numbered from 0",
    "broker.rack": "set racks",
    "controller.quorum.voters": "every broker is a controller",
    "listener.security.protocol.map": "set listeners (--listener)",
    "listeners": "set listeners, host and port (--listener, --host, --port)",
    "log.dir": "set log_dir (--log-dir)",
    "log.dirs": "set log_dir (--log-dir)",
    "node.id": "brokers are numbered from 0",
    "process.roles": "every broker is a controller",
    "delegation.token.secret.key": "delegation tokens are refused",
    "sasl.enabled.mechanisms": "set mechanisms",
    "ssl.client.auth": "set client_auth (--client-auth)",
    "ssl.keystore.location": "set ssl_certfile (--ssl-certfile)",
    "ssl.truststore.location": "set ssl_cafile (--ssl-cafile)",
    "zookeeper.connect": "set zookeeper (--zookeeper-port)",
}
"""Properties that the cluster's arguments stand for, and which."""


class StaticProperties:
    """Given properties, which override those of the cluster's arguments; ConfigError for an invalid one."""

    def __init__(self, given: Mapping[str, str], personality: Personality, arguments: Mapping[str, int | bool]) -> None:
        keys = broker_keys(personality)
        if not isinstance(given, Mapping):
            raise ConfigError(f"properties={given!r:.100} is not a mapping of names to texts")
        for name, value in given.items():
            if name in AUTHORIZER_PROPERTIES and isinstance(value, str):
                continue
            key = keys.get(name) if isinstance(name, str) else None
            if key is None:
                raise ConfigError(f"properties: Kafka {personality.release} has no broker property {name!r:.100}")
            if name in ARGUMENTS:
                raise ConfigError(f"properties: {name} has no effect here; {ARGUMENTS[name]}")
            fault = value_fault(key, value) if isinstance(value, str) else f"{name}={value!r:.100} is not a text"
            if fault is not None:
                raise ConfigError(f"properties: {fault}")
        self.given = dict(given)
        """The properties as they were given, those of the authorizer included."""
        self._arguments = {name: str(value).lower() for name, value in arguments.items()}
        known = {name: value for name, value in self._arguments.items() if name in keys}
        self.values = {**known, **{name: given[name] for name in given if name not in AUTHORIZER_PROPERTIES}}
        """Properties in DescribeConfigs answers, without arguments for which the release has no property."""

    def number(self, name: str) -> int:
        return int(self.values.get(name, self._arguments[name]))

    def flag(self, name: str) -> bool:
        return self.values.get(name, self._arguments[name]).strip().lower() == "true"


def node_properties(personality: Personality, node: Node) -> dict[str, str]:
    """The properties that differ between brokers."""
    id_name = "broker.id" if personality.has_zookeeper else "node.id"
    endpoints = node.endpoints.values()
    properties = {id_name: str(node.node_id), "listeners": ",".join(each.bind_url for each in endpoints)}
    if any(each.host != each.bind_host for each in endpoints):
        properties["advertised.listeners"] = ",".join(each.url for each in endpoints)
    if any(each.listener != each.protocol for each in endpoints):
        protocols = ",".join(f"{each.listener}:{each.protocol}" for each in endpoints)
        properties["listener.security.protocol.map"] = protocols
    if not personality.has_zookeeper:
        properties["process.roles"] = "broker,controller"
    if node.rack is not None:
        properties["broker.rack"] = node.rack
    return properties
