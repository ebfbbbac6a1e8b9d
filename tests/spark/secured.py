"""A broker with every secured listener and access control lists, and the options of Spark that lead into it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from os.path import commonprefix
from pathlib import Path
from shutil import copyfile
from typing import Any

import pytest

from pykafka08.spark.runtime import run
from tests.brokers.model import USERS
from tests.brokers.properties import STORE_PASSWORD
from tests.brokers.releases import version_tuple
from tests.integration import acls
from tests.integration.clusters import Clusters, RealCluster
from tests.requirements import SOAK
from tests.security.kdc import Kdc
from tests.security.kerberos_secrets import TOKEN_START, keys_of_keytab
from tests.security.oauth_broker import (
    CLIENT,
    CLIENT_SECRET,
    SIGNED,
    UNSIGNED,
    oauth_jvm,
    oauth_login,
    oauth_properties,
    unsigned_properties,
)
from tests.security.oidc_endpoint import OidcEndpoint

__all__ = [
    "CLIENT",
    "CLIENT_SECRET",
    "EVERY_WAY",
    "GSSAPI",
    "IS_SOAK",
    "OAUTHBEARER",
    "SCRAM",
    "WRONG_PASSWORD",
    "allow",
    "every_way",
    "kerberos_config",
    "options_of",
    "running",
    "secrets_of",
    "security_of",
    "ways",
    "with_kerberos",
]

PROPERTIES = ("super.users=User:ANONYMOUS;User:admin;User:alice;User:app", "ssl.client.auth=requested")
OF_ZOOKEEPER = "kafka.security.authorizer.AclAuthorizer"
OF_KRAFT = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SCRAM, OAUTHBEARER, GSSAPI = "SASL_SSL SCRAM-SHA-512", "SASL_PLAINTEXT OAUTHBEARER", "SASL_SSL GSSAPI"
PROTOCOLS = ("SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
EVERY_WAY = ("SSL", "mutual TLS", *map(" ".join, product(PROTOCOLS, MECHANISMS)))
"""TLS, TLS with the client's own certificate, and each protocol with each mechanism."""
SHORT = ("SSL", "mutual TLS", "SASL_PLAINTEXT SCRAM-SHA-256", SCRAM, OAUTHBEARER, GSSAPI)
"""The ways in a short run, which with PLAIN of the dead letters are of each protocol and mechanism."""
IS_SOAK = os.environ.get(SOAK) == "1"
WAYS = EVERY_WAY if IS_SOAK else SHORT
WRONG_PASSWORD = "wrong-secret"
MODULES = "org.apache.kafka.common.security"


def running(clusters: Clusters, release: str, kdc: Kdc | None, endpoint: OidcEndpoint, folder: Path) -> RealCluster:
    """One broker with every mechanism of the release; GSSAPI with a KDC.

    From 2.4 on alice, app and users who do not log in may do everything, bob and the client certificate nothing.
    """
    version = version_tuple(release)
    mechanisms = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] if version >= (0, 10, 2) else []
    options = ["--ssl"]
    if kdc is not None:
        mechanisms.append("GSSAPI")
        options += ["--kerberos", str(kdc.folder)]
    if mechanisms:
        options += ["--sasl", ",".join(mechanisms).lower()]
    props = [*PROPERTIES]
    if version >= (2, 4):
        props.append(f"authorizer.class.name={OF_KRAFT if version >= (4,) else OF_ZOOKEEPER}")
    listeners = [one.lower() for one in PROTOCOLS]
    if version >= UNSIGNED:
        offered = ",".join([*mechanisms, "OAUTHBEARER"])
        props += [f"listener.name.{one}.sasl.enabled.mechanisms={offered}" for one in listeners]
    if version >= SIGNED:
        props += oauth_properties(endpoint, folder, listeners)
        options.append(oauth_jvm(folder))
    elif version >= UNSIGNED:
        props += unsigned_properties(listeners)
    return clusters.running(release, props=props, options=options)


def ways(cluster: RealCluster) -> list[str]:
    """The ways into the cluster; in a short run one of each kind."""
    return [way for way in WAYS if _has(cluster, way)]


def every_way(cluster: RealCluster) -> list[str]:
    """All ways into the cluster."""
    return [way for way in EVERY_WAY if _has(cluster, way)]


def _has(cluster: RealCluster, way: str) -> bool:
    mechanism = way.partition(" ")[2]
    if mechanism == "OAUTHBEARER":
        return cluster.release >= UNSIGNED
    return "SASL" not in way or mechanism in cluster.mechanisms


def kerberos_config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the Kerberos library of Spark's Python workers looks for its configuration."""
    return tmp_path_factory.getbasetemp() / "krb5.conf"


@contextmanager
def with_kerberos(kdc: Kdc, config: Path) -> Iterator[None]:
    """Use the KDC in this process, and, with ``config``, in Spark's workers."""
    with pytest.MonkeyPatch.context() as patch:
        for variable, value in kdc.environment.items():
            patch.setenv(variable, value)
        copyfile(kdc.config, config)
        yield


def security_of(cluster: RealCluster, way: str, user: str = "alice", password: str | None = None) -> dict[str, str]:
    """Kafka's own properties of a client, with its ``bootstrap.servers``; the password of PLAIN is in a file."""
    protocol, _, mechanism = ("SSL", "", "") if "TLS" in way else way.partition(" ")
    properties = {"bootstrap.servers": cluster.listener(protocol), "security.protocol": protocol}
    files = cluster.folder / "ssl"
    if "SSL" in protocol:
        properties["ssl.truststore.location"] = f"{files}/truststore.p12"
        properties["ssl.truststore.password"] = STORE_PASSWORD
    if "TLS" in way:
        properties["ssl.keystore.type"] = "PEM"
        properties["ssl.keystore.key"] = (files / "client.key").read_text()
        properties["ssl.keystore.certificate.chain"] = (files / "client.pem").read_text()
    if mechanism == "GSSAPI":
        properties |= _with_keytab(cluster)
    elif mechanism == "OAUTHBEARER":
        properties |= oauth_login(cluster.recorded())
    elif mechanism:
        module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
        password = password or USERS[user]
        if mechanism == "PLAIN":
            kept = cluster.folder / "conf" / "secrets.properties"
            kept.write_text("".join(f"{name}={each}\n" for name, each in USERS.items()))
            properties["config.providers"] = "file"
            properties["config.providers.file.class"] = "org.apache.kafka.common.config.provider.FileConfigProvider"
            password = f"${{file:{kept}:{user}}}"
        login = f'username="{user}" password="{password}"'
        properties["sasl.mechanism"] = mechanism
        properties["sasl.jaas.config"] = f"{MODULES}.{module} required {login};"
    return properties


def _with_keytab(cluster: RealCluster) -> dict[str, str]:
    keytab = f"{cluster.recorded().kerberos}/alice.keytab"
    login = f'useKeyTab=true storeKey=true keyTab="{keytab}" principal="alice"'
    return {
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.jaas.config": f"com.sun.security.auth.module.Krb5LoginModule required {login};",
    }


def secrets_of(cluster: RealCluster, endpoint: OidcEndpoint) -> list[str | bytes]:
    """What must be in no text: passwords of users and of stores, one that is wrong, private keys, and tokens.

    Tokens of the provider have a long common beginning, tokens of Kerberos a short one.
    """
    key = (cluster.folder / "ssl" / "client.key").read_text().splitlines()[1:-1]
    tokens = [commonprefix(endpoint.issued)] if endpoint.issued else []  # noqa: RUF071 - characters are meant
    passwords = [*USERS.values(), STORE_PASSWORD, WRONG_PASSWORD, CLIENT_SECRET]
    folder = cluster.recorded().kerberos
    keys = keys_of_keytab(Path(folder) / "alice.keytab") if folder else []
    return [*passwords, *key, *tokens, *keys, TOKEN_START]


def options_of(cluster: RealCluster, way: str, **user: Any) -> dict[str, str]:
    """The same as options of the data source."""
    return {f"kafka.{name}": value for name, value in security_of(cluster, way, **user).items()}


def allow(cluster: RealCluster, principal: str, *rights: str) -> None:
    """Add access control lists, as :func:`tests.integration.acls.allow` does."""
    run(acls.allow(cluster, principal, *rights))
