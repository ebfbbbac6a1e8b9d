"""Security settings that contradict each other, or have no effect."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from pykafka08 import ConfigError, Producer
from pykafka08.cluster.client import Client
from pykafka08.config import ClientConfig
from pykafka08.security.settings import SecurityConfig

USER: dict[str, Any] = {"sasl_plain_username": "alice", "sasl_plain_password": "alice-secret"}


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL", "SASL_PLAINTEXT"])
def test_credentials_that_are_not_used_are_one_warning(protocol: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="pykafka08"):
        Client(
            ClientConfig(
                bootstrap_servers=(("localhost", 9092),),
                security=SecurityConfig(security_protocol=protocol, sasl_mechanism="SCRAM-SHA-256", **USER),
            )
        )
    warnings = [each.getMessage() for each in caplog.records if "security.credentials_not_used" in each.getMessage()]
    assert len(warnings) == (protocol != "SASL_PLAINTEXT")
    assert all("sasl_plain_password, sasl_plain_username" in each for each in warnings)
    assert "alice-secret" not in caplog.text


def test_aiokafkas_way_to_skip_the_host_check_names_ours() -> None:
    with pytest.raises(ConfigError, match="set ssl_insecure_skip_hostname_check=True"):
        Producer("localhost:9092", security_protocol="SSL", ssl_check_hostname=False)
