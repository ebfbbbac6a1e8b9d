"""Decisions about access by Kafka's rules: super users, deny before allow, wildcards, prefixes, implied operations.

Source: KIP-11, KIP-290 (prefixes), KIP-679 (``may_on_any``), and ``StandardAuthorizerData`` of 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pykafka08.acl_operations import AclOperation, AclResourceType
from pykafka08.broker.access_control import ALLOW, DENY, EVERY_NAME, PREFIXED, Acl, Acls

__all__ = ["ANONYMOUS", "AUTHORIZER_PROPERTIES", "CLASS_NAME", "EVERY_HOST", "Authorizer", "authorizer_of"]

ANONYMOUS = "User:ANONYMOUS"
"""The principal of a connection without authentication."""
EVERYONE = "User:*"
EVERY_HOST = "*"
UNNAMED = "hardcode"
"""The name of a resource that Kafka tries first where any resource would do."""
CLASS_NAME, SUPER_USERS, ALLOW_IF_NO_ACL = (
    "authorizer.class.name",
    "super.users",
    "allow.everyone.if.no.acl.found",
)
AUTHORIZER_PROPERTIES = (SUPER_USERS, ALLOW_IF_NO_ACL)
"""Broker properties that Kafka's authorizers read, and its brokers do not list."""

IMPLIED_BY: Mapping[AclOperation, tuple[AclOperation, ...]] = {
    AclOperation.DESCRIBE: (
        AclOperation.DESCRIBE,
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.DELETE,
        AclOperation.ALTER,
    ),
    AclOperation.DESCRIBE_CONFIGS: (AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS),
}
"""Operations that allow another one; an entry that denies them does not deny the other one."""


class Authorizer:
    """The rights of principals under the entries of ``acls``.

    ``super_users`` may do everything; ``allows_if_no_acl``: resources without any matching entry are open to everyone.
    """

    def __init__(self, acls: Acls, super_users: Iterable[str] = (), *, allows_if_no_acl: bool = False) -> None:
        self._acls = acls
        self._super_users = frozenset(super_users)
        self._allows_if_no_acl = allows_if_no_acl

    def authorize(
        self, principal: str, host: str, operation: AclOperation, resource: tuple[AclResourceType, str]
    ) -> bool:
        """True if the principal, connected from ``host``, may perform the operation on the resource."""
        if principal in self._super_users:
            return True
        kind, name = resource
        of_resource = [acl for acl in self._acls if acl.resource_type == kind and _is_about(acl, name)]
        if not of_resource:
            return self._allows_if_no_acl
        mine = [acl for acl in of_resource if _applies(acl, principal, host)]
        if any(acl.permission_type == DENY and acl.operation in (operation, AclOperation.ALL) for acl in mine):
            return False
        enough = (*IMPLIED_BY.get(operation, (operation,)), AclOperation.ALL)
        return any(acl.permission_type == ALLOW and acl.operation in enough for acl in mine)

    def may_on_any(self, principal: str, host: str, operation: AclOperation, kind: AclResourceType) -> bool:
        """True if at least one resource of that type can exist on which the operation is allowed.

        As in Kafka, ``allows_if_no_acl`` counts only if no entry is about the resource of a certain name.
        """
        if self.authorize(principal, host, operation, (kind, UNNAMED)):
            return True
        mine = [
            acl
            for acl in self._acls
            if acl.resource_type == kind
            and _applies(acl, principal, host)
            and acl.operation in (operation, AclOperation.ALL)
        ]
        denied = [acl for acl in mine if acl.permission_type == DENY]
        if any(map(_is_about_every_name, denied)):
            return False
        allowed = [acl for acl in mine if acl.permission_type == ALLOW]
        return any(_is_about_every_name(acl) or not _is_dominated(acl, denied) for acl in allowed)


def authorizer_of(acls: Acls, properties: Mapping[str, str]) -> Authorizer | None:
    """The authorizer that broker properties ask for; None without ``authorizer.class.name``."""
    if not properties.get(CLASS_NAME):
        return None
    super_users = [each.strip() for each in properties.get(SUPER_USERS, "").split(";") if each.strip()]
    allows_if_no_acl = properties.get(ALLOW_IF_NO_ACL, "").strip().lower() == "true"
    return Authorizer(acls, super_users, allows_if_no_acl=allows_if_no_acl)


def _is_about(acl: Acl, name: str) -> bool:
    if acl.pattern_type == PREFIXED:
        return name.startswith(acl.resource_name)
    return acl.resource_name in (name, EVERY_NAME)


def _is_about_every_name(acl: Acl) -> bool:
    return acl.resource_name == EVERY_NAME and acl.pattern_type != PREFIXED


def _applies(acl: Acl, principal: str, host: str) -> bool:
    return acl.principal in (principal, EVERYONE) and acl.host in (host, EVERY_HOST)


def _is_dominated(allowed: Acl, denied: Iterable[Acl]) -> bool:
    """True if an entry denies everything that ``allowed`` allows."""
    for deny in denied:
        if deny.pattern_type == PREFIXED and allowed.resource_name.startswith(deny.resource_name):
            return True
        same = deny.pattern_type == allowed.pattern_type and deny.resource_name == allowed.resource_name
        if same and deny.pattern_type != PREFIXED:
            return True
    return False
