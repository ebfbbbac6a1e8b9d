"""OAUTHBEARER on a real broker: tokens of an endpoint, renewals as tokens expire, and tokens that a broker refuses."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey

from pykafka08 import AuthenticationError, Consumer, Producer
from tests.integration.clusters import Clusters, RealCluster
from tests.integration.reading import read_records
from tests.integration.secured_clients import check_clients, check_tools
from tests.security.oauth_broker import CLASSES, oauth_cluster
from tests.security.oidc_endpoint import OidcEndpoint

pytestmark = pytest.mark.anyio
SECRET = "app-secret"
IS_SOAK = bool(os.environ.get("PYKAFKA08_SOAK"))
LIFETIME = 2.0
"""Seconds of a token where tests wait for renewals; the broker's sessions end with their tokens."""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[OidcEndpoint]:
    with OidcEndpoint(clients={"app": SECRET}) as started:
        yield started


@pytest.fixture
def broker(clusters: Clusters, endpoint: OidcEndpoint, tmp_path_factory: pytest.TempPathFactory) -> RealCluster:
    endpoint.lifetime = 3600
    folder = tmp_path_factory.getbasetemp() / "oauth-broker"
    folder.mkdir(exist_ok=True)
    # Sessions end with their tokens only if they are limited at all.
    return oauth_cluster(clusters, endpoint, folder, props=["connections.max.reauth.ms=3600000"])


def settings(broker: RealCluster, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap_servers": broker.listener("SASL_PLAINTEXT"),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
        **more,
    }


def of_endpoint(broker: RealCluster, endpoint: OidcEndpoint) -> dict[str, Any]:
    return settings(
        broker,
        sasl_oauthbearer_token_endpoint_url=endpoint.token_url,
        sasl_oauthbearer_client_credentials_client_id="app",
        sasl_oauthbearer_client_credentials_client_secret=SECRET,
    )


async def test_a_stream_outlives_its_tokens(broker: RealCluster, endpoint: OidcEndpoint) -> None:
    topic = broker.new_topic("oauth")
    endpoint.lifetime = LIFETIME
    endpoint.issued.clear()
    sent: list[bytes] = []
    with anyio.fail_after(60):
        async with Producer(**of_endpoint(broker, endpoint)) as producer:
            while len(endpoint.issued) < 3:
                sent.append(b"%d" % len(sent))
                await producer.send(topic, sent[-1])
        async with Consumer(topic, auto_offset_reset="earliest", **of_endpoint(broker, endpoint)) as consumer:
            assert [record.value for record in await read_records(consumer, len(sent))] == sent
    assert len(sent) > 3


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_every_client_takes_a_file_of_kafkas_tools(
    broker: RealCluster, endpoint: OidcEndpoint, tmp_path: Path
) -> None:
    login = f'{CLASSES}OAuthBearerLoginModule required clientId="app" clientSecret="{SECRET}";'
    file = tmp_path / "client.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        f"sasl.oauthbearer.token.endpoint.url={endpoint.token_url}\nsasl.jaas.config={login}\n"
    )
    await check_clients(broker, "SASL_PLAINTEXT", "OAUTHBEARER", file=file)
    if IS_SOAK:
        await check_tools(broker, "SASL_PLAINTEXT", "OAUTHBEARER", file=file)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda endpoint: endpoint.token("alice", aud="other"), "status=invalid_token"),
        (lambda endpoint: endpoint.token("alice", iss="https://other.example"), "status=invalid_token"),
        (lambda endpoint: stolen(endpoint), "status=invalid_token"),
        (lambda endpoint: "not.a.jwt", "status=invalid_token"),
        (lambda endpoint: endpoint.token("alice", nbf=int(time.time()) + 3600), "compare the clocks"),
        (lambda endpoint: endpoint.token("alice", exp=int(time.time()) - 60), "the token expired at"),
    ],
)
async def test_a_refused_token_is_one_clear_error(
    broker: RealCluster, endpoint: OidcEndpoint, make: Callable[[OidcEndpoint], str], text: str
) -> None:
    token = make(endpoint)
    with anyio.fail_after(30), pytest.raises(AuthenticationError, match=text) as caught:
        async with Producer(**settings(broker, sasl_oauth_token_provider=lambda: token)) as producer:
            await producer.send("t", b"v")
    assert "token" in str(caught.value)
    assert token not in str(caught.value)


def stolen(endpoint: OidcEndpoint) -> str:
    """A token with another key's signature."""
    other = ECKey.generate_key("P-256", {"kid": "issuer-1"}, private=True)
    claims = {"iss": endpoint.issuer, "aud": endpoint.audience, "sub": "alice", "exp": int(time.time()) + 600}
    return jwt.encode({"alg": "ES256", "kid": "issuer-1"}, claims, other, algorithms=["ES256"])
