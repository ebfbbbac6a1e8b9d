"""Listeners of the brokers: their names, security protocols and addresses (KIP-103)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pykafka08.broker.checks import check_hosts
from pykafka08.broker.personality import Personality
from pykafka08.broker.security.protection import PROTOCOLS
from pykafka08.errors import ConfigError

__all__ = ["Endpoint", "advertised_hosts", "endpoints_of", "listener_protocols"]

NAME = re.compile(r"[A-Z][A-Z0-9_]{0,99}")
RESERVED = "CONTROLLER"


class Endpoint:
    """One listener of one broker; ``host`` and ``port`` are the address that clients are given."""

    def __init__(self, listener: str, protocol: str, host: str, port: int, *, bind_host: str | None = None) -> None:
        self.listener = listener
        self.protocol = protocol
        self.host = host
        self.port = port
        self.bind_host = bind_host or host

    @property
    def address(self) -> str:
        return _address(self.host, self.port)

    @property
    def url(self) -> str:
        """As in ``advertised.listeners``."""
        return f"{self.listener}://{self.address}"

    @property
    def bind_url(self) -> str:
        """As in ``listeners``."""
        return f"{self.listener}://{_address(self.bind_host, self.port)}"


def listener_protocols(security: str, listeners: Mapping[str, str] | None, personality: Personality) -> dict[str, str]:
    """Security protocols by names of listeners, the usual one first."""
    if listeners is None:
        protocol = _protocol("security", security)
        return {protocol: protocol}
    if not isinstance(listeners, Mapping) or not listeners:
        raise ConfigError(f"listeners={listeners!r:.100} is not a mapping of listeners' names to security protocols")
    if security != "PLAINTEXT":
        raise ConfigError(f"security={security!r:.100} and listeners exclude each other")
    found = {}
    for name, protocol in listeners.items():
        if not isinstance(name, str) or not NAME.fullmatch(name) or name == RESERVED:
            raise ConfigError(f"listeners: {name!r:.100} is not a listener's name, such as INTERNAL")
        found[name] = _protocol(f"listeners: {name}", protocol)
        if found[name] != name and personality < (0, 10, 2):
            raise ConfigError(f"listeners: before Kafka 0.10.2 the name of a {found[name]} listener is {found[name]}")
    if len(found) > 1 and personality < (0, 9):
        raise ConfigError(f"listeners: Kafka {personality.release} has one listener")
    return found


def advertised_hosts(
    host: str, advertised_host: str | Mapping[str, str] | None, listeners: Mapping[str, str]
) -> dict[str, str]:
    """Hosts that clients are given, by listener."""
    given = advertised_host if isinstance(advertised_host, Mapping) else dict.fromkeys(listeners, advertised_host)
    for name in given:
        if name not in listeners:
            raise ConfigError(f"advertised_host: there is no listener {name!r:.100}")
    for name in listeners:
        check_hosts(host, given.get(name))
    return {name: given.get(name) or host for name in listeners}


def endpoints_of(
    node_id: int, protocols: Mapping[str, str], hosts: Mapping[str, str], *, host: str, port: int, brokers: int
) -> list[Endpoint]:
    """One endpoint for each listener of a broker.

    ``protocols`` and ``hosts`` map each listener to its protocol and its advertised host.  ``port`` is that of broker 0
    in the first listener; the other brokers have the next ports, and then the next listener begins.  0 takes free ones.
    """
    return [
        Endpoint(name, protocol, hosts[name], port + number * brokers + node_id if port else 0, bind_host=host)
        for number, (name, protocol) in enumerate(protocols.items())
    ]


def _protocol(name: str, value: object) -> str:
    protocol = value.upper() if isinstance(value, str) else ""
    if protocol not in PROTOCOLS:
        raise ConfigError(f"{name}={value!r:.100} is not one of {', '.join(PROTOCOLS)}")
    return protocol


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
