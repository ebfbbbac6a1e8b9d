"""SASL requests out of order, and wrong tokens: answered as a broker of 4.3.1 answers them."""

from __future__ import annotations

import random
from typing import Any

import anyio
import pytest

from pykafka08 import EmbeddedCluster
from pykafka08.broker.scram_users import ScramUsers
from pykafka08.broker.security.mechanisms import (
    OAuthExchange,
    PlainExchange,
    Refused,
    SaslExchange,
    ScramExchange,
    scram_credential,
)
from pykafka08.broker.security.tokens import unsecured_tokens
from pykafka08.protocol.messages.api_versions import ApiVersionsRequest
from pykafka08.protocol.messages.metadata import MetadataRequest
from pykafka08.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from pykafka08.protocol.messages.sasl_handshake import SaslHandshakeRequest
from pykafka08.security.secret import Secret
from tests.broker.raw import connect

USERS = {"alice": "secret", "bob": "secret"}
Step = tuple[Any, int]


def token(text: str) -> Step:
    return SaslAuthenticateRequest(auth_bytes=text.encode()), 2


METADATA, VERSIONS = (MetadataRequest(topics=[]), 9), (ApiVersionsRequest(), 1)
PLAIN, SCRAM, GSSAPI = ((SaslHandshakeRequest(mechanism=each), 1) for each in ("PLAIN", "SCRAM-SHA-256", "GSSAPI"))
ALICE, BOB = token("\0alice\0secret"), token("\0bob\0secret")
CLOSED = "closed"
REFUSED = "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
INVALID = "Authentication failed: Invalid username or password"
TWICE = "SaslAuthenticate request received after successful authentication"
OTHER_USER = "Cannot change principals during re-authentication from User.alice: User.bob"


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize(
    ("steps", "answers"),
    [
        ([METADATA], [CLOSED]),
        ([ALICE], [CLOSED]),
        ([GSSAPI, PLAIN], [33, CLOSED]),
        ([PLAIN, PLAIN, ALICE], [0, 34, CLOSED]),
        ([VERSIONS, PLAIN, ALICE, METADATA], [0, 0, 0, 0]),
        ([VERSIONS, VERSIONS], [0, CLOSED]),
        ([PLAIN, VERSIONS, ALICE], [0, 34, CLOSED]),
        ([PLAIN, ALICE, VERSIONS, METADATA], [0, 0, 0, 0]),
        ([PLAIN, token("\0alice\0x"), METADATA], [0, INVALID, CLOSED]),
        ([PLAIN, token("\0carol\0x")], [0, INVALID]),
        ([PLAIN, token("\0\0x")], [0, "Authentication failed: username not specified"]),
        ([PLAIN, token("\0alice\0")], [0, "Authentication failed: password not specified"]),
        ([PLAIN, token("alice\0alice\0secret"), METADATA], [0, 0, 0]),
        ([SCRAM, token("x"), METADATA], [0, REFUSED, CLOSED]),
        # Sessions without an end cannot be renewed; the connection goes on.
        ([PLAIN, ALICE, ALICE, METADATA], [0, 0, TWICE, 0]),
        ([PLAIN, ALICE, PLAIN, ALICE, METADATA], [0, 0, 34, TWICE, 0]),
    ],
)
async def test_requests_out_of_order(steps: list[Step], answers: list[int | str]) -> None:
    assert await answers_to(steps) == answers


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize(
    ("steps", "answers"),
    [
        ([PLAIN, ALICE, METADATA], [0, 0, 0]),
        ([PLAIN, BOB, METADATA], [0, OTHER_USER, CLOSED]),
        ([PLAIN, token("\0alice\0x"), METADATA], [0, INVALID, CLOSED]),
        ([PLAIN, METADATA], [0, CLOSED]),
        ([PLAIN, PLAIN, METADATA], [0, 34, CLOSED]),
        ([SCRAM, METADATA], [34, CLOSED]),
        # A second renewal within a second is refused; the connection goes on.
        ([PLAIN, ALICE, PLAIN, ALICE, METADATA], [0, 0, 34, TWICE, 0]),
    ],
)
async def test_renewals_of_a_session(steps: list[Step], answers: list[int | str]) -> None:
    reauthentication = {"connections.max.reauth.ms": "3600000"}
    assert await answers_to([PLAIN, ALICE, *steps], reauthentication) == [0, 0, *answers]


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_brokers_before_1_0_serve_versions_more_than_once() -> None:
    versions = (ApiVersionsRequest(), 0)
    assert await answers_to([versions, versions, (PLAIN[0], 0)], version="0.10.2") == [0, 0, 0]


async def answers_to(
    steps: list[Step], properties: dict[str, str] | None = None, version: str = "4.3"
) -> list[int | str]:
    """The message of each answer, or its error code; CLOSED at the end of the connection."""
    answers: list[int | str] = []
    at_once = {"connection.failed.authentication.delay.ms": "0"} if version == "4.3" else {}
    async with (
        EmbeddedCluster(
            version=version, security="SASL_PLAINTEXT", users=USERS, properties={**at_once, **(properties or {})}
        ) as cluster,
        connect(cluster) as raw,
    ):
        for request, version in steps:
            try:
                answer = await raw.ask(request, version)
            except (anyio.IncompleteRead, anyio.BrokenResourceError):
                return [*answers, CLOSED]
            answers.append(getattr(answer, "error_message", None) or getattr(answer, "error_code", 0))
    return answers


def exchanges() -> dict[str, tuple[SaslExchange, bytes]]:
    """New exchanges, each with a first token that is near to a valid one."""
    scram = ScramUsers()
    scram.set("alice", 1, scram_credential("SCRAM-SHA-256", Secret("secret")))
    return {
        "PLAIN": (PlainExchange({"alice": Secret("secret")}), b"\0alice\0secret"),
        "SCRAM-SHA-256": (ScramExchange("SCRAM-SHA-256", scram), b"n,,n=alice,r=nonce"),
        "OAUTHBEARER": (OAuthExchange(unsecured_tokens(lambda: 0.0)), b"n,,\x01auth=Bearer eyJ9.eyJ9.\x01\x01"),
    }


@pytest.mark.parametrize("mechanism", exchanges())
def test_mutated_tokens_are_refused_and_break_nothing(mechanism: str) -> None:
    chance = random.Random(18)
    refused = 0
    for _ in range(150):
        exchange, valid = exchanges()[mechanism]
        changed = bytearray(valid)
        for _ in range(chance.randrange(4)):
            at = chance.randrange(len(changed) + 1)
            changed[at : at + chance.randrange(4)] = chance.randbytes(chance.randrange(3))
        try:
            answer = exchange.respond(bytes(changed))
            final = b"c=biws," + answer.split(b",")[0] + b",p=" + chance.randbytes(chance.randrange(5))
            exchange.respond(chance.choice((b"", b"\x01", final, chance.randbytes(9))))
        except Refused:
            refused += 1
    assert refused
