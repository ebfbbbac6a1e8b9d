"""What a ZooKeeper session tells: watches that fired, and what became of its connection, in the order it happened."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

__all__ = ["Connected", "Event", "Kind", "NodeEvent", "SessionLost", "Suspended"]


class Kind(Enum):
    """What happened to a watched node."""

    CREATED = "created"
    DELETED = "deleted"
    CHANGED = "changed"
    CHILDREN = "children"


class NodeEvent(NamedTuple):
    """A watch fired, and is gone.  ``path`` is below the chroot.

    A watch ends with the connection it was set on; it then fires too, right after the next :class:`Connected`, so that
    whoever waits for it reads again.
    """

    path: str
    kind: Kind


class Suspended(NamedTuple):
    """The connection is gone; the session may live on.  ``at``: when, as ``time.monotonic()`` has it."""

    at: float


class Connected(NamedTuple):
    """There is a connection.  ``is_new``: with a new session, of which there are no nodes and no claims yet."""

    session_id: int
    is_new: bool


class SessionLost(NamedTuple):
    """The session is over, or may be by now: its ephemeral nodes are nothing to rely on.  A new one is tried for.

    ``at``: when, as ``time.monotonic()`` has it.
    """

    at: float


Event = NodeEvent | Suspended | Connected | SessionLost
