"""Java's properties and what becomes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafka08.cli.properties import parse_pairs, read_properties, settings_of
from pykafka08.config import ConsumerConfig, ProducerConfig
from pykafka08.errors import ConfigError
from pykafka08.group.settings import GroupConfig


def test_pairs() -> None:
    assert parse_pairs(["a=b", "c", "d=e=f", "a=g", " h = i "]) == {"a": "g", "c": "", "d": "e=f", "h": " i "}
    with pytest.raises(ConfigError, match="name=value"):
        parse_pairs(["=x"])


def test_a_file_has_javas_syntax(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(
        "# comment\n! another\n\n"
        "a=b\n  c : d\ne f\ng=\nh\n"
        "i = one, \\\n    two\n"
        "j\\=k=l\n"
        "m=\\u00e9\\t\\n\\q\n"
        "n=trailing\\\\\n"
        "o=p=q\n",
        encoding="utf-8",
    )
    assert read_properties(str(path)) == {
        "a": "b",
        "c": "d",
        "e": "f",
        "g": "",
        "h": "",
        "i": "one, two",
        "j=k": "l",
        "m": "é\t\nq",
        "n": "trailing\\",
        "o": "p=q",
    }


def test_a_missing_file_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothere"):
        read_properties(str(tmp_path / "nothere"))


def test_javas_names_become_ours() -> None:
    settings, unknown = settings_of(
        {
            "auto.offset.reset": "smallest",
            "enable.auto.commit": "FALSE",
            "fetch.max.wait.ms": "250",
            "fetch.message.max.bytes": "1000",
            "client.id": "08",
            "security.protocol": "plaintext",
            "key.deserializer": "x",
        },
        ConsumerConfig,
    )
    assert settings == {
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "fetch_max_wait_ms": 250,
        "max_partition_fetch_bytes": 1000,
        "client_id": "08",
        "security_protocol": "plaintext",
    }
    assert unknown == ["key.deserializer"]


def test_names_of_groups() -> None:
    settings, unknown = settings_of(
        {
            "group.id": "g",
            "session.timeout.ms": "6000",
            "partition.assignment.strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor, range",
        },
        ConsumerConfig,
        GroupConfig,
    )
    assert settings == {
        "group_id": "g",
        "session_timeout_ms": 6000,
        "partition_assignment_strategy": ("cooperative-sticky", "range"),
    }
    assert not unknown


def test_producer_names() -> None:
    settings, unknown = settings_of(
        {"request.required.acks": "1", "compression.codec": "gzip", "linger.ms": "0.5", "compression.level": "9"},
        ProducerConfig,
    )
    assert settings == {"acks": 1, "compression_type": "gzip", "linger_ms": 0.5, "compression_level": 9}
    assert not unknown


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("security.protocol", "SASL_SSL"),
        ("transactional.id", "t"),
        ("partitioner.class", "foo"),
        ("fetch.min.bytes", "many"),
        ("check.crcs", "maybe"),
        ("linger.ms", "-1"),
    ],
)
def test_what_cannot_be_honoured_is_refused(name: str, value: str) -> None:
    kind = ProducerConfig if name == "linger.ms" else ConsumerConfig
    with pytest.raises(ConfigError, match=name):
        settings_of({name: value}, kind)
