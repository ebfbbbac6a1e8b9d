"""Who reads what: assignors as pure functions, by the names that Java's consumer knows them by.

Here: the table of assignors.  Not here: how subscriptions and assignments travel (``group.subscription``), when an
assignment is made (``group.machine``).  Source: Kafka's ``ConsumerPartitionAssignor``, KIP-54, KIP-429, KIP-792.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from pykafka08.group.assignors.cooperative_sticky import assign_cooperative_sticky, cooperative_sticky_user_data
from pykafka08.group.assignors.member import Assignment, GroupMember
from pykafka08.group.assignors.range import assign_range
from pykafka08.group.assignors.round_robin import assign_round_robin
from pykafka08.group.assignors.sticky import assign_sticky
from pykafka08.group.assignors.user_data import encode_sticky
from pykafka08.records.record import TopicPartition

__all__ = ["ASSIGNORS", "Assignment", "Assignor", "GroupMember", "TopicPartition"]


def _no_user_data(_: Collection[TopicPartition], __: int) -> None:
    return None


class Assignor(NamedTuple):
    """``assign(members, partitions per topic)`` is what the leader calls; it names every member.

    ``is_cooperative``: members keep their partitions while they join (KIP-429).  ``user_data(assignment, generation)``
    is what a member says of its last assignment in its subscription.
    """

    name: str
    assign: Callable[[Sequence[GroupMember], Mapping[str, int]], Assignment]
    is_cooperative: bool = False
    user_data: Callable[[Collection[TopicPartition], int], bytes | None] = _no_user_data


ASSIGNORS: Mapping[str, Assignor] = MappingProxyType(
    {
        assignor.name: assignor
        for assignor in (
            Assignor("range", assign_range),
            Assignor("roundrobin", assign_round_robin),
            Assignor("sticky", assign_sticky, user_data=encode_sticky),
            Assignor(
                "cooperative-sticky",
                assign_cooperative_sticky,
                is_cooperative=True,
                user_data=cooperative_sticky_user_data,
            ),
        )
    }
)
"""By name."""
