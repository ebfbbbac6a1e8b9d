"""A ZooKeeper server in pure Python, its nodes in memory: for tests, and for old Kafka with nothing installed.

    server        EmbeddedZooKeeper: what tests and the console tool start, and its faults
    service       all that the connections share: nodes, sessions, watches; what a release can do
    conversation  one client's connection, sans I/O
    requests      what each operation does
    tree          nodes, versions, sequence numbers: pure
    sessions      who is alive until when: pure
    watches       who wants to know of what
    access        access lists; sasl: DIGEST-MD5
    four_letters  ruok, srvr, mntr, ...
    jute          the encoding; codes: numbers of operations, errors and events

Written against ZooKeeper's own behaviour and apart from ``pykafka08.zookeeper``, so that one bug cannot hide on both
sides; the same conversation is held with real servers in the tests.
"""

from __future__ import annotations

from pykafka08.broker.zookeeper.server import EmbeddedZooKeeper

__all__ = ["EmbeddedZooKeeper"]
