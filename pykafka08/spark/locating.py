"""Which partitions there are, and which offsets a start or an end means: asked by the driver when it plans a read.

All partitions together, one ListOffsets request for each leader.  From Kafka 0.8 on: topics are never created by asking
(before 0.11 naming one in Metadata may do that, so that all are asked for), and times are looked up where the brokers
know those of records (0.10.1), or by files where the options allow that.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple
from uuid import UUID

import anyio

from pykafka08.cluster.client import Client
from pykafka08.consumer.offsets import look_up_offsets
from pykafka08.driver import library_logger
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import KafkaError, UnknownTopicError, UnsupportedVersionError, broker_error
from pykafka08.errors.deadline import raising_refusals
from pykafka08.protocol.messages.list_offsets import ListOffsetsRequest
from pykafka08.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from pykafka08.protocol.versions import BrokerVersions
from pykafka08.records.record import TopicPartition
from pykafka08.spark.committed_group import CommittedGroup
from pykafka08.spark.offsets_json import EARLIEST, LATEST, write_offsets
from pykafka08.spark.options import Limit, ReadOptions, Selection
from pykafka08.spark.ranges import Range

__all__ = [
    "Found",
    "OffsetsMismatchError",
    "find_partitions",
    "locate",
    "offsets_of_limit",
    "present_partitions",
    "resolve",
]

log = library_logger("spark")

FIRST_NOT_CREATING = 4
FIRST_WITH_TIMES_OF_RECORDS = 1
NOT_YET = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE})


class OffsetsMismatchError(KafkaError, ValueError):
    """The options name other partitions than there are, a start behind its end, a time that no record has, or a group
    without offsets."""


class Found(NamedTuple):
    """Partitions with the ids of their topics (None before Kafka 2.8), and topics that are named but not there, or not
    all of their partitions that are named."""

    partitions: Mapping[TopicPartition, UUID | None]
    missing: frozenset[str] = frozenset()


async def find_partitions(
    client: Client,
    selection: Selection,
    *,
    retries: int = 3,
    interval_ms: int = 1000,
    known_topics: Collection[str] = (),
) -> Found:
    """The partitions that are there now; UnknownTopicError if a named one or a topic is not, after so many retries.

    ``known_topics`` were there before: that they are gone is told in ``missing``, at once.
    """
    while True:
        with raising_refusals():
            response = await client.request_any(_Metadata(selection.named_topics))
        found, missing = _chosen(response, selection)
        unknown = sorted(missing - set(known_topics))
        if not unknown or retries <= 0:
            break
        retries -= 1
        await anyio.sleep(interval_ms / 1000)
    if unknown:
        raise _unknown(unknown[0], response, selection)
    _use(client, found)
    return Found(found, frozenset(missing))


def _unknown(topic: str, response: MetadataResponse, selection: Selection) -> UnknownTopicError:
    """Of a topic, or of the first of its partitions that the options name where the topic is there."""
    present = {each.partition_index for one in response.topics if one.name == topic for each in one.partitions}
    absent = sorted(tp.partition for tp in selection.partitions if tp.topic == topic and tp.partition not in present)
    partition = absent[0] if present and absent else None
    what = f"topic {topic}" if partition is None else f"partition {topic}-{partition}"
    text = f"Unknown {what}: This server does not host this topic-partition."
    return UnknownTopicError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text, topic=topic, partition=partition)


async def present_partitions(client: Client, topics: Collection[str]) -> frozenset[TopicPartition]:
    """Those of ``topics`` that are there now, whatever the options choose; without those of topics with an error."""
    with raising_refusals():
        response = await client.request_any(_Metadata(topics))
    return frozenset(
        TopicPartition(topic.name, each.partition_index)
        for topic in response.topics
        if topic.name is not None and topic.name in topics and not topic.error_code
        for each in topic.partitions
    )


class _Metadata:
    """Metadata of the named topics, of all if there are none; it creates nothing."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = sorted(names)

    def __call__(self, versions: BrokerVersions) -> MetadataRequest:
        version = versions.pick(MetadataRequest)
        if self._names and version >= FIRST_NOT_CREATING:
            topics = [MetadataRequestTopic(name=name) for name in self._names]
            return MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        return MetadataRequest(topics=None if version >= 1 else [])


def _chosen(response: MetadataResponse, selection: Selection) -> tuple[dict[TopicPartition, UUID | None], set[str]]:
    found: dict[TopicPartition, UUID | None] = {}
    missing = set(selection.named_topics)
    for topic in response.topics:
        name = topic.name
        if name is None or not _is_chosen(topic, name, selection):
            continue
        if topic.error_code and topic.error_code not in NOT_YET:
            raise broker_error(topic.error_code, topic=name, api="Metadata", needed="READ")
        if topic.error_code or not topic.partitions:
            continue
        missing.discard(name)
        topic_id = topic.topic_id if topic.topic_id is not None and topic.topic_id.int else None
        present = (TopicPartition(name, each.partition_index) for each in topic.partitions)
        found.update((tp, topic_id) for tp in present if not selection.partitions or tp in selection.partitions)
    missing.update(tp.topic for tp in selection.partitions if tp not in found)
    return dict(sorted(found.items())), missing


def _is_chosen(topic: MetadataResponseTopic, name: str, selection: Selection) -> bool:
    if name in selection.named_topics:
        return True
    return not topic.is_internal and selection.chooses_topic(name)


def _use(client: Client, found: Mapping[TopicPartition, UUID | None]) -> None:
    """The client's own metadata is to have these partitions, too."""
    client.use_topics({tp.topic for tp in found})
    snapshot = client.metadata
    if any(
        tp.partition not in snapshot.partitions(tp.topic) or snapshot.topic_id(tp.topic) != topic_id
        for tp, topic_id in found.items()
    ):
        client.invalidate(snapshot.generation)


async def locate(
    client: Client, wanted: Mapping[TopicPartition, int], options: ReadOptions
) -> dict[TopicPartition, int]:
    """The offset of each :data:`EARLIEST`, :data:`LATEST` or time in ms; -1 where no record is as young.

    The latest is the last stable offset where only committed records are read.
    """
    if not wanted:
        return {}
    timeout = client.config.default_api_timeout_ms / 1000
    if any(each >= 0 for each in wanted.values()) and not options.allows_segment_granularity:
        await _check_times_are_known(client, wanted, timeout)
    listed = await look_up_offsets(client, wanted, timeout=timeout, is_committed_only=options.is_committed_only)
    return {tp: listed[tp].offset for tp in wanted}


async def _check_times_are_known(client: Client, wanted: Collection[TopicPartition], timeout: float) -> None:
    await client.wait_for_topics({tp.topic for tp in wanted}, timeout=timeout, needed="READ")
    leaders = {client.metadata.leader(*tp) for tp in wanted} - {None}
    for leader in leaders:
        assert leader is not None
        versions = await client.versions(leader, timeout=timeout)
        if versions.pick(ListOffsetsRequest) < FIRST_WITH_TIMES_OF_RECORDS:
            raise UnsupportedVersionError(
                f"offsets by timestamp need Kafka 0.10.1, the broker is of {versions.release_guess}; with the option "
                "segmentGranularTimestamps=true they are those of files, at or before the first record of that time",
                broker=client.metadata.brokers[leader].name,
                api="ListOffsets",
            )


async def offsets_of_limit(
    client: Client, partitions: Collection[TopicPartition], limit: Limit, options: ReadOptions, *, side: str
) -> dict[TopicPartition, int]:
    """What ``limit`` means for each partition, as offsets; ``side`` is ``starting`` or ``ending``."""
    if limit.offsets is not None:
        _check_same(limit.offsets, partitions, side, "offset")
        return await _points(client, limit.offsets, options)
    if limit.point is not None:
        return await _points(client, dict.fromkeys(partitions, limit.point), options)
    if limit.group is not None:
        return await _points(client, await _of_group(partitions, limit.group, options), options)
    if limit.timestamps is not None:
        _check_same(limit.timestamps, partitions, side, "timestamp")
    times = limit.timestamps or dict.fromkeys(partitions, limit.timestamp_ms or 0)
    found = await locate(client, times, options)
    late = [tp for tp in sorted(found) if found[tp] < 0]
    if late and side == "starting" and options.no_match == "error":
        text = f"No offset matched from request of topic-partition {late[0].topic}-{late[0].partition}"
        raise OffsetsMismatchError(f"{text} and timestamp {times[late[0]]}.", topic=late[0].topic, partition=late[0][1])
    return {**found, **await locate(client, dict.fromkeys(late, LATEST), options)}


async def _of_group(
    partitions: Collection[TopicPartition], group: CommittedGroup, options: ReadOptions
) -> dict[TopicPartition, int]:
    from pykafka08.spark.group_commits import committed_offsets  # here: admin and ZooKeeper come with it

    committed = await committed_offsets(options.client, group, partitions)
    if partitions and not committed:
        raise OffsetsMismatchError(f"The group {group.name} has committed no offset of what is read")
    return {**dict.fromkeys(partitions, EARLIEST), **committed}


async def _points(
    client: Client, offsets: Mapping[TopicPartition, int], options: ReadOptions
) -> dict[TopicPartition, int]:
    open_ones = {tp: each for tp, each in offsets.items() if each in (EARLIEST, LATEST)}
    return {**offsets, **await locate(client, open_ones, options)}


def _check_same(
    named: Collection[TopicPartition], partitions: Collection[TopicPartition], side: str, kind: str
) -> None:
    if set(named) == set(partitions):
        return
    position = "start" if side == "starting" else "end"
    what = f"{position} offsets" if kind == "offset" else f"timestamp based {position} offsets"
    raise OffsetsMismatchError(
        f"Partitions specified for Kafka {what} don't match what are assigned. Maybe topic partitions are created or "
        f"deleted while the query is running. If {side}Offsets contains specific offsets, you must specify all "
        f"TopicPartitions. Use -1 for latest, -2 for earliest, if you don't care. "
        f"Specified: {_shown(named)} Assigned: {_shown(partitions)}"
    )


def _shown(partitions: Collection[TopicPartition]) -> str:
    return ", ".join(f"{tp.topic}-{tp.partition}" for tp in sorted(partitions)) or "none"


async def resolve(client: Client, options: ReadOptions) -> list[Range]:
    """The ranges of a batch read, empty ones left out."""
    found = await find_partitions(
        client, options.selection, retries=options.num_retries, interval_ms=options.retry_interval_ms
    )
    starts = await offsets_of_limit(client, found.partitions, options.starting, options, side="starting")
    ends = await offsets_of_limit(client, found.partitions, options.ending, options, side="ending")
    ranges = []
    for tp, topic_id in found.partitions.items():
        start, end = starts[tp], ends[tp]
        if start > end:
            raise OffsetsMismatchError(
                f"The resolved start offset {start} is greater than the resolved end offset {end} for topic {tp.topic} "
                f"partition {tp.partition}.",
                topic=tp.topic,
                partition=tp.partition,
                offset=start,
            )
        if start < end:
            ranges.append(Range(tp.topic, tp.partition, start, end, topic_id=topic_id))
    log.debug("spark.batch", starts=write_offsets(starts), ends=write_offsets(ends))
    return ranges
