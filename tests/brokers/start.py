"""Bringing a cluster up: its folder, its configuration, its processes in order, its topics."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.brokers import containers, credentials, pod, properties, readiness, storage
from tests.brokers.archives import archive_flags
from tests.brokers.jars import java_command, jvm_flags, quick_flags, resolve
from tests.brokers.model import (
    CONTROLLER_ID,
    LISTENER_OFFSET,
    MUTUAL_SSL,
    STATE,
    Cluster,
    ClusterError,
    Process,
    Property,
    Topic,
    load,
)
from tests.brokers.processes import is_alive, launch
from tests.brokers.releases import Version, full_version, version_tuple
from tests.brokers.topics import create_topics

FOLDERS = ("conf", "logs", "data", "ssl")
MAX_BROKERS = 9
ZOOKEEPER_FLAGS = (
    "-Dzookeeper.forceSync=no",
    "-Dzookeeper.preAllocSize=1024",
    "-Dzookeeper.admin.enableServer=false",
    "-Dzookeeper.4lw.commands.whitelist=*",
)
KERBEROS_REALM = "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED"
"""Where releases up to 2.0 find the default realm."""
FOR_BENCHMARKS = ("-XX:+UseG1GC",)


@dataclass
class Plan:
    """What is asked for. `heap` is a JVM size, `timeout` in seconds; `base_port` 0 takes a free block of ports."""

    version: str
    folder: Path
    brokers: int = 1
    topics: list[Topic] = field(default_factory=list)
    props: list[Property] = field(default_factory=list)
    sasl: list[str] = field(default_factory=list)
    kerberos: Path | None = None
    ssl: bool = False
    mutual_ssl: bool = False
    certificates: Path | None = None
    kraft: bool = False
    docker: bool = False
    features: list[str] = field(default_factory=list)
    chroot: str = ""
    base_port: int = 0
    heap: str = "384m"
    peak: bool = False
    jvm: list[str] = field(default_factory=list)
    timeout: float = 120


def start(plan: Plan) -> Cluster:
    """Start the cluster and wait until it can be used; on failure nothing of it is left running."""
    begun = time.monotonic()
    version = full_version(plan.version)
    _check(plan, version_tuple(version))
    jars = resolve(version)
    listeners = [name for name in LISTENER_OFFSET if _wants(plan, name)]
    with contextlib.ExitStack() as until_started:
        base_port = plan.base_port
        if not base_port:
            base_port, lock = readiness.free_base_port()
            until_started.enter_context(lock)
        cluster = Cluster(
            version=version,
            mode="kraft" if plan.kraft or version_tuple(version) >= (4,) else "zookeeper",
            dir=str(plan.folder.resolve()),
            jars=str(jars),
            java=java_command(),
            base_port=base_port,
            count=plan.brokers,
            listeners=listeners,
            sasl=[credentials.MECHANISMS[name] for name in plan.sasl],
            kerberos=str(plan.kerberos.resolve()) if plan.kerberos else None,
            props=plan.props,
            jvm=plan.jvm,
            heap=plan.heap,
            peak=plan.peak,
        )
        if cluster.mode == "zookeeper":
            cluster.chroot = plan.chroot
        _check_ports(cluster)
        prepare_folder(cluster.folder)
        children: list[subprocess.Popen[bytes] | None] = []
        try:
            properties.write_logging(cluster.folder)
            if plan.docker:
                pod.create(cluster)
            else:
                _prepare(cluster, plan)
            _launch_all(cluster, plan.timeout, children)
            create_topics(cluster, plan.topics)
        except BaseException:
            for child in filter(None, children):
                child.kill()
            for child in filter(None, children):
                child.wait()
            containers.remove(list(cluster.processes().values()))
            cluster.save()
            raise
    cluster.seconds = round(time.monotonic() - begun, 1)
    cluster.save()
    return cluster


def _wants(plan: Plan, listener: str) -> bool:
    needs_sasl, needs_ssl = listener.startswith("SASL"), listener.endswith("SSL")
    is_wanted = plan.mutual_ssl or listener != MUTUAL_SSL
    return is_wanted and (not needs_sasl or bool(plan.sasl)) and (not needs_ssl or plan.ssl)


def _check(plan: Plan, version: Version) -> None:
    """Refuse what the release cannot do."""
    unknown = [name for name in plan.sasl if name not in credentials.MECHANISMS]
    scram = any(name.startswith("scram") for name in plan.sasl)
    is_kraft = plan.kraft or version >= (4,)
    refusals = (
        (not 1 <= plan.brokers <= MAX_BROKERS, f"--brokers is 1 to {MAX_BROKERS}"),
        (bool(unknown), f"--sasl knows {', '.join(credentials.MECHANISMS)}, not {', '.join(unknown)}"),
        (is_kraft and version < (3, 3), "--kraft is for Kafka 3.3 and later"),
        (plan.ssl and version < (0, 9), "Kafka has SSL since 0.9"),
        (plan.mutual_ssl and not plan.ssl, "--mutual-ssl goes with --ssl"),
        (plan.certificates is not None and not plan.ssl, "--certificates goes with --ssl"),
        (plan.mutual_ssl and version < (1, 0), "releases before 1.0 have no settings for a single listener"),
        (bool(plan.sasl) and version < (0, 9), "Kafka has SASL since 0.9"),
        (bool(set(plan.sasl) - {"gssapi"}) and version < (0, 10), "Kafka has SASL/PLAIN since 0.10.0"),
        (("gssapi" in plan.sasl) != (plan.kerberos is not None), "--sasl gssapi goes with --kerberos"),
        (scram and version < (0, 10, 2), "Kafka has SASL/SCRAM since 0.10.2"),
        (scram and is_kraft and version < (3, 5), "KRaft has SASL/SCRAM since 3.5"),
        (bool(plan.chroot) and version < (0, 8, 1), "Kafka 0.8.0 can't make its chroot"),
        (
            plan.docker and bool(plan.sasl or plan.ssl or plan.features),
            "--docker goes without --sasl, --ssl, --feature",
        ),
        (plan.docker and plan.peak, "--docker goes without --peak"),
    )
    for is_wrong, message in refusals:
        if is_wrong:
            raise ClusterError(message)


def _check_ports(cluster: Cluster) -> None:
    wanted = [cluster.base_port]
    wanted += [cluster.port(broker, name) for name in cluster.listeners for broker in range(1, cluster.count + 1)]
    busy = [port for port in wanted if not readiness.port_free(port)]
    if busy:
        raise ClusterError(f"ports in use already: {busy}")


def prepare_folder(folder: Path) -> None:
    """An empty place for the cluster; what an earlier, stopped cluster left in it is removed."""
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / STATE).exists():
        running = [name for name, process in load(folder).processes().items() if is_alive(process)]
        if running:
            raise ClusterError(
                f"a cluster is running in {folder} ({', '.join(running)}); stop it with kafka-down {folder}"
            )
        clean_folder(folder)
    elif any(entry.name != ".lock" for entry in folder.iterdir()):
        raise ClusterError(f"{folder} is not empty, and no cluster of ours left that there")
    for name in ("conf", "logs", "data"):
        (folder / name).mkdir()


def clean_folder(folder: Path) -> None:
    """Remove what a cluster left, and nothing else."""
    (folder / STATE).unlink()
    for name in FOLDERS:
        shutil.rmtree(folder / name, ignore_errors=True)


def _prepare(cluster: Cluster, plan: Plan) -> None:
    """Write the configuration and record every process, with the command that will start it."""
    idents = list(range(1, cluster.count + 1))
    nodes = [*idents, *([CONTROLLER_ID] if cluster.mode == "kraft" and cluster.count > 1 else [])]
    if cluster.sasl:
        credentials.write_jaas(cluster)
    if plan.ssl:
        credentials.provide_certificates(cluster, plan.certificates)
    credentials.write_client_configs(cluster)
    for node in nodes:
        (cluster.folder / "data" / str(node)).mkdir()
        properties.write_properties(_config(cluster, node), properties.broker_properties(cluster, node))

    if cluster.mode == "kraft":
        cluster.cluster_id = storage.new_id()
        features = [word for feature in plan.features for word in ("--feature", feature)]
        storage.format_storage(cluster, nodes, [*features, *credentials.scram_words(cluster)])
        if CONTROLLER_ID in nodes:
            cluster.controller = _broker_process(cluster, CONTROLLER_ID, "controller")
    else:
        cluster.zookeeper = _zookeeper_process(cluster)
    for ident in idents:
        process = _broker_process(cluster, ident, f"broker-{ident}")
        process.port = cluster.port(ident)
        cluster.brokers[str(ident)] = process


def _launch_all(cluster: Cluster, timeout: float, children: list[subprocess.Popen[bytes] | None]) -> None:
    """Start everything and wait for it; each process is in `children` as soon as it exists."""
    for process in filter(None, (cluster.network, cluster.controller)):
        children.append(launch(process, cluster.folder))
    if cluster.zookeeper is not None:
        children.append(launch(cluster.zookeeper, cluster.folder))
        cluster.save()
        readiness.wait_zookeeper(cluster, cluster.zookeeper, timeout)
        credentials.add_scram_users(cluster)
    for process in cluster.brokers.values():
        children.append(launch(process, cluster.folder))
    cluster.save()
    readiness.wait_brokers(cluster, [process.id for process in cluster.brokers.values()], timeout)


def _config(cluster: Cluster, node: int) -> Path:
    return cluster.folder / "conf" / f"{node}.properties"


def _java(cluster: Cluster, heap: str) -> list[str]:
    flags = [
        f"-Xmx{heap}",
        "-Xms64m",
        *(FOR_BENCHMARKS if cluster.peak else [*quick_flags(), *archive_flags(Path(cluster.jars))]),
    ]
    flags += ["-XX:-UsePerfData", "-Djava.awt.headless=true", "-Djava.net.preferIPv4Stack=true"]
    flags += ["-XX:+ExitOnOutOfMemoryError", f"-Dkafka.logs.dir={cluster.dir}/logs"]
    flags += properties.logging_flags(cluster.dir)
    if cluster.sasl:
        flags += [f"-Djava.security.auth.login.config={cluster.dir}/conf/jaas.conf", "-Dzookeeper.sasl.client=false"]
    if cluster.kerberos:
        flags += [f"-Djava.security.krb5.conf={cluster.kerberos}/krb5.conf", KERBEROS_REALM]
    return [cluster.java, *jvm_flags(cluster.release), *flags, *cluster.jvm]


def _broker_process(cluster: Cluster, ident: int, name: str) -> Process:
    command = [*_java(cluster, cluster.heap), "-cp", f"{cluster.jars}/*", "kafka.Kafka", str(_config(cluster, ident))]
    return Process(id=ident, name=name, log=f"{cluster.dir}/logs/{name}.log", command=command)


def _zookeeper_process(cluster: Cluster) -> Process:
    config = cluster.folder / "conf" / "zookeeper.properties"
    properties.write_properties(config, properties.zookeeper_properties(cluster))
    main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
    command = [*_java(cluster, "192m"), *ZOOKEEPER_FLAGS, "-cp", f"{cluster.jars}/*", main, str(config)]
    return Process(id=0, name="zookeeper", log=f"{cluster.dir}/logs/zookeeper.log", command=command)
