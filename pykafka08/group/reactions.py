"""What an error code, or the lack of an answer, makes a group member do: one table, keyed by (message, code).

Rows for ``ANY`` serve every message.  Codes that are not listed follow :class:`ErrorCode`: retriable means back off,
anything else ends the membership with that error.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from pykafka08.error_codes import ErrorCode
from pykafka08.errors import (
    BrokerError,
    ConfigError,
    KafkaError,
    LocalProtocolError,
    RemoteProtocolError,
    ResponseTooLargeError,
    SecurityError,
    UnsupportedVersionError,
    broker_error,
)
from pykafka08.records.record import TopicPartition

__all__ = [
    "FAILURES",
    "REACTIONS",
    "Api",
    "Reaction",
    "group_error",
    "join_message",
    "invalid_answer_error",
    "reaction_to",
    "reaction_to_failure",
]


class Api(str, Enum):
    """The messages of a group member."""

    ANY = "any"
    FIND_COORDINATOR = "FindCoordinator"
    JOIN_GROUP = "JoinGroup"
    SYNC_GROUP = "SyncGroup"
    HEARTBEAT = "Heartbeat"
    LEAVE_GROUP = "LeaveGroup"
    CONSUMER_GROUP_HEARTBEAT = "ConsumerGroupHeartbeat"
    OFFSET_COMMIT = "OffsetCommit"
    OFFSET_FETCH = "OffsetFetch"


class Reaction(Enum):
    """What happens next."""

    PROCEED = "there is no error"
    BACK_OFF = "the same again after a pause"
    FIND_COORDINATOR = "look for the coordinator, then the same again"
    FIND_THEN_FAIL = "as FIND_COORDINATOR, but an error when it lasts longer than default_api_timeout_ms"
    REFRESH = "the topic may have moved or be new: refresh metadata, then the same again"
    TAKE_MEMBER_ID = "join again at once, with the member id that came back"
    REJOIN = "join again with the same member id; nothing is lost"
    LOSE_GENERATION = "the partitions are lost; join again with the same member id"
    LOSE_MEMBERSHIP = "the partitions are lost; join again as a new member"
    RELEASE = "say that the former self has left, then join again"
    FALL_BACK = "the classic protocol, or the end where only the new one will do"
    REFUSE = "that partition's offset is not committed or known; the others may be"
    FAIL = "tell the application; the membership has ended"


REACTIONS: Mapping[tuple[Api, ErrorCode], Reaction] = {
    (Api.ANY, ErrorCode.NONE): Reaction.PROCEED,
    # the coordinator
    (Api.ANY, ErrorCode.NOT_COORDINATOR): Reaction.FIND_COORDINATOR,
    (Api.ANY, ErrorCode.COORDINATOR_NOT_AVAILABLE): Reaction.FIND_COORDINATOR,
    (Api.ANY, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS): Reaction.BACK_OFF,
    # Brokers answer it for a coordinator whose log moves while they write to it.
    (Api.ANY, ErrorCode.UNKNOWN_SERVER_ERROR): Reaction.FIND_COORDINATOR,
    # On first use __consumer_offsets is being made, for seconds.
    (Api.FIND_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE): Reaction.BACK_OFF,
    (Api.FIND_COORDINATOR, ErrorCode.NOT_COORDINATOR): Reaction.BACK_OFF,
    (Api.FIND_COORDINATOR, ErrorCode.UNKNOWN_SERVER_ERROR): Reaction.BACK_OFF,
    (Api.FIND_COORDINATOR, ErrorCode.INVALID_REPLICATION_FACTOR): Reaction.BACK_OFF,
    # the membership
    (Api.JOIN_GROUP, ErrorCode.MEMBER_ID_REQUIRED): Reaction.TAKE_MEMBER_ID,
    (Api.ANY, ErrorCode.REBALANCE_IN_PROGRESS): Reaction.REJOIN,
    (Api.ANY, ErrorCode.ILLEGAL_GENERATION): Reaction.LOSE_GENERATION,
    (Api.ANY, ErrorCode.UNKNOWN_MEMBER_ID): Reaction.LOSE_MEMBERSHIP,
    # Another process has taken this instance id: to join again would only fence that one.
    (Api.ANY, ErrorCode.FENCED_INSTANCE_ID): Reaction.FAIL,
    # Gone is gone, whoever says so and however.
    (Api.LEAVE_GROUP, ErrorCode.UNKNOWN_MEMBER_ID): Reaction.PROCEED,
    # offsets, each with its partition
    (Api.OFFSET_COMMIT, ErrorCode.REBALANCE_IN_PROGRESS): Reaction.BACK_OFF,
    # A member of the new protocol whose heartbeat is under way: its answer has the newer epoch.
    (Api.OFFSET_COMMIT, ErrorCode.STALE_MEMBER_EPOCH): Reaction.BACK_OFF,
    (Api.OFFSET_COMMIT, ErrorCode.GROUP_ID_NOT_FOUND): Reaction.LOSE_MEMBERSHIP,
    (Api.OFFSET_COMMIT, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION): Reaction.REFUSE,
    (Api.OFFSET_COMMIT, ErrorCode.UNKNOWN_TOPIC_ID): Reaction.REFUSE,
    (Api.OFFSET_COMMIT, ErrorCode.OFFSET_METADATA_TOO_LARGE): Reaction.REFUSE,
    (Api.OFFSET_COMMIT, ErrorCode.INVALID_COMMIT_OFFSET_SIZE): Reaction.REFUSE,
    (Api.OFFSET_COMMIT, ErrorCode.TOPIC_AUTHORIZATION_FAILED): Reaction.REFUSE,
    (Api.OFFSET_FETCH, ErrorCode.UNKNOWN_TOPIC_ID): Reaction.REFRESH,
    (Api.OFFSET_FETCH, ErrorCode.UNSTABLE_OFFSET_COMMIT): Reaction.BACK_OFF,
    # Version 0 says so where nothing was committed, and 0.8.2 of a topic that it has not heard of.
    (Api.OFFSET_FETCH, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION): Reaction.PROCEED,
}


def reaction_to(api: Api, code: int) -> Reaction:
    """The row for the message, else the row for any, else what the code's own flag says."""
    known = ErrorCode.of(code)
    if not isinstance(known, ErrorCode):
        return Reaction.FAIL
    row = REACTIONS.get((api, known)) or REACTIONS.get((Api.ANY, known))
    if row is not None:
        return row
    return Reaction.BACK_OFF if known.is_retriable else Reaction.FAIL


#: What to do when a request had no answer, by the kind of error; first match counts.
FAILURES: tuple[tuple[type[KafkaError], Reaction], ...] = (
    (UnsupportedVersionError, Reaction.FAIL),
    (LocalProtocolError, Reaction.FAIL),
    (ConfigError, Reaction.FAIL),
    # A retry would get an answer of the same size.
    (ResponseTooLargeError, Reaction.FAIL),
    # The cluster client has tried for a while before it gives this error.
    (SecurityError, Reaction.FAIL),
    # The answer cannot be decoded: another coordinator may answer correctly, this one will not.
    (RemoteProtocolError, Reaction.FIND_THEN_FAIL),
    # The broker is down, unreachable or slow; it may recover, or another broker become the coordinator.
    (KafkaError, Reaction.FIND_COORDINATOR),
)


def reaction_to_failure(api: Api, error: KafkaError) -> Reaction:
    if isinstance(error, BrokerError):
        return reaction_to(api, int(error.code))
    return next(reaction for kind, reaction in FAILURES if isinstance(error, kind))


def join_message(code: int, session_timeout: float, *, is_v0: bool) -> str | None:
    """The text for a refused JoinGroup if the meaning of the code does not name the setting.

    ``session_timeout`` is in seconds.
    """
    if code != ErrorCode.INVALID_SESSION_TIMEOUT:
        return None
    bounds = "group.min.session.timeout.ms and group.max.session.timeout.ms"
    default = " (6000 to 30000 by default before Kafka 0.10.1)" if is_v0 else " (from 6000 by default)"
    return f"session_timeout_ms={round(session_timeout * 1000)} is outside the brokers' {bounds}{default}"


def group_error(
    code: int,
    message: str | None = None,
    *,
    api: Api,
    group: str,
    broker: str | None,
    tp: TopicPartition | None = None,
    needed: str | None = "READ",
) -> BrokerError:
    """The exception for an error code in an answer of the group's coordinator.

    ``needed`` is the operation on the group and its topics that the client needs; None for what was refused.
    """
    topic, partition = tp if tp is not None else (None, None)
    return broker_error(
        code, message, broker=broker, api=api.value, topic=topic, partition=partition, group=group, needed=needed
    )


def invalid_answer_error(
    fault: str, *, api: Api, group: str, broker: str | None, tp: TopicPartition | None = None
) -> RemoteProtocolError:
    """The exception for an answer of the group's coordinator that has an impossible value."""
    topic, partition = tp if tp is not None else (None, None)
    error = RemoteProtocolError(fault, broker=broker, api=api.value, topic=topic, partition=partition)
    error.group = group
    return error
