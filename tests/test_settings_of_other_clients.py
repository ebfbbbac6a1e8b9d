"""Configurations of confluent-kafka, and objects of aiokafka and kafka-python, as their users have them."""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka.abc import AbstractTokenProvider as AsyncTokenProvider
from aiokafka.helpers import create_ssl_context

from pykafka08 import Admin, Consumer, EmbeddedCluster, Producer
from pykafka08.errors import ConfigError
from pykafka08.kafka_properties import settings_of
from pykafka08.security.oauth.provider import Provider
from pykafka08.security.secret import Secret

pytestmark = pytest.mark.anyio

SECRET = "Tr0ub4dor-hidden"


async def test_a_configuration_of_confluent_kafka() -> None:
    async with EmbeddedCluster(security="SASL_SSL", users={"KEY": SECRET}, topics={"t": 1}) as cluster:
        given = {
            "bootstrap.servers": cluster.bootstrap_servers,
            "security.protocol": "SASL_SSL",
            "sasl.mechanisms": "PLAIN",
            "sasl.username": "KEY",
            "sasl.password": SECRET,
            "session.timeout.ms": 45_000,
            "ssl.ca.location": cluster.ca_file,
        }
        group = {"group.id": "g", "auto.offset.reset": "earliest"}
        async with Admin.from_properties(given) as admin:
            assert await admin.list_topics() == ["t"]
        async with Producer.from_properties(given) as producer:
            await producer.send("t", b"value")
        async with Consumer.from_properties({**given, **group}, "t") as consumer:
            assert (await consumer.getone(timeout=20)).value == b"value"


async def test_two_names_of_one_setting() -> None:
    with pytest.raises(ConfigError, match=r"^sasl\.mechanism and sasl\.mechanisms are two names of one setting"):
        settings_of({"sasl.mechanism": "PLAIN", "sasl.mechanisms": "GSSAPI"})
    assert settings_of({"sasl.mechanism": "PLAIN", "sasl.mechanisms": "PLAIN"}).settings == {"sasl_mechanism": "PLAIN"}


async def test_a_context_of_aiokafka() -> None:
    context = create_ssl_context()
    producer = Producer(bootstrap_servers="h:1", security_protocol="SSL", ssl_context=context)
    assert producer._client_config.security.ssl_context is context


async def test_token_providers_of_aiokafka_and_kafka_python() -> None:
    class Async(AsyncTokenProvider):  # type: ignore[misc]
        async def token(self) -> str:
            return SECRET

        def extensions(self) -> dict[str, str]:
            return {"logicalCluster": "lkc-1"}

    class Plain:  # what kafka-python's abstract class asks for
        def token(self) -> str:
            return SECRET

    extended = await Provider(Async()).token()
    assert (extended.token, extended.extensions) == (Secret(SECRET), {"logicalCluster": "lkc-1"})
    provider: Any
    for provider in (Async(), Plain()):
        assert (await Provider(provider).token()).token == Secret(SECRET)
