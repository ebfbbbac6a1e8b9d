"""The embedded messages of consumer groups."""

from __future__ import annotations

import pytest

from pykafka08.errors import LocalProtocolError, RemoteProtocolError, UnsupportedVersionError
from pykafka08.protocol.messages.consumer_protocol import (
    AssignmentTopicPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    SubscriptionTopicPartition,
    decode_with_version,
    encode_with_version,
)
from pykafka08.protocol.messages.metadata import MetadataRequest

SUBSCRIPTION = ConsumerProtocolSubscription(
    topics=["a", "b"],
    user_data=b"u",
    owned_partitions=[SubscriptionTopicPartition(topic="a", partitions=[0, 2])],
    generation_id=7,
    rack_id="r",
)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (0, "0000000000020001610001620000000175"),
        (1, "000100000002000161000162000000017500000001000161000000020000000000000002"),
        (3, "00030000000200016100016200000001750000000100016100000002000000000000000200000007000172"),
    ],
)
def test_subscription_bytes(version: int, expected: str) -> None:
    assert encode_with_version(SUBSCRIPTION, version).hex() == expected


def test_fields_of_later_versions_are_left_out() -> None:
    decoded, version = decode_with_version(ConsumerProtocolSubscription, encode_with_version(SUBSCRIPTION, 1))
    assert version == 1
    assert decoded.owned_partitions == SUBSCRIPTION.owned_partitions
    assert (decoded.generation_id, decoded.rack_id) == (-1, None)


def test_higher_versions_are_read_as_far_as_they_are_known() -> None:
    data = bytearray(encode_with_version(SUBSCRIPTION, 3))
    data[1] = 9
    assert decode_with_version(ConsumerProtocolSubscription, data + b"what comes later") == (SUBSCRIPTION, 9)


def test_bytes_after_a_known_version_are_ignored() -> None:
    assignment = ConsumerProtocolAssignment(assigned_partitions=[AssignmentTopicPartition(topic="a", partitions=[1])])
    data = encode_with_version(assignment, 0)
    assert decode_with_version(ConsumerProtocolAssignment, data + b"more") == (assignment, 0)
    assert decode_with_version(ConsumerProtocolAssignment, memoryview(data)) == (assignment, 0)


def test_a_member_that_the_leader_left_out_has_no_partitions() -> None:
    assert decode_with_version(ConsumerProtocolAssignment, b"") == (ConsumerProtocolAssignment(), 0)


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff\xff\0\0\0\0", b"\0\0", b"\0\0\0\0\0\1\0"])
def test_what_cannot_be_read(data: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match="ConsumerProtocolSubscription"):
        decode_with_version(ConsumerProtocolSubscription, data)


def test_only_declared_versions_are_written() -> None:
    with pytest.raises(UnsupportedVersionError):
        encode_with_version(SUBSCRIPTION, 4)
    with pytest.raises(LocalProtocolError, match="MetadataRequest does not carry its version"):
        decode_with_version(MetadataRequest, b"\0\0")
