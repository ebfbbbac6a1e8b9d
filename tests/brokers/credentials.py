"""SASL users and TLS certificates of a cluster, and the Java tools' `client-*.properties` that go with them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.brokers.jars import keytool_command
from tests.brokers.model import USERS, Cluster
from tests.brokers.processes import run_quietly
from tests.brokers.properties import STORE_PASSWORD, write_properties
from tests.brokers.scram_users import write_users

MECHANISMS = {
    "plain": "PLAIN",
    "scram-sha-256": "SCRAM-SHA-256",
    "scram-sha-512": "SCRAM-SHA-512",
    "gssapi": "GSSAPI",
}
LOGIN_MODULES = "org.apache.kafka.common.security"
KERBEROS_SERVICE, KERBEROS_HOST, KERBEROS_USER = "kafka", "localhost", "alice"


def scram_mechanisms(cluster: Cluster) -> list[str]:
    return [mechanism for mechanism in cluster.sasl if mechanism.startswith("SCRAM")]


def write_jaas(cluster: Cluster) -> None:
    """The brokers' own login, and with PLAIN the users they know."""
    login = f'username="admin" password="{USERS["admin"]}"'
    lines = ["KafkaServer {"]
    if "PLAIN" in cluster.sasl:
        users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
        lines.append(f"  {LOGIN_MODULES}.plain.PlainLoginModule required {login} {users};")
    if scram_mechanisms(cluster):
        lines.append(f"  {LOGIN_MODULES}.scram.ScramLoginModule required {login};")
    if "GSSAPI" in cluster.sasl:
        lines.append(f"  {_kerberos_login(cluster, KERBEROS_SERVICE, f'{KERBEROS_SERVICE}/{KERBEROS_HOST}')}")
        login = _kerberos_login(cluster, KERBEROS_USER, KERBEROS_USER)
        lines += ["};", "KafkaClient {", f"  {login}"]  # for tools without sasl.jaas.config, before 0.10.2
    (cluster.folder / "conf" / "jaas.conf").write_text("\n".join([*lines, "};", ""]))


def _kerberos_login(cluster: Cluster, keytab: str, principal: str) -> str:
    """A login with a keytab of the KDC's folder."""
    options = f'useKeyTab=true storeKey=true keyTab="{cluster.kerberos}/{keytab}.keytab" principal="{principal}"'
    return f"com.sun.security.auth.module.Krb5LoginModule required {options};"


def write_client_configs(cluster: Cluster) -> None:
    """client-ssl, client-sasl-MECHANISM and client-sasl-ssl-MECHANISM .properties, logging in as alice."""
    folder = cluster.folder / "conf"
    ssl = {"ssl.key.password": STORE_PASSWORD}
    for side, file in (("truststore", "truststore"), ("keystore", "client")):
        ssl[f"ssl.{side}.type"] = "PKCS12"
        ssl[f"ssl.{side}.location"] = f"{cluster.dir}/ssl/{file}.p12"
        ssl[f"ssl.{side}.password"] = STORE_PASSWORD
    if "SSL" in cluster.listeners:
        write_properties(folder / "client-ssl.properties", {"security.protocol": "SSL", **ssl})
    for mechanism in cluster.sasl:
        module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
        login = f'{LOGIN_MODULES}.{module} required username="alice" password="{USERS["alice"]}";'
        if mechanism == "GSSAPI":
            login = _kerberos_login(cluster, KERBEROS_USER, KERBEROS_USER)
        sasl = {"sasl.mechanism": mechanism, "sasl.jaas.config": login}
        if mechanism == "GSSAPI":
            sasl["sasl.kerberos.service.name"] = KERBEROS_SERVICE
        name = mechanism.lower()
        write_properties(folder / f"client-sasl-{name}.properties", {"security.protocol": "SASL_PLAINTEXT", **sasl})
        if "SASL_SSL" in cluster.listeners:
            write_properties(
                folder / f"client-sasl-ssl-{name}.properties", {"security.protocol": "SASL_SSL", **sasl, **ssl}
            )


def provide_certificates(cluster: Cluster, kept: Path | None) -> None:
    """Create certificates for the cluster, or copy those of the folder ``kept``; the first call creates them there."""
    home = cluster.folder / "ssl"
    if kept is None:
        make_certificates(home)
        return
    if not kept.exists():
        draft = kept.with_name(f"{kept.name}-{os.getpid()}")
        make_certificates(draft)
        draft.rename(kept)
    shutil.copytree(kept, home)


def make_certificates(home: Path) -> None:
    """A CA; certificates for brokers (127.0.0.1, localhost) and a client, as PEM and PKCS12."""
    home.mkdir(exist_ok=True)
    _openssl(home, "req -x509 -newkey rsa:2048 -nodes -days 3650 -keyout ca.key -out ca.pem", "-subj", "/CN=test CA")
    for name, extensions in (
        ("broker", "subjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage=serverAuth,clientAuth\n"),
        ("client", "extendedKeyUsage=clientAuth\n"),
    ):
        (home / f"{name}.ext").write_text(extensions)
        _openssl(home, f"req -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.csr", "-subj", f"/CN={name}")
        _openssl(
            home,
            f"x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 3650 "
            f"-extfile {name}.ext -out {name}.pem",
        )
        _openssl(
            home,
            f"pkcs12 -export -in {name}.pem -inkey {name}.key -certfile ca.pem -name {name} -out {name}.p12 "
            f"-passout pass:{STORE_PASSWORD}",
        )
    store = home / "truststore.p12"
    store.unlink(missing_ok=True)
    keytool = [keytool_command(), "-importcert", "-noprompt", "-alias", "ca", "-file", f"{home}/ca.pem"]
    run_quietly([*keytool, "-keystore", str(store), "-storetype", "PKCS12", "-storepass", STORE_PASSWORD], "keytool")


def _openssl(home: Path, arguments: str, *more: str) -> None:
    """Run openssl; the words that are file names of ours get the folder in front."""
    words = [
        f"{home}/{word}" if word.endswith((".key", ".pem", ".csr", ".ext", ".p12")) else word
        for word in arguments.split()
    ]
    run_quietly(["openssl", *words, *more], f"openssl {words[0]}")


def add_scram_users(cluster: Cluster) -> None:
    """Write the SCRAM users into ZooKeeper, from where the brokers read them: before these start."""
    mechanisms = scram_mechanisms(cluster)
    if mechanisms:
        write_users(cluster.base_port, cluster.chroot, USERS, mechanisms)


def scram_words(cluster: Cluster) -> list[str]:
    """Arguments by which Kafka's tool for KRaft's storage adds the SCRAM users."""
    users = [(mechanism, *user) for mechanism in scram_mechanisms(cluster) for user in USERS.items()]
    texts = [f"{mechanism}=[name={user},password={password}]" for mechanism, user, password in users]
    return [word for text in texts for word in ("--add-scram", text)]
