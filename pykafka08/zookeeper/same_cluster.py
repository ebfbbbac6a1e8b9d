"""Whether a ZooKeeper and the brokers that are asked belong to one cluster; what is done about it is the callers'."""

from __future__ import annotations

from pykafka08.admin.admin import Admin
from pykafka08.errors import MalformedNodeError
from pykafka08.zookeeper import reading
from pykafka08.zookeeper.bridge import ZooKeeper

__all__ = ["why_two_clusters"]


async def why_two_clusters(zk: ZooKeeper, admin: Admin) -> str | None:
    """What shows that they are of two clusters, in words; None if they are of one, or nothing tells.

    The cluster's id decides where both have it (0.10.1).  Below, brokers answer with the addresses that they
    registered: not one that both know is two clusters, or a proxy that changes addresses.
    """
    try:
        kept = await reading.cluster_id(zk)
    except MalformedNodeError:
        kept = None
    told = await admin.cluster_id()
    if kept is not None and told is not None:
        return None if kept == told else f"ZooKeeper is of the cluster {kept}, the brokers asked are of {told}"
    registered = {
        (each.host, each.port) for broker in (await reading.brokers(zk)).values() for each in broker.listeners
    }
    asked = {(each.host, each.port) for each in (await admin.list_brokers()).values()}
    if not registered or not asked or registered & asked:
        return None
    return f"ZooKeeper lists {_listed(registered)}, the brokers asked are {_listed(asked)}: these are two clusters"


def _listed(addresses: set[tuple[str, int]]) -> str:
    return ", ".join(f"{host}:{port}" for host, port in sorted(addresses)[:3]) + (", ..." if len(addresses) > 3 else "")
