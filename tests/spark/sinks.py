"""What tests of the sink share: an embedded cluster in a thread of its own, since the sink blocks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal

from pykafka08 import EmbeddedCluster
from pykafka08.records.record import Record
from pykafka08.spark.runtime import runtime


class ThreadedCluster:
    """An EmbeddedCluster, asked from another thread."""

    def __init__(self, cluster: EmbeddedCluster, portal: BlockingPortal) -> None:
        self._cluster = cluster
        self._portal = portal
        self.servers = cluster.bootstrap_servers
        self.faults = cluster.faults

    def call(self, name: str, *args: Any) -> Any:
        """What that method of the cluster returns; an attribute's value where it is none."""
        return self._portal.call(lambda: each(*args) if callable(each := getattr(self._cluster, name)) else each)

    def records(self, topic: str, *, committed: bool = False) -> list[list[Record]]:
        """Of each partition."""
        cluster = self._cluster
        count = self.call("topics")[topic]
        return [
            self._portal.call(lambda number=number: cluster.records(topic, number, committed=committed))
            for number in range(count)
        ]

    def values(self, topic: str, *, committed: bool = False) -> list[bytes | None]:
        """Of all partitions, sorted."""
        found = [record.value for log in self.records(topic, committed=committed) for record in log]
        return sorted(found, key=lambda value: value or b"")


@contextmanager
def embedded(**settings: Any) -> Iterator[ThreadedCluster]:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(EmbeddedCluster(**settings)) as cluster,
    ):
        try:
            yield ThreadedCluster(cluster, portal)
        finally:
            runtime().close()  # of this thread: nothing is left of it for the next test
