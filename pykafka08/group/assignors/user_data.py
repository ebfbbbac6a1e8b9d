"""What the sticky assignors write into a subscription's user data; none of it says its own version.

    sticky, version 0         the last assignment
    sticky, version 1 (2.3)   and its generation
    cooperative-sticky        the generation alone: the partitions are in the subscription

Source: Kafka's ``StickyAssignor`` and ``CooperativeStickyAssignor``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import groupby

from pykafka08.errors import RemoteProtocolError
from pykafka08.protocol.schema import Message, Struct, array, int32, message, string, struct
from pykafka08.records.record import TopicPartition
from pykafka08.wire import INT32

__all__ = ["decode_generation", "decode_sticky", "encode_generation", "encode_sticky"]


@struct
class StickyTopic(Struct):
    """Partitions of one topic in the last assignment."""

    topic: str = string()
    partitions: list[int] = array(int32)


@message(versions="0-1")
class StickyUserData(Message):
    """The last assignment of a member."""

    previous_assignment: list[StickyTopic] = array(StickyTopic)
    generation: int = int32(versions="1+", default=-1)


def _of_topics(partitions: Iterable[TopicPartition]) -> list[StickyTopic]:
    return [
        StickyTopic(topic=topic, partitions=[each.partition for each in run])
        for topic, run in groupby(sorted(partitions), key=lambda each: each.topic)
    ]


def encode_sticky(partitions: Collection[TopicPartition], generation: int, *, version: int = 1) -> bytes | None:
    """None before the first assignment, as Java has it."""
    if generation < 0 and not partitions:
        return None
    data = StickyUserData(previous_assignment=_of_topics(partitions))
    if version:
        data.generation = generation
    return data.encode(version)


def decode_sticky(data: bytes | None) -> tuple[frozenset[TopicPartition], int]:
    """The last assignment and its generation, -1 if unknown; what cannot be read counts as no assignment."""
    for version in (1, 0) if data else ():
        try:
            told = StickyUserData.decode(data or b"", version)
        except RemoteProtocolError:
            continue  # version 0 ends where version 1 has the generation; foreign data fits neither
        owned = frozenset(
            TopicPartition(each.topic, number) for each in told.previous_assignment for number in each.partitions
        )
        return owned, told.generation
    return frozenset(), -1


def encode_generation(generation: int) -> bytes:
    return INT32.pack(generation)


def decode_generation(data: bytes | None) -> int:
    """-1 if there is none."""
    if not data or len(data) < INT32.size:
        return -1
    return int(INT32.unpack_from(data)[0])
