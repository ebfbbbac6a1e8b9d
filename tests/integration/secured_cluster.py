"""The secured broker of several test modules, with every listener and mechanism of its release.

It has an authorizer: everyone may do what no access control list is about.  Sessions are short where the release can
limit them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pykafka08.kafka_properties import settings_from
from tests.brokers.model import MUTUAL_SSL
from tests.brokers.properties import write_properties
from tests.brokers.releases import version_tuple
from tests.integration.clusters import Clusters, RealCluster
from tests.integration.secured_clients import client_file
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

__all__ = ["REAUTHENTICATED_MS", "SecuredBrokers", "mechanisms_of", "settings_of"]

REAUTHENTICATED_MS = 2000
"""The longest session on releases that limit sessions (2.2 and later)."""
PASSWORDS = "plain,scram-sha-256,scram-sha-512"
LISTENERS = ("sasl_plaintext", "sasl_ssl")
AUTHORIZERS = {
    (4,): "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    (2, 4): "kafka.security.authorizer.AclAuthorizer",
    (0, 9): "kafka.security.auth.SimpleAclAuthorizer",
}
"""The broker's class, by the first release that has it."""

SecuredBrokers = Callable[[str], RealCluster]


@pytest.fixture(scope="session")
def endpoint() -> Iterator[OidcEndpoint]:
    """The OpenID Connect provider whose tokens the brokers trust."""
    with OidcEndpoint(clients={CLIENT: CLIENT_SECRET}) as started:
        yield started


@pytest.fixture(scope="session")
def secured_brokers(
    clusters: Clusters, endpoint: OidcEndpoint, tmp_path_factory: pytest.TempPathFactory
) -> SecuredBrokers:
    """Starts the broker of a release."""
    folder = tmp_path_factory.mktemp("oidc-keys")

    def running(release: str) -> RealCluster:
        endpoint.lifetime = 3600
        props, options = _configuration(version_tuple(release), endpoint, folder)
        options += ["--certificates", str(folder / "certificates")]
        cluster = clusters.running(release, props=props, options=options)
        if version_tuple(release) >= UNSIGNED:
            _write_oauth_files(cluster)
        return cluster

    return running


def _configuration(release: tuple[int, ...], endpoint: OidcEndpoint, folder: Path) -> tuple[list[str], list[str]]:
    """Properties of the broker, and options of ``kafka-up``."""
    authorizer = next(name for since, name in AUTHORIZERS.items() if release >= since)
    props = [
        "ssl.client.auth=requested",
        f"authorizer.class.name={authorizer}",
        "allow.everyone.if.no.acl.found=true",
    ]
    options = ["--ssl"]
    if release >= (0, 10):
        options += ["--sasl", PASSWORDS]
    if release >= (1, 1):
        options.append("--mutual-ssl")
        props.append(f"delegation.token.{'secret' if release >= (3,) else 'master'}.key=key-of-tokens")
    if release >= (2, 2):
        props.append(f"connections.max.reauth.ms={REAUTHENTICATED_MS}")
    if release >= UNSIGNED:
        props.append(f"sasl.enabled.mechanisms={PASSWORDS.upper()},OAUTHBEARER")
    if release >= SIGNED:
        props += oauth_properties(endpoint, folder, LISTENERS)
        options.append(oauth_jvm(folder))
    elif release >= UNSIGNED:
        props += unsigned_properties(LISTENERS)
    return props, options


def _write_oauth_files(cluster: RealCluster) -> None:
    """Write properties files with tokens next to the files of ``kafka-up``."""
    login = oauth_login(cluster.recorded())
    tls = dict(line.split("=", 1) for line in client_file(cluster, "SSL", None).read_text().splitlines())
    for protocol, more in (("SASL_PLAINTEXT", {}), ("SASL_SSL", tls)):
        path = client_file(cluster, protocol, "OAUTHBEARER")
        write_properties(path, {**more, **login, "security.protocol": protocol})


def mechanisms_of(cluster: RealCluster) -> list[str]:
    return [*cluster.mechanisms, *(["OAUTHBEARER"] if cluster.release >= UNSIGNED else [])]


def settings_of(
    cluster: RealCluster, listener: str, mechanism: str | None = None, user: str = "alice", **changed: Any
) -> dict[str, Any]:
    """Keyword arguments of a client that authenticates as this user, with a token, or with the client certificate."""
    servers, files = cluster.listener(listener), cluster.folder / "ssl"
    if mechanism == "OAUTHBEARER":
        return {**settings_from(client_file(cluster, listener, mechanism)), "bootstrap_servers": servers, **changed}
    settings: dict[str, Any] = {"bootstrap_servers": servers, "security_protocol": listener}
    if listener == MUTUAL_SSL:
        settings["security_protocol"] = "SSL"
        settings |= {"ssl_certfile": str(files / "client.pem"), "ssl_keyfile": str(files / "client.key")}
    if "SSL" in listener:
        settings["ssl_cafile"] = str(files / "ca.pem")
    if mechanism is not None:
        settings |= {
            "sasl_mechanism": mechanism,
            "sasl_plain_username": user,
            "sasl_plain_password": f"{user}-secret",
        }
    return {**settings, **changed}
