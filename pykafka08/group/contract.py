"""What the driver asks of a group member's machine, whichever group protocol it speaks.

There are two: ``machine`` (classic) and ``modern.machine`` (KIP-848).  What their brokers answer differs, and stands in
``exchange`` and ``modern.exchange``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from pykafka08.cluster.metadata import Snapshot
from pykafka08.errors import BrokerError, KafkaError
from pykafka08.group.actions import Action, Membership
from pykafka08.group.heartbeats import HeartbeatClock
from pykafka08.group.ownership import Partitions
from pykafka08.group.reactions import Api
from pykafka08.group.states import State
from pykafka08.records.record import TopicPartition

__all__ = ["Exchange", "MemberMachine"]


class MemberMachine(Protocol):
    """One member of one group.  Pure; times are monotonic seconds."""

    state: State
    membership: Membership
    error: KafkaError | None
    trouble: KafkaError | None
    heartbeats: HeartbeatClock

    @property
    def group_id(self) -> str: ...

    @property
    def coordinator(self) -> int | None:
        """The broker that coordinates the group, None if unknown."""

    @property
    def assigned(self) -> Partitions:
        """What this member owns now."""

    def tenure(self, tp: TopicPartition) -> int | None:
        """How often the partition has come to be this member's; None while it is not."""

    @property
    def rebalance_timeout(self) -> float:
        """Seconds that a rebalance waits for this member, as its coordinator counts them."""

    @property
    def is_settled(self) -> bool:
        """True if the member has its assignment, the application knows it, and nothing is being changed."""

    @property
    def is_rejoining(self) -> bool:
        """True while the coordinator may be in a newer generation than ``membership`` says."""

    @property
    def is_leader(self) -> bool:
        """True if this member assigns the group's partitions."""

    @property
    def is_idle(self) -> bool:
        """True if the machine has ended and the application has heard everything."""

    @property
    def is_leave_pending(self) -> bool:
        """True if all partitions are revoked and the coordinator has not confirmed LeaveGroup yet."""

    def subscribe(self, topics: Iterable[str]) -> None:
        """What to read."""

    def listener_ended(self) -> None:
        """The application has heard what it was told last."""

    def leave(self) -> None:
        """Give everything up, say so to the coordinator, and end."""

    def coordinator_found(self, attempt: int, node_id: int, broker: str | None = None) -> None: ...

    def coordinator_lost(self, node_id: int) -> None:
        """Somebody heard that this broker does not coordinate the group any more."""

    def request_failed(self, attempt: int, api: Api, error: KafkaError, now: float) -> None:
        """An error code, or no answer."""

    def commit_refused(self, membership: Membership, error: BrokerError, now: float) -> None:
        """A commit heard that the member is not what it takes itself for."""

    def poll(self, now: float) -> list[Action]:
        """What is to be done now; each action is handed out once."""

    def next_wakeup(self) -> float | None:
        """When to poll again though nothing happened; None for never."""


class Exchange(Protocol):
    """Sends what one machine says, and tells it the answers; ``perform_of`` has who performs which action."""

    perform_of: Mapping[type, Callable[[Any], object]]

    def metadata_changed(self, snapshot: Snapshot) -> None:
        """What the machine has to know of it."""
