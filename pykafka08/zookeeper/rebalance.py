"""One attempt of a member to have its share of an old group: register, read the group, assign, release, claim.

A generator of steps, each answered by whoever performs it.  What stays with the same thread goes on being read; only
what goes is released, before anything is claimed.  A claim that fails undoes the claims of this attempt.  Nodes of
others are never changed.  Kafka's source: ZookeeperConsumerConnector.rebalance, 0.8.0 to 1.1.1, which releases all.

When attempts are made, and what follows their end, is ``machine``'s.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from pykafka08.errors import ConfigError, MalformedNodeError
from pykafka08.records.record import TopicPartition
from pykafka08.zookeeper import paths
from pykafka08.zookeeper.assignment import range_assignment, round_robin_assignment, thread_ids
from pykafka08.zookeeper.nodes.brokers import Topic
from pykafka08.zookeeper.nodes.consumers import Registration
from pykafka08.zookeeper.steps import (
    CreateNodes,
    DeleteNodes,
    ListChildren,
    ReadNodes,
    Seen,
    StartReading,
    Step,
    StopReading,
)
from pykafka08.zookeeper.topic_filter import TopicFilter

__all__ = ["Ending", "Outcome", "Profile", "Share", "rebalance"]

Steps = Generator[Step, Any, Any]


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Who a member is, and what it reads: topics with their number of streams, or a wildcard."""

    group: str
    member: str
    topics: Mapping[str, int]
    wildcard: TopicFilter | None = None
    streams: int = 1
    strategy: str = "range"
    round_robin_order: str = "brackets"
    excludes_internal: bool = True
    watches_brokers: bool = True

    def registration(self, timestamp_ms: int) -> Registration:
        """What it writes down for the others."""
        if self.wildcard is None:
            return Registration(subscription=dict(self.topics), timestamp=str(timestamp_ms))
        subscription = {self.wildcard.regex: self.streams}
        return Registration(subscription=subscription, pattern=self.wildcard.pattern, timestamp=str(timestamp_ms))


@dataclass
class Share:
    """What a member has of its group.  ``claims`` may be on ZooKeeper, ``reading`` surely are."""

    profile: Profile
    registration: bytes
    claims: dict[TopicPartition, str] = field(default_factory=dict)
    reading: dict[TopicPartition, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    """Partitions of each topic, as read last."""
    looks_everywhere: bool = False
    """Look at every owner node of its topics for claims that nobody remembers."""


class Ending(Enum):
    """How an attempt ended."""

    SETTLED = "every partition of the share is claimed and read"
    NO_BROKERS = "no broker is registered: nothing to read, until one is"
    BLOCKED = "another member still owns a partition of the share"
    FOREIGN = "a node of another session has this member's name"


@dataclass(frozen=True)
class Outcome:
    """``blockers``: the paths in the way, which are watched, and whose they are, None if nobody's by now.

    ``missing`` are topics of this member that do not exist yet.
    """

    ending: Ending
    blockers: Mapping[str, str | None] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    idle_threads: tuple[str, ...] = ()


def rebalance(share: Share) -> Generator[Step, Any, Outcome]:
    """MalformedNodeError if a node of the group cannot be understood: what is read stays."""
    profile = share.profile
    if not (yield from _register(share)):
        yield from _release(share, share.claims)
        path = paths.consumer_id(profile.group, profile.member)
        return Outcome(Ending.FOREIGN, {path: "another session"})
    brokers = yield ListChildren(paths.BROKER_IDS, watch=profile.watches_brokers)
    if not brokers and not profile.watches_brokers:
        brokers = yield ListChildren(paths.BROKER_IDS, watch=True)
    if not brokers:
        yield from _release(share, share.claims)
        return Outcome(Ending.NO_BROKERS)
    members = yield from _members(profile)
    wanted, missing = yield from _assigned(share, members)
    new = yield from _compare(share, wanted)
    blockers = yield from _claim(share, new)
    if blockers:
        return Outcome(Ending.BLOCKED, blockers, missing)
    started = {tp: thread for tp, thread in share.claims.items() if tp not in share.reading}
    if started:
        share.reading.update(started)
        yield StartReading(started, dict(share.counts))
    return Outcome(Ending.SETTLED, {}, missing, _idle(share, members, wanted))


def _register(share: Share) -> Generator[Step, Any, bool]:
    """False if the name is taken."""
    path = paths.consumer_id(share.profile.group, share.profile.member)
    made = yield CreateNodes({path: share.registration})
    if path in made:
        return True
    seen: Mapping[str, Seen] = yield ReadNodes((path,), watch=True)
    return path in seen and seen[path].is_ours


def _members(profile: Profile) -> Generator[Step, Any, dict[str, Registration]]:
    names = yield ListChildren(paths.consumer_ids(profile.group), watch=True)
    path_of = {name: paths.consumer_id(profile.group, name) for name in names}
    seen: Mapping[str, Seen] = yield ReadNodes(tuple(path_of.values()))
    return {name: Registration.decode(seen[path].data, path) for name, path in path_of.items() if path in seen}


def _assigned(
    share: Share, members: Mapping[str, Registration]
) -> Generator[Step, Any, tuple[dict[TopicPartition, str], tuple[str, ...]]]:
    """The member's share, and which of its topics do not exist."""
    profile = share.profile
    existing: tuple[str, ...] = ()
    if any(registration.wildcard is not None for registration in members.values()):
        existing = yield ListChildren(paths.TOPICS, watch=profile.wildcard is not None)
    threads = _threads(profile, members, existing)
    own = {topic for topic, ids in threads.items() if set(ids) & set(_own_threads(profile, members))}
    needed = own if profile.strategy == "range" else set(threads)
    path_of = {topic: paths.topic(topic) for topic in sorted(needed)}
    seen: Mapping[str, Seen] = yield ReadNodes(tuple(path_of.values()), watch=True)
    partitions = {
        t: tuple(Topic.decode(seen[path].data, path).partitions) for t, path in path_of.items() if path in seen
    }
    share.counts = {topic: len(ids) for topic, ids in partitions.items()}
    if profile.strategy == "range":
        owners = range_assignment(partitions, threads)
    else:
        owners = round_robin_assignment(partitions, threads, order=profile.round_robin_order)
    mine = set(_own_threads(profile, members))
    wanted = {tp: thread for tp, thread in owners.items() if thread in mine}
    if share.looks_everywhere:
        share.looks_everywhere = False
        yield from _recall(share, partitions)
    return wanted, tuple(sorted(own - partitions.keys()))


def _threads(profile: Profile, members: Mapping[str, Registration], existing: Iterable[str]) -> dict[str, list[str]]:
    """Thread ids of each topic that somebody reads; a wildcard reads each topic that exists and that it means."""
    threads: dict[str, list[str]] = {}
    for name, registration in members.items():
        for topic, streams in _subscription(profile, name, registration, existing).items():
            threads.setdefault(topic, []).extend(thread_ids(name, streams))
    return threads


def _subscription(
    profile: Profile, name: str, registration: Registration, existing: Iterable[str]
) -> Mapping[str, int]:
    if registration.wildcard is None:
        return registration.subscription
    regex, streams = registration.wildcard
    try:
        wildcard = TopicFilter(registration.pattern, regex)
    except ConfigError as why:
        raise MalformedNodeError(paths.consumer_id(profile.group, name), why.message) from None
    return dict.fromkeys(wildcard.choose(existing, excludes_internal=profile.excludes_internal), streams)


def _own_threads(profile: Profile, members: Mapping[str, Registration]) -> tuple[str, ...]:
    registration = members.get(profile.member)
    return (
        () if registration is None else thread_ids(profile.member, max(registration.subscription.values(), default=0))
    )


def _recall(share: Share, partitions: Mapping[str, Iterable[int]]) -> Steps:
    """Put claims of our session that are not remembered among the claims; they are compared like any others."""
    group = share.profile.group
    path_of = {TopicPartition(t, p): paths.owner(group, t, p) for t, ids in partitions.items() for p in ids}
    seen: Mapping[str, Seen] = yield ReadNodes(tuple(path_of.values()))
    for tp, path in path_of.items():
        if path in seen and seen[path].is_ours:
            share.claims.setdefault(tp, seen[path].data.decode(errors="replace"))


def _compare(share: Share, wanted: Mapping[TopicPartition, str]) -> Generator[Step, Any, dict[TopicPartition, str]]:
    """Stop what is lost, release what goes, and say what is to be claimed."""
    group = share.profile.group
    path_of = {tp: paths.owner(group, *tp) for tp in sorted({*share.claims, *wanted})}
    seen: Mapping[str, Seen] = yield ReadNodes(tuple(path_of.values()))
    lost, goes, new = [], [], {}
    for tp, path in path_of.items():
        node, thread = seen.get(path), wanted.get(tp)
        is_ours = node is not None and node.is_ours
        if not is_ours and tp in share.claims:
            lost.append(tp)
        if is_ours and node is not None and thread is not None and node.data == thread.encode():
            share.claims[tp] = thread
            continue
        if is_ours:
            goes.append(tp)
        if thread is not None:
            new[tp] = thread
    # Also what another thread of this member reads from now on.
    goes += [tp for tp, thread in share.reading.items() if share.claims.get(tp) != thread and tp not in (*goes, *lost)]
    yield from _lose(share, lost)
    yield from _release(share, goes)
    return new


def _lose(share: Share, partitions: Iterable[TopicPartition]) -> Steps:
    gone = tuple(tp for tp in partitions if share.reading.pop(tp, None) is not None)
    for tp in partitions:
        share.claims.pop(tp, None)
    if gone:
        yield StopReading(gone, is_lost=True)


def _release(share: Share, partitions: Iterable[TopicPartition]) -> Steps:
    """Stop, commit, and only then delete the owner nodes."""
    goes = tuple(sorted(partitions))
    stopped = tuple(tp for tp in goes if tp in share.reading)
    if stopped:
        yield StopReading(stopped)
        for tp in stopped:
            share.reading.pop(tp, None)
    if goes:
        yield from _disclaim(share, goes)


def _disclaim(share: Share, partitions: Iterable[TopicPartition]) -> Steps:
    goes = tuple(partitions)
    path_of = {tp: paths.owner(share.profile.group, *tp) for tp in goes}
    seen: Mapping[str, Seen] = yield ReadNodes(tuple(path_of.values()))
    yield DeleteNodes(tuple(path for path in path_of.values() if path in seen and seen[path].is_ours))
    for tp in goes:
        share.claims.pop(tp, None)


def _claim(share: Share, new: Mapping[TopicPartition, str]) -> Generator[Step, Any, dict[str, str | None]]:
    """The owner nodes in the way, and who owns them; empty if all were claimed, else none is that was new."""
    if not new:
        return {}
    path_of = {tp: paths.owner(share.profile.group, *tp) for tp in new}
    share.claims.update(new)  # before: what is made by a request whose answer is lost is ours to undo
    made = yield CreateNodes({path_of[tp]: thread.encode() for tp, thread in new.items()})
    existed = {tp: path for tp, path in path_of.items() if path not in made}
    blockers: dict[str, str | None] = {}
    if existed:
        seen: Mapping[str, Seen] = yield ReadNodes(tuple(existed.values()), watch=True)
        for tp, path in existed.items():
            node = seen.get(path)
            if node is None or not node.is_ours or node.data != new[tp].encode():
                share.claims.pop(tp, None)
                blockers[path] = None if node is None else node.data.decode(errors="replace")
    if blockers:
        yield from _disclaim(share, [tp for tp in new if tp in share.claims])
    return blockers


def _idle(share: Share, members: Mapping[str, Registration], wanted: Mapping[TopicPartition, str]) -> tuple[str, ...]:
    busy = set(wanted.values())
    return tuple(each for each in _own_threads(share.profile, members) if each not in busy)
