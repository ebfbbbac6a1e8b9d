"""The coordinator: all groups of the cluster, their committed offsets, and what is checked before a group acts.

Groups of the classic protocol and of the new one share their names and offsets; requests of classic members go to
whichever their group is.

Groups survive the broker that coordinates them; another live broker then does.  Offsets of OffsetCommit v0 are kept
apart from those of later versions, as real brokers keep them in ZooKeeper and in a topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from pykafka08.broker import group_migration
from pykafka08.broker.configs import Configs
from pykafka08.broker.consumer_group import ConsumerGroup
from pykafka08.broker.consumer_groups import Beaten, Refusal, beat, check_commit, check_member, leave
from pykafka08.broker.group import Group, GroupState
from pykafka08.broker.group_member import JoinResult, Member, SyncResult
from pykafka08.broker.journal import Note, keep_nothing
from pykafka08.broker.offsets_v0 import MemoryOffsets, OffsetsV0
from pykafka08.broker.pending_offsets import PendingOffsets
from pykafka08.broker.state import Topics
from pykafka08.broker.timers import Timers
from pykafka08.driver import Waiter
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

__all__ = ["CommittedOffset", "GroupLimits", "Groups"]


class CommittedOffset(NamedTuple):
    """What a group has committed for one partition."""

    offset: int
    leader_epoch: int = -1
    metadata: str | None = ""


class GroupLimits(NamedTuple):
    """Kafka's ``group.*`` properties, in milliseconds."""

    min_session_timeout_ms: int
    max_session_timeout_ms: int
    initial_rebalance_delay_ms: int
    consumer_session_timeout_ms: int = 45_000
    consumer_heartbeat_interval_ms: int = 5_000

    @classmethod
    def of(cls, number: Callable[[str], int]) -> GroupLimits:
        """Those of a broker; ``number`` returns the value of a property."""
        return cls(*(number(f"group.{name.replace('_', '.')}") for name in cls._fields))


Offsets = dict[tuple[str, int], CommittedOffset]


class Groups:
    """Every group by its id."""

    def __init__(
        self, timers: Timers, limits: GroupLimits, topics: Topics | None = None, configs: Configs | None = None
    ) -> None:
        self._timers = timers
        self._configs = configs
        self.limits = limits
        self._topics = topics if topics is not None else Topics(list)
        self._groups: dict[str, Group] = {}
        self.consumer_groups: dict[str, ConsumerGroup] = {}
        self._offsets: dict[str, Offsets] = {}
        self.pending_offsets: PendingOffsets[CommittedOffset] = PendingOffsets()
        self.offsets_v0: OffsetsV0 = MemoryOffsets()
        self.note: Note = keep_nothing

    def __iter__(self) -> Iterator[Group]:
        return iter(tuple(self._groups.values()))

    def find(self, group_id: str) -> Group | None:
        return self._groups.get(group_id)

    def _find_or_make(self, group_id: str) -> Group:
        group = self._groups.get(group_id)
        if group is None:
            delay = self.limits.initial_rebalance_delay_ms / 1000
            group = self._groups[group_id] = Group(group_id, self._timers, initial_delay=delay)
        return group

    # -- members

    def join(
        self, group_id: str, member: Member, protocol_type: str, *, requires_member_id: bool
    ) -> Waiter[JoinResult] | JoinResult:
        """``requires_member_id``: a new member is sent away once, with its id (JoinGroup v4+)."""
        if not group_id:
            return JoinResult(ErrorCode.INVALID_GROUP_ID, member.member_id)
        modern = self._occupied(group_id)
        if modern is not None:
            return group_migration.join(
                modern, member, protocol_type, self._topics, requires_member_id=requires_member_id
            )
        self.consumer_groups.pop(group_id, None)
        session_ms = member.session_timeout * 1000
        if not self.limits.min_session_timeout_ms <= session_ms <= self.limits.max_session_timeout_ms:
            return JoinResult(ErrorCode.INVALID_SESSION_TIMEOUT, member.member_id)
        if member.member_id and group_id not in self._groups:
            return JoinResult(ErrorCode.UNKNOWN_MEMBER_ID, member.member_id)
        group = self._find_or_make(group_id)
        if member.member_id:
            _, code = group.find(member.member_id, member.instance_id)
            if code is ErrorCode.FENCED_INSTANCE_ID:
                return JoinResult(code, member.member_id)
        if not group.accepts(protocol_type, member.protocols):
            return JoinResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member.member_id)
        if requires_member_id and not member.member_id and member.instance_id is None:
            member_id = group.new_pending_id(member.client_id, member.session_timeout)
            return JoinResult(ErrorCode.MEMBER_ID_REQUIRED, member_id)
        return group.join(member, protocol_type)

    def check(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int
    ) -> tuple[Group | None, Member | None, ErrorCode]:
        """The group and member of a request of that generation, or the error."""
        group = self._groups.get(group_id)
        if group is None or group.state in (GroupState.DEAD, GroupState.EMPTY):
            return None, None, ErrorCode.UNKNOWN_MEMBER_ID
        member, code = group.find(member_id, instance_id)
        if member is not None and generation != group.generation:
            return None, None, ErrorCode.ILLEGAL_GENERATION
        return group, member, code

    def sync(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        protocol: tuple[str | None, str | None],
        assignments: dict[str, bytes],
    ) -> Waiter[SyncResult] | SyncResult:
        modern = self._occupied(group_id)
        if modern is not None:
            return group_migration.sync(modern, member_id, instance_id, generation, self._topics)
        group, member, code = self.check(group_id, member_id, instance_id, generation)
        if group is None or member is None:
            return SyncResult(code)
        if protocol[0] not in (None, group.protocol_type) or protocol[1] not in (None, group.protocol):
            return SyncResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        return group.sync(member, assignments)

    def heartbeat(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int, *, is_strict: bool
    ) -> ErrorCode:
        """``is_strict``: brokers before 2.7 ask a member to join again until it has synced."""
        modern = self._occupied(group_id)
        if modern is not None:
            return group_migration.heartbeat(modern, member_id, instance_id, generation)
        group, member, code = self.check(group_id, member_id, instance_id, generation)
        if group is None or member is None:
            return code
        group.heartbeat(member)
        if group.state is GroupState.PREPARING or (is_strict and group.state is GroupState.COMPLETING):
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def leave(self, group_id: str, member_id: str, instance_id: str | None) -> ErrorCode:
        modern = self._occupied(group_id)
        if modern is not None:
            return group_migration.leave(modern, member_id, instance_id)
        group = self._groups.get(group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if instance_id is not None and not member_id:
            member = next((each for each in group.members.values() if each.instance_id == instance_id), None)
            code = ErrorCode.UNKNOWN_MEMBER_ID
        else:
            member, code = group.find(member_id, instance_id)
        if member is None:
            return code
        group.leave(member)
        return ErrorCode.NONE

    def coordinator_moved(self, group_id: str) -> None:
        """Another broker coordinates the group: whoever waits is to find it."""
        group = self._groups.get(group_id)
        if group is not None:
            group.coordinator_moved()

    def expire(self, group_id: str, member_id: str | None) -> int:
        """End the session of one member, or of all, as if no heartbeat had come; how many there were."""
        modern = self._occupied(group_id)
        if modern is not None:
            return modern.expire(member_id)
        group = self._groups.get(group_id)
        if group is None:
            return 0
        members = [member for member in group.members.values() if member_id in (None, member.member_id)]
        for member in members:
            group.leave(member)
        return len(members)

    def delete(self, group_id: str) -> ErrorCode:
        """Delete a group that has no members, with its offsets."""
        group = self._groups.get(group_id)
        if (group is not None and group.members) or self._occupied(group_id) is not None:
            return ErrorCode.NON_EMPTY_GROUP
        if group is None and group_id not in self._offsets and group_id not in self.consumer_groups:
            return ErrorCode.GROUP_ID_NOT_FOUND
        self._groups.pop(group_id, None)
        self.consumer_groups.pop(group_id, None)
        self._offsets.pop(group_id, None)
        self.note("deleted_group", group_id)
        if group is not None:
            group.close()
        return ErrorCode.NONE

    # -- members of the new protocol

    def _occupied(self, group_id: str) -> ConsumerGroup | None:
        """The group, if it is of the new protocol and has members."""
        group = self.consumer_groups.get(group_id)
        return group if group is not None and group.members else None

    def beat(self, request: ConsumerGroupHeartbeatRequest, *, new_id: str, client: Sequence[str]) -> Beaten:
        """ConsumerGroupHeartbeat; Refusal where it is answered with an error."""
        group_id = request.group_id
        group = self.consumer_groups.get(group_id)
        classic = self._groups.get(group_id)
        if group is None and request.member_epoch != 0:
            raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no consumer group {group_id!r}")
        if group is None:
            timeout = self.consumer_session_timeout_ms(group_id) / 1000
            group = ConsumerGroup(group_id, self._timers, session_timeout=timeout)
            group.on_gone = partial(self._downgrade, group)
            if classic is not None and classic.members:
                group_migration.upgrade(classic, group, self._topics)
            self._groups.pop(group_id, None)
            self.consumer_groups[group_id] = group
        if request.member_epoch < 0:
            return leave(group, request)
        group.session_timeout = self.consumer_session_timeout_ms(group_id) / 1000
        return beat(group, request, self._topics, new_id=new_id, client=client)

    def consumer_session_timeout_ms(self, group_id: str) -> int:
        """Session time-out of KIP-848 members: the group's config, else the broker's."""
        own = self._configs and self._configs.group_number(group_id, "consumer.session.timeout.ms")
        return own or self.limits.consumer_session_timeout_ms

    def consumer_heartbeat_interval_ms(self, group_id: str) -> int:
        own = self._configs and self._configs.group_number(group_id, "consumer.heartbeat.interval.ms")
        return own or self.limits.consumer_heartbeat_interval_ms

    def _downgrade(self, group: ConsumerGroup) -> None:
        """The last member of the new protocol may have gone."""
        rest = group_migration.classic_rest(group)
        if rest:
            del self.consumer_groups[group.group_id]
            self._find_or_make(group.group_id).restore(rest, group_migration.CONSUMER, group.epoch)

    # -- offsets

    def check_commit(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int, *, knows_epochs: bool = True
    ) -> ErrorCode:
        """May this member, or anybody with generation -1, commit?  ``knows_epochs``: in version 9 or later."""
        modern = self.consumer_groups.get(group_id)
        if modern is not None:
            return check_commit(modern, member_id, generation, knows_epochs=knows_epochs)
        group = self._groups.get(group_id)
        if group is None:
            return ErrorCode.NONE if generation < 0 else ErrorCode.ILLEGAL_GENERATION
        if generation < 0 and not group.members:
            return ErrorCode.NONE
        member, code = group.find(member_id, instance_id)
        if member is None:
            return code
        if generation != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if group.state is GroupState.COMPLETING:
            return ErrorCode.REBALANCE_IN_PROGRESS
        group.heartbeat(member)
        return ErrorCode.NONE

    def check_fetch(self, group_id: str, member_id: str | None, epoch: int) -> ErrorCode:
        """May a member that names itself look up offsets?  Only groups of the new protocol mind."""
        modern = self.consumer_groups.get(group_id)
        return ErrorCode.NONE if modern is None else check_member(modern, member_id, epoch)

    def check_transactional_commit(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int
    ) -> ErrorCode:
        """The same in a transaction: who names no member may commit to any group (before KIP-447 nobody could)."""
        if generation < 0 and not member_id and instance_id is None:
            return ErrorCode.NONE
        code = self.check_commit(group_id, member_id, instance_id, generation)
        # A transaction does not wait for the next heartbeat.
        return ErrorCode.ILLEGAL_GENERATION if code is ErrorCode.STALE_MEMBER_EPOCH else code

    def end_transaction(self, group_id: str, producer_id: int, epoch: int, *, is_commit: bool) -> None:
        """What the producer committed in its transaction counts from now on, or never."""
        pending = self.pending_offsets.take(group_id, producer_id, epoch)
        if is_commit:
            for (topic, partition), committed in pending.items():
                self.commit(group_id, topic, partition, committed)
        self.note("taken_offsets", group_id, producer_id, epoch)

    def commit(self, group_id: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        if group_id not in self.consumer_groups:
            self._find_or_make(group_id)
        self._offsets.setdefault(group_id, {})[topic, partition] = committed
        self.note("offset", group_id, topic, partition, *committed)

    def offsets(self, group_id: str) -> Offsets:
        """What the group has committed; empty for a group that is not there."""
        return self._offsets.get(group_id, {})

    @property
    def all_offsets(self) -> Mapping[str, Offsets]:
        """By group id."""
        return self._offsets

    def delete_offset(self, group_id: str, topic: str, partition: int) -> None:
        self._offsets.get(group_id, {}).pop((topic, partition), None)
        self.note("deleted_offset", group_id, topic, partition)

    def offset_deletion_error(self, group_id: str) -> ErrorCode:
        """The error if no offset of the group can be deleted: it does not exist, or its members are not consumers."""
        group = self._groups.get(group_id)
        if group_id in self.consumer_groups:
            return ErrorCode.NONE
        if group is None:
            return ErrorCode.NONE if group_id in self._offsets else ErrorCode.GROUP_ID_NOT_FOUND
        if group.members and group.protocol_type != group_migration.CONSUMER:
            return ErrorCode.NON_EMPTY_GROUP
        return ErrorCode.NONE

    def subscribed_topics(self, group_id: str) -> set[str]:
        """The topics that members of the group read."""
        group, modern = self._groups.get(group_id), self.consumer_groups.get(group_id)
        if modern is not None:
            ids = {topic_id for each in modern.members.values() for topic_id in modern.topics_of(each, self._topics)}
            return {topic.name for topic in self._topics if topic.topic_id in ids}
        members = [] if group is None else group.members.values()
        return {name for each in members for name in group_migration.subscribed_topics(each)}

    def forget_topic(self, topic: str) -> None:
        """A topic was deleted: its committed offsets go too."""
        for offsets in self._offsets.values():
            for key in [key for key in offsets if key[0] == topic]:
                del offsets[key]
        self.offsets_v0.forget_topic(topic)
        self.pending_offsets.forget_topic(topic)

    def close(self) -> None:
        for group in self._groups.values():
            group.close()
        for modern in self.consumer_groups.values():
            modern.close()
