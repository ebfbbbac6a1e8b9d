"""No secret in anything that is shown: every mechanism, client and tool, at the level DEBUG."""

from __future__ import annotations

import asyncio
import base64
import copy
import dataclasses
import json
import os
import pickle
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import anyio
import anyio.to_thread
import pytest
import sniffio
import trustme

from pykafka08 import (
    Admin,
    AuthenticationError,
    ConfigError,
    Consumer,
    EmbeddedCluster,
    EmbeddedZooKeeper,
    LegacyConsumer,
    Mirror,
    Producer,
)
from pykafka08.broker.security.mechanisms import Principal, Refused
from pykafka08.security.settings import SecurityConfig
from tests.cli.console import Finished, console_here
from tests.security.renewed_sessions import LONG_SESSIONS, renewed_sessions
from tests.security.secrets_found import SecretSearch, everything_is_sent
from tests.zookeeper.bridge.tls_front import TlsFront, client_files

pytestmark = pytest.mark.anyio

USER, PASSWORD, WRONG, TOKEN = "alice", "s3cret+of/alice=", "wr0ng+of/alice=", "t0ken.of.alice-and_nobody"
KEY_PASSWORD = "s3cret-of-the-key"
KEY_ID, AWS_KEY, AWS_SESSION = (
    "AKIDEXAMPLE0000000001",
    "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
    "session/token+of=sts",
)
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
MODULES = "org.apache.kafka.common.security"


def check_token(token: str) -> Principal:
    if token != TOKEN:
        raise Refused("another token")
    return Principal(USER, time.time() + 3600)


def provided() -> str:
    return TOKEN


def settings_of(cluster: EmbeddedCluster, mechanism: str, password: str = PASSWORD) -> dict[str, Any]:
    settings = {**cluster.client_settings(USER), "sasl_mechanism": mechanism}
    if mechanism == "OAUTHBEARER":
        del settings["sasl_plain_username"], settings["sasl_plain_password"]
        token = TOKEN if password == PASSWORD else password
        return {**settings, "sasl_oauth_token_provider": lambda: token}
    return {**settings, "sasl_plain_password": password}


async def _use(client: Any) -> None:
    async with client:
        if isinstance(client, Mirror):
            await client.run()


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_clients_show_no_secret(mechanism: str) -> None:
    search = SecretSearch(PASSWORD, WRONG, TOKEN)
    async with EmbeddedCluster(
        security="SASL_SSL",
        users={USER: PASSWORD},
        check_token=check_token,
        topics={"t": 1},
        properties=LONG_SESSIONS,
    ) as cluster:
        with search.of_logs(), renewed_sessions() as sessions:
            settings = settings_of(cluster, mechanism)
            async with (
                Admin(**settings) as admin,
                Producer(**settings) as producer,
                Consumer("t", group_id="g", auto_offset_reset="earliest", **settings) as consumer,
            ):
                for number in range(20):
                    await producer.send("t", b"%d" % number)
                    await consumer.getone(timeout=60)
                await sessions.renewed()
                await admin.list_groups()
                async with Producer(**settings, transactional_id="x") as transactional:
                    async with transactional.transaction():
                        await transactional.send("t", b"20")
                    await sessions.renewed()
                    await everything_is_sent()
                    search.of_objects("transactional producer", transactional)
                servers, others = settings["bootstrap_servers"], _others(settings)
                ends = {"source_settings": others, "target_settings": others}
                async with Mirror(servers, servers, topics=["t"], rename={"t": "copy"}, **ends) as mirror:
                    assert (await mirror.run()).records >= 21
                    await sessions.renewed()
                    await everything_is_sent()
                    search.of_objects("mirror", mirror)
                for task in anyio.get_running_tasks():
                    search.of_text("task", repr(task))
                if sniffio.current_async_library() == "asyncio":
                    for each in asyncio.all_tasks():
                        search.of_text("asyncio's task", repr(each))
                await everything_is_sent()
                search.of_objects("admin", admin)
                search.of_objects("producer", producer)
                search.of_objects("consumer", consumer)
            wrong = settings_of(cluster, mechanism, WRONG)
            ends = {"source_settings": _others(wrong), "target_settings": _others(wrong)}
            clients: list[Callable[[], Any]] = [
                lambda: Admin(**wrong),
                lambda: Producer(**wrong),
                lambda: Producer(**wrong, transactional_id="x"),
                lambda: Consumer("t", **wrong),
                lambda: Consumer("t", group_id="g", **wrong),
                lambda: Mirror(servers, servers, topics=["t"], rename={"t": "copy"}, **ends),
            ]
            for number, made in enumerate(clients):
                client = made()
                with pytest.raises(AuthenticationError) as caught:
                    await _use(client)
                search.of_error(f"{type(client).__name__} {number} with wrong credentials", caught.value)
                search.of_objects(f"{type(client).__name__} {number} with wrong credentials", client)
    assert search.searched > 100
    assert search.found == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"ssl_cafile": "/nowhere"},
        {"sasl_plain_username": ""},
        {"linger_ms": "soon"},
        {"no_such_setting": 1},
        {"sasl_mechanism": "SCRAM-SHA-1"},
        {"sasl_jaas_config": f'{MODULES}.plain.PlainLoginModule required username="u" password="{PASSWORD}" x'},
        {"sasl_jaas_config": f'{MODULES}.plain.PlainLoginModule required user="u" password="{PASSWORD}";'},
    ],
)
async def test_refused_settings_show_no_secret(wrong: dict[str, Any]) -> None:
    search = SecretSearch(PASSWORD)
    settings = {
        "bootstrap_servers": "localhost:1",
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": USER,
        "sasl_plain_password": PASSWORD,
        "ssl_keystore_password": PASSWORD,
        "ssl_truststore_password": PASSWORD,
        "ssl_password": PASSWORD,
        "ssl_key_password": PASSWORD,
    }
    with search.of_logs(), pytest.raises(ConfigError) as caught:
        async with Producer(**{**settings, **wrong}):
            pass
    search.of_error("refused settings", caught.value)
    assert search.found == []


async def searched(search: SecretSearch, words: Sequence[str], given: bytes = b"") -> Finished:
    """Run a tool in this process, and search its output, its log and its error."""
    name = " ".join(words[:2])
    with search.of_logs():
        ended = await console_here(*words, given=given, on_error=partial(search.of_error, name))
    search.of_text(name, ended.out)
    search.of_text(name, ended.err)
    return ended


def properties_file(path: Path, cluster: EmbeddedCluster, password: str = PASSWORD) -> Path:
    text = "\n".join(f"{key}={value}" for key, value in cluster.client_properties(USER).items())
    path.write_text(text.replace(PASSWORD, password))
    return path


def login_properties(mechanism: str, file: Path, *, is_right: bool) -> dict[str, str]:
    """Properties of a user with the right or the wrong credentials; a token is in ``file``."""
    if mechanism == "AWS_MSK_IAM":  # the credentials are in the environment
        return {"sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;"}
    if mechanism == "OAUTHBEARER":
        file.write_text(TOKEN if is_right else WRONG)
        module = f"{MODULES}.oauthbearer.OAuthBearerLoginModule required;"
        return {"sasl.jaas.config": module, "sasl.oauthbearer.token.endpoint.url": file.as_uri()}
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    password = PASSWORD if is_right else WRONG
    return {"sasl.jaas.config": f'{MODULES}.{module} required username="{USER}" password="{password}";'}


def use_aws(monkeypatch: pytest.MonkeyPatch, folder: Path, *, is_right: bool = True) -> None:
    """Credentials of AWS in the environment, and no others to be found."""
    names = {"AWS_ACCESS_KEY_ID": KEY_ID if is_right else KEY_ID[::-1], "AWS_SECRET_ACCESS_KEY": AWS_KEY}
    names |= {"AWS_SESSION_TOKEN": AWS_SESSION, "AWS_REGION": "eu-west-1", "AWS_EC2_METADATA_DISABLED": "true"}
    names |= {"AWS_CONFIG_FILE": str(folder / "none"), "AWS_SHARED_CREDENTIALS_FILE": str(folder / "none")}
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    for name, value in names.items():
        monkeypatch.setenv(name, value)


def check_any_token(search: SecretSearch) -> Callable[[str], Principal]:
    """:func:`check_token`, and a check of signed URLs, which are searched for from then on."""

    def check(token: str) -> Principal:
        if not token.startswith("aHR0cHM6"):  # "https:" in base64
            return check_token(token)
        url = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
        search.add(token, dict(parse_qsl(urlsplit(url).query))["X-Amz-Signature"])
        if f"Credential={KEY_ID}%2F" not in url:
            raise Refused("another key")
        return Principal(USER, time.time() + 3600)

    return check


@pytest.mark.parametrize("mechanism", [*MECHANISMS, "AWS_MSK_IAM"])
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_tools_show_no_secret(mechanism: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    search = SecretSearch(PASSWORD, WRONG, TOKEN, AWS_KEY, AWS_SESSION)
    async with EmbeddedCluster(
        security="SASL_SSL", users={USER: PASSWORD}, check_token=check_any_token(search), topics={"t": 1}
    ) as cluster:
        for is_right in (True, False):
            use_aws(monkeypatch, tmp_path, is_right=is_right)
            properties = {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": mechanism,
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": cluster.ca_file,
                **login_properties(mechanism, tmp_path / "token", is_right=is_right),
            }
            file = tmp_path / "client.properties"
            file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
            servers = ["--bootstrap-server", cluster.bootstrap_servers, "--command-config", str(file), "-vv"]
            sent = await searched(search, ["produce", *servers, "--topic", "t"], b"one\ntwo\n")
            read = ["consume", *servers, "--topic", "t", "--from-beginning", "--max-messages", "2"]
            got = await searched(search, read)
            assert (sent.status == 0, got.status == 0) == (is_right, is_right), sent.err
            assert got.out.splitlines() == ([b"one", b"two"] if is_right else [])
            assert ("credentials" in got.err) is not is_right, got.err
    assert search.found == []


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_clients_of_amazon_msk_show_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At DEBUG, where AWS's own libraries log signatures."""
    search = SecretSearch(AWS_KEY, AWS_SESSION)
    async with EmbeddedCluster(
        security="SASL_SSL",
        mechanisms=["OAUTHBEARER"],
        check_token=check_any_token(search),
        topics={"t": 1},
    ) as cluster:
        settings: dict[str, Any] = {
            "bootstrap_servers": cluster.bootstrap_servers,
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "AWS_MSK_IAM",
            "ssl_cafile": cluster.ca_file,
        }
        with search.of_logs():
            use_aws(monkeypatch, tmp_path)
            servers, others = settings["bootstrap_servers"], _others(settings)
            ends = {"source_settings": others, "target_settings": others}
            async with (
                Admin(**settings) as admin,
                Producer(**settings) as producer,
                Producer(**settings, transactional_id="x") as transactional,
                Consumer("t", group_id="g", auto_offset_reset="earliest", **settings) as consumer,
                Mirror(servers, servers, topics=["t"], rename={"t": "copy"}, **ends) as mirror,
            ):
                await producer.send("t", b"one")
                async with transactional.transaction():
                    await transactional.send("t", b"two")
                assert [(await consumer.getone(timeout=60)).value for _ in range(2)] == [b"one", b"two"]
                assert (await mirror.run()).records == 2
                assert await admin.list_groups()
                await everything_is_sent()
                for client in (admin, producer, transactional, consumer, mirror):
                    search.of_objects(type(client).__name__, client)
            use_aws(monkeypatch, tmp_path, is_right=False)
            with pytest.raises(AuthenticationError) as caught:
                await _use(Producer(**settings))
            search.of_error("a producer with another key", caught.value)
    assert search.searched > 100
    assert search.found == []


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_clients_and_tools_of_zookeeper_show_no_secret(tmp_path: Path) -> None:
    search = SecretSearch(PASSWORD, WRONG)
    async with (
        EmbeddedZooKeeper() as zk,
        EmbeddedCluster(
            security="SASL_SSL", users={USER: PASSWORD}, version="2.8", zookeeper=zk, topics={"t": 1}
        ) as cluster,
    ):
        settings = settings_of(cluster, "SCRAM-SHA-256")
        async with Producer(**settings) as producer:
            await producer.send_many("t", [b"one", b"two"])
        of_zookeeper = {"auth": [("digest", f"bob:{PASSWORD}")]}
        old: dict[str, Any] = {**_others(settings), "zookeeper": zk.address, "zookeeper_settings": of_zookeeper}
        with search.of_logs():
            async with LegacyConsumer("t", group_id="g", auto_offset_reset="smallest", **old) as consumer:
                async for record in consumer:
                    if record.value == b"two":  # the first one is committed
                        search.of_objects("legacy consumer", consumer)
                        break
        (tmp_path / "zookeeper.properties").write_text(f"auth=digest:bob:{PASSWORD}\n")
        for name, password in (("right", PASSWORD), ("wrong", WRONG)):
            file = properties_file(tmp_path / f"{name}.properties", cluster, password)
            auth = f"--zookeeper-config={tmp_path / 'zookeeper.properties'}"
            zookeeper = [f"--zookeeper={zk.address}", auth, "-vv"]
            servers, config = cluster.bootstrap_servers, f"--command-config={file}"
            copied = [f"--from={servers}", f"--to={servers}", f"--from-config={file}", f"--to-config={file}"]
            commands = [
                ["mirror", *copied, "--topics", "t", "--rename", "t=copy", "-vv"],
                ["zk", "lag", "--group", "g", *zookeeper, config],
                ["migrate", "group", "g", *zookeeper, "--bootstrap-server", servers, config],
            ]
            for command in commands[: 2 if name == "right" else 3]:
                ended = await searched(search, command)
                assert (ended.status == 0) is (name == "right"), ended.err
    assert search.found == []


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_broker_shows_no_secret() -> None:
    """All that the command prints at DEBUG while users log in with the right and with a wrong password."""
    search = SecretSearch(PASSWORD, WRONG)
    command = [sys.executable, "-m", "pykafka08", "broker", "--security=SASL_SSL", f"--user={USER}", "--topic=t", "-vv"]
    environment = {**os.environ, "PYKAFKA08_USER_PASSWORD": PASSWORD}
    process = await anyio.open_process(command, env=environment)
    assert process.stdin is not None
    assert process.stdout is not None
    text = b""
    while b"CLIENT_PROPERTIES=" not in text or not text.endswith(b"\n"):
        text += await process.stdout.receive()
    named = dict(line.split("=", 1) for line in text.decode().splitlines())
    properties = await anyio.Path(named["CLIENT_PROPERTIES"]).read_text()
    assert PASSWORD in properties  # the one place that has it
    for mechanism in MECHANISMS[:3]:
        for password in (PASSWORD, WRONG):
            settings = {"ssl_cafile": named["CA_FILE"], "security_protocol": "SASL_SSL", "sasl_mechanism": mechanism}
            user = {"sasl_plain_username": USER, "sasl_plain_password": password}
            client = Producer(named["BROKERS"], **settings, **user)
            with nullcontext() if password == PASSWORD else pytest.raises(AuthenticationError):
                async with client:
                    await client.send("t", b"x")
    await process.stdin.aclose()
    stderr = b"".join([part async for part in process.stderr or ()])
    assert await process.wait() == 0
    assert stderr.count(b"authentication failed") == 3
    search.of_text("standard output", text.decode())
    search.of_text("standard error", stderr.decode())
    assert search.found == []


COMMANDS = (
    ["tree"],
    ["brokers"],
    ["topics", "--topic=t"],
    ["groups", "--group=g"],
    ["acl", "add", "--topic=t", "--allow=User:alice", "--force"],
    ["acl", "list"],
    ["acl", "remove", "--topic=t", "--force"],
    ["topic", "create", "new", "--no-wait", "--force"],
    ["topic", "add-partitions", "new", "2", "--no-wait", "--force"],
    ["topic", "elect", "--partition=t:0", "--no-wait", "--force"],
    ["topic", "reassign", "t:0=0", "--no-wait", "--force"],
    ["topic", "reassign", "t:0=0", "--verify"],
    ["topic", "delete", "new", "--no-wait", "--force"],
    ["config", "show", "--topic=t"],
    ["group", "export"],
)
"""Commands of ``zk``."""
ASKING = (
    ["config", "alter", "--topic=t", "--set=retention.ms=60000", "--force"],
    ["group", "reset", "g", "--topic=t", "--to=latest"],
    ["group", "import", "-"],
    ["offsets", "--group=g"],
    ["lag", "--group=g"],
    ["topic", "create", "other", "--no-wait"],
    ["topic", "add-partitions", "t", "2", "--no-wait"],
    ["topic", "elect", "--no-wait"],
    ["topic", "reassign", "t:0=0", "--no-wait"],
    ["topic", "delete", "t", "--no-wait"],
    ["acl", "add", "--topic=t", "--allow=User:bob"],
    ["acl", "remove", "--topic=t"],
    ["group", "delete", "g"],
)
"""Those that ask brokers."""


def check_ended(words: Sequence[str], ended: Finished, is_right: bool) -> None:
    """With wrong credentials for the brokers, the last line says so.

    With the right ones, some of the changes are refused, because a broker of that release makes them itself.
    """
    assert "Traceback" not in ended.out.decode()
    if is_right:
        assert ended.status == 0 or "does that itself" in ended.err, (words, ended)
        return
    last = ended.err.splitlines()[-1]
    assert ended.status == 1, (words, ended)
    assert "credentials" in last, last
    assert "check security.protocol" in last, last


def zookeeper_login(kind: str, folder: Path, ca: trustme.CA) -> str:
    """Lines of a properties file, but for the password at their end."""
    if kind == "SASL":
        return "sasl.mechanism=DIGEST-MD5\nsasl.username=bob\nsasl.password="
    if kind == "digest":
        return "auth=digest:bob:"
    files = client_files(folder, ca, KEY_PASSWORD)
    lines = [f"tls=true\ntls.key.password={KEY_PASSWORD}", *(f"{name}={path}" for name, path in files.items())]
    return "\n".join([*lines, "auth=digest:bob:"])


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("kind", ["SASL", "digest", "TLS"])
async def test_commands_of_zookeeper_show_no_secret_and_fail_with_wrong_passwords(tmp_path: Path, kind: str) -> None:
    search, ca = SecretSearch(PASSWORD, WRONG, KEY_PASSWORD), trustme.CA()
    login = zookeeper_login(kind, tmp_path, ca)
    async with (
        EmbeddedZooKeeper(users={"bob": PASSWORD}) as zk,
        EmbeddedCluster(
            security="SASL_SSL", users={USER: PASSWORD}, version="2.8", zookeeper=zk,
            topics={"t": 1, "__consumer_offsets": 1},
        ) as cluster,
    ):  # fmt: skip
        zk.create("/consumers/g/offsets/t/0", b"0")
        zk.create("/kafka-acl-changes", b"")
        file = tmp_path / "zookeeper.properties"
        file.write_text(f"{login}{PASSWORD}\n")
        with TlsFront(zk.port, ca.issue_cert("localhost"), client_ca=ca) as front:
            address = f"localhost:{front}" if kind == "TLS" else zk.address
            given = [f"--zookeeper={address}", f"--zookeeper-config={file}", "-vv"]
            for is_right in (False, True):
                password = PASSWORD if is_right else WRONG
                client = properties_file(tmp_path / f"{is_right}.properties", cluster, password)
                for words in (*COMMANDS, *ASKING) if is_right else ASKING:
                    command = ["zk", *words, *given, f"--command-config={client}"]
                    check_ended(words, await searched(search, command, b"/consumers/g/offsets/t/0:0\n"), is_right)
            await _consume_with_zookeeper(search, tmp_path, address, login, client)
            if kind == "TLS":
                file.write_text(f"{login.replace(KEY_PASSWORD, WRONG)}{PASSWORD}\n")
                ended = await searched(search, ["zk", "brokers", *given])
                assert (ended.status, "tls_key_password" in ended.err) == (2, True), ended.err
    assert search.found == []


async def _consume_with_zookeeper(search: SecretSearch, folder: Path, zookeeper: str, login: str, client: Path) -> None:
    """The console consumer of old groups, in a group that it deletes and in a named one."""
    file = folder / "session.properties"
    given = ["consume", "--topic=t", f"--zookeeper={zookeeper}", f"--zookeeper-config={file}", "--timeout-ms=100"]
    for group, password in (((), PASSWORD), (("--group=named",), PASSWORD), (("--group=named",), WRONG)):
        file.write_text(f"{login}{password}\n")
        ended = await searched(search, [*given, f"--consumer.config={client}", *group, "-vv"])
        is_refused = login.startswith("sasl") and password == WRONG  # ZooKeeper refuses no digest
        assert (ended.status == 0) is not is_refused, ended.err
        assert ("refused the credentials" in ended.err) is is_refused, ended.err


LOGIN = f'{MODULES}.plain.PlainLoginModule required username="{USER}" password="{PASSWORD}";'
PROPERTIES: dict[str, Any] = {
    "bootstrap.servers": "localhost:1",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": LOGIN,
}
SETTINGS = {
    "bootstrap_servers": "localhost:1",
    "security_protocol": "SASL_SSL",
    "sasl_mechanism": "PLAIN",
    "sasl_plain_username": USER,
    "sasl_plain_password": PASSWORD,
}


@pytest.mark.parametrize(
    "make",
    [
        Producer.from_properties,
        Consumer.from_properties,
        Admin.from_properties,
        LegacyConsumer.from_properties,
        lambda given: LegacyConsumer("t", properties=given),
        lambda given: Mirror.from_properties(given, given),
    ],
)
@pytest.mark.parametrize(
    "wrong",
    [
        {"request.timeout.ms": "soon"},
        {"ssl.nonsense": "1"},
        {"sasl.mechanism": "X"},
        {"client.id": b"x"},
        {"ssl.key.password": PASSWORD.encode()},
        {"sasl.jaas.config": LOGIN[:-1]},
    ],
)
def test_refused_properties_are_in_no_frame_of_ours(
    make: Callable[[Mapping[str, Any]], object], wrong: dict[str, Any]
) -> None:
    search = SecretSearch(PASSWORD)
    with pytest.raises(ConfigError) as caught:
        make({**PROPERTIES, **wrong})
    search.of_error("refused properties", caught.value)
    assert search.found == []


ENVIRONMENT = {
    "config.providers": "env",
    "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
}


@pytest.mark.parametrize(
    "wrong",
    [
        "security.protocol",
        "sasl.mechanism",
        "ssl.truststore.location",
        "ssl.keystore.location",
        "ssl.endpoint.identification.algorithm",
        "ssl.protocol",
        "ssl.enabled.protocols",
        "ssl.cipher.suites",
        "request.timeout.ms",
        "acks",
        "compression.type",
        "partitioner.class",
        "enable.idempotence",
    ],
)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_what_a_config_provider_has_stays_hidden_in_the_wrong_place(
    wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as the reference to a password as the name of the mechanism."""
    monkeypatch.setenv("SECRET_OF_ALICE", PASSWORD)
    search = SecretSearch(PASSWORD)
    properties = {**PROPERTIES, **ENVIRONMENT, "sasl.jaas.config": LOGIN.replace(PASSWORD, "another")}
    with search.of_logs(), pytest.raises(ConfigError) as caught:
        async with Producer.from_properties({**properties, wrong: "${env:SECRET_OF_ALICE}"}):
            pass
    search.of_text("text", str(caught.value))
    assert search.found == []


def test_urls_show_neither_user_nor_query() -> None:
    for url in (f"https://alice:{PASSWORD}@host/token", f"https://host/token?key={PASSWORD}", f"//{PASSWORD}@h"):
        shown = repr(SecurityConfig(sasl_oauthbearer_token_endpoint_url=url))
        assert PASSWORD not in shown
        assert ("host/token" in shown) == ("host/token" in url)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_option_without_an_equals_sign_shows_no_secret() -> None:
    search = SecretSearch(PASSWORD)
    words = ["consume", "--bootstrap-server=127.0.0.1:1", "--topic=t", "--timeout-ms=100", "--consumer-property"]
    for text in (
        f"sasl.password {PASSWORD}",
        f"sasl.password:{PASSWORD}",
        f"{PASSWORD}",
        f"sasl.jaas.config=={PASSWORD}",
    ):
        ended = await console_here(*words, text)
        search.of_text("stdout", ended.out)
        search.of_text("stderr", ended.err)
        assert ended.status != 0
    assert search.found == []


@pytest.mark.parametrize(
    "make",
    [
        lambda settings: Producer(**settings),
        lambda settings: Consumer("t", **settings),
        lambda settings: Admin(**settings),
        lambda settings: Mirror("localhost:1", "localhost:2", topics=["t"], source_settings=_others(settings)),
        lambda settings: Mirror("localhost:1", "localhost:2", topics=["t"], target_settings=_others(settings)),
    ],
)
@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"no_such": 1}, "no_such"),
        ({"request_timeout_ms": "soon"}, "request_timeout_ms"),
        ({"sasl_password": PASSWORD}, "unknown setting sasl_password"),
        ({"sasl.jaas.config": LOGIN}, "did you mean sasl_jaas_config"),
        ({"sasl_plain_password": PASSWORD.encode()}, "sasl_plain_password is of type bytes, not a string"),
        ({"ssl_keystore_key": PASSWORD.encode()}, "ssl_keystore_key is of type bytes, not a string"),
        ({"sasl_oauthbearer_ssl": {"ssl_key_password": PASSWORD, "ssl_x": 1}}, "no such setting: ssl_x"),
        ({"sasl_oauthbearer_ssl": {"ssl.key.password": PASSWORD, "ssl_protocol": 1}}, "ssl_protocol is of type int"),
    ],
)
def test_refused_arguments_are_in_no_frame_of_ours(
    make: Callable[[dict[str, Any]], object], wrong: dict[str, Any], why: str
) -> None:
    search = SecretSearch(PASSWORD)
    with pytest.raises(ConfigError, match=why) as caught:
        make({**SETTINGS, **wrong})
    search.of_error("refused arguments", caught.value)
    assert search.found == []


def _others(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name != "bootstrap_servers"}


def test_an_address_with_a_password_is_refused_and_not_shown() -> None:
    search = SecretSearch(PASSWORD)
    with search.of_logs(), pytest.raises(ConfigError, match="an address has no user or password") as caught:
        Producer(f"SASL_SSL://{USER}:{PASSWORD}@localhost:1")
    search.of_text("the error", str(caught.value))
    assert search.found == []


@pytest.mark.parametrize("wrong", [{"security": "X"}, {"mechanisms": ("X",)}, {"brokers": 0}, {"client_auth": "X"}])
def test_an_embedded_cluster_that_is_refused_shows_no_password(wrong: dict[str, Any]) -> None:
    search = SecretSearch(PASSWORD)
    with pytest.raises(ConfigError) as caught:
        EmbeddedCluster(**{"security": "SASL_SSL", "users": {USER: PASSWORD}, **wrong})
    search.of_error("a refused cluster", caught.value)
    assert search.found == []


def test_settings_show_no_secret_however_they_are_copied_or_written() -> None:
    search = SecretSearch(PASSWORD)
    provider = partial(str.upper, PASSWORD)
    for config in (
        SecurityConfig(**_others(SETTINGS), ssl_key_password=PASSWORD, ssl_keystore_key=PASSWORD),
        SecurityConfig(security_protocol="SASL_SSL", sasl_jaas_config=LOGIN),
        SecurityConfig(sasl_plain_password=provider, sasl_oauth_token_provider=provider),
        SecurityConfig(sasl_oauthbearer_ssl={"ssl.key.password": PASSWORD}),
    ):
        search.of_text("repr", repr(config))
        search.of_text("str", f"{config} {config!s}")
        search.of_text("a deep copy", repr(copy.deepcopy(config)))
        search.of_text("replace", repr(dataclasses.replace(config, ssl_protocol="TLSv1.2")))
        if not callable(config.sasl_plain_password):
            assert pickle.loads(pickle.dumps(config)) == config
            search.of_text("asdict", repr(dataclasses.asdict(config)))
            search.of_text("vars", repr(vars(config)))
            search.of_text("JSON", json.dumps(dataclasses.asdict(config), default=str))
            with pytest.raises(TypeError, match="Secret is not JSON serializable"):
                json.dumps(dataclasses.asdict(config))
    mirror = Mirror("localhost:1", "localhost:2", topics=["t"], source_settings=_others(SETTINGS))
    search.of_objects("mirror", mirror)
    assert search.found == []
