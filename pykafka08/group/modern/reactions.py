"""What an answer to ConsumerGroupHeartbeat makes a member do: one table, keyed by (is it joining?, code).

Codes that are not listed do what they do to a member of the classic protocol (``group.reactions``).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pykafka08.error_codes import ErrorCode
from pykafka08.errors import BrokerError, KafkaError, UnsupportedVersionError
from pykafka08.group.reactions import Api, Reaction, reaction_to_failure

__all__ = ["REACTIONS", "explained", "reaction_to_beat"]

JOINING, LIVING = True, False

REACTIONS: Mapping[tuple[bool, ErrorCode], Reaction] = MappingProxyType(
    {
        # The cluster has not switched the protocol on.
        (JOINING, ErrorCode.UNSUPPORTED_VERSION): Reaction.FALL_BACK,
        (LIVING, ErrorCode.UNSUPPORTED_VERSION): Reaction.FALL_BACK,
        # The group is a classic one that cannot be changed, or one of another kind.
        (JOINING, ErrorCode.GROUP_ID_NOT_FOUND): Reaction.FALL_BACK,
        (JOINING, ErrorCode.INCONSISTENT_GROUP_PROTOCOL): Reaction.FALL_BACK,
        (LIVING, ErrorCode.GROUP_ID_NOT_FOUND): Reaction.LOSE_GENERATION,
        (LIVING, ErrorCode.FENCED_MEMBER_EPOCH): Reaction.LOSE_GENERATION,
        (LIVING, ErrorCode.UNKNOWN_MEMBER_ID): Reaction.LOSE_GENERATION,
        # Kafka before 4.1 lets nobody join whom it still takes for a member.
        (JOINING, ErrorCode.FENCED_MEMBER_EPOCH): Reaction.RELEASE,
        (JOINING, ErrorCode.UNKNOWN_MEMBER_ID): Reaction.BACK_OFF,
        # A former self of this static member has not left, or not in peace.
        (JOINING, ErrorCode.UNRELEASED_INSTANCE_ID): Reaction.RELEASE,
    }
)


def reaction_to_beat(error: KafkaError, *, is_joining: bool) -> Reaction:
    if isinstance(error, UnsupportedVersionError):
        return Reaction.FALL_BACK
    if isinstance(error, BrokerError) and isinstance(error.code, ErrorCode):
        row = REACTIONS.get((is_joining, error.code))
        if row is not None:
            return row
    return reaction_to_failure(Api.CONSUMER_GROUP_HEARTBEAT, error)


def explained(error: KafkaError, wish: str) -> KafkaError:
    """The error in words that help, if it says that the new protocol is not to be had."""
    is_told = isinstance(error, BrokerError) and error.code is ErrorCode.UNSUPPORTED_VERSION
    if not is_told and not isinstance(error, UnsupportedVersionError):
        return error
    better = UnsupportedVersionError(
        f"{wish} needs the new group protocol, which the group's coordinator does not have: {error.message}; Kafka 4.0 "
        "has it, and with group_protocol='auto' a member goes on without",
        broker=error.broker,
        api=Api.CONSUMER_GROUP_HEARTBEAT.value,
    )
    better.__cause__ = error
    return better
