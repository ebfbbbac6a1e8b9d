"""Access control lists of real brokers; each call waits until the brokers apply the change.

A right is ``"READ topic NAME"``; a name that ends with ``*`` is a prefix.
"""

from __future__ import annotations

import anyio

from pykafka08.acl_operations import CLUSTER_NAME, AclOperation, AclResourceType
from pykafka08.cluster.client import Client
from pykafka08.config import ClientConfig, build
from pykafka08.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from pykafka08.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from pykafka08.protocol.messages.describe_acls import DescribeAclsRequest
from tests.integration.clusters import RealCluster

__all__ = ["EVERYTHING_ON_THE_CLUSTER", "allow", "revoke"]

EVERYTHING_ON_THE_CLUSTER = f"ALL cluster {CLUSTER_NAME}"
ANY, LITERAL, PREFIXED, ALLOW = 1, 3, 4, 3


async def allow(cluster: RealCluster, principal: str, *rights: str) -> None:
    """Add entries that allow a principal these rights."""
    entries = [_entry(principal, right) for right in rights]
    async with _client(cluster) as client:
        response = await client.request_any(CreateAclsRequest(creations=entries))
        assert {each.error_code for each in response.results} == {0}, response
        # The broker gets the entries from the controller, shortly after the response.
        while not {_key(entry) for entry in entries} <= await _in_force(cluster, client):  # noqa: ASYNC110 - no event tells when
            await anyio.sleep(0.01)


async def revoke(cluster: RealCluster, principal: str, *rights: str) -> None:
    """Remove the entries of a principal for these rights."""
    entries = [_entry(principal, right) for right in rights]
    async with _client(cluster) as client:
        response = await client.request_any(DeleteAclsRequest(filters=[_filter(entry) for entry in entries]))
        assert {each.error_code for each in response.filter_results} == {0}, response
        while {_key(entry) for entry in entries} & await _in_force(cluster, client):  # noqa: ASYNC110 - no event tells when
            await anyio.sleep(0.01)


def _client(cluster: RealCluster) -> Client:
    (config,) = build({"bootstrap_servers": cluster.bootstrap}, ClientConfig)
    return Client(config)


def _entry(principal: str, right: str) -> AclCreation:
    operation, kind, name = right.split(" ")
    return AclCreation(
        resource_type=AclResourceType[kind.upper().replace("-", "_")],
        resource_name=name.removesuffix("*") or "*",
        resource_pattern_type=PREFIXED if name.removesuffix("*") not in (name, "") else LITERAL,
        principal=principal,
        host="*",
        operation=AclOperation[operation],
        permission_type=ALLOW,
    )


def _filter(entry: AclCreation) -> DeleteAclsFilter:
    return DeleteAclsFilter(
        resource_type_filter=entry.resource_type,
        resource_name_filter=entry.resource_name,
        pattern_type_filter=entry.resource_pattern_type,
        principal_filter=entry.principal,
        host_filter=entry.host,
        operation=entry.operation,
        permission_type=entry.permission_type,
    )


def _key(entry: AclCreation) -> tuple[object, ...]:
    return (
        entry.resource_type, entry.resource_name, entry.resource_pattern_type, entry.principal, entry.operation,
    )  # fmt: skip


async def _in_force(cluster: RealCluster, client: Client) -> set[tuple[object, ...]]:
    every = DescribeAclsRequest(
        resource_type_filter=ANY,
        resource_name_filter=None,
        pattern_type_filter=ANY if cluster.release >= (2,) else LITERAL,
        principal_filter=None,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )
    found = await client.request_any(every)
    return {
        (each.resource_type, each.resource_name, each.pattern_type, acl.principal, acl.operation)
        for each in found.resources
        for acl in each.acls
    }
