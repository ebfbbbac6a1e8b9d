"""A name that is no setting is answered with what may have been meant."""

from __future__ import annotations

from dataclasses import fields

import pytest

from pykafka08 import Consumer, Producer
from pykafka08.config import ClientConfig, ConsumerConfig, ProducerConfig
from pykafka08.errors import ConfigError
from pykafka08.group.settings import GroupConfig
from pykafka08.setting_hints import OTHER_NAMES, hint

KNOWN = {field.name for kind in (ClientConfig, ConsumerConfig, GroupConfig, ProducerConfig) for field in fields(kind)}


@pytest.mark.parametrize(
    ("client", "name", "told"),
    [
        (Producer, "linger", "did you mean linger_ms?"),
        (Producer, "linger.ms", "did you mean linger_ms?"),
        (Producer, "lingr_ms", "did you mean linger_ms?"),
        (Producer, "compression", "did you mean compression_type?"),
        (Producer, "bootstrap_server", "did you mean bootstrap_servers?"),
        (Producer, "value_serializer", "keys and values are bytes"),
        (Consumer, "value_deserializer", "keys and values are bytes"),
        (Consumer, "session_timeout", "did you mean session_timeout_ms?"),
        (Consumer, "max_poll_records", "getmany(max_records=)"),
        (Consumer, "consumer_timeout_ms", "getone(timeout=)"),
        (Consumer, "api_version", "broker_version"),
        (Consumer, "topics", "positional"),
    ],
)
def test_what_was_meant_is_told_in_place_of_the_list(client: type[Producer | Consumer], name: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        client(bootstrap_servers="h:1", **{name: 1})
    text = str(caught.value)
    assert text.startswith(f"unknown setting {name} (")
    assert told in text
    assert "; known are " not in text


def test_no_guess_where_nothing_is_near() -> None:
    with pytest.raises(ConfigError, match="unknown setting nonsense; known are acks, "):
        Producer(bootstrap_servers="h:1", nonsense=1)
    with pytest.raises(ConfigError, match=r"setting linger \(did you mean linger_ms\?\), nonsense; known are acks, "):
        Producer(bootstrap_servers="h:1", nonsense=1, linger=1)
    assert hint("linger", {"group_id"}) is None


def test_all_other_names_lead_to_settings() -> None:
    assert set(OTHER_NAMES.values()) <= KNOWN
    assert not set(OTHER_NAMES) & KNOWN
