"""Nodes of the authorizer: who may do what, and the notices of a change; and delegation tokens.

Kafka's writers: SimpleAclAuthorizer (0.9 to 2.3), AclAuthorizer, ZkData, DelegationTokenManager.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pykafka08.errors import MalformedNodeError
from pykafka08.zookeeper.nodes.document import JsonNode, JsonObject, Key, TextNode, nested
from pykafka08.zookeeper.nodes.shapes import each, integer, long, string

__all__ = ["Acl", "AclChange", "Acls", "DelegationToken", "ExtendedAclChange", "TokenChange"]


@dataclass(frozen=True, kw_only=True)
class Acl(JsonObject):
    """One rule, such as: Allow User:alice from any host (``*``) to Read."""

    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("principal", "principal", string),
        Key("permissionType", "permission", string),
        Key("operation", "operation", string),
        Key("host", "host", string),
    )

    principal: str
    permission: str = "Allow"
    operation: str
    host: str = "*"


@dataclass(frozen=True, kw_only=True)
class Acls(JsonNode):
    """The rules of one resource."""

    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("version", "version", integer, False),
        Key("acls", "acls", each(nested(Acl))),
    )

    acls: Sequence[Acl] = ()


class AclChange(TextNode):
    """A notice ``Type:name``: the rules of that resource are new.  Its type's spelling depends on the release."""

    @classmethod
    def decode(cls, data: bytes, path: str) -> AclChange:
        change = super().decode(data, path)
        if ":" not in change.text:
            raise MalformedNodeError(path, "its data is not of the form Type:name")
        return change

    @property
    def resource(self) -> tuple[str, str]:
        """The type as it is spelt, and the name, which may have colons."""
        kind, _, name = self.text.partition(":")
        return kind, name


@dataclass(frozen=True, kw_only=True)
class ExtendedAclChange(JsonNode):
    """The same for rules of prefixes (2.0 and later)."""

    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("version", "version", integer, False),
        Key("resourceType", "resource_type", string),
        Key("name", "name", string),
        Key("patternType", "pattern_type", string),
    )

    resource_type: str
    name: str
    pattern_type: str = "PREFIXED"


@dataclass(frozen=True, kw_only=True)
class DelegationToken(JsonNode):
    """A delegation token; times in milliseconds.  Its secret is not in ZooKeeper: brokers compute it."""

    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("version", "version", integer, False),
        Key("owner", "owner", string),
        Key("tokenRequester", "requester", string, False, since=3),
        Key("renewers", "renewers", each(string)),
        Key("issueTimestamp", "issued_ms", long),
        Key("maxTimestamp", "longest_ms", long),
        Key("expiryTimestamp", "expires_ms", long),
        Key("tokenId", "token_id", string),
    )

    owner: str
    requester: str | None = None
    renewers: Sequence[str]
    issued_ms: int
    longest_ms: int
    expires_ms: int
    token_id: str


class TokenChange(TextNode):
    """A notice: the token with this id changed."""
