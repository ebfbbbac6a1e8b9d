"""One file per API, named for it in snake_case; here the index of them.  Nothing is imported before it is asked for.

Declared are all APIs that a client may send to a broker, each in every version that any release has served, those that
Kafka 4.0 dropped included.  What only brokers and controllers say to each other is left out, but for
``consumer_protocol``, which has no key: members of a group speak it inside JoinGroup and SyncGroup.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from importlib import import_module
from typing import Any, NamedTuple

from pykafka08.errors import UnsupportedVersionError
from pykafka08.protocol.schema import Request, Response

__all__ = ["REGISTRY", "Api", "ApiKey", "request_class", "response_class"]


class ApiKey(IntEnum):
    """The number of each declared API."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    DESCRIBE_QUORUM = 55
    UPDATE_FEATURES = 57
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92


class Api(NamedTuple):
    """Where an API is declared.  ``name`` is Kafka's: the classes are ``<name>Request`` and ``<name>Response``."""

    key: ApiKey
    name: str
    module: str

    def load(self) -> tuple[type[Request[Any]], type[Response]]:
        """Both classes; imports the module."""
        module = import_module(self.module)
        return getattr(module, f"{self.name}Request"), getattr(module, f"{self.name}Response")


class _Registry(Mapping[int, Api]):
    """API key to :class:`Api`."""

    def __init__(self) -> None:
        self._apis: dict[int, Api] = {}
        for key in ApiKey:
            snake = key.name.lower()
            name = "".join(word.capitalize() for word in snake.split("_"))
            self._apis[key] = Api(key, name, f"{__name__}.{snake}")

    def __getitem__(self, key: int) -> Api:
        return self._apis[key]

    def __iter__(self) -> Iterator[int]:
        return iter(self._apis)

    def __len__(self) -> int:
        return len(self._apis)


REGISTRY: Mapping[int, Api] = _Registry()


def _api(key: int) -> Api:
    try:
        return REGISTRY[key]
    except KeyError:
        raise UnsupportedVersionError(f"no API with key {key} is declared") from None


def request_class(key: int) -> type[Request[Any]]:
    """The request class of an API; UnsupportedVersionError where the key is not declared."""
    return _api(key).load()[0]


def response_class(key: int) -> type[Response]:
    """The response class of an API; UnsupportedVersionError where the key is not declared."""
    return _api(key).load()[1]
