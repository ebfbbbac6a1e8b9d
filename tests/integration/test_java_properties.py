"""One properties file, unchanged, for Kafka's console consumer and for ours: stores of every format, every login."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio.to_thread
import pytest

from pykafka08 import AuthorizationError, Consumer, Producer
from tests.brokers.tools import tool_command
from tests.cli.console import run_here
from tests.integration.acls import allow, take
from tests.integration.clusters import RealCluster
from tests.integration.reading import read_records
from tests.integration.secured_cluster import SecuredBrokers, settings_of

RELEASE = "4.3.1"
pytestmark = [pytest.mark.anyio, pytest.mark.cluster(release=RELEASE, kind="secured")]

IS_SOAK = bool(os.environ.get("PYKAFKA08_SOAK"))
STORE_PASSWORD = "kafka-test"
KEY_PASSWORD = "another-secret"
LINES = [f"line {number}" for number in range(50)]
MODULES = "org.apache.kafka.common.security"
JAVA = Path(__file__).with_name("ConsoleConsumers.java")
USERS = {"certificate": "User:CN=client", "password": "User:alice"}
"""Who alone may read a topic."""


@pytest.fixture(scope="module")
def secured(secured_brokers: SecuredBrokers) -> RealCluster:
    return secured_brokers(RELEASE)


def keytool(*words: str) -> None:
    subprocess.run(["keytool", *words], check=True, capture_output=True, timeout=60)


def login(module: str) -> str:
    return f'{MODULES}.{module} required username="alice" password="alice-secret";'


def properties_of(cluster: RealCluster, folder: Path) -> dict[str, dict[str, str]]:
    """Twelve files by what is special about each."""
    ssl = cluster.folder / "ssl"
    made = ["-storepass", STORE_PASSWORD, "-noprompt"]
    keytool(
        "-importcert",
        "-alias",
        "ca",
        "-file",
        f"{ssl}/ca.pem",
        "-keystore",
        f"{folder}/t.jks",
        "-storetype",
        "JKS",
        *made,
    )
    from_p12 = ["-srckeystore", f"{ssl}/client.p12", "-srcstoretype", "PKCS12", "-srcstorepass", STORE_PASSWORD]
    to_jks = ["-destkeystore", f"{folder}/k.jks", "-deststoretype", "JKS", "-deststorepass", STORE_PASSWORD]
    alias = ["-srcalias", "client", "-destkeypass", KEY_PASSWORD, "-noprompt"]
    keytool("-importkeystore", *from_p12, *to_jks, *alias)
    key, chain = (ssl / "client.key").read_text(), (ssl / "client.pem").read_text()
    (folder / "own.pem").write_text(key + chain)
    (folder / "passwords.properties").write_text("alice=alice-secret\n")
    jks = {
        "ssl.truststore.type": "JKS",
        "ssl.truststore.location": f"{folder}/t.jks",
        "ssl.truststore.password": STORE_PASSWORD,
    }
    p12 = {
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": f"{ssl}/truststore.p12",
        "ssl.truststore.password": STORE_PASSWORD,
    }
    pem = {"ssl.truststore.type": "PEM", "ssl.truststore.location": f"{ssl}/ca.pem"}
    own_p12 = {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": f"{ssl}/client.p12",
        "ssl.keystore.password": STORE_PASSWORD,
        "ssl.key.password": STORE_PASSWORD,
    }
    own_jks = {
        "ssl.keystore.type": "JKS",
        "ssl.keystore.location": f"{folder}/k.jks",
        "ssl.keystore.password": STORE_PASSWORD,
        "ssl.key.password": KEY_PASSWORD,
    }
    own_pem = {"ssl.keystore.type": "PEM", "ssl.keystore.location": f"{folder}/own.pem"}
    inline = {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": (ssl / "ca.pem").read_text(),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": key,
        "ssl.keystore.certificate.chain": chain,
    }
    plain = {"sasl.mechanism": "PLAIN", "sasl.jaas.config": login("plain.PlainLoginModule")}
    scram = {"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": login("scram.ScramLoginModule")}
    from_file = login("scram.ScramLoginModule").replace(
        "alice-secret", f"${{file:{folder}/passwords.properties:alice}}"
    )
    provided = {
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": from_file,
    }
    return {
        "PKCS12": {"security.protocol": "SSL", **p12},
        "mutual PKCS12": {"security.protocol": "SSL", **p12, **own_p12},
        "JKS": {"security.protocol": "SSL", **jks},
        "mutual JKS": {"security.protocol": "SSL", **jks, **own_jks},
        "mutual PEM": {"security.protocol": "SSL", **pem, **own_pem},
        "inline PEM": {"security.protocol": "SSL", **inline},
        "no host check": {"security.protocol": "SSL", **pem, "ssl.endpoint.identification.algorithm": ""},
        "PLAIN": {"security.protocol": "SASL_PLAINTEXT", **plain},
        "SCRAM": {"security.protocol": "SASL_PLAINTEXT", **scram},
        "SCRAM over TLS": {"security.protocol": "SASL_SSL", **scram, **jks},
        "PLAIN over TLS 1.2": {"security.protocol": "SASL_SSL", **plain, **pem, "ssl.enabled.protocols": "TLSv1.2"},
        "password in another file": {"security.protocol": "SASL_SSL", **provided, **p12},
    }


def written(path: Path, properties: dict[str, str]) -> Path:
    """The file, its values escaped as Java does."""
    lines = [
        f"{name}={value.replace(chr(92), chr(92) * 2).replace(chr(10), chr(92) + 'n')}"
        for name, value in properties.items()
    ]
    path.write_text("\n".join(["# for every tool", *lines, ""]))
    return path


def login_of(properties: dict[str, str]) -> str:
    """How a client with these properties authenticates."""
    if "sasl.mechanism" in properties:
        return "password"
    return "certificate" if any(name.startswith("ssl.keystore") for name in properties) else "none"


def by_java(cluster: RealCluster, arguments: dict[str, list[str]], folder: Path) -> dict[str, list[str]]:
    """What Kafka's console consumer prints with each of these arguments."""
    files = {str(folder / f"{number}.arguments"): name for number, name in enumerate(arguments)}
    for file, name in files.items():
        Path(file).write_text("\n".join(arguments[name]))
    command = tool_command(cluster.recorded(), str(JAVA), *files)
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stdout[-500:] + run.stderr[-2000:]
    shown: dict[str, list[str]] = {}
    for line in run.stdout.splitlines():
        if line.startswith("== "):
            shown[files[line[3:]]] = current = []
        else:
            current.append(line)
    return shown


def by_ours(arguments: list[str]) -> list[str]:
    """The same of ours, in a process of its own in a long run."""
    if not IS_SOAK:
        ran = run_here("consume", *arguments)
        assert ran.status == 0, ran.err
        return ran.out.decode().splitlines()
    command = [sys.executable, "-m", "pykafka08", "consume", *arguments]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_one_file_serves_kafkas_tools_and_ours(secured: RealCluster, tmp_path: Path) -> None:
    """With a certificate or a password in the file a topic is read that nobody else may read."""
    topics = {login: secured.new_topic(login) for login in ("none", *USERS)}
    for topic in topics.values():
        async with Producer(secured.bootstrap) as producer:
            await producer.send_many(topic, [line.encode() for line in LINES])
    for login, user in USERS.items():
        await allow(secured, user, f"ALL topic {topics[login]}")
    files, arguments = {}, {}
    for number, (name, each) in enumerate(properties_of(secured, tmp_path).items()):
        files[name] = written(tmp_path / f"{number}.properties", each)
        where = ["--bootstrap-server", secured.listener(each["security.protocol"]), "--topic", topics[login_of(each)]]
        reading = ["--from-beginning", "--max-messages", str(len(LINES)), "--command-config", str(files[name])]
        arguments[name] = [*where, *reading]
    assert len(files) == 12
    with ThreadPoolExecutor(1) as pool:
        theirs = pool.submit(by_java, secured, arguments, tmp_path)
        for name, file in files.items():
            _, servers, _, topic, *_ = arguments[name]
            async with Consumer.from_properties(
                str(file), topic, bootstrap_servers=servers, auto_offset_reset="earliest"
            ) as consumer:
                got = [(record.value or b"").decode() for record in await read_records(consumer, len(LINES))]
            assert got == LINES, name
        for topic in (topics[login] for login in USERS):
            with pytest.raises(AuthorizationError, match=f"DESCRIBE topic '{topic}'"):
                async with Consumer(topic, **settings_of(secured, "SSL")) as consumer:
                    await consumer.getone()
        ours = {name: await anyio.to_thread.run_sync(by_ours, each) for name, each in arguments.items()}
    assert theirs.result() == ours == dict.fromkeys(files, LINES)
    for login, user in USERS.items():
        await take(secured, user, f"ALL topic {topics[login]}")
