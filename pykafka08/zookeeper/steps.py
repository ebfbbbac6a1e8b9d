"""What a member of an old group wants done, one step after the other, and what it is told about it.

The steps of ``machine`` and ``rebalance``; ``legacy/driver.py`` performs them.  Each is answered with what its text
says, or with the error that it ended in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pykafka08.records.record import TopicPartition

__all__ = ["CreateNodes", "DeleteNodes", "ListChildren", "ReadNodes", "Seen", "StartReading", "Step", "StopReading"]


class Seen(NamedTuple):
    """A node that was read.  ``is_ours``: it is ephemeral, and our present session's."""

    data: bytes
    is_ours: bool


@dataclass(frozen=True)
class ListChildren:
    """Names, as a tuple; empty if the node does not exist.  With ``watch``, changes are told, also that it appears."""

    path: str
    watch: bool = False


@dataclass(frozen=True)
class ReadNodes:
    """``{path: Seen}`` of those that exist.  With ``watch``, changes are told, also that one appears or goes."""

    paths: tuple[str, ...]
    watch: bool = False


@dataclass(frozen=True)
class CreateNodes:
    """Ephemeral nodes with this data, and their parents; the set of paths that did not exist before."""

    nodes: Mapping[str, bytes]


@dataclass(frozen=True)
class DeleteNodes:
    """Nodes of our session; missing ones are as good as deleted."""

    paths: tuple[str, ...]


@dataclass(frozen=True)
class StopReading:
    """Hand out nothing more of these, from this moment on.

    Then, unless they are lost: commit what is finished, tell the listener; only then answer.
    """

    partitions: tuple[TopicPartition, ...]
    is_lost: bool = False


@dataclass(frozen=True)
class StartReading:
    """The thread of each partition that is ours from now on; read where the group has committed.

    ``counts`` are the numbers of partitions of the topics.
    """

    partitions: Mapping[TopicPartition, str]
    counts: Mapping[str, int] = field(default_factory=dict)


Step = ListChildren | ReadNodes | CreateNodes | DeleteNodes | StopReading | StartReading
