"""Whole pictures of a cluster, read from its ZooKeeper: brokers, topics, settings, groups.

Nothing is locked: a node that goes while it is read is left out.  One that is malformed is told by ``trouble`` and read
over; only what one asks for by name raises MalformedNodeError.

Not here: how they are printed (``cli``), and what is changed (``admin``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from pykafka08.errors import MalformedNodeError, NoNodeError
from pykafka08.records.record import TopicPartition
from pykafka08.zookeeper import paths
from pykafka08.zookeeper.bridge import ZooKeeper
from pykafka08.zookeeper.nodes.brokers import Broker, PartitionState, Topic
from pykafka08.zookeeper.nodes.cluster import ClusterId, Controller
from pykafka08.zookeeper.nodes.configs import Config
from pykafka08.zookeeper.nodes.consumers import Offset, Owner, Registration
from pykafka08.zookeeper.nodes.document import Node

__all__ = [
    "Brokers",
    "Group",
    "TopicView",
    "TreeNode",
    "brokers",
    "children",
    "cluster_id",
    "config",
    "controller",
    "group",
    "group_offsets",
    "group_names",
    "node",
    "topic",
    "topic_names",
    "tree",
]

N = TypeVar("N", bound=Node)

Trouble = Callable[[MalformedNodeError], None]


def ignore(_: MalformedNodeError) -> None:
    """The trouble of somebody who need not hear of it."""


async def node(zk: ZooKeeper, kind: type[N], path: str) -> N | None:
    """The node at a path; None if there is none."""
    try:
        data = (await zk.read(path)).data
    except NoNodeError:
        return None
    return kind.decode(data, path)


async def _node(zk: ZooKeeper, kind: type[N], path: str, trouble: Trouble) -> N | None:
    try:
        return await node(zk, kind, path)
    except MalformedNodeError as error:
        trouble(error)
        return None


async def children(zk: ZooKeeper, path: str) -> list[str]:
    """Sorted; empty if there is no such node."""
    try:
        return await zk.children(path)
    except NoNodeError:
        return []


async def _numbers(zk: ZooKeeper, path: str) -> list[int]:
    return sorted(int(name) for name in await children(zk, path) if name.isascii() and name.isdecimal())


# --- the cluster ----------------------------------------------------------------------------------------------------

Brokers = Mapping[int, Broker]


async def brokers(zk: ZooKeeper, trouble: Trouble = ignore) -> Brokers:
    """The brokers that are alive, by id."""
    found = {
        each: await _node(zk, Broker, paths.broker(each), trouble) for each in await _numbers(zk, paths.BROKER_IDS)
    }
    return {broker_id: each for broker_id, each in found.items() if each is not None}


async def controller(zk: ZooKeeper) -> int | None:
    found = await node(zk, Controller, paths.CONTROLLER)
    return found.broker_id if found else None


async def cluster_id(zk: ZooKeeper) -> str | None:
    """None before 0.10.1."""
    found = await node(zk, ClusterId, paths.CLUSTER_ID)
    return found.cluster_id if found else None


# --- topics ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TopicView:
    """A topic: its brokers, who leads (a partition that nobody ever led has no state), what is set for it."""

    name: str
    assignment: Topic
    states: Mapping[int, PartitionState] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)
    is_marked_for_deletion: bool = False


async def topic_names(zk: ZooKeeper) -> list[str]:
    return await children(zk, paths.TOPICS)


async def topic(zk: ZooKeeper, name: str, trouble: Trouble | None = None) -> TopicView | None:
    """None if there is no such topic; without ``trouble`` a malformed node raises."""

    def raise_it(error: MalformedNodeError) -> None:
        raise error

    heard = trouble or raise_it
    assignment = await _node(zk, Topic, paths.topic(name), heard)
    if assignment is None:
        return None
    states = {}
    for partition in sorted(assignment.partitions):
        state = await _node(zk, PartitionState, paths.partition_state(name, partition), heard)
        if state is not None:
            states[partition] = state
    found = await _node(zk, Config, paths.topic_config(name), heard)
    is_marked = await zk.exists(paths.deleted_topic(name)) is not None
    return TopicView(name, assignment, states, found.config if found else {}, is_marked)


async def config(zk: ZooKeeper, path: str) -> Mapping[str, str]:
    """The settings at a path; empty if nobody has set any."""
    found = await node(zk, Config, path)
    return found.config if found else {}


# --- groups ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Group:
    """An old group: who is alive, who owns what, how far it is."""

    name: str
    members: Mapping[str, Registration | None]
    """By member id; None for one whose registration is malformed: every Java member fails at it."""
    owners: Mapping[TopicPartition, str]
    offsets: Mapping[TopicPartition, int]

    @property
    def is_alive(self) -> bool:
        return bool(self.members)


async def group_names(zk: ZooKeeper) -> list[str]:
    return await children(zk, paths.CONSUMERS)


async def group(zk: ZooKeeper, name: str, trouble: Trouble = ignore) -> Group | None:
    """None if there is no such group."""
    if await zk.exists(paths.consumer_group(name)) is None:
        return None
    members = {
        member: await _node(zk, Registration, paths.consumer_id(name, member), trouble)
        for member in await children(zk, paths.consumer_ids(name))
    }
    owners: dict[TopicPartition, str] = {}
    for topic_name in await children(zk, paths.group_owners(name)):
        for partition in await _numbers(zk, paths.owners(name, topic_name)):
            owner = await _node(zk, Owner, paths.owner(name, topic_name, partition), trouble)
            if owner is not None:
                owners[TopicPartition(topic_name, partition)] = owner.text
    return Group(name, members, owners, await group_offsets(zk, name, trouble))


async def group_offsets(
    zk: ZooKeeper, name: str, trouble: Trouble = ignore, topics: Iterable[str] | None = None
) -> dict[TopicPartition, int]:
    """The offsets that a group has in ZooKeeper: what it reads next; of these topics, or all."""
    found: dict[TopicPartition, int] = {}
    for topic_name in await children(zk, paths.group_offsets(name)) if topics is None else topics:
        for partition in await _numbers(zk, paths.offsets(name, topic_name)):
            offset = await _node(zk, Offset, paths.offset(name, topic_name, partition), trouble)
            if offset is not None:
                found[TopicPartition(topic_name, partition)] = offset.number
    return found


# --- everything -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TreeNode:
    """One node as it stands; ``trouble`` says what is wrong with it."""

    path: str
    data: bytes
    is_ephemeral: bool
    version: int
    kind: str | None
    """The kind's name in ``paths.KINDS``; None for a node that Kafka has not."""
    trouble: str | None


async def tree(zk: ZooKeeper, path: str = "/") -> AsyncIterator[TreeNode]:
    """A node and all below it, parents first, in the order of names; NoNodeError if it is not there."""
    await zk.read(path)
    waiting = [path]
    while waiting:
        here = waiting.pop()
        try:
            data, stat = await zk.read(here)
            names = await zk.children(here) if stat.children else []
        except NoNodeError:
            continue
        found = paths.match(here)
        yield TreeNode(
            here, data, stat.ephemeral_owner != 0, stat.version, found and found.kind.name, _trouble(here, data)
        )
        waiting += [f"{here.rstrip('/')}/{name}" for name in reversed(names)]


def _trouble(path: str, data: bytes) -> str | None:
    try:
        paths.decode(path, data)
    except MalformedNodeError as error:
        return error.why
    return None
