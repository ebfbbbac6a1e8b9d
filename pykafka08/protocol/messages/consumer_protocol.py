"""What members of a "consumer" group tell each other through the coordinator, which does not read it.

Each member sends a Subscription with JoinGroup; the leader answers each with an Assignment through SyncGroup.  Both
begin with their own version, int16, and none is ever flexible.  The versions are a promise, not a negotiation: whoever
meets a higher version reads what it knows and ignores what follows.

Versions, the first release with each, and what is new in it:

     0  0.9.0
     1  2.4     partitions that the member owns (KIP-429)
     2  3.4     the generation in which it owned them (KIP-792)
     3  3.4     its rack (KIP-881)
"""

from __future__ import annotations

from typing import TypeVar

from pykafka08.errors import LocalProtocolError, RemoteProtocolError
from pykafka08.protocol.schema import Message, Struct, array, bytes_, int32, message, string, struct
from pykafka08.wire import INT16, Buffer

__all__ = [
    "AssignmentTopicPartition",
    "ConsumerProtocolAssignment",
    "ConsumerProtocolSubscription",
    "SubscriptionTopicPartition",
    "decode_with_version",
    "encode_with_version",
]

M = TypeVar("M", bound=Message)


@struct
class SubscriptionTopicPartition(Struct):
    """Partitions of one topic that the member holds while it joins."""

    topic: str = string(versions="1+")
    partitions: list[int] = array(int32, versions="1+")


@message(versions="0-3")
class ConsumerProtocolSubscription(Message):
    """What a member wants, and what it holds."""

    topics: list[str] = array(string)
    user_data: bytes | None = bytes_(nullable="0+", default=None)  # the assignor's own, sticky assignors use it
    owned_partitions: list[SubscriptionTopicPartition] = array(
        SubscriptionTopicPartition, versions="1+", ignorable=True
    )
    generation_id: int = int32(versions="2+", default=-1, ignorable=True)
    rack_id: str | None = string(versions="3+", nullable="3+", default=None, ignorable=True)


@struct
class AssignmentTopicPartition(Struct):
    """Partitions of one topic that the member shall read."""

    topic: str = string()
    partitions: list[int] = array(int32)


@message(versions="0-3")
class ConsumerProtocolAssignment(Message):
    """What the leader of the group gave one member."""

    assigned_partitions: list[AssignmentTopicPartition] = array(AssignmentTopicPartition)
    user_data: bytes | None = bytes_(nullable="0+", default=None)


def encode_with_version(message: Message, version: int) -> bytes:
    """The version and the message: the bytes that JoinGroup or SyncGroup carry."""
    return INT16.pack(version) + message.encode(version)


def decode_with_version(kind: type[M], data: Buffer) -> tuple[M, int]:
    """The message in ``data`` and the version it was written in, which may be higher than any declared one.

    An empty Assignment is what the coordinator gives members that the leader left out: it reads as no partitions.
    """
    if kind.api_key != -1:
        raise LocalProtocolError(f"{kind.__name__} does not carry its version")
    if not len(data) and kind is ConsumerProtocolAssignment:
        return kind(), 0
    if len(data) < INT16.size:
        raise RemoteProtocolError(f"{kind.__name__}: {len(data)} bytes hold no version")
    (version,) = INT16.unpack_from(data)
    if version < 0:
        raise RemoteProtocolError(f"{kind.__name__}: version {version}")
    decoded, _ = kind.decode_start(data, min(version, kind.versions.max), INT16.size)
    return decoded, version
