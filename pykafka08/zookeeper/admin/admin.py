"""Administration through ZooKeeper, for clusters whose brokers have no request for it: 0.8 to 0.10 above all."""

from __future__ import annotations

from pykafka08.zookeeper.admin.acls import AclAdministration
from pykafka08.zookeeper.admin.configs import ConfigAdministration
from pykafka08.zookeeper.admin.groups import GroupAdministration
from pykafka08.zookeeper.admin.partitions import PartitionAdministration
from pykafka08.zookeeper.admin.topics import TopicAdministration

__all__ = ["ZooKeeperAdmin"]


class ZooKeeperAdmin(
    TopicAdministration, PartitionAdministration, ConfigAdministration, AclAdministration, GroupAdministration
):
    """Topics, settings, rules and old groups of a cluster, by what is written to its ZooKeeper.

        async with ZooKeeperAdmin("localhost:2181/chroot") as admin:
            await admin.create_topic("events", partitions=6, replication_factor=3)

    Nothing is written where it would do harm or nothing: AdminRefusedError says why, and what to do instead.  So it is
    where a broker offers the request itself (topics from 0.10.1 on, settings and rules from 0.11, elections and moves
    of partitions from 2.2 and 2.4): use ``pykafka08.Admin`` there, or ``force=True``.
    """
