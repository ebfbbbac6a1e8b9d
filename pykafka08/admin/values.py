"""What :class:`pykafka08.Admin` takes and gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from pykafka08.cluster.metadata import Partition
from pykafka08.records.record import TopicPartition

__all__ = ["ConfigEntry", "GroupDescription", "GroupListing", "GroupMember", "NewTopic", "TopicDescription"]


@dataclass(frozen=True)
class NewTopic:
    """A topic to create; -1 is the broker's default, which it has from Kafka 2.4 on.

    ``assignments`` names the brokers of each partition, preferred leader first, and replaces both numbers.
    """

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)
    assignments: Sequence[Sequence[int]] = ()


class TopicDescription(NamedTuple):
    """``topic_id`` is None before Kafka 2.8; ``partitions`` is keyed by number, in order."""

    name: str
    topic_id: UUID | None
    is_internal: bool
    partitions: Mapping[int, Partition]


class GroupListing(NamedTuple):
    """``protocol_type`` is ``"consumer"`` for consumers; ``state`` is empty before Kafka 2.6, ``kind`` before 3.8."""

    group_id: str
    protocol_type: str
    state: str
    kind: str


class GroupMember(NamedTuple):
    """A member and its partitions; ``host`` is where it connects from."""

    member_id: str
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...]


class GroupDescription(NamedTuple):
    """``state`` as the broker names it: Empty, PreparingRebalance, CompletingRebalance, Stable, Dead, and so on.

    A group that is not there is Dead.
    """

    group_id: str
    state: str
    assignor: str
    members: tuple[GroupMember, ...]

    @property
    def has_members(self) -> bool:
        """True if offsets committed by others than its members would be refused."""
        return bool(self.members)


class ConfigEntry(NamedTuple):
    """A setting; ``value`` is None where it is secret.  ``is_default``: nobody has set it for this topic or broker."""

    value: str | None
    is_default: bool
    is_read_only: bool
