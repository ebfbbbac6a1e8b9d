"""Kafka's client properties: honoured, without effect, or refused; each name of the newest release is one of these."""

from __future__ import annotations

import logging
import traceback
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from pykafka08 import Admin, AuthenticationError, CertificateError, Consumer, EmbeddedCluster, Producer
from pykafka08.broker.security.certificates import Certificates
from pykafka08.config import ClientConfig, ConsumerConfig, ProducerConfig, setting_fields
from pykafka08.errors import ConfigError
from pykafka08.group.settings import GroupConfig
from pykafka08.kafka_properties import (
    is_secret,
    librdkafka,
    protected,
    read_client_properties,
    settings_from,
    settings_of,
)
from pykafka08.kafka_properties.tables import OBJECTS, OF_CONSUMERS, OF_PRODUCERS, REFUSED, WITHOUT_EFFECT
from pykafka08.security.secret import Secret

NAMES = (Path(__file__).parent / "kafka_client_properties.txt").read_text(encoding="utf-8").splitlines()
KINDS = {"producer": (ProducerConfig,), "consumer": (ConsumerConfig, GroupConfig), "admin": ()}
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SECRET = "Tr0ub4dor-hidden"
OF_CODECS = {f"compression.{codec}.level" for codec in ("gzip", "lz4", "zstd")}


def pairs() -> list[tuple[str, str]]:
    return [(client, name) for client, _, name in (line.partition(" ") for line in NAMES if not line.startswith("#"))]


@pytest.mark.parametrize("client", KINDS)
def test_every_property_of_the_newest_release_is_known(client: str) -> None:
    names = {name for kind, name in pairs() if kind == client}
    assert len(names) > 70
    settings = {name.replace("_", ".") for name in setting_fields(ClientConfig, *KINDS[client])}
    special = {"partitioner.class", *OF_CODECS} if client == "producer" else set()
    assert names - settings - set(WITHOUT_EFFECT) - set(REFUSED) - special == set()


def test_no_property_is_in_two_tables() -> None:
    settings = {
        name.replace("_", ".") for name in setting_fields(ClientConfig, ConsumerConfig, GroupConfig, ProducerConfig)
    }
    assert not settings & set(WITHOUT_EFFECT)
    assert not settings & set(REFUSED)
    assert not set(REFUSED) & set(WITHOUT_EFFECT)


def test_properties_of_one_kind_of_client() -> None:
    names: dict[str, set[str]] = {client: {name for kind, name in pairs() if kind == client} for client in KINDS}
    everywhere = set(WITHOUT_EFFECT) | {"interceptor.classes", "default.api.timeout.ms"}
    assert names["consumer"] - names["producer"] - everywhere == OF_CONSUMERS
    assert names["producer"] - names["consumer"] - everywhere | {"retries"} == OF_PRODUCERS


def test_a_file_of_several_clients() -> None:
    properties = {"acks": "1", "group.id": "g", "key.serializer": "com.example.Avro", "client.id": "x", "my.own": "y"}
    found = settings_of(properties, ConsumerConfig, GroupConfig)
    assert found.settings == {"group_id": "g", "client_id": "x"}
    assert found.unknown == ["my.own"]
    assert found.without_effect == dict.fromkeys(("acks", "key.serializer"), "it belongs to another kind of client")


@pytest.mark.parametrize(
    ("name", "value", "client"),
    [
        ("interceptor.classes", "com.example.Audit", "consumer"),
        ("value.deserializer", "io.confluent.kafka.serializers.KafkaAvroDeserializer", "consumer"),
        ("value.serializer", "org.apache.kafka.common.serialization.LongSerializer", "producer"),
        ("ssl.engine.factory.class", "com.example.Factory", "admin"),
        ("sasl.login.class", "com.example.Login", "admin"),
        ("client.dns.lookup", "resolve_canonical_bootstrap_servers_only", "admin"),
        ("bootstrap.controllers", "h:1", "admin"),
        ("exclude.internal.topics", "false", "consumer"),
        ("partitioner.class", "com.example.Partitioner", "producer"),
        ("partitioner.ignore.keys", "true", "producer"),
        ("transaction.two.phase.commit.enable", "true", "producer"),
        ("retries", "0", "producer"),
        ("ssl.truststore.loaction", "/x", "admin"),
        ("ssl.context", "x", "admin"),
        ("config.providers", "vault", "admin"),
        ("fetch.min.bytes", "many", "consumer"),
        ("check.crcs", "maybe", "consumer"),
        ("fetch.max.bytes", "9" * 5000, "consumer"),
        ("linger.ms", "-1", "producer"),
    ],
)
def test_refused(name: str, value: str, client: str) -> None:
    with pytest.raises(ConfigError, match=rf"^{name.replace('.', '[.]')}") as caught:
        settings_of({name: value}, *KINDS[client])
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(("name", "refused"), REFUSED.items())
def test_harmless_values_are_passed_over(name: str, refused: Any) -> None:
    for value in refused.harmless:
        for client in KINDS:
            found = settings_of({name: f"org.example.{value}" if value.istitle() else value}, *KINDS[client])
            assert not found.settings
            assert list(found.without_effect) == [name]


def of_librdkafka() -> list[str]:
    lines = (Path(__file__).parent / "librdkafka_properties.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


def test_every_property_of_librdkafka_is_known() -> None:
    names = of_librdkafka()
    assert len(names) > 150
    settings = {
        name.replace("_", ".")
        for name in setting_fields(ClientConfig, *(kind for kinds in KINDS.values() for kind in kinds))
    }
    tables = {*WITHOUT_EFFECT, *REFUSED, *librdkafka.WITHOUT_EFFECT, *librdkafka.REFUSED}
    meant = {name: librdkafka.NAMES.get(name.replace(".", "_"), name).replace("_", ".") for name in names}
    assert [name for name in names if name not in tables and meant[name] not in settings | tables] == []


def test_no_property_of_librdkafka_is_in_two_tables() -> None:
    settings = set(setting_fields(ClientConfig, *(kind for kinds in KINDS.values() for kind in kinds)))
    named = {name.replace("_", ".") for name in librdkafka.NAMES}
    tables = [set(WITHOUT_EFFECT), set(REFUSED), set(librdkafka.WITHOUT_EFFECT), set(librdkafka.REFUSED), named]
    for at, one in enumerate(tables):
        assert not one & {name.replace("_", ".") for name in settings}
        assert all(not one & other for other in tables[:at])
    assert set(librdkafka.NAMES.values()) <= settings | {"retries"}


@pytest.mark.parametrize(("name", "refused"), librdkafka.REFUSED.items())
def test_refused_of_librdkafka(name: str, refused: Any) -> None:
    for value in refused.harmless:
        assert list(settings_of({name: value}).without_effect) == [name]
    with pytest.raises(ConfigError, match=rf"^{name.replace('.', '[.]')}"):
        settings_of({name: "something else"})


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"sasl.mechanisms": "PLAIN"}, {"sasl_mechanism": "PLAIN"}),
        (
            {"sasl.username": "u", "sasl.password": SECRET},
            {"sasl_plain_username": "u", "sasl_plain_password": Secret(SECRET)},
        ),
        ({"ssl.ca.location": "probe"}, {}),
        ({"ssl.ca.location": "/ca.pem", "ssl.ca.pem": "CA"}, {"ssl_cafile": "/ca.pem", "ssl_cadata": "CA"}),
        ({"ssl.crl.location": "/crl.pem"}, {"ssl_crlfile": "/crl.pem"}),
        (
            {"ssl.certificate.location": "/c.pem", "ssl.key.location": "/k.pem", "ssl.key.password": SECRET},
            {"ssl_certfile": "/c.pem", "ssl_keyfile": "/k.pem", "ssl_password": Secret(SECRET)},
        ),
        (
            {"ssl.certificate.pem": "CHAIN", "ssl.key.pem": SECRET, "ssl.key.password": SECRET},
            {
                "ssl_keystore_certificate_chain": "CHAIN",
                "ssl_keystore_key": Secret(SECRET),
                "ssl_key_password": Secret(SECRET),
            },
        ),
        ({"ssl.endpoint.identification.algorithm": "none"}, {"ssl_endpoint_identification_algorithm": ""}),
        (
            {
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.client.id": "c",
                "sasl.oauthbearer.client.secret": SECRET,
                "sasl.oauthbearer.extensions": "a=b, c=d",
                "sasl.oauthbearer.grant.type": "client_credentials",
            },
            {
                "sasl_oauthbearer_client_credentials_client_id": "c",
                "sasl_oauthbearer_client_credentials_client_secret": Secret(SECRET),
                "sasl_oauthbearer_extensions": {"a": "b", "c": "d"},
                "sasl_oauthbearer_jwt_retriever_class": "ClientCredentialsJwtRetriever",
            },
        ),
        ({"socket.timeout.ms": 5000, "log_level": 7}, {"request_timeout_ms": 5000}),
    ],
)
def test_security_by_librdkafkas_names(given: dict[str, Any], meant: dict[str, Any]) -> None:
    assert settings_of(protected(given)).settings == meant


def test_a_configuration_of_confluent_kafka() -> None:
    given = {
        "bootstrap.servers": "h:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": "KEY",
        "sasl.password": SECRET,
        "client.id": "c",
        "session.timeout.ms": 45000,
        "group.id": "g",
        "auto.offset.reset": "beginning",
        "enable.auto.commit": False,
        "compression.level": -1,
        "message.timeout.ms": 60000,
        "queue.buffering.max.ms": 7,
        "partitioner": "murmur2_random",
    }
    producer, consumer = Producer.from_properties(given), Consumer.from_properties(given, "t")
    for client in (
        producer,
        consumer,
    ):
        security = client._client_config.security
        assert (security.sasl_mechanism, security.sasl_plain_username) == ("PLAIN", "KEY")
        assert security.sasl_plain_password == Secret(SECRET)
    assert (producer._config.delivery_timeout_ms, producer._config.linger_ms) == (60000, 7)
    assert (producer._config.partitioner, producer._config.compression_level) == ("murmur2", None)
    assert (consumer._config.auto_offset_reset, consumer._config.enable_auto_commit) == ("earliest", False)
    with pytest.raises(ConfigError, match=r"^oauth_cb: give sasl_oauth_token_provider="):
        Admin.from_properties({**given, "oauth_cb": print})
    with pytest.raises(ConfigError, match=r"^message\.send\.max\.retries=0: "):
        Producer.from_properties({**given, "message.send.max.retries": 0})


def test_values_for_producers() -> None:
    properties = {
        "compression.type": "zstd",
        "compression.zstd.level": "7",
        "compression.gzip.level": "9",
        "partitioner.class": "org.apache.kafka.clients.producer.RoundRobinPartitioner",
        "enable.idempotence": "TRUE",
        "retries": "2147483647",
    }
    assert settings_of(properties, ProducerConfig).settings == {
        "compression_type": "zstd",
        "compression_level": 7,
        "partitioner": "round_robin",
        "enable_idempotence": True,
    }
    properties = {"compression.type": "gzip", "compression.gzip.level": "-1", "partitioner.class": ""}
    assert settings_of(properties, ProducerConfig).settings == {"compression_type": "gzip"}


def test_javas_default_mechanism() -> None:
    assert settings_of({"security.protocol": "SASL_SSL"}).settings["sasl_mechanism"] == "GSSAPI"
    assert "sasl_mechanism" not in settings_of({"security.protocol": "SSL"}).settings
    jaas = f'{PLAIN} required username="u" password="p";'
    with pytest.raises(ConfigError, match=r"sasl\.jaas\.config: PlainLoginModule is for PLAIN, but .*'GSSAPI'"):
        Producer.from_properties(
            {"bootstrap.servers": "h:1", "security.protocol": "SASL_SSL", "sasl.jaas.config": jaas}
        )


def test_empty_texts_as_java_takes_them() -> None:
    found = settings_of({"ssl.truststore.location": " ", "ssl.endpoint.identification.algorithm": " "})
    assert found.settings == {"ssl_endpoint_identification_algorithm": ""}


def test_clients_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(
        "bootstrap.servers=h:1,g:2\n"
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\\n"
        f'  username="alice" password="{SECRET}";\n'
        "group.id=g\nacks=1\nauto.offset.reset=earliest\n",
        encoding="utf-8",
    )
    producer = Producer.from_properties(path, linger_ms=1)
    consumer = Consumer.from_properties(str(path), "orders", group_id="h")
    admin = Admin.from_properties(path, client_id="a")
    for client in (producer, consumer):
        security = client._client_config.security
        assert security.sasl_plain_username == "alice"
        assert security.sasl_plain_password == Secret(SECRET)
        assert client._client_config.bootstrap_servers == (("h", 1), ("g", 2))
    assert (producer._config.acks, producer._config.linger_ms) == (1, 1)
    assert consumer._config.auto_offset_reset == "earliest"
    assert consumer._config.group_id == "h"
    assert admin._config.client_id == "a"


def test_values_of_python_in_a_mapping() -> None:
    settings = settings_from({"enable.auto.commit": False, "fetch.min.bytes": 5, "group_id": "g"}, ConsumerConfig)
    assert settings == {"enable_auto_commit": False, "fetch_min_bytes": 5, "group_id": "g"}
    with pytest.raises(
        ConfigError,
        match=r"^group\.id: the value of a property must be a string, number, boolean or path, not of the type list",
    ):
        settings_from({"group.id": ["g"]}, ConsumerConfig)
    assert settings_from({"ssl.truststore.location": Path("/x/y.pem")}) == {"ssl_truststore_location": "/x/y.pem"}
    with pytest.raises(ConfigError, match="path of a file or a mapping, not of the type int"):
        settings_from(5)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"bootstrap\.servers is missing"):
        Producer.from_properties({"acks": "1"})


def test_a_name_that_may_be_part_of_a_secret_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        settings_from({f'"{SECRET}";': "", "no.such.property": ""})
    assert SECRET not in caplog.text
    assert "***, no.such.property" in caplog.text


def test_unknown_names_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        settings_from({"schema.registry.url": f"http://u:{SECRET}@h", "metric.reporters": ""}, ConsumerConfig)
    assert "schema.registry.url" in caplog.text
    assert "metric.reporters" in caplog.text
    assert SECRET not in caplog.text


def providers(folder: Path) -> dict[str, str]:
    package = "org.apache.kafka.common.config.provider"
    return {
        "config.providers": "file, env,dir",
        "config.providers.file.class": f"{package}.FileConfigProvider",
        "config.providers.file.param.allowed.paths": str(folder),
        "config.providers.env.class": f"{package}.EnvVarConfigProvider",
        "config.providers.env.param.allowlist.pattern": "KAFKA_.*",
        "config.providers.dir.class": f"{package}.DirectoryConfigProvider",
    }


def test_a_file_that_is_not_text_is_not_kept_by_its_error(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"alice-secret\xff")
    with pytest.raises(ConfigError, match="byte 12 is not UTF-8") as caught:
        settings_of({**providers(tmp_path), "ssl.key.password": f"${{dir:{tmp_path}:secret}}"})
    error: BaseException | None = caught.value
    while error is not None:
        assert "alice" not in repr(vars(error)) + repr(error.args)
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "iso-8859-1"])
def test_a_properties_file_is_read_in_utf_8_or_iso_8859_1(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("client.id=é\nssl.key.password=pässword\n", encoding=encoding)
    assert read_client_properties(path) == {"client.id": "é", "ssl.key.password": Secret("pässword")}


def test_a_properties_file_in_utf_16_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("client.id=alice-secret", encoding="utf-16")
    with pytest.raises(ConfigError, match=r"it is not text in UTF-8 or ISO-8859-1$"):
        read_client_properties(tmp_path / "c")


def test_a_wrong_allowlist_of_variables_is_named(tmp_path: Path) -> None:
    wrong = {**providers(tmp_path), "config.providers.env.param.allowlist.pattern": "[", "ssl.key.password": "${env:A}"}
    with pytest.raises(ConfigError, match=r"allowlist.pattern='\[' is no regular expression"):
        settings_of(wrong)


@pytest.mark.parametrize("named", [{}, {"config.providers": "file"}])
def test_a_reference_to_a_provider_that_is_not_named_is_told(
    named: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    if named:
        named = {**named, "config.providers.file.class": "FileConfigProvider"}
    value = "${env:HIDDEN_PW}"
    settings = settings_of({**named, "ssl.key.password": value, "client.id": "$" + "{no reference}"}).settings
    assert settings["ssl_key_password"].reveal() == value, "as Kafka's clients take it"
    (warning,) = [each for each in caplog.messages if "config.reference_not_replaced" in each]
    assert "ssl.key.password" in warning
    assert "${env:...}" in warning
    assert "HIDDEN_PW" not in warning


def test_config_providers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_USER", "alice")
    (tmp_path / "secrets.properties").write_text(f"pw={SECRET}\n", encoding="utf-8")
    (tmp_path / "id").write_text("from-directory", encoding="utf-8")
    properties = {
        **providers(tmp_path),
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{PLAIN} required username="${{env:KAFKA_USER}}" '
        f'password="${{file:{tmp_path}/secrets.properties:pw}}";',
        "client.id": f"${{dir:{tmp_path}:id}}-${{other:x}}",
    }
    (config,) = ClientsOf(properties)
    assert config.security.sasl_plain_username == "alice"
    assert config.security.sasl_plain_password == Secret(SECRET)
    assert config.client_id == "from-directory-${other:x}"


def ClientsOf(properties: dict[str, str]) -> list[Any]:
    from pykafka08.config import build

    return build({"bootstrap_servers": "h:1", **settings_of(properties).settings}, ClientConfig)


def test_references_without_a_provider_stay() -> None:
    assert settings_of({"client.id": "${env:HOME}"}).settings == {"client_id": "${env:HOME}"}


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("${env:HOME}", "allowlist.pattern='KAFKA_.*' does not allow the variable 'HOME'"),
        ("${env:KAFKA_NOT_SET_HERE}", "the provider 'env' has no value for 'KAFKA_NOT_SET_HERE'"),
        ("${file:/etc/passwd:root}", "does not allow '/etc/passwd'"),
        ("${file:FOLDER/secrets.properties:other}", "has no value for 'other'"),
        ("${dir:FOLDER:../secrets.properties}", "has no value for"),
    ],
)
def test_what_providers_do_not_give(tmp_path: Path, value: str, why: str) -> None:
    (tmp_path / "secrets.properties").write_text(f"pw={SECRET}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"^client\.id: ") as caught:
        settings_of({**providers(tmp_path), "client.id": value.replace("FOLDER", str(tmp_path))})
    assert why in str(caught.value)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_a_value_of_a_provider_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "s").write_text(SECRET, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"^fetch\.min\.bytes: its value is not a number$"):
        settings_of({**providers(tmp_path), "fetch.min.bytes": f"${{dir:{tmp_path}:s}}"}, ConsumerConfig)


def test_secrets_by_name(tmp_path: Path) -> None:
    from pykafka08.security.settings import SECRETS, SecurityConfig

    assert all(map(is_secret, SECRETS))
    shown = {field.name for field in fields(SecurityConfig)} - SECRETS
    assert [name for name in shown if is_secret(name)] == []
    path = tmp_path / "p"
    path.write_text(f"ssl.key.password={SECRET}\nbasic.auth.secret={SECRET}\nacks=1", encoding="utf-8")
    assert SECRET not in repr(read_client_properties(path))


CLIENTS: dict[str, Any] = {"producer": Producer, "consumer": Consumer, "admin": Admin}
WRONG_VALUES = ("-7", "soon", "9" * 25, "x=y")
SERVERS = {"bootstrap_servers": "localhost:1"}
SECURED = {
    "security_protocol": "SASL_SSL",
    "sasl_mechanism": "PLAIN",
    "sasl_plain_username": "u",
    "sasl_plain_password": SECRET,
}


def error_of(make: Any, *arguments: Any, **settings: Any) -> str:
    """The text of the ConfigError; empty without an error."""
    try:
        make(*arguments, **settings)
    except ConfigError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("others", [SERVERS, {**SERVERS, **SECURED}], ids=["plaintext", "secured"])
@pytest.mark.parametrize("client", KINDS)
def test_an_error_has_the_name_that_the_setting_was_given_by(client: str, others: dict[str, str]) -> None:
    """Each setting with each wrong value: as an argument, as a property, and as an argument beside properties."""
    make, wrong, named = CLIENTS[client], [], set()
    for setting, field in setting_fields(ClientConfig, *KINDS[client]).items():
        if "_" not in setting or setting in (*OBJECTS, "sasl_oauthbearer_extensions"):
            continue
        is_number = "int" in str(field.type) or "float" in str(field.type)
        for value in WRONG_VALUES:
            given = int(value) if is_number and value.lstrip("-").isdigit() else value
            if setting not in error_of(make, **{**others, setting: given}):
                continue  # a possible value
            name = setting.replace("_", ".")
            properties = {each.replace("_", "."): text for each, text in others.items()}
            of_property = error_of(make.from_properties, {**properties, name: value})
            of_argument = error_of(make.from_properties, properties, **{setting: given})
            named.add(setting)
            if name not in of_property or setting in of_property or setting not in of_argument:
                wrong.append((name, value, of_property, of_argument))
    assert wrong == []
    assert len(named) > 15


UNUSED = "is given without security"
LIBRDKAFKAS = [
    (name, setting)
    for name, setting in librdkafka.NAMES.items()
    if error_of(Admin, **{**SERVERS, setting: "x"}).startswith(f"{setting} {UNUSED}")
]


@pytest.mark.parametrize(("name", "setting"), LIBRDKAFKAS)
def test_an_error_has_the_name_of_librdkafka(name: str, setting: str) -> None:
    """Each is refused without a security.protocol."""
    written = name.replace("_", ".")
    text = error_of(Admin.from_properties, {"bootstrap.servers": "localhost:1", written: "x"})
    assert text.startswith(f"{written} {UNUSED}.protocol")
    assert setting not in text


@pytest.mark.parametrize(
    ("properties", "settings", "text"),
    [
        ({"acks": "1", "enable-idempotence": "true"}, {}, "enable-idempotence=True needs acks='all', not acks=1"),
        ({"acks": "1"}, {"enable_idempotence": True}, "enable_idempotence=True needs acks='all', not acks=1"),
    ],
)
def test_the_names_of_several_settings_in_an_error(
    properties: dict[str, str], settings: dict[str, Any], text: str
) -> None:
    assert error_of(Producer.from_properties, {"bootstrap.servers": "localhost:1", **properties}, **settings) == text


OPENED: dict[str, tuple[dict[str, str], dict[str, Any], str]] = {
    # properties, keyword arguments, and how the error begins
    "no user": ({"sasl.mechanism": "PLAIN"}, {}, "sasl.mechanism='PLAIN' needs a username in sasl.jaas.config"),
    "of librdkafka": (
        {"sasl.mechanisms": "PLAIN", "sasl.username": "u"},
        {},
        "sasl.mechanisms='PLAIN' needs sasl.password",
    ),
    "an argument": (
        {"sasl.mechanism": "PLAIN"},
        {"sasl_plain_username": ""},
        "sasl_plain_username is empty",
    ),
    "no such file": (
        {"security.protocol": "SSL", "ssl.truststore.location": "/no/where.pem", "ssl.truststore.type": "PEM"},
        {},
        "ssl.truststore.location='/no/where.pem'",
    ),
    "no such file, of librdkafka": (
        {"security.protocol": "SSL", "ssl.ca.location": "/no/where.pem"},
        {},
        "ssl.ca.location='/no/where.pem'",
    ),
    "no such file, an argument": (
        {"security.protocol": "SSL"},
        {"ssl_cafile": "/no/where.pem"},
        "ssl_cafile='/no/where.pem'",
    ),
}


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("what", OPENED)
async def test_an_error_at_the_opening_names_properties(client: str, what: str) -> None:
    properties, settings, text = OPENED[what]
    given = {"bootstrap.servers": "localhost:1", "security.protocol": "SASL_PLAINTEXT", **properties}
    with pytest.raises(ConfigError) as caught:
        async with CLIENTS[client].from_properties(given, **settings):
            pass
    assert str(caught.value).startswith(text)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_error_of_a_broker_names_properties() -> None:
    """Credentials and certificates that are refused, in the words of the properties or of the arguments."""
    async with EmbeddedCluster(security="SASL_SSL", users={"alice": "right"}, mechanisms=["PLAIN"]) as cluster:
        properties = cluster.client_properties()
        login = properties["sasl.jaas.config"].replace("right", "wrong")
        with pytest.raises(AuthenticationError, match=r"; check the user and password in sasl\.jaas\.config \["):
            async with Admin.from_properties({**properties, "sasl.jaas.config": login}):
                pass
        del properties["ssl.truststore.location"], properties["ssl.truststore.type"]
        other = Certificates()
        for name in ("ssl.truststore.location", "ssl.ca.location"):
            stores = {name: other.ca_file or "", **({"ssl.truststore.type": "PEM"} if "trust" in name else {})}
            with pytest.raises(CertificateError, match=rf"{name}='[^']+' does not") as caught:
                async with Admin.from_properties({**properties, **stores}):
                    pass
            assert "ssl_" not in str(caught.value)
        with pytest.raises(CertificateError, match=r"ssl_cafile='[^']+' does not"):
            async with Admin.from_properties(properties, ssl_cafile=other.ca_file):
                pass
        other.close()
