"""OAUTHBEARER on a real broker: every client and tool, the JWT bearer grant, and tokens that a broker refuses.

The stream with changing tokens is in ``tests/integration/test_secured.py``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey

from pykafka08 import AuthenticationError, AuthorizationError, Consumer, Producer
from tests.brokers.properties import write_properties
from tests.integration.acls import allow, revoke
from tests.integration.clusters import RealCluster
from tests.integration.reading import read_records
from tests.integration.secured_clients import DEADLINE_S, PATIENT, check_clients, check_tools
from tests.integration.secured_cluster import SecuredBrokers
from tests.security.oauth_broker import CLASSES, CLIENT_SECRET, LOGIN_HANDLER
from tests.security.oidc_endpoint import OidcEndpoint
from tests.security.secrets_found import SecretSearch

RELEASE = "4.3.1"
pytestmark = [pytest.mark.anyio, pytest.mark.cluster(release=RELEASE, kind="secured")]
IS_SOAK = bool(os.environ.get("PYKAFKA08_SOAK"))


@pytest.fixture
def broker(secured_brokers: SecuredBrokers) -> RealCluster:
    return secured_brokers(RELEASE)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_every_client_and_tool_takes_the_file_of_kafkas_tools(
    broker: RealCluster, endpoint: OidcEndpoint
) -> None:
    beginning = endpoint.token("app")[:80]  # later parts hold times, which differ
    search = SecretSearch(CLIENT_SECRET, beginning)
    endpoint.issued.clear()
    await check_clients(broker, "SASL_SSL", "OAUTHBEARER", search=search)
    await check_tools(broker, "SASL_SSL", "OAUTHBEARER", is_short=True, is_here=True, search=search)
    assert endpoint.issued
    assert all(token.startswith(beginning) for token in endpoint.issued)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_user_of_a_jwt_bearer_grant_is_its_subject(
    broker: RealCluster, endpoint: OidcEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The provider issues a token for an assertion that the client has signed (KIP-1139)."""
    key = ECKey.generate_key("P-256", private=True)
    (tmp_path / "key.pem").write_bytes(key.as_pem(private=True))
    endpoint.assertion_keys["orders"] = key
    topic, hidden = broker.new_topic("asserted"), broker.new_topic("hidden")
    await allow(broker, "User:carol", f"ALL topic {topic}")
    await allow(broker, "User:app", f"ALL topic {hidden}")
    bearer = "sasl.oauthbearer.assertion."
    file = tmp_path / "client.properties"
    tls = {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(broker.folder / "ssl" / "ca.pem"),
    }
    write_properties(
        file,
        {
            **tls,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.login.callback.handler.class": LOGIN_HANDLER,
            "sasl.jaas.config": f"{CLASSES}OAuthBearerLoginModule required;",
            "sasl.oauthbearer.jwt.retriever.class": f"{CLASSES}JwtBearerJwtRetriever",
            "sasl.oauthbearer.token.endpoint.url": endpoint.token_url,
            f"{bearer}private.key.file": str(tmp_path / "key.pem"),
            f"{bearer}algorithm": "ES256",
            f"{bearer}claim.aud": endpoint.token_url,
            f"{bearer}claim.iss": "orders",
            f"{bearer}claim.sub": "carol",
        },
    )
    settings: dict[str, Any] = {"bootstrap_servers": broker.listener("SASL_SSL")}
    async with Producer.from_properties(file, **settings) as producer:
        await producer.send(topic, b"value")
        with pytest.raises(AuthorizationError, match=f"DESCRIBE topic '{hidden}'"):
            await producer.send(hidden, b"value")
    async with Consumer.from_properties(file, topic, auto_offset_reset="earliest", **settings) as consumer:
        assert [record.value for record in await read_records(consumer, 1)] == [b"value"]
    if IS_SOAK:
        allowed = "-Dorg.apache.kafka.sasl.oauthbearer.allowed"
        flags = f"{allowed}.urls={endpoint.token_url} {allowed}.files={tmp_path}/key.pem"
        monkeypatch.setenv("KAFKA_TOOL_JVM", flags)
        words = ["--bootstrap-server", settings["bootstrap_servers"], "--topic", topic, "--from-beginning"]
        shown = broker.tool("console-consumer", *words, "--max-messages", "1", "--command-config", str(file))
        assert shown == "value\n"
    await revoke(broker, "User:carol", f"ALL topic {topic}")
    await revoke(broker, "User:app", f"ALL topic {hidden}")


REFUSED: tuple[tuple[Callable[[OidcEndpoint], str], str], ...] = (
    (lambda endpoint: endpoint.token("alice", aud="other"), "status=invalid_token"),
    (lambda endpoint: endpoint.token("alice", iss="https://other.example"), "status=invalid_token"),
    (lambda endpoint: stolen(endpoint), "status=invalid_token"),
    (lambda endpoint: "not.a.jwt", "status=invalid_token"),
    (lambda endpoint: endpoint.token("alice", nbf=int(time.time()) + 3600), "compare the clocks"),
    (lambda endpoint: endpoint.token("alice", exp=int(time.time()) - 60), "the token expired at"),
)


async def test_a_refused_token_is_one_clear_error(broker: RealCluster, endpoint: OidcEndpoint) -> None:
    settings: dict[str, Any] = {
        "bootstrap_servers": broker.listener("SASL_PLAINTEXT"),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
        **PATIENT,
    }
    for make, text in REFUSED:
        token = make(endpoint)
        with anyio.fail_after(DEADLINE_S), pytest.raises(AuthenticationError, match=text) as caught:
            async with Producer(**settings, sasl_oauth_token_provider=lambda made=token: made):
                pass
        assert "token" in str(caught.value)
        assert token not in str(caught.value)


def stolen(endpoint: OidcEndpoint) -> str:
    """A token with another key's signature."""
    other = ECKey.generate_key("P-256", {"kid": "issuer-1"}, private=True)
    claims = {"iss": endpoint.issuer, "aud": endpoint.audience, "sub": "alice", "exp": int(time.time()) + 600}
    return jwt.encode({"alg": "ES256", "kid": "issuer-1"}, claims, other, algorithms=["ES256"])
