"""Fetch: records from an offset on, at once or when enough of them are there (a long poll).

Source: ``ReplicaManager`` and ``DelayedFetch``; KIP-74 (the first batch comes whole), KIP-98 (readers of committed
records get what is before the last stable offset), KIP-227 (sessions), KIP-320 (epochs), KIP-392 (followers), KIP-516
(topic ids), KIP-951 (the new leader in the answer).
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from pykafka08.acl_operations import AclResourceType
from pykafka08.broker.call import Call, Reply, answered_later
from pykafka08.broker.fetch_sessions import FetchSession, PartitionKey
from pykafka08.broker.handlers import handles
from pykafka08.broker.state import NO_LEADER, Partition, Topic
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import UnsupportedVersionError
from pykafka08.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from pykafka08.records.frontier import read_frontier
from pykafka08.records.rewrite import convert

__all__ = ["fetch"]

READ_COMMITTED = 1
NO_REPLICA = -1
WHOLE_BATCH_VERSION = 3
SESSION_VERSION = 7
FOLLOWER_VERSION = 11
EPOCH_VERSION = 12
TOPIC_ID_VERSION = 13
ENDPOINT_VERSION = 16
SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)


class _Wanted(NamedTuple):
    """One partition to read, with what its name means now."""

    topic: Topic | None
    key: PartitionKey
    asked: FetchPartition

    @property
    def name(self) -> str:
        return self.topic.name if self.topic is not None else self.key.topic


class _Session(NamedTuple):
    session: FetchSession | None
    is_incremental: bool


@handles(FetchRequest)
def fetch(call: Call, request: FetchRequest) -> Reply:
    session, is_incremental, code = None, False, call.script.error(codes=SESSION_ERRORS)
    if call.version >= SESSION_VERSION and not code:
        uses_ids = call.version >= TOPIC_ID_VERSION
        session, is_incremental, code = call.node.fetch_sessions.resolve(request, uses_ids=uses_ids)
    if code:
        return FetchResponse(error_code=code)
    wanted = _wanted(call, request, session)
    kind = _Session(session, is_incremental)
    if request.max_wait_ms <= 0 or not wanted or not _must_wait(call, wanted, request):
        return _answer(call, request, wanted, kind)
    waiter, finish = answered_later(call, request.max_wait_ms / 1000, lambda: _answer(call, request, wanted, kind))
    watched = [each.topic.partitions[each.asked.partition] for each in wanted if each.topic is not None]

    def look(_: Partition) -> None:
        if not _must_wait(call, wanted, request):
            finish()

    def stop_watching(_: object) -> None:
        for partition in watched:
            partition.unwatch(look)

    for partition in watched:
        partition.watch(look)
    waiter.add_done_callback(stop_watching)
    return waiter


def _wanted(call: Call, request: FetchRequest, session: FetchSession | None) -> list[_Wanted]:
    if session is None:
        partitions = [
            (PartitionKey(topic.topic, topic.topic_id, asked.partition), asked)
            for topic in request.topics
            for asked in topic.partitions
        ]
    else:
        partitions = list(session.partitions.items())
    return [_Wanted(_topic(call, key), key, asked) for key, asked in partitions]


def _topic(call: Call, key: PartitionKey) -> Topic | None:
    topics = call.cluster.topics
    return topics.find_id(key.topic_id) if call.version >= TOPIC_ID_VERSION else topics.find(key.topic)


def _end(partition: Partition, request: FetchRequest) -> int:
    """The offset that this reader may see up to."""
    is_committed = request.isolation_level == READ_COMMITTED
    return partition.log.stable_offset if is_committed else partition.log.end_offset


def _serves(call: Call, partition: Partition) -> bool:
    node_id = call.node.node_id
    if partition.leader in (node_id, NO_LEADER):
        return partition.leader == node_id
    return call.version >= FOLLOWER_VERSION and node_id in partition.isr


def _replica_near(call: Call, request: FetchRequest, partition: Partition) -> int:
    """Where the leader sends this reader: a replica in the reader's rack, NO_REPLICA if there is none or it is ours."""
    leader = call.node
    if call.version < FOLLOWER_VERSION or partition.leader != leader.node_id or request.rack_id in ("", leader.rack):
        return NO_REPLICA
    nodes = call.cluster.nodes
    return next((each for each in partition.isr if nodes[each].rack == request.rack_id), NO_REPLICA)


def _must_wait(call: Call, wanted: list[_Wanted], request: FetchRequest) -> bool:
    """True while there are fewer than ``min_bytes`` and no error to report."""
    size, min_bytes = 0, request.min_bytes
    for each in wanted:
        if each.topic is None or not 0 <= each.asked.partition < len(each.topic.partitions):
            return False
        if call.denied(AclResourceType.TOPIC, each.topic.name):
            return False
        partition = each.topic.partitions[each.asked.partition]
        log, offset = partition.log, each.asked.fetch_offset
        if not _serves(call, partition) or not log.start_offset <= offset <= log.end_offset:
            return False
        if _replica_near(call, request, partition) != NO_REPLICA or _diverges(partition, each.asked) is not None:
            return False
        if each.asked.current_leader_epoch not in (-1, partition.leader_epoch):
            return False
        if call.script.has_error(each.name, partition.index):
            return False
        found = log.bytes_from(offset, max(1, min_bytes - size), before_offset=_end(partition, request))
        size += min(found, each.asked.partition_max_bytes)
        if size >= min_bytes:
            return False
    return True


def _answer(call: Call, request: FetchRequest, wanted: list[_Wanted], kind: _Session) -> FetchResponse:
    session = kind.session
    response = FetchResponse(session_id=session.session_id if session is not None else 0)
    left = request.max_bytes
    topics: dict[tuple[str, UUID], FetchableTopicResponse] = {}
    for each in wanted:
        data = _partition(call, request, each, left)
        left -= len(data.records or b"")
        is_news = session is None or session.is_news(each.key, data)
        if kind.is_incremental and not is_news:
            continue
        name = each.key.topic, each.key.topic_id
        if name not in topics:
            topics[name] = FetchableTopicResponse(topic=each.key.topic, topic_id=each.key.topic_id)
            response.responses.append(topics[name])
        topics[name].partitions.append(data)
    response.node_endpoints = _endpoints(call, response)
    return response


def _partition(call: Call, request: FetchRequest, wanted: _Wanted, left: int) -> PartitionData:
    asked = wanted.asked
    partition, code = call.led_partition(
        wanted.topic,
        wanted.name,
        asked.partition,
        asked.current_leader_epoch,
        or_follows=call.version >= FOLLOWER_VERSION,
    )
    if wanted.topic is None and code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and call.version >= TOPIC_ID_VERSION:
        code = ErrorCode.UNKNOWN_TOPIC_ID
    data = PartitionData(
        partition_index=asked.partition, error_code=code, high_watermark=-1, aborted_transactions=None, records=b""
    )
    if partition is None:
        _add_new_leader(call, wanted, data)
        return data
    log = partition.log
    if not log.start_offset <= asked.fetch_offset <= log.end_offset:
        data.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
        return data
    data.high_watermark = log.end_offset
    if request.isolation_level == READ_COMMITTED or call.personality.always_tells_stable_offset:
        data.last_stable_offset = log.stable_offset
    data.log_start_offset = log.start_offset
    diverging = _diverges(partition, asked)
    if diverging is not None:
        if diverging.end_offset < 0:
            data.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
        else:
            data.diverging_epoch = diverging
        return data
    replica = _replica_near(call, request, partition)
    if replica != NO_REPLICA:
        data.preferred_read_replica = replica
        return data
    end = _end(partition, request)
    _read(call, partition, asked, left, data, end)
    if request.isolation_level == READ_COMMITTED:
        frontier = read_frontier(data.records or b"")
        data.aborted_transactions = [
            AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
            for each in log.transactions.aborted(asked.fetch_offset, end if frontier is None else frontier)
        ]
    return data


def _diverges(partition: Partition, asked: FetchPartition) -> EpochEndOffset | None:
    """Where the log leaves that of a reader whose last epoch does not end where it thinks (KIP-595); -1 for nowhere."""
    if asked.last_fetched_epoch < 0:
        return None
    epoch, end = partition.log.epoch_end(asked.last_fetched_epoch)
    if epoch == asked.last_fetched_epoch and end >= asked.fetch_offset:
        return None
    return EpochEndOffset(epoch=epoch, end_offset=end)


def _read(call: Call, partition: Partition, asked: FetchPartition, left: int, data: PartitionData, end: int) -> None:
    """Fill in records, as many as the request's and the partition's bounds allow, in a format that the reader knows."""
    if left <= 0:
        return
    bound = min(left, asked.partition_max_bytes)
    newest = call.personality.fetch_magic(call.version)
    whole_first = call.version >= WHOLE_BATCH_VERSION
    records, magic = partition.log.read(asked.fetch_offset, bound, whole_first=whole_first, before_offset=end)
    if magic > newest and records:
        if not call.personality.converts_down:
            data.error_code = ErrorCode.UNSUPPORTED_VERSION
            return
        try:
            # What is cut off inside a batch cannot be converted: take the first whole, cut the result.
            whole, _ = partition.log.read(asked.fetch_offset, bound, whole_first=True, before_offset=end)
            records = convert(whole, newest)
        except UnsupportedVersionError:
            data.error_code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
            return
        if not whole_first:
            records = records[:bound]
    data.records = records


def _add_new_leader(call: Call, wanted: _Wanted, data: PartitionData) -> None:
    """Tell clients of v12 and later who leads now, where this broker does not."""
    moved = data.error_code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
    if call.version >= EPOCH_VERSION and moved and wanted.topic is not None:
        index = wanted.asked.partition
        if 0 <= index < len(wanted.topic.partitions):
            partition = wanted.topic.partitions[index]
            data.current_leader = LeaderIdAndEpoch(leader_id=partition.leader, leader_epoch=partition.leader_epoch)


def _endpoints(call: Call, response: FetchResponse) -> list[NodeEndpoint]:
    """Where the new leaders are."""
    if call.version < ENDPOINT_VERSION:
        return []
    leaders = {data.current_leader.leader_id for topic in response.responses for data in topic.partitions}
    return [
        NodeEndpoint(node_id=node.node_id, host=endpoint.host, port=endpoint.port)
        for node, endpoint in call.live_endpoints()
        if node.node_id in leaders
    ]
