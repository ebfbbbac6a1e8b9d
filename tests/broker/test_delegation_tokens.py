"""Delegation tokens are refused as brokers of 4.3.1, 3.9.2 and 2.8.2 without a secret key refuse them."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka08.broker.server import EmbeddedCluster
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from pykafka08.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from pykafka08.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from pykafka08.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from pykafka08.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from pykafka08.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.broker.raw import Raw, connect

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

OTHERS = (
    RenewDelegationTokenRequest(hmac=b"x", renew_period_ms=-1),
    ExpireDelegationTokenRequest(hmac=b"x", expiry_time_period_ms=-1),
)
NOT_ALLOWED, DISABLED = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


async def created(raw: Raw, **arguments: Any) -> tuple[int, str, str, int]:
    """Error code, owner, requester, and the one value of the three timestamps."""
    answer = await raw.ask(CreateDelegationTokenRequest(max_lifetime_ms=-1, **arguments), 3)
    [time] = {answer.issue_timestamp_ms, answer.expiry_timestamp_ms, answer.max_timestamp_ms}
    owner = f"{answer.principal_type}:{answer.principal_name}"
    requester = f"{answer.token_requester_principal_type}:{answer.token_requester_principal_name}"
    return answer.error_code, owner, requester, time


async def log_in(raw: Raw) -> None:
    await raw.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    assert (await raw.ask(SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), 0)).error_code == ErrorCode.NONE


async def test_clients_without_authentication_may_not_ask() -> None:
    async with EmbeddedCluster() as cluster, connect(cluster) as raw:
        assert await created(raw) == (NOT_ALLOWED, "User:ANONYMOUS", "User:ANONYMOUS", -1)
        for request in OTHERS:
            answer: Any = await raw.ask(request, 2)
            assert (answer.error_code, answer.expiry_timestamp_ms) == (NOT_ALLOWED, -1)
        older = await raw.ask(CreateDelegationTokenRequest(max_lifetime_ms=-1), 2)
        assert (older.error_code, older.principal_name) == (NOT_ALLOWED, "ANONYMOUS")
        assert (await raw.ask(DescribeDelegationTokenRequest(owners=None), 3)).error_code == NOT_ALLOWED


@pytest.mark.parametrize(("version", "time"), [("3.9", -1), ("4.3", 0)])
async def test_tokens_are_disabled(version: str, time: int) -> None:
    secured: dict[str, Any] = {"version": version, "security": "SASL_PLAINTEXT", "users": {"alice": "secret"}}
    async with EmbeddedCluster(**secured) as cluster, connect(cluster) as raw:
        await log_in(raw)
        assert await created(raw) == (DISABLED, "User:alice", "User:alice", time)
        of_bob = {"owner_principal_type": "User", "owner_principal_name": "bob"}
        assert await created(raw, **of_bob) == (DISABLED, "User:bob", "User:alice", time)
        renewers = [CreatableRenewers(principal_type="Group", principal_name="g")]
        assert (await created(raw, renewers=renewers))[0] == ErrorCode.INVALID_PRINCIPAL_TYPE
        for request in OTHERS:
            answer: Any = await raw.ask(request, 2)
            assert (answer.error_code, answer.expiry_timestamp_ms) == (DISABLED, time)
        described = await raw.ask(DescribeDelegationTokenRequest(owners=None), 3)
        assert (described.error_code, described.tokens) == (DISABLED, [])


async def test_a_token_for_another_owner_needs_a_right() -> None:
    secured: dict[str, Any] = {"security": "SASL_PLAINTEXT", "users": {"alice": "secret"}}
    async with (
        EmbeddedCluster(**secured, properties={"authorizer.class.name": "any"}) as cluster,
        connect(cluster) as raw,
    ):
        await log_in(raw)
        of_bob = {"owner_principal_type": "User", "owner_principal_name": "bob"}
        refused = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        assert await created(raw, **of_bob) == (refused, "User:bob", "User:alice", -1)
        assert (await created(raw))[0] == DISABLED
