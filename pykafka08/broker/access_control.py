"""Access control lists: stored, matched and checked as in Kafka's StandardAuthorizer; ``authorizer`` enforces them.

Numbers are those of Kafka's enums; see ``protocol.messages.describe_acls``.  Source: KIP-11, KIP-140, KIP-290.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pykafka08.acl_operations import CLUSTER_NAME, AclResourceType
from pykafka08.error_codes import ErrorCode

__all__ = [
    "ALLOW",
    "ANY",
    "DENY",
    "EVERY_NAME",
    "LITERAL",
    "PREFIXED",
    "Acl",
    "AclFilter",
    "Acls",
    "acl_fault",
    "is_known",
]

ANY = 1
MATCH, LITERAL, PREFIXED = 2, 3, 4
DENY, ALLOW = 2, 3
EVERY_NAME = "*"
LARGEST = (7, 4, 15, 3)
"""The largest valid resource type, pattern type, operation and permission type."""


class Acl(NamedTuple):
    """One access control entry."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        return self.resource_type, self.pattern_type, self.operation, self.permission_type


class AclFilter(NamedTuple):
    """Conditions on entries; ANY and None match every value."""

    resource_type: int
    resource_name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission_type: int

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        return self.resource_type, self.pattern_type, self.operation, self.permission_type

    def matches(self, acl: Acl) -> bool:
        return (
            self.resource_type in (ANY, acl.resource_type)
            and self._matches_name(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (ANY, acl.operation)
            and self.permission_type in (ANY, acl.permission_type)
        )

    def _matches_name(self, acl: Acl) -> bool:
        if self.pattern_type not in (ANY, MATCH, acl.pattern_type):
            return False
        if self.resource_name is None:
            return True
        if self.pattern_type != MATCH:
            return acl.resource_name == self.resource_name
        if acl.pattern_type == PREFIXED:
            return self.resource_name.startswith(acl.resource_name)
        return acl.resource_name in (self.resource_name, EVERY_NAME)


def is_known(numbers: Iterable[int]) -> bool:
    """True if all four numbers of an entry or a filter are valid."""
    return all(0 < number <= most for number, most in zip(numbers, LARGEST, strict=True))


def acl_fault(acl: Acl) -> tuple[ErrorCode, str | None]:
    """The error of an entry that cannot be created; NONE if it can."""
    if ANY in acl.numbers or acl.pattern_type == MATCH:
        return ErrorCode.UNKNOWN_SERVER_ERROR, None
    if ":" not in acl.principal:
        return ErrorCode.INVALID_REQUEST, f"principal {acl.principal!r:.300} is not of the form type:name"
    if not acl.resource_name:
        return ErrorCode.INVALID_REQUEST, "the resource's name must not be empty"
    if acl.resource_type == AclResourceType.CLUSTER and acl.resource_name != CLUSTER_NAME:
        return ErrorCode.INVALID_REQUEST, f"the cluster's name is {CLUSTER_NAME}, not {acl.resource_name!r:.300}"
    return ErrorCode.NONE, ""


class Acls:
    """The entries of a cluster, without duplicates."""

    def __init__(self) -> None:
        self._acls: dict[Acl, None] = {}

    def __iter__(self) -> Iterator[Acl]:
        return iter(self._acls)

    def add(self, acl: Acl) -> None:
        self._acls[acl] = None

    def matching(self, wanted: AclFilter) -> list[Acl]:
        return [acl for acl in self._acls if wanted.matches(acl)]

    def remove(self, acl: Acl) -> None:
        self._acls.pop(acl, None)
