"""Embedded brokers that live with ZooKeeper, as every Kafka before 4.0 could: what they write there, and heed.

    mode         ZooKeeperMode: what an EmbeddedCluster has of it
    controller   topics, leaders, reassignments and deletions, to and from the nodes
    layout       what each release writes into its nodes
    offsets      what OffsetCommit v0 keeps

Written apart from ``pykafka08.zookeeper``, which reads and writes the same nodes as a client.
"""

from __future__ import annotations

from pykafka08.broker.zookeeper_mode.mode import ZooKeeperMode

__all__ = ["ZooKeeperMode"]
