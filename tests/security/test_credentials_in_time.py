"""Credentials that do not come: each client names what it waited for, and does not suspect the broker's address."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from pykafka08 import AuthenticationError, EmbeddedCluster, KafkaError, NoBrokersError, Producer
from pykafka08.broker.security.mechanisms import Principal
from pykafka08.cli import exits
from pykafka08.cluster.client import Client
from pykafka08.config import ClientConfig
from pykafka08.connection.memory import MemoryTransport
from pykafka08.protocol.messages.sasl_handshake import SaslHandshakeResponse
from pykafka08.security.settings import SecurityConfig
from tests.connection.answers import answer_to, read_requests
from tests.virtual_loop import VirtualLoop

TOO_FAR = 1e9
PASSWORD, PROVIDER = "the function in sasl_plain_password", "sasl_oauth_token_provider"
SETUP_MS, API_MS = "socket_connection_setup_timeout_ms", "default_api_timeout_ms"


class Broker(MemoryTransport):
    """A broker that offers every mechanism, and answers nothing after SaslHandshake."""

    def wake_writer(self, *, at_once: bool = False) -> None:
        super().wake_writer(at_once=at_once)
        asked = read_requests(bytes(self.written))
        self.written.clear()
        for each in (one for one in asked if one.name == "SaslHandshake"):
            answer = answer_to(each, SaslHandshakeResponse(mechanisms=[each.request.mechanism]))
            asyncio.get_running_loop().call_soon(self.peer_sends, answer)


async def dial(link: Any, host: str, port: int, *, max_frame_bytes: int, **_: object) -> Broker:
    return Broker(link, max_frame_bytes)


async def never() -> str:
    await anyio.sleep(TOO_FAR)
    return "too late"


async def opened(security: SecurityConfig, limits: dict[str, int]) -> KafkaError:
    given = ClientConfig(bootstrap_servers=(("b", 1), ("c", 1)), broker_version="4.3", security=security, **limits)  # type: ignore[arg-type]
    with pytest.raises(KafkaError) as caught:
        async with Client(given, dial=dial):
            pass
    return caught.value


def error_of(mechanism: str, limits: dict[str, int], password: Any = never) -> tuple[KafkaError, float]:
    """The error of a client whose credentials never come, and when it was raised."""
    credentials: dict[str, Any] = {"sasl_plain_username": "alice", "sasl_plain_password": password}
    if mechanism == "OAUTHBEARER":
        credentials = {"sasl_oauth_token_provider": never}
    security = SecurityConfig(security_protocol="SASL_PLAINTEXT", sasl_mechanism=mechanism, **credentials)
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(opened(security, limits)), loop.time()
    finally:
        loop.close()


@pytest.mark.parametrize(
    ("limits", "text", "seconds"),
    [({}, SETUP_MS, 10), ({API_MS: 2000}, f"{API_MS}=2000", 2), ({SETUP_MS: 3000}, SETUP_MS, 3)],
)
@pytest.mark.parametrize(("mechanism", "source"), [("PLAIN", PASSWORD), ("OAUTHBEARER", PROVIDER)])
def test_functions_that_return_nothing_are_named(
    mechanism: str, source: str, limits: dict[str, int], text: str, seconds: float
) -> None:
    error, raised_at = error_of(mechanism, limits)
    assert type(error) is AuthenticationError
    assert error.message == f"{source} returned no credentials within {text}"
    assert error.mechanism == mechanism
    assert error.broker in ("b:1", "c:1")
    assert raised_at == pytest.approx(seconds)


def test_a_broker_that_is_silent_in_the_exchange_is_still_a_broker_that_does_not_answer() -> None:
    error, _ = error_of("PLAIN", {API_MS: 2000}, "secret")
    assert type(error) is NoBrokersError
    assert "SASL authentication was not finished when default_api_timeout_ms=2000 was over" in str(error)


@pytest.fixture
def closed_url() -> Iterator[str]:
    """A URL at which nobody listens, on a port that nobody else is given."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}/token"


def cluster_of(mechanism: str) -> EmbeddedCluster:
    return EmbeddedCluster(
        security="SASL_PLAINTEXT",
        users={"alice": "secret"},
        check_token=lambda _: Principal("alice"),
        mechanisms=[mechanism],
        topics={"t": 1},
    )


async def refused(cluster: EmbeddedCluster, **settings: Any) -> AuthenticationError:
    with pytest.raises(AuthenticationError) as caught:
        async with Producer(cluster.bootstrap_servers, security_protocol="SASL_PLAINTEXT", **settings):
            pass
    return caught.value


@pytest.mark.anyio
async def test_an_endpoint_that_cannot_be_reached_is_named(closed_url: str) -> None:
    async with cluster_of("OAUTHBEARER") as cluster:
        error = await refused(
            cluster,
            sasl_mechanism="OAUTHBEARER",
            sasl_oauthbearer_token_endpoint_url=closed_url,
            sasl_oauthbearer_client_credentials_client_id="app",
            sasl_oauthbearer_client_credentials_client_secret="hidden",
            sasl_login_retry_backoff_max_ms=1,
        )
    assert f"no token from {closed_url} after 1 request" in str(error)
    assert "see sasl_oauthbearer_token_endpoint_url" in str(error)
    assert exits.status_of(error) == exits.FAILED
    assert "check the address of the brokers" not in exits.describe(error)


@pytest.mark.parametrize("mechanism", ["PLAIN", "OAUTHBEARER"])
@pytest.mark.anyio
async def test_a_function_that_raises_is_named(mechanism: str) -> None:
    def fails() -> str:
        raise OSError("the vault is sealed")

    given: dict[str, Any] = {"sasl_plain_username": "alice", "sasl_plain_password": fails}
    if mechanism == "OAUTHBEARER":
        given = {"sasl_oauth_token_provider": fails}
    async with cluster_of(mechanism) as cluster:
        error = await refused(cluster, sasl_mechanism=mechanism, **given)
    source = PROVIDER if mechanism == "OAUTHBEARER" else PASSWORD
    assert f"{source} raised OSError" in str(error)
    assert isinstance(error.__cause__, OSError)
