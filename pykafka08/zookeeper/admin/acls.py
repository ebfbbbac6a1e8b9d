"""Rules of the authorizer: who may do what.

Sources: SimpleAclAuthorizer of 0.9 and 2.3, ZkData.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from pykafka08.errors import AdminRefusedError, ConfigError
from pykafka08.protocol.messages import ApiKey
from pykafka08.protocol.releases import RELEASES
from pykafka08.zookeeper import paths, reading
from pykafka08.zookeeper.admin.changes import change
from pykafka08.zookeeper.admin.guarded import Guarded
from pykafka08.zookeeper.nodes.acls import Acl, AclChange, Acls, ExtendedAclChange

__all__ = ["LITERAL", "PREFIXED", "AclAdministration"]

LITERAL, PREFIXED = "literal", "prefixed"

RESOURCE_TYPES: Mapping[str, str] = {
    **dict.fromkeys(("Topic", "Group", "Cluster"), "0.9.0"),
    "TransactionalId": "0.11.0",
    "DelegationToken": "1.1",
    "User": "3.3",
}
OPERATIONS: Mapping[str, str] = {
    **dict.fromkeys(("Read", "Write", "Create", "Delete", "Alter", "Describe", "ClusterAction", "All"), "0.9.0"),
    **dict.fromkeys(("DescribeConfigs", "AlterConfigs", "IdempotentWrite"), "0.11.0"),
}
"""The first release that reads each: older brokers end at it when they start."""
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
        _check_form(resource_type, name, pattern, rules)
        found = await self._check_writable(f"the rules of {resource_type} {name!r} are not altered", ApiKey.CREATE_ACLS)
        _check_readable(resource_type, rules, found.release_for_sure or "0.9.0")
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


def _check_form(resource_type: str, name: str, pattern: str, rules: Sequence[Acl]) -> None:
    """ConfigError for what no broker could read."""
    if resource_type not in RESOURCE_TYPES:
        raise ConfigError(f"{resource_type!r} is no type of resource: {', '.join(RESOURCE_TYPES)}")
    if resource_type == "Cluster" and name != CLUSTER:
        raise ConfigError(f"the cluster's name is {CLUSTER!r}, not {name!r}")
    if pattern not in (LITERAL, PREFIXED):
        raise ConfigError(f"{pattern!r} is neither {LITERAL} nor {PREFIXED}")
    for rule in rules:
        kind, colon, principal = rule.principal.partition(":")
        if not (kind and colon and principal):
            raise ConfigError(f"the principal {rule.principal!r} is not of the form User:name")
        if rule.permission not in ("Allow", "Deny"):
            raise ConfigError(f"the permission {rule.permission!r} is neither Allow nor Deny")
        if rule.operation not in OPERATIONS:
            raise ConfigError(f"{rule.operation!r} is no operation: {', '.join(OPERATIONS)}")
        if not rule.host:
            raise ConfigError("the host is empty; * means all")


def _check_readable(resource_type: str, rules: Sequence[Acl], release: str) -> None:
    """ConfigError for what brokers of that release fail on, by force too: one such rule makes them refuse everything.

    A type is a node of its own, which every broker reads when it starts, and which stays when the last rule goes.
    """
    parts = [(resource_type, RESOURCE_TYPES[resource_type])]
    parts += [(rule.operation, OPERATIONS[rule.operation]) for rule in rules]
    for name, since in parts:
        if RELEASES.index(release) < RELEASES.index(since):
            raise ConfigError(f"rules with {name} begin with Kafka {since}; the oldest broker may be of {release}")


def _path(resource_type: str, name: str, pattern: str) -> str:
    return paths.acl(resource_type, name) if pattern == LITERAL else paths.extended_acl(resource_type, name, pattern)


def _shown(rule: Acl) -> str:
    return f"{rule.permission} {rule.principal} {rule.operation} from {rule.host}"
