"""What OffsetCommit v0 keeps, where old brokers keep it: below /consumers, beside the offsets of old consumers."""

from __future__ import annotations

from pykafka08.broker.groups import CommittedOffset, Offsets
from pykafka08.broker.zookeeper.server import EmbeddedZooKeeper

__all__ = ["ZooKeeperOffsets"]


class ZooKeeperOffsets:
    """There is room for the offset alone: no metadata."""

    def __init__(self, zookeeper: EmbeddedZooKeeper, chroot: str) -> None:
        self._zookeeper = zookeeper
        self._consumers = f"{chroot}/consumers"

    def commit(self, group_id: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        path = f"{self._consumers}/{group_id}/offsets/{topic}/{partition}"
        data = str(committed.offset).encode()
        if self._zookeeper.exists(path):
            self._zookeeper.write(path, data)
        else:
            self._zookeeper.create(path, data)

    def of(self, group_id: str) -> Offsets:
        found: Offsets = {}
        start = f"{self._consumers}/{group_id}/offsets"
        for path, data in self._zookeeper.dump(start).items():
            topic, _, partition = path[len(start) + 1 :].partition("/")
            if partition.isdigit() and data.isdigit():
                found[topic, int(partition)] = CommittedOffset(int(data))
        return found

    def forget_topic(self, topic: str) -> None:
        """Old brokers leave them where they are."""
