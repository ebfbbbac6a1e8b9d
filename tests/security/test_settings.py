"""Security settings that contradict each other, or have no effect."""

from __future__ import annotations

import logging
import ssl
from functools import partial
from typing import Any

import pytest

from pykafka08 import Admin, ConfigError, Consumer, Producer
from pykafka08.cluster.client import Client
from pykafka08.config import ClientConfig, build
from pykafka08.security.settings import CREDENTIALS, TRUST

USER: dict[str, Any] = {
    "sasl_mechanism": "PLAIN",
    "sasl_plain_username": "alice",
    "sasl_plain_password": "alice-secret",
}


@pytest.mark.parametrize(
    ("protocol", "unused"),
    [
        ("PLAINTEXT", "sasl_plain_password, sasl_plain_username, ssl_context"),
        ("SSL", "sasl_plain_password, sasl_plain_username"),
        ("SASL_PLAINTEXT", "ssl_context"),
        ("SASL_SSL", ""),
    ],
)
def test_credentials_that_are_not_used_are_one_warning(
    protocol: str, unused: str, caplog: pytest.LogCaptureFixture
) -> None:
    (config,) = build(
        {
            "bootstrap_servers": "h:1",
            "security_protocol": protocol,
            "ssl_context": ssl.create_default_context(),
            **USER,
        },
        ClientConfig,
    )
    with caplog.at_level(logging.DEBUG, logger="pykafka08"):
        Client(config)
    warnings = [each.getMessage() for each in caplog.records if "security.settings_not_used" in each.getMessage()]
    assert len(warnings) == bool(unused)
    assert all(f"settings='{unused}'" in each or f"settings={unused}" in each for each in warnings)
    assert "alice-secret" not in caplog.text


@pytest.mark.parametrize("name", [*TRUST, *CREDENTIALS])
def test_credentials_and_certificates_without_a_protocol_are_an_error(name: str) -> None:
    for make in (Producer, partial(Consumer, "t"), Admin):
        with pytest.raises(ConfigError, match=rf"^{name} is given without security_protocol, so that everything"):
            make(bootstrap_servers="h:1", **{name: "x"})
    Producer("SASL_SSL://h:1", **USER)
    with pytest.raises(ConfigError, match=r"^ssl\.truststore\.location is given without security\.protocol"):
        Producer.from_properties(
            {"bootstrap.servers": "h:1", "securty.protocol": "SSL", "ssl.truststore.location": "t"}
        )


def test_aiokafkas_way_to_skip_the_host_check_names_ours() -> None:
    with pytest.raises(ConfigError, match="set ssl_insecure_skip_hostname_check=True"):
        Producer("localhost:9092", security_protocol="SSL", ssl_check_hostname=False)
