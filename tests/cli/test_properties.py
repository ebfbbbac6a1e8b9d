"""Java's properties and what becomes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafka08.cli.options import IN_NO_TRANSACTION
from pykafka08.cli.properties import parse_pairs
from pykafka08.config import ConsumerConfig, ProducerConfig
from pykafka08.errors import ConfigError
from pykafka08.group.settings import GroupConfig
from pykafka08.kafka_properties import settings_of
from pykafka08.properties import properties_text, read_properties


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
    settings, unknown, _, _ = settings_of(
        {
            "auto.offset.reset": "smallest",
            "enable.auto.commit": "FALSE",
            "fetch.max.wait.ms": "250",
            "fetch.message.max.bytes": "1000",
            "client.id": "08",
            "security.protocol": "plaintext",
            "schema.registry.url": "x",
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
    assert unknown == ["schema.registry.url"]


def test_names_of_groups() -> None:
    settings, unknown, _, _ = settings_of(
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
    settings, unknown, _, _ = settings_of(
        {"request.required.acks": "1", "compression.codec": "gzip", "linger.ms": "0.5", "compression.level": "9"},
        ProducerConfig,
    )
    assert settings == {"acks": 1, "compression_type": "gzip", "linger_ms": 0.5, "compression_level": 9}
    assert not unknown


def test_the_tools_write_in_no_transaction() -> None:
    with pytest.raises(ConfigError, match=r"transactional\.id: the tools write in no transaction"):
        settings_of({"transactional.id": "t"}, ProducerConfig, refused=IN_NO_TRANSACTION)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    pairs = {"a b": " two\n\tlines ", "#k=:": "\\", "!": "#ü\U0001f600=:", "empty": "", "\r\f": 'it\'s "x";'}
    path = tmp_path / "written.properties"
    path.write_text(properties_text(pairs), encoding="ascii")
    assert read_properties(str(path)) == pairs
