"""What ZooKeeper refuses, and what keeps it from being asked."""

from __future__ import annotations

from collections.abc import Mapping

from pykafka08.errors.root import KafkaError

__all__ = [
    "AdminRefusedError",
    "BadVersionError",
    "ConsumerRebalanceFailedError",
    "MalformedNodeError",
    "NoAuthError",
    "NoNodeError",
    "NodeExistsError",
    "NotEmptyError",
    "SessionExpiredError",
    "ZooKeeperAuthError",
    "ZooKeeperConnectionError",
    "ZooKeeperError",
]


class ZooKeeperError(KafkaError):
    """ZooKeeper refused something, or could not be asked.  ``path`` is the node's, below the chroot, or None."""

    def __init__(self, message: str, *, path: str | None = None) -> None:
        super().__init__(message)
        self.path = path

    def __str__(self) -> str:
        return f"{self.message} [path {self.path}]" if self.path is not None else self.message


class NoNodeError(ZooKeeperError):
    """There is no node at the path; for one that is to be created, its parent is missing."""


class NodeExistsError(ZooKeeperError):
    """There is a node at the path already."""


class BadVersionError(ZooKeeperError):
    """The node's version is not the one that the call was made for: somebody else has written it since."""


class NotEmptyError(ZooKeeperError):
    """The node has children and is not deleted."""


class NoAuthError(ZooKeeperError):
    """The node's access list does not let this client do that."""


class MalformedNodeError(ZooKeeperError):
    """A node does not hold what Kafka writes there; ``why`` says what is wrong with it."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"the node is malformed: {why}", path=path)
        self.why = why


class ZooKeeperConnectionError(ZooKeeperError, ConnectionError):
    """No server answered in time, or the connection ended before the answer came.

    ``causes`` maps each server's address to what became of it.  ``may_be_written``: the call has left, and what it
    was to change may be changed.
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        causes: Mapping[str, str] | None = None,
        may_be_written: bool = False,
    ) -> None:
        super().__init__(message, path=path)
        self.causes = dict(causes or {})
        self.may_be_written = may_be_written


class SessionExpiredError(ZooKeeperError):
    """The session that the call belonged to is over, and its ephemeral nodes with it."""


class ZooKeeperAuthError(ZooKeeperError):
    """ZooKeeper refused the credentials; nothing else is tried with them."""


class ConsumerRebalanceFailedError(ZooKeeperError):
    """A member of an old group could not take its share of the partitions; ``path`` is what was in the way."""


class AdminRefusedError(ZooKeeperError):
    """A change through ZooKeeper that would do harm or nothing, and was not made; the text says what to do instead."""
