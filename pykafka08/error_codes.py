"""Kafka's error codes as data: number, name, whether a retry may help, and one line of meaning.

What a code makes us *do* stands in the reaction table of each machine; this table is only the wire's.
Source: Kafka's protocol guide, error codes; 0.8 and 0.9 used other names for some (NotLeaderForPartition is 6).
"""

from __future__ import annotations

from enum import IntEnum

__all__ = ["ErrorCode"]


RETRY = "retry"
RETRY_AFTER_REFRESH = "refresh metadata, then retry"


class ErrorCode(IntEnum):
    """A code of the broker; ``meaning`` is one line, ``is_retriable`` the default of the reaction tables.

    ``is_stale_metadata``: the cluster's picture is out of date, refresh it before the retry.
    """

    meaning: str
    is_retriable: bool
    is_stale_metadata: bool

    def __new__(cls, code: int, meaning: str, retry: str = "") -> ErrorCode:
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        member.is_retriable = bool(retry)
        member.is_stale_metadata = retry == RETRY_AFTER_REFRESH
        return member

    @classmethod
    def of(cls, code: int) -> ErrorCode | int:
        """The member for ``code``, or the bare number where this table lacks it."""
        return _BY_CODE.get(code, code)

    UNKNOWN_SERVER_ERROR = -1, "the broker met an error it has no code for (0.8 uses it for everything unmapped)"
    NONE = 0, "no error"
    OFFSET_OUT_OF_RANGE = 1, "the offset is below the start or above the end of the log"
    CORRUPT_MESSAGE = 2, "a message failed its checksum, or has no key on a compacted topic", RETRY
    UNKNOWN_TOPIC_OR_PARTITION = 3, "this broker does not have the topic or partition", RETRY_AFTER_REFRESH
    INVALID_FETCH_SIZE = 4, "the fetch size is not possible"
    LEADER_NOT_AVAILABLE = 5, "no leader yet: an election or the topic's creation is running", RETRY_AFTER_REFRESH
    NOT_LEADER_OR_FOLLOWER = 6, "this broker no longer serves the partition", RETRY_AFTER_REFRESH
    REQUEST_TIMED_OUT = 7, "the broker gave up waiting; the records may be in the log", RETRY
    BROKER_NOT_AVAILABLE = 8, "the broker is down (used by tools only)"
    REPLICA_NOT_AVAILABLE = 9, "a replica is down; harmless in metadata when a leader is named", RETRY_AFTER_REFRESH
    MESSAGE_TOO_LARGE = 10, "the batch is larger than the topic's max.message.bytes or the broker's message.max.bytes"
    STALE_CONTROLLER_EPOCH = 11, "an older controller spoke (between brokers only)"
    OFFSET_METADATA_TOO_LARGE = (
        12,
        "the text beside an offset is longer than the broker's offset.metadata.max.bytes",
    )
    NETWORK_EXCEPTION = 13, "the broker lost a connection it needed", RETRY_AFTER_REFRESH
    COORDINATOR_LOAD_IN_PROGRESS = 14, "the coordinator is still loading; ask it again", RETRY
    COORDINATOR_NOT_AVAILABLE = 15, "there is no coordinator yet; look for it again", RETRY
    NOT_COORDINATOR = 16, "this broker is not the coordinator; look for it again", RETRY
    INVALID_TOPIC_EXCEPTION = 17, "the topic is internal, or its name is not allowed or collides ('.' equals '_')"
    RECORD_LIST_TOO_LARGE = 18, "the set of records is larger than a log segment, the topic's segment.bytes"
    NOT_ENOUGH_REPLICAS = 19, "fewer replicas are in sync than the topic demands; nothing was written", RETRY
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, "written, but to fewer replicas than the topic demands", RETRY
    INVALID_REQUIRED_ACKS = 21, "acks is none of -1, 0 and 1"
    ILLEGAL_GENERATION = 22, "the group has moved on to another generation"
    INCONSISTENT_GROUP_PROTOCOL = 23, "no assignment protocol is common to all members"
    INVALID_GROUP_ID = 24, "the group's name is not allowed"
    UNKNOWN_MEMBER_ID = 25, "the group does not know this member"
    INVALID_SESSION_TIMEOUT = 26, "session_timeout_ms is outside the brokers' group.min/max.session.timeout.ms"
    REBALANCE_IN_PROGRESS = 27, "the group is rebalancing; join again"
    INVALID_COMMIT_OFFSET_SIZE = (
        28,
        "the offsets and their texts are larger than the max.message.bytes of __consumer_offsets",
    )
    TOPIC_AUTHORIZATION_FAILED = 29, "not allowed to use the topic"
    GROUP_AUTHORIZATION_FAILED = 30, "not allowed to use the group"
    CLUSTER_AUTHORIZATION_FAILED = 31, "not allowed to act on the cluster"
    INVALID_TIMESTAMP = 32, "the timestamp is too far from the broker's clock"
    UNSUPPORTED_SASL_MECHANISM = 33, "the broker does not offer the SASL mechanism"
    ILLEGAL_SASL_STATE = 34, "the request does not fit the state of the SASL exchange"
    UNSUPPORTED_VERSION = 35, "the broker does not serve this version of the API"
    TOPIC_ALREADY_EXISTS = 36, "a topic of this name exists"
    INVALID_PARTITIONS = 37, "the number of partitions is not possible"
    INVALID_REPLICATION_FACTOR = 38, "the replication factor is not possible with the brokers that are up"
    INVALID_REPLICA_ASSIGNMENT = 39, "the replica assignment is not possible"
    INVALID_CONFIG = 40, "a configuration value is not allowed"
    NOT_CONTROLLER = 41, "this broker is not the controller; find it again", RETRY
    INVALID_REQUEST = 42, "the broker could not make sense of the request"
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, "the topic's message format cannot hold this"
    POLICY_VIOLATION = 44, "a policy of the cluster forbids this"
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, "a batch of an idempotent producer came out of order"
    DUPLICATE_SEQUENCE_NUMBER = 46, "the batch is in the log already"
    INVALID_PRODUCER_EPOCH = 47, "a newer producer with the same id exists"
    INVALID_TXN_STATE = 48, "the transaction is not in a state that allows this"
    INVALID_PRODUCER_ID_MAPPING = 49, "the producer id does not belong to the transactional id"
    INVALID_TRANSACTION_TIMEOUT = (
        50,
        "transaction_timeout_ms is above the broker's transaction.max.timeout.ms",
    )
    CONCURRENT_TRANSACTIONS = 51, "an earlier transaction of this producer is still being ended", RETRY
    TRANSACTION_COORDINATOR_FENCED = 52, "the transaction coordinator was replaced"
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, "not allowed to use the transactional id"
    SECURITY_DISABLED = 54, "the broker has no security features on"
    OPERATION_NOT_ATTEMPTED = 55, "not tried, because another part of the request failed"
    KAFKA_STORAGE_ERROR = 56, "the broker's disk failed", RETRY_AFTER_REFRESH
    LOG_DIR_NOT_FOUND = 57, "the broker has no such log directory"
    SASL_AUTHENTICATION_FAILED = 58, "the credentials were refused"
    UNKNOWN_PRODUCER_ID = 59, "the broker has forgotten this producer's state"
    REASSIGNMENT_IN_PROGRESS = 60, "the partition is being reassigned"
    DELEGATION_TOKEN_AUTH_DISABLED = 61, "delegation tokens are off"
    DELEGATION_TOKEN_NOT_FOUND = 62, "no such delegation token"
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, "the token belongs to another principal"
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, "delegation token requests are not allowed on this connection"
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, "not allowed to use the delegation token"
    DELEGATION_TOKEN_EXPIRED = 66, "the delegation token has expired"
    INVALID_PRINCIPAL_TYPE = 67, "the principal's type is not supported"
    NON_EMPTY_GROUP = 68, "the group still has members"
    GROUP_ID_NOT_FOUND = 69, "no such group"
    FETCH_SESSION_ID_NOT_FOUND = 70, "the broker has forgotten the fetch session", RETRY
    INVALID_FETCH_SESSION_EPOCH = 71, "the fetch session is at another epoch", RETRY
    LISTENER_NOT_FOUND = 72, "the leader has no listener like the one asked", RETRY_AFTER_REFRESH
    TOPIC_DELETION_DISABLED = 73, "the cluster does not allow topics to be deleted"
    FENCED_LEADER_EPOCH = 74, "the client knows an older leader epoch", RETRY_AFTER_REFRESH
    UNKNOWN_LEADER_EPOCH = 75, "the client knows a newer leader epoch than this broker", RETRY
    UNSUPPORTED_COMPRESSION_TYPE = 76, "the broker or the requested version cannot handle the compression"
    STALE_BROKER_EPOCH = 77, "the broker was restarted meanwhile (between brokers only)"
    OFFSET_NOT_AVAILABLE = 78, "the new leader does not know the high watermark yet", RETRY
    MEMBER_ID_REQUIRED = 79, "join again with the member id that came back"
    PREFERRED_LEADER_NOT_AVAILABLE = 80, "the preferred leader is down", RETRY_AFTER_REFRESH
    GROUP_MAX_SIZE_REACHED = (
        81,
        "the group is full: the broker's group.max.size, or group.consumer.max.size with the new protocol",
    )
    FENCED_INSTANCE_ID = 82, "another member uses this group instance id"
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, "no replica may become leader", RETRY_AFTER_REFRESH
    ELECTION_NOT_NEEDED = 84, "the partition has the right leader already", RETRY_AFTER_REFRESH
    NO_REASSIGNMENT_IN_PROGRESS = 85, "there is no reassignment to cancel"
    GROUP_SUBSCRIBED_TO_TOPIC = 86, "the group still reads the topic"
    INVALID_RECORD = 87, "the broker refused a record of the batch"
    UNSTABLE_OFFSET_COMMIT = 88, "a transaction on these offsets is still open", RETRY
    THROTTLING_QUOTA_EXCEEDED = 89, "a quota is used up for now", RETRY
    PRODUCER_FENCED = 90, "a newer producer with the same transactional id exists"
    RESOURCE_NOT_FOUND = 91, "no such resource"
    DUPLICATE_RESOURCE = 92, "the resource is named twice"
    UNACCEPTABLE_CREDENTIAL = 93, "the credential does not meet the rules"
    INCONSISTENT_VOTER_SET = 94, "voter sets differ (controllers only)"
    INVALID_UPDATE_VERSION = 95, "the update's version is not the next one (between brokers only)"
    FEATURE_UPDATE_FAILED = 96, "the finalized features could not be changed"
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, "a forwarded principal could not be read"
    SNAPSHOT_NOT_FOUND = 98, "no such snapshot (controllers only)"
    POSITION_OUT_OF_RANGE = 99, "a position is outside the snapshot (controllers only)"
    UNKNOWN_TOPIC_ID = 100, "this broker does not have a topic of that id", RETRY_AFTER_REFRESH
    DUPLICATE_BROKER_REGISTRATION = 101, "the broker id is taken (between brokers only)"
    BROKER_ID_NOT_REGISTERED = 102, "the broker id is not registered"
    INCONSISTENT_TOPIC_ID = 103, "the log has another topic id", RETRY_AFTER_REFRESH
    INCONSISTENT_CLUSTER_ID = 104, "the cluster id differs"
    TRANSACTIONAL_ID_NOT_FOUND = 105, "no such transactional id"
    FETCH_SESSION_TOPIC_ID_ERROR = 106, "the fetch session mixes topic names and ids", RETRY
    INELIGIBLE_REPLICA = 107, "the replica may not join the in-sync set"
    NEW_LEADER_ELECTED = 108, "the change itself moved the leader"
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, "the offset is in tiered storage now"
    FENCED_MEMBER_EPOCH = 110, "the member's epoch is out of date; join again"
    UNRELEASED_INSTANCE_ID = 111, "the group instance id is still in use"
    UNSUPPORTED_ASSIGNOR = 112, "the coordinator does not have the assignor"
    STALE_MEMBER_EPOCH = 113, "the member's epoch is old; heartbeat first"
    MISMATCHED_ENDPOINT_TYPE = 114, "brokers were asked where controllers answer, or the reverse"
    UNSUPPORTED_ENDPOINT_TYPE = 115, "the endpoint type is not known"
    UNKNOWN_CONTROLLER_ID = 116, "no such controller"
    UNKNOWN_SUBSCRIPTION_ID = 117, "the telemetry subscription is out of date"
    TELEMETRY_TOO_LARGE = 118, "the telemetry is too large"
    INVALID_REGISTRATION = 119, "the registration is not valid (between brokers only)"
    TRANSACTION_ABORTABLE = 120, "the transaction must be aborted, then the producer can go on"
    INVALID_RECORD_STATE = 121, "the record is not in a state that allows this acknowledgement"
    SHARE_SESSION_NOT_FOUND = 122, "the broker has forgotten the share session", RETRY
    INVALID_SHARE_SESSION_EPOCH = 123, "the share session is at another epoch", RETRY
    FENCED_STATE_EPOCH = 124, "the share group state has moved on"
    INVALID_VOTER_KEY = 125, "the voter key does not match (controllers only)"
    DUPLICATE_VOTER = 126, "the voter exists already (controllers only)"
    VOTER_NOT_FOUND = 127, "no such voter (controllers only)"
    INVALID_REGULAR_EXPRESSION = 128, "the subscription's regular expression is not valid"
    REBOOTSTRAP_REQUIRED = 129, "forget the metadata and start from the bootstrap addresses"
    STREAMS_INVALID_TOPOLOGY = 130, "the streams topology is not valid"
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, "the streams topology epoch is not valid"
    STREAMS_TOPOLOGY_FENCED = 132, "the streams topology is out of date"
    SHARE_SESSION_LIMIT_REACHED = 133, "the broker has no room for another share session", RETRY


_BY_CODE: dict[int, ErrorCode] = {int(member): member for member in ErrorCode}
