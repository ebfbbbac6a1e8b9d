"""One properties file, unchanged, for Kafka's console consumer and for ours: stores of every format, every login."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import anyio.to_thread
import pytest

from pykafka08 import AuthorizationError, Consumer, Producer, TopicPartition
from tests.brokers.tools import tool_command
from tests.cli.console import run_here
from tests.integration.acls import allow, revoke
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
JAVA = Path(__file__).with_name("ConsoleTools.java")
USERS = {"certificate": "User:CN=client", "password": "User:alice"}
"""The only user who may read a topic, by the kind of login."""


class Run(NamedTuple):
    """A run of a console tool: the producer's input, or an empty text for the consumer, and the arguments."""

    given: str
    arguments: list[str]


@pytest.fixture(scope="module")
def secured(secured_brokers: SecuredBrokers) -> RealCluster:
    return secured_brokers(RELEASE)


def keytool(*words: str) -> None:
    subprocess.run(["keytool", *words], check=True, capture_output=True, timeout=60)


def login(module: str) -> str:
    return f'{MODULES}.{module} required username="alice" password="alice-secret";'


def properties_of(cluster: RealCluster, folder: Path) -> dict[str, dict[str, str]]:
    """Twelve properties files, by a name for the feature that each tests."""
    ssl = cluster.folder / "ssl"
    made = ["-storepass", STORE_PASSWORD, "-noprompt"]
    imported = ["-importcert", "-alias", "ca", "-file", f"{ssl}/ca.pem"]
    keytool(*imported, "-keystore", f"{folder}/t.jks", "-storetype", "JKS", *made)
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
        # As lines that end with a backslash are read: joined, with blanks.
        "ssl.truststore.certificates": (ssl / "ca.pem").read_text().replace("\n", " "),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": key.replace("\n", " "),
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
    """The kind of login of a client with these properties: ``password``, ``certificate`` or ``none``."""
    if "sasl.mechanism" in properties:
        return "password"
    return "certificate" if any(name.startswith("ssl.keystore") for name in properties) else "none"


def by_java(cluster: RealCluster, runs: list[Run], folder: Path) -> list[list[str]]:
    """Run Kafka's console tools in one JVM; return the lines that each run prints."""
    files = [folder / f"{number}.arguments" for number in range(len(runs))]
    for file, run in zip(files, runs, strict=True):
        file.write_text("\n".join([run.given, *run.arguments]))
    command = tool_command(cluster.recorded(), str(JAVA), *map(str, files))
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stdout[-500:] + ran.stderr[-2000:]
    shown: list[list[str]] = []
    for line in ran.stdout.splitlines():
        if line.startswith("== "):
            shown.append([])
        else:
            shown[-1].append(line)
    return shown


def by_ours(run: Run) -> list[str]:
    """Run our tool; return the lines that it prints.  In a soak, each run has its own process."""
    words = ["produce" if run.given else "consume", *run.arguments]
    if not IS_SOAK:
        ran = run_here(*words, given=f"{run.given}\n".encode())
        assert ran.status == 0, ran.err
        return ran.out.decode().splitlines()
    command = [sys.executable, "-m", "pykafka08", *words]
    process = subprocess.run(command, input=f"{run.given}\n", capture_output=True, text=True, timeout=60, check=False)
    assert process.returncode == 0, process.stderr
    return process.stdout.splitlines()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_one_properties_file_works_with_kafkas_tools_and_ours(secured: RealCluster, tmp_path: Path) -> None:
    """Each file reads and writes a topic that only the user of its certificate or password may use."""
    topics = {login: secured.new_topic(login) for login in ("none", *USERS)}
    written_to = {login: secured.new_topic(f"{login}-written") for login in topics}
    for topic in topics.values():
        async with Producer(secured.bootstrap) as producer:
            await producer.send_many(topic, [line.encode() for line in LINES])
    for login, user in USERS.items():
        await allow(secured, user, f"ALL topic {topics[login]}", f"ALL topic {written_to[login]}")
    files, reads, writes = {}, {}, {}
    for number, (name, each) in enumerate(properties_of(secured, tmp_path).items()):
        files[name] = written(tmp_path / f"{number}.properties", each)
        where = ["--bootstrap-server", secured.listener(each["security.protocol"])]
        config = ["--command-config", str(files[name])]
        reading = ["--topic", topics[login_of(each)], "--from-beginning", "--max-messages", str(len(LINES))]
        reads[name] = Run("", [*where, *config, *reading])
        writes[name] = Run(name, [*where, *config, "--topic", written_to[login_of(each)]])
    assert len(files) == 12
    runs = [*reads.values(), *(writes.values() if IS_SOAK else ())]
    with ThreadPoolExecutor(1) as pool:
        theirs = pool.submit(by_java, secured, runs, tmp_path)
        for name, run in reads.items():
            _, servers, _, _, _, topic, *_ = run.arguments
            async with Consumer.from_properties(
                str(files[name]), topic, bootstrap_servers=servers, auto_offset_reset="earliest"
            ) as consumer:
                got = [(record.value or b"").decode() for record in await read_records(consumer, len(LINES))]
            assert got == LINES, name
        for login in USERS:
            with pytest.raises(AuthorizationError, match=f"DESCRIBE topic '{topics[login]}'"):
                async with Consumer(topics[login], **settings_of(secured, "SSL")) as consumer:
                    await consumer.getone()
        ours = [await anyio.to_thread.run_sync(by_ours, run) for run in runs]
    assert theirs.result() == ours
    assert ours[: len(reads)] == [LINES] * len(reads)
    for login, user in USERS.items():
        await revoke(secured, user, f"ALL topic {topics[login]}", f"ALL topic {written_to[login]}")
    if IS_SOAK:
        got = []
        for topic in written_to.values():
            async with Consumer(topic, bootstrap_servers=secured.bootstrap, auto_offset_reset="earliest") as consumer:
                end = (await consumer.end_offsets([TopicPartition(topic, 0)]))[TopicPartition(topic, 0)]
                got += [(record.value or b"").decode() for record in await read_records(consumer, end)]
        assert sorted(got) == sorted([*files, *files])
