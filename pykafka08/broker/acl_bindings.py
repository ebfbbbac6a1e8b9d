"""ACLs as users of the embedded cluster write them: as ``"User:alice READ topic orders"``, or as arguments."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum

from pykafka08.acl_operations import CLUSTER_NAME, SUPPORTED_OPERATIONS, AclOperation, AclResourceType
from pykafka08.broker.access_control import ALLOW, ANY, DENY, LITERAL, PREFIXED, Acl, AclFilter, acl_fault
from pykafka08.broker.authorizer import CLASS_NAME, EVERY_HOST
from pykafka08.broker.cluster_state import ClusterState
from pykafka08.broker.personality import Personality
from pykafka08.errors import ConfigError

__all__ = ["ACL_FORM", "ClusterAcls", "acl_of_text", "with_authorizer"]

ACL_FORM = "[allow|deny] PRINCIPAL OPERATION RESOURCE_TYPE [NAME] [literal|prefixed] [from HOST]"
EXAMPLE = "User:alice READ topic orders"
PERMISSIONS = {"ALLOW": ALLOW, "DENY": DENY}
PATTERN_TYPES = {"LITERAL": LITERAL, "PREFIXED": PREFIXED}


def _words(kinds: type[IntEnum]) -> str:
    return "|".join(each.name.replace("_", "[-_]?") for each in kinds)


TEXT = re.compile(
    r"(?:(allow|deny) )?(\w+:.+?) "
    rf"({_words(AclOperation)}) ({_words(AclResourceType)})"
    r"(?: (.+?))?(?: (literal|prefixed))?(?: from (\S+))?",
    re.IGNORECASE,
)
"""The operation and the type are known words, since the name of a principal or of a group may contain spaces."""


class ClusterAcls:
    """The ACLs of a cluster; iteration returns them as texts of the form :data:`ACL_FORM`.

    Words are those of Kafka's tools, in upper or lower case: the operation ``"READ"``, the resource type ``"topic"``.
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def __iter__(self) -> Iterator[str]:
        return map(_text_of, tuple(self._state.acls))

    def add(self, texts: Sequence[str]) -> None:
        """Add ACLs of that form."""
        if isinstance(texts, str) or not isinstance(texts, Sequence):
            raise ConfigError(f"acls={texts!r:.100} is not a list of texts such as {EXAMPLE!r}")
        for acl in [acl_of_text(text, self._state.personality) for text in texts]:
            self._add(acl)

    def allow(
        self,
        principal: str,
        operation: str,
        resource_type: str,
        resource_name: str | None = None,
        *,
        pattern_type: str = "LITERAL",
        host: str = EVERY_HOST,
    ) -> None:
        """Add an ACL: ``allow("User:alice", "READ", "topic", "orders")``; the cluster as a resource needs no name."""
        words = (principal, operation, resource_type, resource_name, pattern_type, host)
        self._add(acl_of("ALLOW", *words, self._state.personality))

    def deny(
        self,
        principal: str,
        operation: str,
        resource_type: str,
        resource_name: str | None = None,
        *,
        pattern_type: str = "LITERAL",
        host: str = EVERY_HOST,
    ) -> None:
        """Add an ACL that denies; it overrides those that allow."""
        words = (principal, operation, resource_type, resource_name, pattern_type, host)
        self._add(acl_of("DENY", *words, self._state.personality))

    def remove(
        self,
        principal: str | None = None,
        operation: str | None = None,
        resource_type: str | None = None,
        resource_name: str | None = None,
        *,
        pattern_type: str | None = None,
        host: str | None = None,
    ) -> int:
        """Remove all ACLs with these values, whether they allow or deny; None is every value.  Returns their number."""
        wanted = acl_filter(principal, operation, resource_type, resource_name, pattern_type, host)
        removed = self._state.acls.matching(wanted)
        for acl in removed:
            self._state.acls.remove(acl)
        return len(removed)

    def _add(self, acl: Acl) -> None:
        if self._state.authorizer is None:
            raise ConfigError("the brokers have no authorizer: set acls=[], or the property authorizer.class.name")
        self._state.acls.add(acl)


def _text_of(acl: Acl) -> str:
    words = [] if acl.permission_type == ALLOW else ["deny"]
    kind = AclResourceType(acl.resource_type)
    words += [acl.principal, AclOperation(acl.operation).name, kind.name.lower().replace("_", "-")]
    words += [] if kind is AclResourceType.CLUSTER else [acl.resource_name]
    words += ["prefixed"] if acl.pattern_type == PREFIXED else []
    words += [] if acl.host == EVERY_HOST else [f"from {acl.host}"]
    return " ".join(words)


def acl_of_text(text: str, personality: Personality) -> Acl:
    """The entry of a text of the form :data:`ACL_FORM`."""
    found = TEXT.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ConfigError(f"acls: {text!r:.300} is not of the form {ACL_FORM}, such as {EXAMPLE!r}")
    permission, principal, operation, kind, name, pattern, host = found.groups()
    try:
        return acl_of(
            permission or "ALLOW",
            principal,
            operation,
            kind,
            name,
            pattern or "LITERAL",
            host or EVERY_HOST,
            personality,
        )
    except ConfigError as error:
        raise ConfigError(f"acls: {text!r:.300}: {error.message}") from None


def acl_of(
    permission: str,
    principal: str,
    operation: str,
    resource_type: str,
    resource_name: str | None,
    pattern_type: str,
    host: str,
    personality: Personality,
) -> Acl:
    """An entry; ConfigError if Kafka would refuse it, or if it could never have an effect."""
    action = AclOperation(_number("operation", operation, _numbers(AclOperation)))
    kind = AclResourceType(_number("resource_type", resource_type, _numbers(AclResourceType)))
    pattern = _number("pattern_type", pattern_type, PATTERN_TYPES)
    supported = SUPPORTED_OPERATIONS.get(kind, frozenset(AclOperation))
    if action not in supported and action is not AclOperation.ALL:
        allowed = ", ".join(sorted(each.name for each in supported))
        raise ConfigError(
            f"operation={operation!r:.100} does not exist for a {kind.name.lower()}; set one of {allowed}"
        )
    if resource_name is None and kind is AclResourceType.CLUSTER:
        resource_name = CLUSTER_NAME
    if pattern == PREFIXED and personality < (2, 0):
        raise ConfigError(f"pattern_type='PREFIXED': Kafka {personality.release} has no prefixed ACLs; 2.0 has them")
    for argument, value in {"principal": principal, "resource_name": resource_name}.items():
        if not isinstance(value, str):
            raise ConfigError(f"{argument}={value!r:.100} is not a text")
    _check_host(host)
    acl = Acl(
        kind, resource_name or "", pattern, principal, host, action, _number("permission", permission, PERMISSIONS)
    )
    code, reason = acl_fault(acl)
    if code:
        raise ConfigError(reason or f"the brokers refuse the ACL with {code.name}")
    return acl


def acl_filter(
    principal: str | None,
    operation: str | None,
    resource_type: str | None,
    resource_name: str | None,
    pattern_type: str | None,
    host: str | None,
) -> AclFilter:
    """Conditions on entries of both permissions; None matches every value."""
    return AclFilter(
        ANY if resource_type is None else _number("resource_type", resource_type, _numbers(AclResourceType)),
        resource_name,
        ANY if pattern_type is None else _number("pattern_type", pattern_type, PATTERN_TYPES),
        principal,
        host,
        ANY if operation is None else _number("operation", operation, _numbers(AclOperation)),
        ANY,
    )


def with_authorizer(properties: Mapping[str, str], personality: Personality) -> Mapping[str, str]:
    """The properties of brokers with ACLs: the release's own authorizer, unless they name one."""
    if personality < (0, 9):
        raise ConfigError(f"acls: Kafka {personality.release} has no ACLs; set version to '0.9.0' or later")
    name = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    if personality.has_zookeeper:
        name = "kafka.security.authorizer.AclAuthorizer"
    if personality < (2, 4):
        name = "kafka.security.auth.SimpleAclAuthorizer"
    return {CLASS_NAME: name, **properties} if isinstance(properties, Mapping) else properties


def _numbers(kinds: type[IntEnum]) -> dict[str, int]:
    return {each.name: each for each in kinds}


def _number(argument: str, value: object, numbers: Mapping[str, int]) -> int:
    """The number of a word of Kafka's, which may be written as in its tools: ``Describe``, ``DescribeConfigs``."""
    if isinstance(value, str):
        for name, number in numbers.items():
            if name.replace("_", "") == re.sub("[-_ ]", "", value).upper():
                return number
    raise ConfigError(f"{argument}={value!r:.100} is not one of {', '.join(numbers)}")


def _check_host(host: object) -> None:
    """Kafka compares the addresses of clients; no host name would ever match."""
    try:
        if host != EVERY_HOST:
            ipaddress.ip_address(host)  # type: ignore[arg-type]
    except ValueError:
        raise ConfigError(f"host={host!r:.100} is not an IP address or '*', which is every host") from None
