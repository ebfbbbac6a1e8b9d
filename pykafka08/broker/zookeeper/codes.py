"""Numbers of ZooKeeper's protocol.  Source: ZooDefs, KeeperException and Watcher of ZooKeeper 3.3 to 3.8."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["ErrorCode", "EventType", "Fault", "Operation"]


class Operation(IntEnum):
    """What a request asks for."""

    CREATE = 1
    DELETE = 2
    EXISTS = 3
    GET_DATA = 4
    SET_DATA = 5
    GET_ACL = 6
    SET_ACL = 7
    GET_CHILDREN = 8
    SYNC = 9
    PING = 11
    GET_CHILDREN2 = 12
    CHECK = 13
    MULTI = 14
    CREATE2 = 15
    AUTH = 100
    SET_WATCHES = 101
    SASL = 102
    CLOSE = -11


class ErrorCode(IntEnum):
    OK = 0
    RUNTIME_INCONSISTENCY = -2
    MARSHALLING = -5
    UNIMPLEMENTED = -6
    BAD_ARGUMENTS = -8
    NO_NODE = -101
    NO_AUTH = -102
    BAD_VERSION = -103
    NO_CHILDREN_FOR_EPHEMERALS = -108
    NODE_EXISTS = -110
    NOT_EMPTY = -111
    INVALID_ACL = -114
    AUTH_FAILED = -115


class EventType(IntEnum):
    CREATED = 1
    DELETED = 2
    CHANGED = 3
    CHILDREN = 4


class Fault(Exception):
    """A request is refused with this code."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code
