"""Nodes as the bridge reads them, the changes it makes, and who may do what with a node."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntFlag
from typing import NamedTuple

__all__ = [
    "CREATOR_ONLY",
    "CREATOR_WRITES",
    "OPEN",
    "Access",
    "Acl",
    "Check",
    "Create",
    "Delete",
    "Node",
    "Operation",
    "Permission",
    "Stat",
    "Write",
    "digest_identity",
]

ANY_VERSION = -1


class Stat(NamedTuple):
    """What ZooKeeper knows of a node.  ``ephemeral_owner`` is a session's id, 0 for a persistent node."""

    version: int
    ephemeral_owner: int
    czxid: int
    mzxid: int
    children: int
    created_ms: int
    modified_ms: int


class Node(NamedTuple):
    data: bytes
    stat: Stat


class Permission(IntFlag):
    READ = 1
    WRITE = 2
    CREATE = 4
    DELETE = 8
    ADMIN = 16
    ALL = 31


class Access(NamedTuple):
    """One entry of an access list: what ``identity`` of ``scheme`` may do."""

    scheme: str
    identity: str
    permissions: Permission = Permission.ALL


Acl = Sequence[Access]

OPEN: Acl = (Access("world", "anyone"),)
CREATOR_ONLY: Acl = (Access("auth", ""),)
CREATOR_WRITES: Acl = (*CREATOR_ONLY, Access("world", "anyone", Permission.READ))
"""What Kafka gives its nodes with ``zookeeper.set.acl=true``."""


def digest_identity(user: str, password: str) -> str:
    """``user:hash``, as the scheme "digest" has it in access lists."""
    hashed = hashlib.sha1(f"{user}:{password}".encode()).digest()  # noqa: S324 - ZooKeeper's own
    return f"{user}:{base64.b64encode(hashed).decode()}"


@dataclass(frozen=True)
class Create:
    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequence: bool = False
    acl: Acl | None = None


@dataclass(frozen=True)
class Write:
    path: str
    data: bytes
    version: int = ANY_VERSION


@dataclass(frozen=True)
class Delete:
    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True)
class Check:
    """Nothing is changed unless the node has this version."""

    path: str
    version: int = ANY_VERSION


Operation = Create | Write | Delete | Check
