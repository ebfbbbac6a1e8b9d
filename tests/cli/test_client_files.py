"""Properties files and arguments of the tools as settings of their clients."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest

from pykafka08.cli.broker import main as broker
from pykafka08.cli.consume import main as consume
from pykafka08.cli.mirror import main as mirror
from pykafka08.cli.mirror import mirror_parser, settings_of_mirror
from pykafka08.cli.old_consumer import old_plan
from pykafka08.cli.plan import consumer_parser, plan_of, record_format_of
from pykafka08.cli.produce import main as produce
from pykafka08.cli.produce import plan_of as produce_plan_of
from pykafka08.cli.produce import produce_parser
from pykafka08.cli.zk import main as zk
from pykafka08.cli.zk import settings_of_zookeeper, zk_parser
from pykafka08.config import SETTING_NAMES
from pykafka08.errors import NoBrokersError
from pykafka08.mirror import Mirror
from pykafka08.security.secret import Secret
from pykafka08.zookeeper.admin.release import bootstrap_servers
from pykafka08.zookeeper.legacy.brokers import broker_addresses
from pykafka08.zookeeper.legacy_consumer import LegacyConsumer
from pykafka08.zookeeper.nodes.brokers import Broker
from tests.cli.console import console_here

SECRET = "Tr0ub4dor-hidden"
LOGIN = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="{SECRET}";'
WANTED = {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_jaas_config": Secret(LOGIN)}


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "client.properties"
    path.write_text(
        f"security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config={LOGIN}\n"
        "value.deserializer=com.example.Avro\nbootstrap.servers=other:1\n",
        encoding="utf-8",
    )
    return str(path)


def common(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: settings[name] for name in WANTED}


@pytest.mark.parametrize("option", ["--command-config", "--consumer-config", "--consumer.config"])
def test_the_console_consumer(option: str, file: str) -> None:
    options = consumer_parser("x").parse_args(["-b", "h:1", "-t", "t", option, file])
    settings = plan_of(options).settings
    assert common(settings) == WANTED
    assert settings["bootstrap_servers"] == "h:1"
    assert SECRET not in repr(plan_of(options))


COMMANDS = {
    "consume": (consume, ["-b", "h:1", "-t", "t", "--command-config"]),
    "consume --zookeeper": (consume, ["--zookeeper", "h:1", "-t", "t", "--command-config"]),
    "produce": (produce, ["-b", "h:1", "-t", "t", "--command-config"]),
    "mirror": (mirror, ["--from", "h:1", "--to", "h:2", "--topics", "t", "--to-config"]),
    "zk": (zk, ["lag", "-z", "h:1", "-g", "g", "--command-config"]),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, "the properties file {path} cannot be read: No such file or directory\n"),
        ("ssl.trustore.location=x", "did you mean ssl.truststore.location? (check the properties in {path})\n"),
    ],
)
def test_an_error_of_a_file_is_one_line(
    command: str, content: str | None, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "client.properties"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    main, words = COMMANDS[command]
    try:
        status: object = main([*words, str(path)])
    except SystemExit as end:
        status = end.code
    assert status == 2
    written = capsys.readouterr().err
    assert text.format(path=path) in written
    assert written.count("\n") == 1
    assert written.count(str(path)) == 1


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.anyio
async def test_an_error_of_the_client_names_settings_as_the_file_does(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n", encoding="utf-8")
    ran = await console_here("consume", "-b", "h:1", "-t", "t", "--command-config", str(path))
    assert ran.status == 2
    needed = "sasl.mechanism='PLAIN' needs a username in sasl.jaas.config"
    assert ran.err == f"pykafka08 consume: {needed} (check the properties in {path})\n"


def test_a_missing_file_of_users_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        broker(["--security", "SASL_SSL", "--users-file", "/none"])
    assert end.value.code == 2
    assert capsys.readouterr().err == (
        "pykafka08 broker: the properties file /none cannot be read: No such file or directory\n"
    )


def test_a_reference_without_its_provider_is_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "client.properties"
    path.write_text("ssl.key.password=${env:PW}\n", encoding="utf-8")
    plan_of(consumer_parser("x").parse_args(["-b", "h:1", "-t", "t", "--command-config", str(path)]))
    assert "ssl.key.password has a reference ${env:...}: config.providers does not name" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--command-config", "--producer-config", "--producer.config"])
def test_the_console_producer(option: str, file: str) -> None:
    assert common(produce_plan_of(produce_parser().parse_args(["-b", "h", "-t", "t", option, file])).settings) == WANTED


def test_the_old_consumer(file: str) -> None:
    options = consumer_parser("x").parse_args(["--zookeeper", "z", "-t", "t", "--consumer.config", file])
    plan = old_plan(options, record_format_of(options))
    assert common(plan.settings) == WANTED
    assert SECRET not in repr(plan)
    config = LegacyConsumer.from_properties(file, "t", zookeeper="z", group_id="g")._config
    assert config.client((("h", 1),)).security.sasl_plain_username == "u"


def test_zookeepers_tools(file: str) -> None:
    words = ["lag", "-z", "z:1", "-g", "g", "--command-config", file, "--zookeeper-property", "session.timeout.ms=900"]
    zookeeper, client = settings_of_zookeeper(zk_parser().parse_args(words))
    assert zookeeper == {"servers": "z:1", "session_timeout_ms": 900}
    assert common(client) == WANTED


def test_the_mirror(file: str) -> None:
    words = ["--from", "a", "--to", "b", "--topics", "t", "--from-config", file, "--to-property", "acks=all"]
    settings = settings_of_mirror(mirror_parser().parse_args(words))
    assert common(settings["source_settings"]) == WANTED
    assert settings["target_settings"].keys() == {"acks", SETTING_NAMES}
    Mirror.from_properties({"bootstrap.servers": "a:1"}, file, topics=["t"])


def test_a_secret_among_the_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["-b", "h", "-t", "t", "--command-property", f"ssl.key.password={SECRET}"]
    settings = plan_of(consumer_parser("x").parse_args(words)).settings
    assert settings["ssl_key_password"] == Secret(SECRET)
    said = capsys.readouterr().err
    assert "ssl.key.password=***: other users see arguments" in said
    assert SECRET not in said


class Registered:
    """ZooKeeper with one broker."""

    async def children(self, path: str) -> list[str]:
        return ["1"]

    async def read(self, path: str) -> argparse.Namespace:
        return argparse.Namespace(data=BROKER.encode())


BROKER = Broker(
    version=4,
    host=None,
    port=-1,
    jmx_port=-1,
    timestamp="1",
    endpoints=["IN://i:1", "OUT://o:2", "TLS://[::1]:3"],
    protocols={"IN": "PLAINTEXT", "OUT": "SASL_SSL", "TLS": "SSL"},
)


@pytest.mark.anyio
async def test_the_listener_for_the_clients_security_protocol() -> None:
    zk: Any = Registered()
    assert await broker_addresses(zk, "PLAINTEXT") == (("i", 1),)
    assert await broker_addresses(zk, "SASL_SSL") == (("o", 2),)
    assert bootstrap_servers({1: BROKER}, "ssl") == ["[::1]:3"]
    with pytest.raises(NoBrokersError, match=r"SASL_PLAINTEXT \(there are listeners for PLAINTEXT, SASL_SSL, SSL\)"):
        await broker_addresses(zk, "SASL_PLAINTEXT")
