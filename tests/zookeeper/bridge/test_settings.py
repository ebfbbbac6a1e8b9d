"""Settings of the bridge: what is taken, what is refused, what is not shown."""

from __future__ import annotations

import pytest

from pykafka08.errors import ConfigError
from pykafka08.zookeeper.bridge import ZooKeeper
from pykafka08.zookeeper.settings import ZooKeeperConfig, parse_servers


@pytest.mark.parametrize(
    ("text", "addresses", "chroot"),
    [
        ("h", [("h", 2181)], ""),
        ("h:1", [("h", 1)], ""),
        ("h:1,g:2", [("h", 1), ("g", 2)], ""),
        ("h:1, g/kafka/main", [("h", 1), ("g", 2181)], "/kafka/main"),
        ("h:1/", [("h", 1)], ""),
        ("[::1]:2182/k", [("::1", 2182)], "/k"),
        ("::1", [("::1", 2181)], ""),
    ],
)
def test_servers(text: str, addresses: list[tuple[str, int]], chroot: str) -> None:
    assert parse_servers(text) == (tuple(addresses), chroot)


@pytest.mark.parametrize(
    "text", ["", " ", "/kafka", "h:0", "h:x", "h:70000", "h//k", "h:1/a,g:1/a", "zk://h:1", None, 5, ":1"]
)
def test_servers_that_are_none(text: object) -> None:
    with pytest.raises(ConfigError):
        parse_servers(text)


@pytest.mark.parametrize(
    "settings",
    [
        {"session_timeout_ms": 0},
        {"session_timeout_ms": "6000"},
        {"connection_timeout_ms": -1},
        {"auth": "digest:me"},
        {"auth": [("digest",)]},
        {"sasl_username": "me"},
        {"sasl_mechanism": "PLAIN"},
        {"sasl_mechanism": "DIGEST-MD5"},
        {"tls_ca_file": "x"},
        {"tls": True, "tls_ca_file": "/nowhere/ca.pem"},
        {"session_timeout": 5},
    ],
)
def test_settings_that_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        ZooKeeper("h:2181", **settings)


def test_no_secret_is_shown() -> None:
    config = ZooKeeperConfig(servers="h", auth=[("digest", "me:secret")], tls=True, tls_key_password="secret")
    assert "secret" not in repr(config)
    assert repr(ZooKeeper("h/k", auth=[("digest", "me:secret")])) == "ZooKeeper('h:2181/k', session_id=None)"
