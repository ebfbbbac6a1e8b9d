"""Each block of docs/clouds.md, as it stands there, against what plays that service here."""

from __future__ import annotations

import base64
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
import trustme
from joserfc import jwt

from pykafka08 import Admin, Consumer, EmbeddedCluster, Producer
from pykafka08.broker.security.mechanisms import Principal, Refused
from pykafka08.kafka_properties import settings_from
from pykafka08.properties import read_properties
from pykafka08.security.settings import SecurityConfig
from tests.security.cloud_page import KERBEROS, PAIRS, Block, Pair, replaced, write_files
from tests.security.event_hubs import event_hubs
from tests.security.oidc_endpoint import OidcEndpoint, issuer_key

EVENT_HUBS = "Azure Event Hubs"
PUBLIC = ("Confluent Cloud", "Amazon MSK", EVENT_HUBS, "Redpanda")
"""Services whose certificate is of a public CA."""
LANGUAGES = ("python", "properties")
TOKEN_URL = "https://login.microsoftonline.com/TENANT/oauth2/v2.0/token"
SCOPE = "https://NAMESPACE.servicebus.windows.net/.default"
CONNECTED = [pair for pair in PAIRS if pair.heading != KERBEROS]
"""tests/integration/test_kerberos.py has the others."""


class Played(NamedTuple):
    """Stands for a service: its address, its CA file, a client's key and certificates, and texts to replace."""

    address: str
    ca_file: str
    client_file: str | None
    texts: dict[str, str]


def test_every_service_has_blocks() -> None:
    assert [pair.name for pair in PAIRS] == [
        "Confluent Cloud 0",
        "Amazon MSK 0",
        "Amazon MSK 1",
        "Amazon MSK 2",
        "Azure Event Hubs 0",
        "Azure Event Hubs 1",
        "Aiven 0",
        "Aiven 1",
        "Redpanda 0",
        "Strimzi 0",
        f"{KERBEROS} 0",
    ]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_python_and_properties_say_the_same(pair: Pair, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(pair.properties.text)
    of_python, of_properties = pair.python.settings(), settings_from(read_properties(str(file)))
    for name in of_python.keys() - SecurityConfig.names():
        assert of_python[name] == of_properties[name], name
    first, second = (
        SecurityConfig(**{name: value for name, value in each.items() if name in SecurityConfig.names()})
        for each in (of_python, of_properties)
    )
    for name in SecurityConfig.names():
        if not name.startswith("ssl_") and not name.endswith(("_jaas_config", "_handler_class")):
            assert getattr(first, name) == getattr(second, name), name
    for kind in (Admin, Consumer, Producer):
        pair.python.client(kind, tmp_path)
        pair.properties.client(kind, tmp_path)


def check_aws(token: str) -> Principal:
    """Refuse a token that is no signed URL of the region's endpoint."""
    url = urlsplit(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode())
    if url.netloc != "kafka.eu-west-1.amazonaws.com" or "X-Amz-Signature=" not in url.query:
        raise Refused("not signed by AWS's rules")
    return Principal("role", time.time() + 900)


def check_entra(token: str) -> Principal:
    claims = jwt.decode(token, issuer_key(), algorithms=["ES256"]).claims
    if (claims["sub"], claims["scope"]) != ("ID", SCOPE):
        raise Refused("a token for somebody or something else")
    return Principal("ID", claims["exp"])


@asynccontextmanager
async def embedded(pair: Pair) -> AsyncIterator[Played]:
    """A cluster that knows the one user of the block, by the block's mechanism alone."""
    settings = pair.python.settings()
    given: dict[str, Any] = {"client_auth": "required"}
    if settings.get("sasl_mechanism") == "AWS_MSK_IAM":
        given = {"check_token": check_aws}
    elif "sasl_mechanism" in settings:
        users = {settings["sasl_plain_username"]: settings["sasl_plain_password"]}
        given = {"users": users, "mechanisms": [settings["sasl_mechanism"]]}
    async with EmbeddedCluster(security=settings["security_protocol"], topics={"t": 1}, **given) as cluster:
        assert cluster.ca_file is not None
        client_file = None
        if "client_auth" in given:
            client_file = cluster.client_settings("me")["ssl_certfile"]
        yield Played(cluster.bootstrap_servers, cluster.ca_file, client_file, {})


@asynccontextmanager
async def namespace(pair: Pair, folder: Path) -> AsyncIterator[Played]:
    """Event Hubs, and Microsoft Entra ID beside it."""
    ca, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    ca.cert_pem.write_to_path(folder / "public.pem")
    settings = pair.python.settings()
    is_entra = settings["sasl_mechanism"] == "OAUTHBEARER"
    given: dict[str, Any] = (
        {"check_token": check_entra}
        if is_entra
        else {"users": {settings["sasl_plain_username"]: settings["sasl_plain_password"]}}
    )
    with OidcEndpoint(clients={"ID": "SECRET"}, tls=context) as entra:
        async with (
            EmbeddedCluster(security="SASL_PLAINTEXT", topics={"t": 1}, **given) as cluster,
            event_hubs(cluster.bootstrap_servers, tls=context) as hubs,
        ):
            texts = {TOKEN_URL: entra.token_url} if is_entra else {}
            yield Played(hubs.address, str(folder / "public.pem"), None, texts)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("pair", CONNECTED, ids=lambda pair: pair.name)
async def test_a_block_connects(pair: Pair, language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("AWS_PROFILE", "AWS_DEFAULT_REGION", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "AKIDEXAMPLE0000000001")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    async with namespace(pair, tmp_path) if pair.heading == EVENT_HUBS else embedded(pair) as played:
        if pair.heading in PUBLIC:
            monkeypatch.setenv("SSL_CERT_FILE", played.ca_file)
        write_files(tmp_path, played.ca_file, played.client_file)
        block = replaced(getattr(pair, language), played.address, tmp_path, played.texts)
        await round_trip(block, tmp_path)


async def round_trip(block: Block, folder: Path) -> None:
    async with block.client(Producer, folder) as producer:
        await producer.send("t", b"value")
    async with block.client(Consumer, folder, "t", auto_offset_reset="earliest") as consumer:
        assert (await consumer.getone(timeout=20)).value == b"value"
