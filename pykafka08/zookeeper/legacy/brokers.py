"""The brokers that ZooKeeper lists, as addresses to connect to."""

from __future__ import annotations

from pykafka08.config import Address
from pykafka08.errors import KafkaError, MalformedNodeError, NoBrokersError, NoNodeError
from pykafka08.zookeeper import paths
from pykafka08.zookeeper.bridge import ZooKeeper
from pykafka08.zookeeper.nodes.brokers import Broker

__all__ = ["broker_addresses"]


async def broker_addresses(zk: ZooKeeper, protocol: str) -> tuple[Address, ...]:
    """Where they listen for clients of this security protocol; NoBrokersError if none does."""
    found: list[Address] = []
    faults: list[KafkaError] = []
    others: set[str] = set()
    names = await zk.children(paths.BROKER_IDS)
    for name in names:
        path = f"{paths.BROKER_IDS}/{name}"
        try:  # each for itself: one that is malformed, or goes, hides no other
            broker = Broker.decode((await zk.read(path)).data, path)
        except NoNodeError:
            continue
        except MalformedNodeError as error:
            faults.append(error)
            continue
        others.update(each.protocol for each in broker.listeners)
        address = broker.address_for(protocol)
        if address is not None:
            found.append(address)
    if not found:
        said = f": {faults[0]}" if faults else ""
        listed = f" (there are listeners for {', '.join(sorted(others))})" if others else ""
        raise NoBrokersError(
            f"of {len(names)} broker(s) in ZooKeeper none has a listener for security_protocol={protocol}{listed}{said}"
        )
    return tuple(dict.fromkeys(found))
