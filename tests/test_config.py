"""Every setting has a row here: values that are taken, and values that are refused before anything is sent."""

from __future__ import annotations

import math
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from pykafka08 import Admin, Consumer, Producer
from pykafka08.config import (
    ClientConfig,
    ConsumerConfig,
    ProducerConfig,
    build,
    parse_bootstrap_servers,
    setting_fields,
)
from pykafka08.consumer.settings import consumer_settings
from pykafka08.errors import ConfigError
from pykafka08.group.settings import GroupConfig
from pykafka08.security.secret import Secret
from pykafka08.security.settings import CLASSES, SECRETS, SecurityConfig

INT32_MAX = 2**31 - 1
NOT_NUMBERS: tuple[Any, ...] = (None, "1", True, [1], math.nan)


def whole(least: int, most: int = INT32_MAX) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    return (least, most), (least - 1, most + 1, least + 0.5, *NOT_NUMBERS)


TEXT: tuple[tuple[Any, ...], tuple[Any, ...]] = ((None, "x"), (1, b"x", True, ["x"]))
FLAG: tuple[tuple[Any, ...], tuple[Any, ...]] = ((True, False), (None, "true", 1))
MAPPING: tuple[tuple[Any, ...], tuple[Any, ...]] = ((None, {"a": "b"}), ("a=b", ["a"], 1))


def number(least: float, most: float) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    return (least, most), (least - 1, most + 1, *NOT_NUMBERS)


def optional(row: tuple[tuple[Any, ...], tuple[Any, ...]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    return (None, *row[0]), tuple(each for each in row[1] if each is not None)


SECURITY: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    **dict.fromkeys(sorted(SecurityConfig.names()), TEXT),
    "security_protocol": (("PLAINTEXT", "plaintext", "SSL"), ("TLS", "", None, 1, b"PLAINTEXT")),
    "ssl_context": ((None, ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)), ("x", True)),
    "ssl_cadata": ((None, "x", b"x"), (1, True)),
    "ssl_check_hostname": ((True,), (False, None, 1)),
    "ssl_insecure_skip_hostname_check": FLAG,
    "ssl_insecure_skip_verify": FLAG,
    "ssl_endpoint_identification_algorithm": (("https", ""), (None, 1, b"")),
    "sasl_plain_password": ((None, "x", len), (1, b"x", ["x"])),
    "sasl_scram_tokenauth": FLAG,
    "sasl_oauth_token_provider": ((None, len), ()),
    "sasl_oauthbearer_header_urlencode": FLAG,
    "sasl_oauthbearer_assertion_algorithm": (("RS256", "ES256"), (None, 1)),
    "sasl_oauthbearer_assertion_claim_jti_include": FLAG,
    "sasl_oauthbearer_assertion_claim_exp_seconds": number(0, 86_400),
    "sasl_oauthbearer_assertion_claim_nbf_seconds": number(0, 3600),
    "sasl_oauthbearer_extensions": MAPPING,
    "sasl_oauthbearer_unsecured_login": MAPPING,
    "sasl_oauthbearer_ssl": ((None,), ("x", 1, {"sasl_mechanism": "PLAIN"})),
    "sasl_login_connect_timeout_ms": optional(number(1, INT32_MAX)),
    "sasl_login_read_timeout_ms": optional(number(1, INT32_MAX)),
    "sasl_login_retry_backoff_ms": number(0, INT32_MAX),
    "sasl_login_retry_backoff_max_ms": number(0, INT32_MAX),
    "sasl_login_refresh_window_factor": number(0.5, 1.0),
    "sasl_login_refresh_window_jitter": number(0.0, 0.25),
    "sasl_login_refresh_min_period_seconds": number(0, 900),
    "sasl_login_refresh_buffer_seconds": number(0, 3600),
    **{name: ((None, *known), (1, "com.example.Class")) for name, known in CLASSES.items()},
    "sasl_kerberos_service_name": (("kafka", "x"), (None, 1, b"x")),
}
"""Settings of :class:`SecurityConfig`; text, if no row says something else."""

TABLE: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "bootstrap_servers": (
        ("h", "h:1,g:2", ["h:1", "g"], ("h",), "[::1]:9092", "plaintext://h:1"),
        (None, 5, b"h:1", ("h", 9092), [b"h:1"], [None], "", [], "h:0", "h:65536", "h:x", ":1", "tls://h:1"),
    ),
    "client_id": (("", "x", "x" * 32767), (None, 5, b"x", "x" * 32768, "\u00e9" * 16384, "\ud800")),
    "broker_version": ((None, "0.8.2", "4.3"), ("0.7", "0.7.2", "foo", "8", "", "0.8.", "0.8.2\n", 8, 0.8, b"0.8")),
    "request_timeout_ms": whole(1),
    "default_api_timeout_ms": whole(1),
    "retry_backoff_ms": whole(0),
    "retry_backoff_max_ms": whole(0),
    "reconnect_backoff_ms": whole(0),
    "reconnect_backoff_max_ms": whole(0),
    "socket_connection_setup_timeout_ms": whole(1),
    "connections_max_idle_ms": whole(1),
    "metadata_max_age_ms": whole(1),
    "receive_message_max_bytes": whole(1024),
    **SECURITY,
    "acks": (("all", -1, 0, 1), (2, "1", True, False, 1.0, None, [1])),
    "enable_idempotence": ((None, True, False), ("true", 0, 1)),
    "transactional_id": ((None, "x"), ("", 1, b"x", "\ud800")),
    "transaction_timeout_ms": whole(1),
    "linger_ms": ((0, 0.5, INT32_MAX), (-1, INT32_MAX + 1, *NOT_NUMBERS)),
    "batch_size": whole(0),
    "compression_type": (("none", "gzip", None), (1, b"gzip")),
    "compression_level": ((None, 1), ("1", 1.5, True)),
    "partitioner": (("murmur2", lambda key, every, usable: 0), (None, 5)),
    "delivery_timeout_ms": whole(1),
    "buffer_memory": whole(1, 2**63 - 1),
    "max_block_ms": whole(0),
    "max_request_size": whole(1),
    "max_in_flight_requests_per_connection": whole(1, 1000),
    "group_id": ((None, "g"), (5, b"g", "\ud800", "x" * 32768)),
    "auto_offset_reset": (("earliest", "latest", "none"), ("first", None, ["latest"], {})),
    "enable_auto_commit": ((True, False), ("false", 0, None)),
    "auto_commit_interval_ms": whole(1),
    "fetch_min_bytes": whole(0),
    "fetch_max_wait_ms": whole(0),
    "fetch_max_bytes": whole(1),
    "max_partition_fetch_bytes": whole(1),
    "fetch_buffer_bytes": whole(1, 2**63 - 1),
    "check_crcs": ((True, False), ("no", 1, None)),
    "isolation_level": (("read_committed", "read_uncommitted"), ("committed", None, {})),
    "max_unpacked_bytes": whole(1, 2**63 - 1),
    "client_rack": ((None, "r1"), (1, b"r1", "\ud800", "x" * 32768)),
}
OF_GROUP: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "group_id": (("g", None), (5, b"g", "")),
    "group_instance_id": ((None, "a"), ("", 5, b"a")),
    "session_timeout_ms": ((None, 3001, INT32_MAX), (0, 1, 3000, INT32_MAX + 1, "1", True, 1.5)),
    "heartbeat_interval_ms": ((1, 44_999), (0, 45_000, INT32_MAX + 1, 1.5, *NOT_NUMBERS)),
    "max_poll_interval_ms": whole(1),
    "partition_assignment_strategy": (
        (("range",), ("sticky", "cooperative-sticky")),
        ((), ("best",), ("range", "range"), "", "best", ["best"]),
    ),
    "group_protocol": (("classic", "consumer", "auto"), ("new", None, 1)),
    "group_remote_assignor": ((None,), ("", 1, "uniform")),  # a name is taken with the new protocol alone
    "client_rack": ((None, "r1"), (1, b"r1", "\ud800", "x" * 32768)),
}
"""Settings of :class:`GroupConfig`, which are checked whether there is a group or not."""
KINDS = {
    name: SecurityConfig if name in SecurityConfig.names() else kind
    for kind in (ClientConfig, ProducerConfig, ConsumerConfig)
    for name in setting_fields(kind)
}


def made(name: str, value: Any) -> Any:
    settings = {"bootstrap_servers": "h:1", "security_protocol": "PLAINTEXT", name: value}
    return build(settings, ClientConfig, ProducerConfig, ConsumerConfig)


def test_every_setting_has_a_row() -> None:
    assert set(TABLE) == set(KINDS)


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, (good, _) in TABLE.items() for value in good])
def test_taken(name: str, value: Any) -> None:
    client, *others = made(name, value)
    config = next(each for each in (client, client.security, *others) if type(each) is KINDS[name])
    expected = parse_bootstrap_servers(value) if name == "bootstrap_servers" else value
    if name == "security_protocol":
        expected = value.upper()
    if name in SECRETS and isinstance(value, str):
        expected = Secret(value)
    assert getattr(config, name) == expected


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, (_, bad) in TABLE.items() for value in bad])
def test_refused(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=name if name != "bootstrap_servers" else "bootstrap.server"):
        made(name, value)


class Unhashable(dict[str, str]):
    """A mapping that is a function, too."""

    def __call__(self) -> str:
        return "x"


UNHASHABLE: tuple[Any, ...] = (
    Unhashable(a="b"),
    {"ssl.cafile": "ca.pem"},
    ["h:1"],
    {"h:1"},
    bytearray(b"x"),
)


def test_every_value_that_is_taken_leaves_the_settings_hashable() -> None:
    """Clients are kept by their settings; equal ones have equal hashes, whatever the values are."""
    taken = set()
    for name, (good, _) in TABLE.items():
        for value in (*good, *UNHASHABLE):
            try:
                configs = made(name, value)
            except ConfigError:
                assert value in UNHASHABLE
                continue
            again = made(name, value)
            assert configs == again
            assert [hash(each) for each in configs] == [hash(each) for each in again]
            if any(value is each for each in UNHASHABLE):
                taken.add(name)
    assert taken == {
        "bootstrap_servers",
        "partitioner",
        "sasl_oauth_token_provider",
        "sasl_oauthbearer_extensions",
        "sasl_oauthbearer_ssl",
        "sasl_oauthbearer_unsecured_login",
        "sasl_plain_password",
    }


@pytest.mark.parametrize("name", ["sasl_oauthbearer_extensions", "sasl_oauthbearer_unsecured_login"])
def test_settings_with_different_mappings_differ(name: str) -> None:
    assert made(name, {"a": "b"}) != made(name, {"a": "c"})


def test_both_clients_check_when_they_are_made() -> None:
    for kind in (Producer, Consumer):
        with pytest.raises(ConfigError, match="client_id"):
            kind(bootstrap_servers="h:1", client_id=5)


NONSENSE: tuple[Any, ...] = (
    object(),
    -1,
    0,
    10**30,
    1.5,
    math.nan,
    True,
    "",
    "a b",
    "\ud800",
    b"x",
    [],
    [None],
    (),
    {},
    {1: 2},
)
CLIENTS: dict[Callable[..., object], tuple[type, ...]] = {
    Producer: (ClientConfig, ProducerConfig),
    partial(Consumer, "t"): (ClientConfig, ConsumerConfig, GroupConfig),
    partial(Consumer, "t", group_id="g"): (ClientConfig, ConsumerConfig, GroupConfig),
    Admin: (ClientConfig,),
}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.filterwarnings("ignore")
def test_every_value_is_taken_or_refused_with_the_name_of_its_setting(client: Callable[..., object]) -> None:
    refused, unnamed = set(), []
    for name in setting_fields(*CLIENTS[client]):
        for value in NONSENSE:
            try:
                client(**{"bootstrap_servers": "h:1", name: value})
            except ConfigError as error:
                refused.add(name)
                if name not in str(error):
                    unnamed.append((name, value, str(error)))
    assert unnamed == []
    assert len(refused) > 60


def test_every_setting_of_a_group_has_a_row() -> None:
    assert set(OF_GROUP) == setting_fields(GroupConfig).keys()


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, (good, _) in OF_GROUP.items() for value in good])
def test_taken_of_a_group(name: str, value: Any) -> None:
    group = consumer_settings({"bootstrap_servers": "h:1", "group_id": "g", name: value})[2]
    assert (group is None) == (name == "group_id" and value is None)
    assert group is None or getattr(group, name) == value


@pytest.mark.parametrize("group_id", ["g", None])
@pytest.mark.parametrize(("name", "value"), [(name, value) for name, (_, bad) in OF_GROUP.items() for value in bad])
def test_refused_of_a_group(name: str, value: Any, group_id: str | None) -> None:
    with pytest.raises(ConfigError, match=name):
        consumer_settings({"bootstrap_servers": "h:1", "group_id": group_id, name: value})


def test_in_the_new_protocol_sessions_and_heartbeats_are_the_brokers() -> None:
    group = GroupConfig(group_id="g", group_protocol="consumer", session_timeout_ms=1)
    assert group.session_timeout_ms == 1
    assert GroupConfig(group_id="g", group_protocol="consumer", heartbeat_interval_ms=INT32_MAX)


def test_settings_that_would_have_no_effect() -> None:
    for protocol in ("consumer", "auto"):
        assert GroupConfig(group_id="g", group_protocol=protocol, group_remote_assignor="uniform")
    with pytest.raises(ConfigError, match=r"group_remote_assignor is the broker's.* give group_protocol too"):
        GroupConfig(group_id="g", group_remote_assignor="uniform")
    with pytest.raises(ConfigError, match=r"group_instance_id makes a static member.* give a group_id too"):
        consumer_settings({"bootstrap_servers": "h:1", "group_instance_id": "a"})


def test_a_heartbeat_is_more_frequent_than_the_session_is_long() -> None:
    with pytest.raises(ConfigError, match=r"session_timeout_ms=45000 \(the default\) is not more than heartbeat"):
        GroupConfig(group_id="g", heartbeat_interval_ms=50_000)
    assert GroupConfig(group_id="g", heartbeat_interval_ms=50_000, session_timeout_ms=60_000)


def test_assignors_in_any_list_and_names_that_nobody_knows() -> None:
    for names in (["range", "sticky"], "range, sticky", ("range", "sticky")):
        group = consumer_settings(
            {"bootstrap_servers": "h:1", "group_id": "g", "partition_assignment_strategy": names}
        )[2]
        assert group is not None
        assert group.partition_assignment_strategy == ("range", "sticky")
    with pytest.raises(ConfigError, match=r"setting session_timeout \(did you mean session_timeout_ms\?\)$"):
        consumer_settings({"bootstrap_servers": "h:1", "session_timeout": 1})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fetch_min_bytes", 10**5000),
        ("linger_ms", 10**5000),
        ("fetch_min_bytes", "9" * 5000),
        ("acks", 10**5000),
        ("bootstrap_servers", "h:" + "9" * 5000),
        ("broker_version", "0." + "9" * 5000),
        ("security_protocol", "S" * 5000),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 50 else "",
)
def test_a_value_of_thousands_of_digits_is_a_short_error(name: str, value: Any) -> None:
    """Python neither reads nor writes numbers of more than 4,300 digits."""
    with pytest.raises(ConfigError, match=r"bootstrap server|" + name) as caught:
        build({"bootstrap_servers": "h:1", name: value}, ClientConfig, ProducerConfig, ConsumerConfig)
    assert len(str(caught.value)) < 250


def test_the_addresses_name_the_security_protocol() -> None:
    client = build({"bootstrap_servers": "SASL_SSL://h:1,sasl_ssl://g:2"}, ClientConfig)[0]
    assert client.bootstrap_servers == (("h", 1), ("g", 2))
    assert client.security.security_protocol == "SASL_SSL"


@pytest.mark.parametrize(
    "settings",
    [
        {"bootstrap_servers": "SSL://h:1,PLAINTEXT://g:2"},
        {"bootstrap_servers": "SSL://h:1", "security_protocol": "PLAINTEXT"},
    ],
)
def test_different_security_protocols_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"different|disagree"):
        build(settings, ClientConfig)
