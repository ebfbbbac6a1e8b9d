"""One properties file, unchanged, for Kafka's console consumer and for ours: stores of every format, every login."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pykafka08 import Consumer, Producer
from tests.integration.clusters import Clusters, RealCluster
from tests.integration.reading import read_records

pytestmark = pytest.mark.anyio

RELEASE = "4.3.1"
STORE_PASSWORD = "kafka-test"
KEY_PASSWORD = "another-secret"
LINES = [f"line {number}" for number in range(50)]
MODULES = "org.apache.kafka.common.security"
SHOWN_BY_JAVA = None if os.environ.get("PYKAFKA08_SOAK") else ("mutual JKS", "inline PEM", "password in another file")
"""Files that Kafka's own tool is given here too, which takes two seconds each; all of them in a long run."""


@pytest.fixture(scope="module")
def secured(clusters: Clusters) -> RealCluster:
    return clusters.running(RELEASE, options=["--ssl", "--sasl", "plain,scram-sha-256,scram-sha-512"])


@pytest.fixture(scope="module")
def topic(secured: RealCluster) -> str:
    return secured.new_topic("properties")


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
        # As lines that end with a backslash are read.
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


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_one_file_serves_kafkas_tools_and_ours(secured: RealCluster, topic: str, tmp_path: Path) -> None:
    files = {
        name: (written(tmp_path / f"{number}.properties", each), secured.listener(each["security.protocol"]))
        for number, (name, each) in enumerate(properties_of(secured, tmp_path).items())
    }
    assert len(files) == 12
    async with Producer(secured.bootstrap) as producer:
        await producer.send_many(topic, [line.encode() for line in LINES])
    for name, (file, bootstrap) in files.items():
        reading = {"bootstrap_servers": bootstrap, "auto_offset_reset": "earliest"}
        async with Consumer.from_properties(str(file), topic, **reading) as consumer:
            got = [(record.value or b"").decode() for record in await read_records(consumer, len(LINES))]
        assert got == LINES, name

    def by_java(name: str) -> list[str]:
        file, bootstrap = files[name]
        words = ["--bootstrap-server", bootstrap, "--topic", topic, "--from-beginning"]
        shown = secured.tool(
            "console-consumer", *words, "--max-messages", str(len(LINES)), "--command-config", str(file)
        )
        return shown.splitlines()

    def by_ours(name: str) -> list[str]:
        file, bootstrap = files[name]
        words = ["--bootstrap-server", bootstrap, "--topic", topic, "--from-beginning"]
        command = [sys.executable, "-m", "pykafka08", "consume", *words, "--max-messages", str(len(LINES))]
        run = subprocess.run([*command, "--command-config", str(file)], capture_output=True, text=True, timeout=60)
        assert run.returncode == 0, run.stderr
        return run.stdout.splitlines()

    names = [name for name in files if SHOWN_BY_JAVA is None or name in SHOWN_BY_JAVA]
    with ThreadPoolExecutor(2) as pool:
        for name, theirs, ours in zip(names, pool.map(by_java, names), pool.map(by_ours, names), strict=True):
            assert theirs == ours == LINES, name
