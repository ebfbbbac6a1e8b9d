"""An embedded cluster with access control lists, and a user without any right."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pykafka08.acl_operations import AclOperation, AclResourceType
from pykafka08.broker.access_control import ALLOW, Acl, AclFilter
from pykafka08.broker.server import EmbeddedCluster

__all__ = ["ALICE", "Rights", "guarded"]

ALICE: dict[str, Any] = {"client_id": "alice", "retry_backoff_max_ms": 100}
"""Settings of the user's clients."""
LITERAL, ANY = 3, 1


class Rights:
    """The rights of the user; texts are of the form ``"READ topic orders"`` or ``"CREATE cluster"``."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self.cluster = cluster
        self._acls = cluster._state.acls

    def give(self, *texts: str) -> None:
        for text in texts:
            self._acls.add(_acl(text))

    def take(self, *texts: str) -> None:
        for text in texts:
            self._acls.remove(_acl(text))

    def take_all(self) -> None:
        for acl in self._acls.matching(AclFilter(ANY, None, ANY, None, None, ANY, ANY)):
            self._acls.remove(acl)

    def asked(self, api: str) -> int:
        """The number of requests of that API so far."""
        return sum(1 for request in self.cluster.requests if request.api == api)


def _acl(text: str) -> Acl:
    operation, kind, *name = text.split(" ")
    resource = AclResourceType[kind.upper().replace("-", "_")]
    return Acl(
        resource, name[0] if name else "kafka-cluster", LITERAL, "User:alice", "*", AclOperation[operation], ALLOW
    )


@asynccontextmanager
async def guarded(**arguments: Any) -> AsyncIterator[Rights]:
    """A cluster whose anonymous users may do everything, and whose user alice may do what she is given."""
    properties = {"authorizer.class.name": "StandardAuthorizer", "super.users": "User:ANONYMOUS"}
    async with EmbeddedCluster(properties=properties, **arguments) as cluster:
        cluster.principals["alice"] = "User:alice"
        yield Rights(cluster)
