"""OffsetFetch: what groups have committed.

v0 reads what v0 commits wrote; v7+ can refuse while a transaction on the offsets is open (KIP-447); v8+ asks for many
groups (KIP-709).
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from pykafka08.acl_operations import AclResourceType
from pykafka08.broker.call import Call, Reply, coordinator_error
from pykafka08.broker.groups import CommittedOffset, Offsets
from pykafka08.broker.handlers import handles
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

__all__ = ["offset_fetch"]

RESPONSE_ERROR_VERSION = 2
MANY_GROUPS_VERSION = 8
MEMBER_VERSION = 9
TOPIC_ID_VERSION = 10
NONE_COMMITTED = CommittedOffset(-1)


@handles(OffsetFetchRequest)
def offset_fetch(call: Call, request: OffsetFetchRequest) -> Reply:
    if call.version >= MANY_GROUPS_VERSION:
        return OffsetFetchResponse(
            groups=[_group(call, group, require_stable=request.require_stable) for group in request.groups]
        )
    if call.version > 0:
        code = coordinator_error(call, request.group_id)
    else:
        code = call.scripted_error() or call.denied(AclResourceType.GROUP, request.group_id)
    asked = None if request.topics is None else [(topic.name, topic.partition_indexes) for topic in request.topics]
    if not asked and call.version == 1 and (0, 9) <= call.personality.numbers < (0, 10, 2):
        asked = None
    if code and (asked is None or call.version >= RESPONSE_ERROR_VERSION):
        asked = []
    stored = _stored(call, request.group_id)

    def unstable(topic: str, partition: int) -> int:
        return _unstable(call, request.group_id, topic, partition) if request.require_stable else ErrorCode.NONE

    def wrong(topic: str, partition: int) -> int:
        scripted = call.scripted_error(topic, partition)
        return code or scripted or call.denied(AclResourceType.TOPIC, topic) or unstable(topic, partition)

    return OffsetFetchResponse(
        error_code=code,
        topics=[
            OffsetFetchResponseTopic(
                name=name,
                partitions=[_partition(call, stored, name, p, wrong(name, p)) for p in partitions],
            )
            for name, partitions in (_all(call, stored) if asked is None else asked)
        ],
    )


def _unstable(call: Call, group_id: str, topic: str, partition: int) -> ErrorCode:
    """An open transaction has committed this partition."""
    is_pending = call.cluster.groups.pending_offsets.covers(group_id, topic, partition)
    return ErrorCode.UNSTABLE_OFFSET_COMMIT if is_pending else ErrorCode.NONE


def _stored(call: Call, group_id: str) -> Offsets:
    groups = call.cluster.groups
    return groups.offsets_v0.of(group_id) if call.version == 0 else groups.offsets(group_id)


def _all(call: Call, stored: Offsets) -> list[tuple[str, list[int]]]:
    """The partitions with offsets, of the topics that the client may describe."""
    topics: dict[str, list[int]] = {}
    for topic, partition in stored:
        topics.setdefault(topic, []).append(partition)
    return [(name, found) for name, found in topics.items() if not call.denied(AclResourceType.TOPIC, name)]


def _partition(call: Call, stored: Offsets, topic: str, partition: int, code: int) -> OffsetFetchResponsePartition:
    committed = stored.get((topic, partition))
    is_unknown = call.personality < (0, 9) and call.cluster.topics.find_partition(topic, partition) is None
    if not code and committed is None and (call.version == 0 or is_unknown):
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if committed is None or code:
        committed = NONE_COMMITTED
    return OffsetFetchResponsePartition(
        partition_index=partition,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        error_code=code,
    )


def _group(call: Call, asked: OffsetFetchRequestGroup, *, require_stable: bool) -> OffsetFetchResponseGroup:
    code = coordinator_error(call, asked.group_id)
    if not code and call.version >= MEMBER_VERSION and (asked.member_id is not None or asked.member_epoch >= 0):
        code = call.cluster.groups.check_fetch(asked.group_id, asked.member_id, asked.member_epoch)
    if code:
        return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=code)
    stored = call.cluster.groups.offsets(asked.group_id)
    wanted: Iterable[tuple[str, UUID, list[int]]]
    if asked.topics is None:
        wanted = [(name, _topic_id(call, name), partitions) for name, partitions in _all(call, stored)]
    else:
        wanted = [(each.name, each.topic_id, each.partition_indexes) for each in asked.topics]
    topics = []
    for name, topic_id, partitions in wanted:
        unknown = ErrorCode.NONE
        if call.version >= TOPIC_ID_VERSION:
            topic = call.cluster.topics.find_id(topic_id)
            name = topic.name if topic is not None else ""
            unknown = ErrorCode.NONE if topic is not None else ErrorCode.UNKNOWN_TOPIC_ID
        answers = []
        for partition in partitions:
            unstable = _unstable(call, asked.group_id, name, partition) if require_stable else ErrorCode.NONE
            scripted = call.scripted_error(name, partition) if name else ErrorCode.NONE
            denied = call.denied(AclResourceType.TOPIC, name) if name else ErrorCode.NONE
            answers.append(_modern_partition(stored, name, partition, unknown or scripted or denied or unstable))
        topics.append(OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=answers))
    return OffsetFetchResponseGroup(group_id=asked.group_id, topics=topics)


def _topic_id(call: Call, name: str) -> UUID:
    topic = call.cluster.topics.find(name)
    return topic.topic_id if topic is not None else UUID(int=0)


def _modern_partition(stored: Offsets, topic: str, partition: int, code: int) -> OffsetFetchResponsePartitions:
    committed = NONE_COMMITTED if code else stored.get((topic, partition), NONE_COMMITTED)
    return OffsetFetchResponsePartitions(
        partition_index=partition,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        error_code=code,
    )
