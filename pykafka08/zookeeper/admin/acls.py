"""Rules of the authorizer: who may do what.

Sources: SimpleAclAuthorizer of 0.9 and 2.3, ZkData.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from pykafka08.errors import AdminRefusedError, ConfigError
from pykafka08.protocol.messages import ApiKey
from pykafka08.zookeeper import paths, reading
from pykafka08.zookeeper.admin.changes import change
from pykafka08.zookeeper.admin.guarded import Guarded
from pykafka08.zookeeper.nodes.acls import Acl, AclChange, Acls, ExtendedAclChange

__all__ = ["LITERAL", "PREFIXED", "AclAdministration"]

LITERAL, PREFIXED = "literal", "prefixed"

RESOURCE_TYPES = ("Topic", "Group", "Cluster", "TransactionalId", "DelegationToken", "User")
OPERATIONS = ("Read", "Write", "Create", "Delete", "Alter", "Describe", "ClusterAction", "All")
LATER_OPERATIONS = ("DescribeConfigs", "AlterConfigs", "IdempotentWrite")
"""From 0.11 on, whose brokers take rules themselves: 0.9 and 0.10 could not read them."""
CLUSTER = "kafka-cluster"


class AclAdministration(Guarded):
    """Access lists."""

    async def acls(self, resource_type: str | None = None) -> dict[tuple[str, str, str], tuple[Acl, ...]]:
        """The rules of every resource, or of those of one type, by pattern (literal or prefixed), type and name."""
        found: dict[tuple[str, str, str], tuple[Acl, ...]] = {}
        patterns = await reading.children(self.zk, paths.EXTENDED_ACLS)
        for pattern, root in [(LITERAL, paths.ACLS), *((each, f"{paths.EXTENDED_ACLS}/{each}") for each in patterns)]:
            for kind in await reading.children(self.zk, root):
                if resource_type is not None and kind != resource_type:
                    continue
                for name in await reading.children(self.zk, f"{root}/{kind}"):
                    node = await reading.node(self.zk, Acls, f"{root}/{kind}/{name}")
                    if node is not None:
                        found[pattern, kind, name] = tuple(node.acls)
        return found

    async def add_acls(
        self, resource_type: str, name: str, rules: Iterable[Acl], *, pattern: str = LITERAL
    ) -> Sequence[Acl]:
        """Add rules to a resource (``*`` is all of its type); all that it has then."""
        added = list(rules)

        def edit(present: Acls | None) -> Acls:
            before = present or Acls()
            return replace(before, acls=(*before.acls, *(each for each in added if each not in before.acls)))

        return await self._change(resource_type, name, pattern, added, edit)

    async def remove_acls(
        self, resource_type: str, name: str, rules: Iterable[Acl] | None = None, *, pattern: str = LITERAL
    ) -> Sequence[Acl]:
        """Remove rules, or all without ``rules``; those that are left.  AdminRefusedError for one that is not there.

        A resource without any rule is open to all, or closed to all: ``allow.everyone.if.no.acl.found`` says.
        """
        removed = None if rules is None else list(rules)
        path = _path(resource_type, name, pattern)

        def edit(present: Acls | None) -> Acls | None:
            acls = present.acls if present is not None else ()
            missing = [each for each in removed or () if each not in acls]
            if missing or present is None or not acls:
                what = f"no rule {_shown(missing[0])}" if missing else "no rules"
                raise AdminRefusedError(f"{resource_type} {name!r} has {what} to remove", path=path)
            left = () if removed is None else tuple(each for each in acls if each not in removed)
            return replace(present, acls=left) if left else None

        return await self._change(resource_type, name, pattern, removed or [], edit)

    async def _change(
        self,
        resource_type: str,
        name: str,
        pattern: str,
        rules: Sequence[Acl],
        edit: Callable[[Acls | None], Acls | None],
    ) -> Sequence[Acl]:
        self._check(resource_type, name, pattern, rules)
        await self._check_writable(f"the rules of {resource_type} {name!r} are not altered", ApiKey.CREATE_ACLS)
        changes = paths.EXTENDED_ACL_CHANGES if pattern == PREFIXED else paths.ACL_CHANGES
        if await self.zk.exists(changes) is None:
            raise AdminRefusedError(
                "no broker has an authorizer that keeps its rules here"
                + (", or they are older than 2.0, which knows no prefixes" if pattern == PREFIXED else ""),
                path=changes,
            )
        before, after = await change(self.zk, Acls, _path(resource_type, name, pattern), edit)
        if before != after:
            path, data = await self._notice(resource_type, name, pattern)
            await self.zk.create(path, data, sequence=True)
        return after.acls if after else ()

    async def _notice(self, resource_type: str, name: str, pattern: str) -> tuple[str, bytes]:
        upper = "".join(f"_{each}" if each.isupper() else each for each in resource_type)[1:].upper()
        if pattern == PREFIXED:
            return paths.extended_acl_change(), ExtendedAclChange(resource_type=upper, name=name).encode()
        brokers = await reading.brokers(self.zk)
        # of 2.7 and later: two-word types are spelt otherwise from 2.5 on, one-word types are read in any case
        is_new = bool(brokers) and all(each.version >= 5 for each in brokers.values())
        return paths.acl_change(), AclChange(f"{upper if is_new else resource_type}:{name}").encode()

    def _check(self, resource_type: str, name: str, pattern: str, rules: Sequence[Acl]) -> None:
        """One rule that they cannot read makes brokers refuse everything."""
        if resource_type not in RESOURCE_TYPES:
            raise ConfigError(f"{resource_type!r} is no type of resource: {', '.join(RESOURCE_TYPES)}")
        if resource_type == "Cluster" and name != CLUSTER:
            raise ConfigError(f"the cluster's name is {CLUSTER!r}, not {name!r}")
        if pattern not in (LITERAL, PREFIXED):
            raise ConfigError(f"{pattern!r} is neither {LITERAL} nor {PREFIXED}")
        operations = (*OPERATIONS, *(LATER_OPERATIONS if self.is_forced else ()))
        for rule in rules:
            kind, colon, principal = rule.principal.partition(":")
            if not (kind and colon and principal):
                raise ConfigError(f"the principal {rule.principal!r} is not of the form User:name")
            if rule.permission not in ("Allow", "Deny"):
                raise ConfigError(f"the permission {rule.permission!r} is neither Allow nor Deny")
            if rule.operation not in operations:
                raise ConfigError(f"{rule.operation!r} is no operation: {', '.join(operations)}")
            if not rule.host:
                raise ConfigError("the host is empty; * means all")


def _path(resource_type: str, name: str, pattern: str) -> str:
    return paths.acl(resource_type, name) if pattern == LITERAL else paths.extended_acl(resource_type, name, pattern)


def _shown(rule: Acl) -> str:
    return f"{rule.permission} {rule.principal} {rule.operation} from {rule.host}"
