"""A broker with every secured listener and access control lists, and the options of Spark that lead into it."""

from __future__ import annotations

from typing import Any

import anyio

from pykafka08.acl_operations import AclOperation, AclResourceType
from pykafka08.cluster.client import Client
from pykafka08.config import ClientConfig, build
from pykafka08.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from pykafka08.protocol.messages.describe_acls import DescribeAclsRequest
from pykafka08.spark.runtime import run
from tests.brokers.model import USERS
from tests.brokers.properties import STORE_PASSWORD
from tests.brokers.releases import version_tuple
from tests.integration.clusters import Clusters, RealCluster

__all__ = ["EVERY_WAY", "WAYS", "WRONG_PASSWORD", "allow", "options_of", "running", "secrets_of", "security_of"]

PROPERTIES = ("super.users=User:ANONYMOUS;User:admin;User:alice", "ssl.client.auth=requested")
OF_ZOOKEEPER = "kafka.security.authorizer.AclAuthorizer"
OF_KRAFT = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
WAYS = ("SSL", "mutual TLS", "SASL_PLAINTEXT SCRAM-SHA-256", "SASL_SSL SCRAM-SHA-512")
"""What a client may be told: TLS, TLS with its own certificate, or a protocol and a mechanism."""
EVERY_WAY = (*WAYS, "SASL_PLAINTEXT PLAIN")
WRONG_PASSWORD = "wrong-secret"
MODULES = "org.apache.kafka.common.security"
ANY, LITERAL, PREFIXED, ALLOW = 1, 3, 4, 3
EVERY_ENTRY = DescribeAclsRequest(
    resource_type_filter=ANY,
    resource_name_filter=None,
    pattern_type_filter=ANY,
    principal_filter=None,
    host_filter=None,
    operation=ANY,
    permission_type=ANY,
)


def running(clusters: Clusters, release: str) -> RealCluster:
    """One broker; alice, and whoever does not log in, may do everything, bob and the client certificate nothing."""
    authorizer = OF_KRAFT if version_tuple(release) >= (4,) else OF_ZOOKEEPER
    props = [*PROPERTIES, f"authorizer.class.name={authorizer}"]
    return clusters.running(release, props=props, options=["--ssl", "--sasl", "plain,scram-sha-256,scram-sha-512"])


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
    if mechanism:
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


def secrets_of(cluster: RealCluster) -> list[str]:
    """What must be in no text: passwords of users and of stores, one that is wrong, and lines of a private key."""
    key = (cluster.folder / "ssl" / "client.key").read_text().splitlines()[1:-1]
    return [*USERS.values(), STORE_PASSWORD, WRONG_PASSWORD, *key]


def options_of(cluster: RealCluster, way: str, **user: Any) -> dict[str, str]:
    """The same as options of the data source."""
    return {f"kafka.{name}": value for name, value in security_of(cluster, way, **user).items()}


def allow(cluster: RealCluster, principal: str, *rights: str) -> None:
    """Add access control lists; a right is ``"READ topic NAME"``, a name that ends with ``*`` a prefix."""
    run(_add(cluster, [_entry(principal, *right.split(" ")) for right in rights]))


def _entry(principal: str, operation: str, kind: str, name: str) -> AclCreation:
    return AclCreation(
        resource_type=AclResourceType[kind.upper().replace("-", "_")],
        resource_name=name.removesuffix("*") or "*",
        resource_pattern_type=PREFIXED if name.removesuffix("*") not in (name, "") else LITERAL,
        principal=principal,
        host="*",
        operation=AclOperation[operation],
        permission_type=ALLOW,
    )


async def _add(cluster: RealCluster, entries: list[AclCreation]) -> None:
    (config,) = build({"bootstrap_servers": cluster.bootstrap}, ClientConfig)
    async with Client(config) as client:
        response = await client.request_any(CreateAclsRequest(creations=entries))
        assert {each.error_code for each in response.results} == {0}, response
        is_settled = False
        while not is_settled:  # the controller has them, the broker a moment later
            await anyio.sleep(0.01)
            is_settled = await _are_in_force(client, entries)


async def _are_in_force(client: Client, entries: list[AclCreation]) -> bool:
    found = await client.request_any(EVERY_ENTRY)
    there = {
        (each.resource_type, each.resource_name, each.pattern_type, acl.principal, acl.operation)
        for each in found.resources
        for acl in each.acls
    }
    return all(
        (each.resource_type, each.resource_name, each.resource_pattern_type, each.principal, each.operation) in there
        for each in entries
    )
