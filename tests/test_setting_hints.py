"""A name that is no setting is answered with what may have been meant."""

from __future__ import annotations

import inspect
import re
import warnings
from pathlib import Path
from typing import Any

import aiokafka
import pytest

from pykafka08 import Admin, Consumer, Producer
from pykafka08.config import ClientConfig, ConsumerConfig, ProducerConfig, setting_fields
from pykafka08.errors import ConfigError
from pykafka08.group.settings import GroupConfig
from pykafka08.security.sasl.login import login_of
from pykafka08.security.settings import SecurityConfig
from pykafka08.setting_hints import IN_THEIR_PLACE, OTHER_NAMES, hint
from pykafka08.zookeeper import ZooKeeper

PAGE = Path(__file__).parent.parent / "docs" / "settings.md"
KNOWN = setting_fields(ClientConfig, ConsumerConfig, GroupConfig, ProducerConfig).keys()
KINDS: dict[type, tuple[type, ...]] = {Producer: (ProducerConfig,), Consumer: (ConsumerConfig, GroupConfig)}
SPELLED_WRONG = {
    "auto_commit", "bootstrap_server", "brokers", "compression", "group", "hosts", "idempotence", "linger",
    "max_in_flight", "max_message_bytes", "max_wait_time", "rebalance_listener", "topic", "topics", "transaction_id",
}  # fmt: skip
"""Names that users type, but that no other client has."""


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
    assert "lists the settings" not in text


def test_no_guess_where_nothing_is_near() -> None:
    listed = r"; docs/settings\.md lists the settings$"
    with pytest.raises(ConfigError, match=f"^unknown setting nonsense{listed}"):
        Producer(bootstrap_servers="h:1", nonsense=1)
    with pytest.raises(ConfigError, match=rf"^unknown setting linger \(did you mean linger_ms\?\), nonsense{listed}"):
        Producer(bootstrap_servers="h:1", nonsense=1, linger=1)
    assert hint("linger", {"group_id"}) is None


def test_the_error_is_short_for_any_names() -> None:
    wrong = {f"nonsense_{number}": 1 for number in range(1000)}
    with pytest.raises(ConfigError, match=r"nonsense_106, and 990 more; docs/settings\.md lists the settings$"):
        Producer(bootstrap_servers="h:1", **wrong)
    with pytest.raises(ConfigError, match=r"\(90000 characters\); docs/zookeeper\.md lists the settings$") as caught:
        ZooKeeper("h:1", **{"nonsense " * 10_000: 1})
    assert len(str(caught.value)) < 500


def test_all_other_names_lead_to_settings() -> None:
    assert set(OTHER_NAMES.values()) <= KNOWN
    assert not {*OTHER_NAMES, *IN_THEIR_PLACE} & KNOWN


def test_every_setting_of_other_clients_is_one_here_or_has_a_hint() -> None:
    """The names of the constructors of aiokafka and kafka-python."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python reads its schemas in an old way
        import kafka
    names = {*kafka.KafkaProducer.DEFAULT_CONFIG, *kafka.KafkaConsumer.DEFAULT_CONFIG}
    for client in (aiokafka.AIOKafkaProducer, aiokafka.AIOKafkaConsumer):
        names |= inspect.signature(client).parameters.keys()
    assert len(names) > 60
    assert names <= {*KNOWN, *OTHER_NAMES, *IN_THEIR_PLACE}


def table() -> dict[str, str]:
    """Name -> what to give here, of the table in docs/settings.md."""
    section = PAGE.read_text(encoding="utf-8").split("## Names in other clients")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.*) \| (.*) \|$", section, re.MULTILINE)
    return {name: here for names, here in rows for name in re.findall(r"`([\w.]+)`", names)}


def test_the_table_of_other_names_is_what_errors_say() -> None:
    found = table()
    spelled = {name.replace(".", "_"): here for name, here in found.items()}
    assert len(spelled) == len(found)
    assert spelled.keys() == {*OTHER_NAMES, *IN_THEIR_PLACE} - SPELLED_WRONG
    for name, here in found.items():
        setting = re.match(r"`(\w+)`$", here)
        for kind in (Producer, Consumer):
            with pytest.raises(ConfigError) as caught:
                kind(bootstrap_servers="h:1", **{name: 1})
            text = str(caught.value)
            assert len(text) < 200
            if setting is None:
                assert f"({here.replace('`', '')})" in text
            elif setting[1] in setting_fields(ClientConfig, *KINDS[kind]):
                assert f"did you mean {setting[1]}?" in text


@pytest.mark.parametrize("kind", [Producer, Consumer, Admin])
def test_a_mapping_is_for_from_properties(kind: Any) -> None:
    with pytest.raises(ConfigError, match=r"mapping by Kafka's names to from_properties"):
        kind({"bootstrap.servers": "h:1", "sasl.password": "secret"})


def test_sasl_without_a_mechanism_names_the_mechanisms() -> None:
    with pytest.raises(ConfigError, match="needs sasl_mechanism: set one of AWS_MSK_IAM, GSSAPI, OAUTHBEARER, PLAIN, "):
        login_of(SecurityConfig(security_protocol="SASL_SSL", sasl_plain_username="u", sasl_plain_password="p"))
