"""What the brokers of a cluster can do themselves, and which form of notice the oldest of them reads.

A registration tells 0.8 from newer brokers; these are asked.  A broker that cannot be asked counts as able to do
everything if its registration is of 0.10.2 or later, as it may well be.  One that refuses the credentials is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import anyio

from pykafka08.cluster.client import Client
from pykafka08.config import ClientConfig
from pykafka08.errors import AdminRefusedError, KafkaError, SecurityError
from pykafka08.group.old_releases import versions_of_0_8
from pykafka08.protocol.messages import ApiKey
from pykafka08.protocol.releases import RELEASES
from pykafka08.protocol.versions import BrokerVersions
from pykafka08.zookeeper import paths, reading
from pykafka08.zookeeper.bridge import ZooKeeper
from pykafka08.zookeeper.nodes.brokers import Broker
from pykafka08.zookeeper.nodes.cluster import Migration
from pykafka08.zookeeper.nodes.configs import ChangeFormat

__all__ = ["REGISTERS_AS_0_8", "Capabilities", "ask_brokers", "bootstrap_servers", "is_0_8_2", "refuse_under_kraft"]

REGISTERS_AS_0_8 = "0.8.1"
_OF_REGISTRATION = {1: REGISTERS_AS_0_8, 2: "0.9.0", 3: "0.10.0", 4: "0.10.2", 5: "2.7"}
"""The oldest release that registers so and has settings; 0.8.0, which has none, registers as 0.8.1 does."""
_MAY_BE_ANY = 4
"""Brokers of every release from 0.10.2 on may register so."""
_NEWEST = "3.9"


@dataclass(frozen=True)
class Capabilities:
    """What each live broker serves; ``unasked`` has those that are judged by their registration alone."""

    brokers: Mapping[int, Broker]
    versions: Mapping[int, BrokerVersions]
    unasked: frozenset[int] = frozenset()

    @property
    def release(self) -> str | None:
        """That of the oldest broker, as far as it is known; None without brokers."""
        found = [_named(each.release_guess) for each in self.versions.values()]
        return min(found, key=RELEASES.index) if found else None

    @property
    def release_for_sure(self) -> str | None:
        """As ``release``, but a broker that could not be asked counts as the oldest that registers as it does."""
        found = [
            _OF_REGISTRATION.get(self.brokers[broker_id].version, _OF_REGISTRATION[5])
            if broker_id in self.unasked
            else _named(each.release_guess)
            for broker_id, each in self.versions.items()
        ]
        return min(found, key=RELEASES.index) if found else None

    def offering(self, api: ApiKey) -> int | None:
        """A broker that offers an API; None if none does."""
        return next((broker_id for broker_id in sorted(self.versions) if api in self.versions[broker_id].ranges), None)

    @property
    def change_format(self) -> ChangeFormat:
        """The form of notices that every broker reads; AdminRefusedError without brokers."""
        if not self.brokers:
            raise AdminRefusedError(
                "no broker is alive: its release decides in which form a change of settings is told",
                path=paths.BROKER_IDS,
            )
        if any(each.version == 1 for each in self.brokers.values()):
            return ChangeFormat.TOPIC_NAME
        is_new = all(ApiKey.CREATE_TOPICS in each.ranges for each in self.versions.values())
        return ChangeFormat.PATH if is_new else ChangeFormat.TYPE_AND_NAME


def _named(guess: str) -> str:
    """A release of the list: "0.8" is any of three, and what is not there is later."""
    if guess in RELEASES:
        return guess
    return _OF_REGISTRATION[1] if guess.startswith("0.8") else _NEWEST


async def ask_brokers(zk: ZooKeeper, config: ClientConfig) -> Capabilities:
    """Ask every live broker which APIs it serves."""
    brokers = await reading.brokers(zk)
    versions: dict[int, BrokerVersions] = {}
    unasked = set()
    for broker_id, broker in brokers.items():
        answer = await _ask(broker, config)
        if answer is None and broker.version > 1:
            unasked.add(broker_id)
        oldest = _NEWEST if broker.version >= _MAY_BE_ANY else _OF_REGISTRATION[broker.version]
        versions[broker_id] = answer or BrokerVersions.of_release(oldest)
    return Capabilities(brokers, versions, frozenset(unasked))


async def _ask(broker: Broker, config: ClientConfig) -> BrokerVersions | None:
    address = broker.address_for(config.security.security_protocol)
    if broker.version == 1 or address is None:  # 0.8 tells nothing but by closing the connection
        return None
    try:
        async with Client(replace(config, bootstrap_servers=(address,))) as client:
            return await client.versions(-1)  # of the one bootstrap address
    except SecurityError:
        raise
    except KafkaError:
        return None


async def is_0_8_2(broker: Broker, config: ClientConfig) -> bool:
    """Does a broker that registers as 0.8 answer what 0.8.2 brought?  Older ones close the connection, and log it.

    Only worth it where it decides: 0.8.2 makes the topic of committed offsets when it is asked.
    """
    address = broker.address_for(config.security.security_protocol)
    if address is None:
        return False
    one = replace(config, bootstrap_servers=(address,))
    deadline = anyio.current_time() + config.default_api_timeout_ms / 1000
    try:
        async with Client(one) as client:
            return (await versions_of_0_8(client, -1, "pykafka08", deadline)).release_guess == "0.8.2"
    except SecurityError:
        raise
    except KafkaError:
        return False


def bootstrap_servers(brokers: Mapping[int, Broker], protocol: str = "PLAINTEXT") -> list[str]:
    """Addresses for clients of this security protocol, from what the brokers registered."""
    found = [each.address_for(protocol.upper()) for _, each in sorted(brokers.items())]
    return [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in filter(None, found)]


async def refuse_under_kraft(zk: ZooKeeper) -> None:
    """AdminRefusedError once a KRaft controller has taken over: it would not see the change."""
    state = await reading.node(zk, Migration, paths.MIGRATION)
    if state is not None and state.has_begun:
        raise AdminRefusedError(
            "the cluster is being moved to KRaft, whose controller does not read what is written here: "
            "use pykafka08.Admin",
            path=paths.MIGRATION,
        )
