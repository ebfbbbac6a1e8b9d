"""The configuration of brokers and ZooKeeper, as files in the cluster's folder.

Ours differs from Kafka's defaults where that makes clusters start and stop quicker and stay small: few threads,
8 partitions for the internal topics, no delay before a group's first rebalance, sessions of 6 seconds. Records stay
for a hundred years: those with timestamps of long ago would be deleted half a minute after the broker's start.
"""

from __future__ import annotations

from pathlib import Path

from tests.brokers.model import CONTROLLER_ID, HOST, LISTENER_OFFSET, MUTUAL_SSL, Cluster
from tests.brokers.releases import Version

STORE_PASSWORD = "kafka-test"
INTERNAL_PARTITIONS = "8"
RETENTION_HOURS = str(100 * 365 * 24)  # every release has the property in hours
NEW_SESSION_MS, NEW_HEARTBEAT_MS = "6000", "500"  # of the new group protocol, where the broker rules

PROTOCOLS = tuple(f"{name}:{'SSL' if name == MUTUAL_SSL else name}" for name in LISTENER_OFFSET)
"""Listeners with their protocols, as in the broker's configuration."""

LOG_PATTERN = "[%d] %p %m (%c)%n"


def write_properties(path: Path, properties: dict[str, str]) -> None:
    """As Java reads it: a line feed in a value, as in a key in PEM, is escaped."""
    lines = [f"{key}={value}" for key, value in properties.items()]
    path.write_text("".join(line.replace("\n", "\\n") + "\n" for line in lines))


def broker_properties(cluster: Cluster, ident: int) -> dict[str, str]:
    """server.properties of one broker, or of the controller's process of a KRaft cluster."""
    properties = common_properties(cluster.release, cluster.count)
    properties |= _kraft(cluster, ident) if cluster.mode == "kraft" else _with_zookeeper(cluster, ident)
    properties["log.dirs"] = f"{cluster.dir}/data/{ident}"
    if any(listener.endswith("SSL") for listener in cluster.listeners):
        for side, file in (("keystore", "broker"), ("truststore", "truststore")):
            properties[f"ssl.{side}.type"] = "PKCS12"
            properties[f"ssl.{side}.location"] = f"{cluster.dir}/ssl/{file}.p12"
            properties[f"ssl.{side}.password"] = STORE_PASSWORD
        properties["ssl.key.password"] = STORE_PASSWORD
    if MUTUAL_SSL in cluster.listeners:
        properties["listener.security.protocol.map"] = ",".join(["CONTROLLER:PLAINTEXT", *PROTOCOLS])
        properties[f"listener.name.{MUTUAL_SSL.lower()}.ssl.client.auth"] = "required"
    if cluster.sasl:
        properties["sasl.enabled.mechanisms"] = ",".join(cluster.sasl)
    if cluster.kerberos:
        properties["sasl.kerberos.service.name"] = "kafka"
    properties |= {one.key: one.value for one in cluster.props if one.broker in (None, ident)}
    return properties


def common_properties(release: Version, brokers: int) -> dict[str, str]:
    """What is set in every node, whatever it listens on."""
    replicas = str(min(3, brokers))
    properties = {
        "auto.create.topics.enable": "true",
        "default.replication.factor": "1",
        "num.partitions": "1",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "log.retention.hours": RETENTION_HOURS,
        "controlled.shutdown.retry.backoff.ms": "1000",
        "log.cleaner.threads": "1",
        "log.cleaner.dedupe.buffer.size": "4194304",
    }
    if release >= (0, 8, 2):
        properties |= {
            "delete.topic.enable": "true",
            "offsets.topic.replication.factor": replicas,
            "offsets.topic.num.partitions": INTERNAL_PARTITIONS,
        }
    if release >= (0, 11):
        properties |= {
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": INTERNAL_PARTITIONS,
            "group.initial.rebalance.delay.ms": "0",
        }
    if release >= (4,):
        properties |= {
            "share.coordinator.state.topic.replication.factor": replicas,
            "share.coordinator.state.topic.min.isr": "1",
            "share.coordinator.state.topic.num.partitions": INTERNAL_PARTITIONS,
            "group.consumer.min.session.timeout.ms": NEW_SESSION_MS,
            "group.consumer.session.timeout.ms": NEW_SESSION_MS,
            "group.consumer.min.heartbeat.interval.ms": NEW_HEARTBEAT_MS,
            "group.consumer.heartbeat.interval.ms": NEW_HEARTBEAT_MS,
        }
    return properties


def _addresses(cluster: Cluster, ident: int) -> list[str]:
    return [f"{listener}://{HOST}:{cluster.port(ident, listener)}" for listener in cluster.listeners]


def _kraft(cluster: Cluster, ident: int) -> dict[str, str]:
    """One broker alone is its own controller; with more the controller is a process of its own and can outlive them."""
    is_alone = cluster.count == 1
    is_controller = ident == CONTROLLER_ID
    voter = 1 if is_alone else CONTROLLER_ID
    controller = f"CONTROLLER://{HOST}:{cluster.base_port}"
    properties = {
        "node.id": str(ident),
        "controller.quorum.voters": f"{voter}@{HOST}:{cluster.base_port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": ",".join(["CONTROLLER:PLAINTEXT", *PROTOCOLS]),
        "broker.session.timeout.ms": "6000",
    }
    if is_controller:
        return properties | {"process.roles": "controller", "listeners": controller}
    addresses = _addresses(cluster, ident)
    return properties | {
        "process.roles": "broker,controller" if is_alone else "broker",
        "listeners": ",".join([*addresses, controller] if is_alone else addresses),
        "advertised.listeners": ",".join(addresses),
        "inter.broker.listener.name": "PLAINTEXT",
    }


def _with_zookeeper(cluster: Cluster, ident: int) -> dict[str, str]:
    properties = {
        "broker.id": str(ident),
        "zookeeper.connect": f"{HOST}:{cluster.base_port}{cluster.chroot}",
        "zookeeper.session.timeout.ms": "6000",
        "zookeeper.connection.timeout.ms": "30000",
    }
    if cluster.release < (0, 9):
        return properties | {"port": str(cluster.port(ident)), "host.name": HOST, "advertised.host.name": HOST}
    addresses = ",".join(_addresses(cluster, ident))
    return properties | {"listeners": addresses, "advertised.listeners": addresses}


def zookeeper_properties(cluster: Cluster) -> dict[str, str]:
    return {
        "tickTime": "1000",
        "dataDir": f"{cluster.dir}/data/zookeeper",
        "clientPort": str(cluster.base_port),
        "clientPortAddress": HOST,
        "maxClientCnxns": "0",
        "admin.enableServer": "false",
    }


def write_logging(folder: Path) -> None:
    """Log4j's configuration, of both its generations, for brokers (standard output) and tools (standard error)."""
    quiet = "log4j.logger.org.apache.zookeeper=WARN\nlog4j.logger.org.I0Itec=WARN\n"
    for prefix, level, stream, more in (("", "INFO", "System.out", quiet), ("tool-", "WARN", "System.err", "")):
        appender = "log4j.appender.out"
        (folder / "conf" / f"{prefix}log4j.properties").write_text(
            f"log4j.rootLogger={level}, out\n"
            f"{appender}=org.apache.log4j.ConsoleAppender\n{appender}.target={stream}\n"
            f"{appender}.layout=org.apache.log4j.PatternLayout\n"
            f"{appender}.layout.ConversionPattern={LOG_PATTERN}\n{more}"
        )
        (folder / "conf" / f"{prefix}log4j2.properties").write_text(
            f"status=error\nappender.out.type=Console\nappender.out.name=out\n"
            f"appender.out.target={stream.upper().replace('.', '_')}\n"
            f"appender.out.layout.type=PatternLayout\nappender.out.layout.pattern={LOG_PATTERN}\n"
            f"rootLogger.level={level}\nrootLogger.appenderRef.out.ref=out\n"
        )


def logging_flags(folder: str | Path, prefix: str = "") -> list[str]:
    """JVM flags that point at those files; the prefix is `tool-` for the tools."""
    return [
        f"-Dlog4j.configuration=file:{folder}/conf/{prefix}log4j.properties",
        f"-Dlog4j2.configurationFile={folder}/conf/{prefix}log4j2.properties",
    ]
