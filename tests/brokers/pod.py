"""A cluster whose processes are containers.

They share one network, that of a container which does nothing else and publishes their ports: 127.0.0.1 with one port
is the same broker for the tests and for the other brokers. So brokers that know a single listener (0.8, 0.9) will do,
and any of the others can be killed and started again. Configuration: what `docker/entrypoint` makes of the environment.
"""

from __future__ import annotations

from tests.brokers import containers, properties
from tests.brokers.model import CONTROLLER_ID, HOST, Cluster, Process


def create(cluster: Cluster) -> None:
    """Create the containers, without starting any; each is recorded on disk before there is another."""
    image = containers.image(cluster.version)
    idents = range(1, cluster.count + 1)
    published = [f"{HOST}:{port}:{port}" for port in (cluster.base_port, *map(cluster.port, idents))]
    options = [word for port in published for word in ("--publish", port)]
    cluster.network = _recorded(cluster, Process(-1, "network"), image, options, ROLE="network")
    joined = ["--network", f"container:{cluster.network.container}"]

    if cluster.mode == "zookeeper":
        variables = {"ROLE": "zookeeper", "PORT": str(cluster.base_port), "HEAP": "192m"}
        cluster.zookeeper = _recorded(cluster, Process(0, "zookeeper"), image, joined, **variables)
    elif cluster.count > 1:
        variables = _broker_variables(cluster, CONTROLLER_ID) | {"ROLE": "controller", "PORT": str(cluster.base_port)}
        cluster.controller = _recorded(cluster, Process(CONTROLLER_ID, "controller"), image, joined, **variables)
    for ident in idents:
        process = Process(ident, f"broker-{ident}", port=cluster.port(ident))
        cluster.brokers[str(ident)] = process
        _recorded(cluster, process, image, joined, **_broker_variables(cluster, ident))


def _recorded(cluster: Cluster, process: Process, image: str, options: list[str], **variables: str) -> Process:
    process.container = containers.create(image, *options, **variables)
    cluster.save()
    return process


def _broker_variables(cluster: Cluster, ident: int) -> dict[str, str]:
    settings = properties.common_properties(cluster.release, cluster.count)
    settings |= {one.key: one.value for one in cluster.props if one.broker in (None, ident)}
    variables = {
        "NODE_ID": str(ident),
        "BROKERS": str(cluster.count),
        "PORT": str(cluster.port(ident)),
        "PROPERTIES": "\n".join(f"{key}={value}" for key, value in settings.items()),
        "HEAP": cluster.heap,
        "JVM": " ".join(cluster.jvm),
    }
    if cluster.zookeeper_address is not None:
        return variables | {"ZOOKEEPER": cluster.zookeeper_address}
    is_alone = cluster.count == 1
    return variables | {
        "ROLE": "broker,controller" if is_alone else "broker",
        "CONTROLLER_PORT": str(cluster.base_port),
        "VOTERS": f"{1 if is_alone else CONTROLLER_ID}@{HOST}:{cluster.base_port}",
    }
