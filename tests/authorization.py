"""An embedded cluster with access control lists, and a user without any right."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pykafka08.broker.server import EmbeddedCluster

__all__ = ["ALICE", "Rights", "guarded"]

ALICE: dict[str, Any] = {"client_id": "alice", "retry_backoff_max_ms": 100}
"""Settings of the user's clients."""


class Rights:
    """The rights of the user; texts are of the form ``"READ topic orders"`` or ``"CREATE cluster"``."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self.cluster = cluster

    def give(self, *texts: str) -> None:
        for text in texts:
            self.cluster.acls.allow("User:alice", *text.split(" "))

    def take(self, *texts: str) -> None:
        for text in texts:
            self.cluster.acls.remove("User:alice", *text.split(" "))

    def take_all(self) -> None:
        self.cluster.acls.remove()

    def asked(self, api: str) -> int:
        """The number of requests of that API so far."""
        return sum(1 for request in self.cluster.requests if request.api == api)


@asynccontextmanager
async def guarded(**arguments: Any) -> AsyncIterator[Rights]:
    """A cluster whose anonymous users may do everything, and whose user alice may do what she is given."""
    async with EmbeddedCluster(acls=[], properties={"super.users": "User:ANONYMOUS"}, **arguments) as cluster:
        cluster.principals["alice"] = "User:alice"
        yield Rights(cluster)
