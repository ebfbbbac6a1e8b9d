"""What the group's machine asks its driver to do."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from pykafka08.errors import KafkaError
from pykafka08.records.record import TopicPartition

__all__ = [
    "Action",
    "Assign",
    "Beat",
    "FallBack",
    "FindCoordinator",
    "HangUp",
    "Heartbeat",
    "Join",
    "Leave",
    "ListenerCall",
    "Look",
    "LookUpTopics",
    "Lost",
    "Membership",
    "Note",
    "Revoke",
    "Sync",
    "UseTopics",
]

Partitions = frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Membership:
    """Who speaks: ``member_id`` is empty before the first join, ``generation`` -1 outside of the group."""

    member_id: str = ""
    generation: int = -1


@dataclass(frozen=True, slots=True)
class FindCoordinator:
    """Ask any broker who coordinates the group."""

    attempt: int


@dataclass(frozen=True, slots=True)
class Join:
    """Send JoinGroup; ``protocols`` are (assignor, subscription) pairs, best first."""

    attempt: int
    node_id: int
    member_id: str
    protocols: tuple[tuple[str, bytes], ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Sync:
    """Send SyncGroup; ``assignments`` are (member id, assignment) pairs, empty for all but the leader."""

    attempt: int
    node_id: int
    membership: Membership
    protocol: str
    assignments: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class Heartbeat:
    attempt: int
    node_id: int
    membership: Membership


@dataclass(frozen=True, slots=True)
class Leave:
    attempt: int
    node_id: int
    membership: Membership


@dataclass(frozen=True, slots=True)
class Look:
    """Send DescribeGroups, not on the connection on which JoinGroup and SyncGroup are held."""

    attempt: int
    node_id: int


@dataclass(frozen=True, slots=True)
class HangUp:
    """The answer to that JoinGroup or SyncGroup is lost: close the connection on which it was to come."""

    attempt: int
    node_id: int
    api: str


@dataclass(frozen=True, slots=True)
class Beat:
    """Send ConsumerGroupHeartbeat; what is None has not changed.  ``pattern`` empty takes back one that was told."""

    attempt: int
    node_id: int
    membership: Membership
    is_full: bool = False
    topics: tuple[str, ...] | None = None
    pattern: str | None = None
    owned: frozenset[tuple[UUID, int]] | None = None


@dataclass(frozen=True, slots=True)
class LookUpTopics:
    """Ask for the names of these topics."""

    attempt: int
    ids: frozenset[UUID]


@dataclass(frozen=True, slots=True)
class FallBack:
    """Go on with the classic protocol: the group or its coordinator does not take the new one."""

    cause: KafkaError


@dataclass(frozen=True, slots=True)
class Revoke:
    """Tell the application to give these partitions up, and report when it has; they are still the member's."""

    partitions: Partitions


@dataclass(frozen=True, slots=True)
class Assign:
    """Tell the application of ``added``, and report when it has heard; ``assigned`` is all that it has now."""

    added: Partitions
    assigned: Partitions


@dataclass(frozen=True, slots=True)
class Lost:
    """Tell the application that these partitions are gone already, and report when it has heard."""

    partitions: Partitions
    reason: str


@dataclass(frozen=True, slots=True)
class UseTopics:
    """Ask for the metadata of these topics too: the leader must know their partitions."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """Write this to the log."""

    event: str
    facts: dict[str, object]


ListenerCall = Revoke | Assign | Lost
Action = (
    FindCoordinator
    | Join
    | Sync
    | Heartbeat
    | Leave
    | Look
    | HangUp
    | Beat
    | LookUpTopics
    | FallBack
    | ListenerCall
    | UseTopics
    | Note
)
