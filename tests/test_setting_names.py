"""Names of settings in errors: keyword arguments or Kafka's properties, as the user wrote them."""

from __future__ import annotations

import ast
import re
import socket
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import pykafka08
from pykafka08 import AuthenticationError, Consumer, EmbeddedCluster, KafkaError, Producer, TopicPartition
from pykafka08.config import SETTING_NAMES, ClientConfig, ConsumerConfig, ProducerConfig, build, setting_fields
from pykafka08.errors import ConfigError, NoBrokersError
from pykafka08.group.settings import GroupConfig
from pykafka08.kafka_properties.naming import written_names
from pykafka08.mirror import Mirror
from pykafka08.setting_names import AS_ARGUMENTS, SettingNames, words
from pykafka08.spark.client_properties import consumer_settings
from pykafka08.zookeeper.legacy.settings import LegacyConfig
from pykafka08.zookeeper.legacy_consumer import LegacyConsumer
from tests.test_lost_credentials import credentials, old_and_secured, secured

ROOT = Path(pykafka08.__file__).parent
KINDS = (ProducerConfig, ConsumerConfig, GroupConfig, LegacyConfig)
SETTINGS = setting_fields(ClientConfig, *KINDS).keys()

TRANSLATED = {
    # module or folder -> the component that replaces the names in its errors and log lines
    "config.py": "build",
    "cluster": "Client and Connections",
    "connection": "ConnectionMachine",
    "consumer/consumer.py": "built_from",
    "consumer/locating.py": "Locating.halt",
    "consumer/machine.py": "Locating.halt",
    "consumer/reactions.py": "not in an error: the description of a reaction",
    "consumer/settings.py": "consumer_settings",
    "error_codes.py": "ConnectionMachine, the group's machines and TransactionMachine",
    "group/modern": "ModernMachine._fail",
    "group/reactions.py": "GroupMachine._fail",
    "group/requests.py": "ConnectionMachine",
    "group/settings.py": "consumer_settings",
    "producer/queues.py": "not in an error: the description of a state",
    "producer/request.py": "built_from and ConnectionMachine",
    "producer/transactions/block.py": "not a setting: an argument of send_offsets()",
    "producer/transactions/judgement.py": "TransactionMachine.answered",
    "producer/transactions/requests.py": "ConnectionMachine",
    "protocol/framing.py": "ConnectionMachine",
    "records": "HandingOut and built_from",
    "security": "Client and ConnectionMachine",
    "zookeeper/legacy": "LegacyConsumer and Reading",
    "zookeeper/settings.py": "not settings of a client: those of the session with ZooKeeper",
}
ELSEWHERE = ("broker", "cli", "kafka_properties", "setting_hints.py", "setting_names.py", "spark")
"""Modules that are not tested here: they belong to no client, or have their own tests (commands, Spark's options)."""


@cache
def messages() -> list[tuple[str, str]]:
    """Each text in the client's code that names a setting, with its module."""
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        module, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        if module.startswith(ELSEWHERE) or SETTINGS.isdisjoint(re.findall(r"[a-z0-9_]+", text)):
            continue
        tree = ast.parse(text)
        described = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Constant) and isinstance(node.value, str)) or id(node) in described:
                continue
            is_name = re.fullmatch(r"\w+", node.value)
            if not is_name and "_" in node.value and words(node.value) & SETTINGS:
                found.append((module, node.value))
    return found


def test_each_message_that_names_a_setting_is_translated_somewhere() -> None:
    modules = {module for module, _ in messages()}
    unknown = {module for module in modules if not module.startswith(tuple(TRANSLATED))}
    assert unknown == set(), "add to TRANSLATED the component that replaces the names in the errors of these modules"
    assert [each for each in TRANSLATED if not any(module.startswith(each) for module in modules)] == []
    assert len(messages()) > 80


def test_each_message_names_properties_or_keyword_arguments() -> None:
    names = written_names({}, *KINDS)
    for _, text in messages():
        named = names.in_text(text)
        assert not words(named) & SETTINGS, text
        assert AS_ARGUMENTS.in_text(text) == text
        assert names.in_text(named) == named


def test_texts_use_the_property_that_the_user_wrote() -> None:
    names = written_names(
        {"ssl_cafile": "ssl.ca.location", "linger_ms": "linger-ms"}, ProducerConfig, kept={"acks", "batch_size"}
    )
    assert names.in_text("ssl_cafile, linger_ms, batch_size and buffer_memory") == (
        "ssl.ca.location, linger-ms, batch_size and buffer.memory"
    )


def test_quoted_values_are_not_translated() -> None:
    names = written_names({}, ProducerConfig)
    assert names.in_text("topic 'linger_ms' of the broker's: linger_ms='batch_size'") == (
        "topic 'linger_ms' of the broker's: linger.ms='batch_size'"
    )


def test_setting_names_of_a_wrong_type_are_refused() -> None:
    with pytest.raises(ConfigError, match="setting_names is of type dict"):
        build({"bootstrap_servers": "h:1", SETTING_NAMES: {}}, ClientConfig)


# --- errors of running clients

Make = Callable[..., Any]


def by_arguments(client: Any, *topics: str, **settings: Any) -> Any:
    return client(*topics, **settings)


def by_properties(client: Any, *topics: str, **settings: Any) -> Any:
    properties = {name.replace("_", "."): value for name, value in settings.items()}
    return client.from_properties(properties, *topics)


async def too_large(make: Make, servers: str) -> None:
    async with make(Producer, bootstrap_servers=servers, max_request_size=1000) as producer:
        await producer.send("t", bytes(2000))


async def no_room(make: Make, servers: str) -> None:
    async with make(Producer, bootstrap_servers=servers, buffer_memory=2000, linger_ms=60_000) as producer:
        while True:
            producer.enqueue("t", bytes(500))


async def no_room_in_time(make: Make, servers: str) -> None:
    async with make(Producer, bootstrap_servers=servers, buffer_memory=2000, max_block_ms=1) as producer:
        producer._room.bound = 0
        await producer.send("t", bytes(500))


async def no_transactions(make: Make, servers: str) -> None:
    async with make(Producer, bootstrap_servers=servers) as producer, producer.transaction():
        pass


async def long_transaction(make: Make, servers: str) -> None:
    settings = {"transactional_id": "x", "transaction_timeout_ms": 2_000_000_000}
    async with make(Producer, bootstrap_servers=servers, **settings):
        pass


async def no_group(make: Make, servers: str) -> None:
    async with make(Consumer, "t", bootstrap_servers=servers) as consumer:
        await consumer.commit()


async def commits_twice(make: Make, servers: str) -> None:
    async with make(Consumer, "t", bootstrap_servers=servers, group_id="g") as consumer:
        consumer.group_offsets()


async def short_session(make: Make, servers: str) -> None:
    settings = {"session_timeout_ms": 2_000_000_000, "auto_offset_reset": "earliest"}
    async with make(Consumer, "t", bootstrap_servers=servers, group_id="g", **settings) as consumer:
        await consumer.getone(timeout=30)


async def no_position(make: Make, servers: str) -> None:
    async with make(Consumer, bootstrap_servers=servers, auto_offset_reset="none") as consumer:
        consumer.assign([TopicPartition("t", 0)])
        await consumer.getone(timeout=30)


LATER: dict[str, tuple[Callable[[Make, str], Awaitable[None]], str]] = {
    "a record that is too large": (too_large, "max_request_size"),
    "no room": (no_room, "buffer_memory"),
    "no room in time": (no_room_in_time, "max_block_ms"),
    "no transactions": (no_transactions, "transactional_id"),
    "a time-out of transactions": (long_transaction, "transaction_timeout_ms"),
    "no group": (no_group, "group_id"),
    "commits twice": (commits_twice, "enable_auto_commit"),
    "a time-out of sessions": (short_session, "session_timeout_ms"),
    "no position": (no_position, "auto_offset_reset"),
}


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("what", LATER)
async def test_an_error_of_a_running_client_names_the_setting_as_written(what: str) -> None:
    call, setting = LATER[what]
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        for make, name, other in (
            (by_arguments, setting, setting.replace("_", ".")),
            (by_properties, setting.replace("_", "."), setting),
        ):
            with pytest.raises(KafkaError) as caught:
                await call(make, cluster.bootstrap_servers)
            assert re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", str(caught.value))
            assert not re.search(rf"(?<![\w.]){re.escape(other)}(?![\w.])", str(caught.value))


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("side", ["source", "target"])
async def test_authentication_errors_of_a_mirror_name_the_properties(side: str) -> None:
    async with secured() as source, secured() as target:
        given = {"source": source.client_properties(), "target": target.client_properties()}
        given[side]["sasl.jaas.config"] = given[side]["sasl.jaas.config"].replace("old", "wrong")
        with pytest.raises(AuthenticationError, match=r"the user and password in sasl\.jaas\.config"):
            async with Mirror.from_properties(**given, topics=["t"]):
                pass


@pytest.mark.parametrize("side", ["source", "target"])
def test_wrong_settings_of_a_mirror_are_named_as_properties(side: str) -> None:
    given = {name: {"bootstrap.servers": "h:1"} for name in ("source", "target")}
    given[side]["ssl.truststore.location"] = "/nowhere"
    with pytest.raises(ConfigError, match=rf"{side}: ssl\.truststore\.location is given without security\.protocol"):
        Mirror.from_properties(**given, topics=["t"])  # type: ignore[arg-type]
    own = {"source": "isolation.level", "target": "transactional.id"}[side]
    given[side] = {"bootstrap.servers": "h:1", own: "read_committed"}
    with pytest.raises(ConfigError, match=rf"{own} cannot be changed: the mirror sets it"):
        Mirror.from_properties(**given, topics=["t"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({"zookeeper.connect": "z:1"}, "give group.id="),
        ({"group.id": "g"}, "zookeeper.connect="),
        ({"zookeeper.connect": "z:1", "group.id": "g", "fetch.wait.max.ms": "-1"}, "fetch.wait.max.ms=-1"),
        ({"zookeeper.connect": "z:1", "group.id": "g", "ssl.truststore.location": "x"}, "set security.protocol to"),
    ],
)
def test_wrong_settings_of_a_legacy_consumer_are_named_as_properties(properties: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        LegacyConsumer.from_properties(properties, "t")
    assert text in str(caught.value)
    assert not words(str(caught.value)) & SETTINGS


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_connection_errors_of_a_legacy_consumer_name_the_properties() -> None:
    async with old_and_secured() as old:
        wrong = old.brokers.client_properties()["sasl.jaas.config"].replace("old", "wrong")
        common = {"group.id": "g", "sasl.mechanism": "PLAIN", "sasl.jaas.config": wrong}
        for protocol, kind, text in (
            ("SASL_PLAINTEXT", AuthenticationError, "check the user and password in sasl.jaas.config"),
            ("SSL", NoBrokersError, "security.protocol=SSL"),
        ):
            properties = {
                "zookeeper.connect": old.zookeeper.address + old.chroot,
                "security.protocol": protocol,
                **common,
            }
            with pytest.raises(kind) as caught:
                async with LegacyConsumer.from_properties(properties, "t"):
                    pass
            assert text in str(caught.value)
        arguments = {**credentials(old.brokers), "sasl_plain_password": "wrong"}
        with pytest.raises(AuthenticationError, match="check sasl_plain_username and sasl_plain_password"):
            async with old.consumer("t", **arguments):
                pass


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["default.api.timeout.ms", "default_api_timeout_ms"])
async def test_the_error_of_a_silent_bootstrap_address_names_the_time_limit_as_written(name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        servers = f"127.0.0.1:{silent.getsockname()[1]}"
        if name in setting_fields(ClientConfig):
            producer = Producer(servers, default_api_timeout_ms=200)
        else:
            producer = Producer.from_properties({"bootstrap.servers": servers, name: "200"})
        with pytest.raises(NoBrokersError, match=rf"{re.escape(name)}=200 was over"):
            async with producer:
                pass


def test_errors_of_the_spark_connector_name_its_options() -> None:
    options = {"kafka.bootstrap.servers": "h:1", "kafka.ssl.truststore.location": "/nowhere"}
    with pytest.raises(ConfigError) as caught:
        consumer_settings(options, "c")
    assert str(caught.value).startswith("kafka.ssl.truststore.location is given without kafka.security.protocol")
    client, consumer = consumer_settings({"kafka.bootstrap.servers": "h:1"}, "c")
    assert client.setting_names["ssl_cafile"] == "kafka.ssl.cafile"
    assert consumer.setting_names.in_text("check sasl_plain_username and sasl_plain_password") == (
        "check the user and password in kafka.sasl.jaas.config"
    )


def test_setting_names_is_not_a_setting() -> None:
    assert SETTING_NAMES not in setting_fields(ClientConfig, *KINDS)
    assert isinstance(ClientConfig(bootstrap_servers=(("h", 1),)).setting_names, SettingNames)
