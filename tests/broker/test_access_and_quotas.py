"""ACLs, client quotas and SCRAM users: stored, described and refused as brokers of 4.3.1 do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pykafka08.broker.client_quotas import alteration_fault
from pykafka08.broker.server import EmbeddedCluster
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages import alter_client_quotas as quotas
from pykafka08.protocol.messages import alter_user_scram_credentials as scram
from pykafka08.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from pykafka08.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from pykafka08.protocol.messages.describe_acls import DescribeAclsRequest
from pykafka08.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from pykafka08.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from tests.broker.raw import Raw, connect

pytestmark = pytest.mark.anyio

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
EVERYTHING: dict[str, Any] = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
READ: dict[str, Any] = {
    "resource_type": 2,
    "resource_name": "t",
    "resource_pattern_type": 3,
    "principal": "User:a",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}


async def create(raw: Raw, *changes: dict[str, Any]) -> list[tuple[int, bool]]:
    """Error codes, each with True if the answer has a reason."""
    creations = [AclCreation(**{**READ, **change}) for change in changes]
    results = (await raw.ask(CreateAclsRequest(creations=creations), 3)).results
    return [(result.error_code, bool(result.error_message)) for result in results]


async def described(raw: Raw, version: int = 3, **conditions: Any) -> list[tuple[str, int, int]]:
    """Name, pattern type and operation of each entry that matches."""
    response = await raw.ask(DescribeAclsRequest(**{**EVERYTHING, **conditions}), version)
    assert response.error_code == 0
    return [(each.resource_name, each.pattern_type, acl.operation) for each in response.resources for acl in each.acls]


async def test_without_an_authorizer_security_is_disabled() -> None:
    async with EmbeddedCluster() as cluster, connect(cluster) as raw:
        assert (await raw.ask(DescribeAclsRequest(**EVERYTHING), 3)).error_code == ErrorCode.SECURITY_DISABLED
        assert await create(raw, {}) == [(ErrorCode.SECURITY_DISABLED, True)]
        deleted = await raw.ask(DeleteAclsRequest(filters=[DeleteAclsFilter(**EVERYTHING)]), 3)
        assert [each.error_code for each in deleted.filter_results] == [ErrorCode.SECURITY_DISABLED]


async def test_acls_are_created_described_and_deleted() -> None:
    async with EmbeddedCluster(properties=AUTHORIZER) as cluster, connect(cluster) as raw:
        prefixed = {"resource_name": "pre", "resource_pattern_type": 4}
        assert await create(raw, {}, {}, prefixed, {"resource_name": "*"}) == [(0, False)] * 4
        assert await described(raw) == [("t", 3, 3), ("pre", 4, 3), ("*", 3, 3)]
        assert await described(raw, resource_name_filter="prefix", pattern_type_filter=2) == [
            ("pre", 4, 3),
            ("*", 3, 3),
        ]
        assert await described(raw, resource_name_filter="t", pattern_type_filter=3) == [("t", 3, 3)]
        assert await described(raw, resource_name_filter="t", pattern_type_filter=4) == []
        assert await described(raw, principal_filter="User:b") == []
        filters = [DeleteAclsFilter(**{**EVERYTHING, "resource_name_filter": name}) for name in ("pre", "gone")]
        deleted = await raw.ask(DeleteAclsRequest(filters=filters), 3)
        names = [[acl.resource_name for acl in each.matching_acls] for each in deleted.filter_results]
        assert names == [["pre"], []]
        assert await described(raw) == [("t", 3, 3), ("*", 3, 3)]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"resource_type": 1}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"operation": 1}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"resource_pattern_type": 2}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"principal": "a"}, ErrorCode.INVALID_REQUEST),
        ({"resource_name": ""}, ErrorCode.INVALID_REQUEST),
        ({"resource_type": 4, "resource_name": "x"}, ErrorCode.INVALID_REQUEST),
    ],
)
async def test_wrong_acls_are_refused(change: dict[str, Any], code: ErrorCode) -> None:
    async with EmbeddedCluster(properties=AUTHORIZER) as cluster, connect(cluster) as raw:
        assert [each for each, _ in await create(raw, change)] == [code]
        assert await described(raw) == []


@pytest.mark.parametrize("change", [{"operation": 0}, {"operation": 99}, {"resource_type": 77}])
async def test_an_invalid_enum_value_closes_the_connection(change: dict[str, int]) -> None:
    async with EmbeddedCluster(properties=AUTHORIZER) as cluster:
        async with connect(cluster) as raw:
            await raw.send(CreateAclsRequest(creations=[AclCreation(**{**READ, **change})]), 3)
            assert await raw.is_closed_by_peer()
        async with connect(cluster) as raw:
            conditions = {name.replace("resource_type", "resource_type_filter"): each for name, each in change.items()}
            await raw.send(DescribeAclsRequest(**{**EVERYTHING, **conditions}), 3)
            assert await raw.is_closed_by_peer()


# -- quotas

Entity = Sequence[tuple[str, "str | None"]]


async def set_quota(
    raw: Raw, entity: Entity, key: str, value: float, *, remove: bool = False, validate_only: bool = False
) -> int:
    entry = quotas.RequestEntryData(
        entity=[quotas.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        ops=[quotas.OpData(key=key, value=value, remove=remove)],
    )
    request = quotas.AlterClientQuotasRequest(entries=[entry], validate_only=validate_only)
    return (await raw.ask(request, 1)).entries[0].error_code


async def found(raw: Raw, *conditions: tuple[str, int, str | None], strict: bool = False) -> list[Any]:
    """Entities and quotas, or the error code."""
    components = [ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in conditions]
    response = await raw.ask(DescribeClientQuotasRequest(components=components, strict=strict), 1)
    if response.entries is None:
        return [response.error_code]
    return [
        (
            [(each.entity_type, each.entity_name) for each in entry.entity],
            [(each.key, each.value) for each in entry.values],
        )
        for entry in response.entries
    ]


async def test_quotas_are_set_described_and_removed() -> None:
    alice = ([("user", "alice")], [("producer_byte_rate", 1000.0)])
    both = ([("client-id", "c"), ("user", "alice")], [("consumer_byte_rate", 5.0)])
    everybody = ([("user", None)], [("request_percentage", 50.5)])
    address = ([("ip", "127.0.0.1")], [("connection_creation_rate", 10.0)])
    async with EmbeddedCluster() as cluster, connect(cluster) as raw:
        for entity, values in (alice, both, everybody, address):
            assert await set_quota(raw, list(reversed(entity)), *values[0]) == 0
        assert await set_quota(raw, [("user", "bob")], "producer_byte_rate", 1, validate_only=True) == 0
        assert await found(raw) == [alice, both, everybody, address]
        assert await found(raw, ("user", 0, "alice")) == [alice, both]
        assert await found(raw, ("user", 0, "alice"), strict=True) == [alice]
        assert await found(raw, ("user", 1, None)) == [everybody]
        assert await found(raw, ("user", 2, None), ("client-id", 2, None)) == [both]
        assert await set_quota(raw, alice[0], "producer_byte_rate", 0, remove=True) == 0
        assert await found(raw, ("user", 0, "alice")) == [both]
        assert await set_quota(raw, [("group", "g")], "producer_byte_rate", 1) == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("conditions", "code"),
    [
        ([("ip", 2, None), ("user", 2, None)], ErrorCode.INVALID_REQUEST),
        ([("group", 2, None)], ErrorCode.UNSUPPORTED_VERSION),
        ([("user", 5, None)], ErrorCode.INVALID_REQUEST),
        ([("user", 0, "a"), ("user", 0, "b")], ErrorCode.INVALID_REQUEST),
        ([("", 0, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", 1, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", 0, None)], ErrorCode.INVALID_REQUEST),
    ],
)
async def test_wrong_conditions_on_quotas_are_refused(conditions: list[Any], code: ErrorCode) -> None:
    async with EmbeddedCluster() as cluster, connect(cluster) as raw:
        assert await found(raw, *conditions) == [code]


@pytest.mark.parametrize(
    ("entity", "key", "value"),
    [
        ([], "producer_byte_rate", 1.0),
        ([("user", "")], "producer_byte_rate", 1.0),
        ([("group", "g")], "producer_byte_rate", 1.0),
        ([("ip", "1.2.3.4"), ("user", "a")], "connection_creation_rate", 1.0),
        ([("ip", "no host")], "connection_creation_rate", 1.0),
        ([("user", "a")], "connection_creation_rate", 1.0),
        ([("ip", "::1")], "producer_byte_rate", 1.0),
        ([("user", "a")], "nope", 1.0),
        ([("user", "a")], "producer_byte_rate", 0.0),
        ([("user", "a")], "producer_byte_rate", 1.5),
        ([("user", "a")], "producer_byte_rate", float("inf")),
        ([("user", "a")], "request_percentage", float("nan")),
    ],
)
def test_wrong_quotas_are_refused(entity: Entity, key: str, value: float) -> None:
    assert alteration_fault(entity, [(key, value, False)])


# -- SCRAM


async def credentials(raw: Raw, *users: str) -> list[tuple[str, int, list[tuple[int, int]]]]:
    request = DescribeUserScramCredentialsRequest(users=[UserName(name=user) for user in users] or None)
    results = (await raw.ask(request, 0)).results
    return [
        (each.user, each.error_code, [(info.mechanism, info.iterations) for info in each.credential_infos])
        for each in results
    ]


async def change(raw: Raw, *, delete: Any = (), upsert: Any = ()) -> list[tuple[str, int]]:
    request = scram.AlterUserScramCredentialsRequest(
        deletions=[scram.ScramCredentialDeletion(name=name, mechanism=mechanism) for name, mechanism in delete],
        upsertions=[
            scram.ScramCredentialUpsertion(
                name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=b"x" * 32
            )
            for name, mechanism, iterations in upsert
        ],
    )
    return [(each.user, each.error_code) for each in (await raw.ask(request, 0)).results]


async def test_scram_users_are_set_described_and_deleted() -> None:
    async with EmbeddedCluster() as cluster, connect(cluster) as raw:
        assert await credentials(raw) == []
        assert await change(raw, upsert=[("a", 1, 4096), ("b", 2, 8192)]) == [("a", 0), ("b", 0)]
        assert await credentials(raw) == [("a", 0, [(1, 4096)]), ("b", 0, [(2, 8192)])]
        assert await credentials(raw, "b", "gone") == [
            ("b", 0, [(2, 8192)]),
            ("gone", ErrorCode.RESOURCE_NOT_FOUND, []),
        ]
        assert await credentials(raw, "a", "a") == [("a", ErrorCode.DUPLICATE_RESOURCE, [])]
        assert await change(raw, delete=[("a", 1)]) == [("a", 0)]
        assert await credentials(raw) == [("b", 0, [(2, 8192)])]


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"delete": [("gone", 1)]}, ErrorCode.RESOURCE_NOT_FOUND),
        ({"delete": [("a", 2)]}, ErrorCode.RESOURCE_NOT_FOUND),
        ({"delete": [("a", 0)]}, ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ({"upsert": [("a", 9, 4096)]}, ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ({"upsert": [("a", 1, 5)]}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"upsert": [("a", 1, 99999)]}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"upsert": [("", 1, 4096)]}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"delete": [("a", 1)], "upsert": [("a", 1, 4096)]}, ErrorCode.DUPLICATE_RESOURCE),
    ],
)
async def test_wrong_scram_credentials_are_refused(asked: dict[str, Any], code: ErrorCode) -> None:
    async with EmbeddedCluster() as cluster, connect(cluster) as raw:
        await change(raw, upsert=[("a", 1, 4096)])
        assert [each for _, each in await change(raw, **asked)] == [code]
        assert await credentials(raw) == [("a", 0, [(1, 4096)])]
