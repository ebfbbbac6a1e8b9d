"""Running the command line tools of a release, against its own cluster or against any address."""

from __future__ import annotations

import os
from pathlib import Path

from tests.brokers.archives import archive_flags
from tests.brokers.jars import (
    TOOL_CLASSES,
    cache_root,
    find_class,
    java_command,
    jvm_flags,
    quick_flags,
    resolve,
    tool_class,
)
from tests.brokers.model import Cluster, ClusterError
from tests.brokers.properties import logging_flags, write_logging
from tests.brokers.releases import TOOLS_OF, version_tuple

JVM_FLAGS = ("-Xmx256m", "-Xshare:auto", "-Djava.net.preferIPv4Stack=true")


def tool_command(cluster: Cluster, tool: str, *arguments: str) -> list[str]:
    """The command for a tool of the cluster's release: a short name, or a class.

    `{bootstrap}`, `{zookeeper}` and `{dir}` in an argument become the cluster's own.
    """
    facts = {"bootstrap": cluster.bootstrap() or "", "zookeeper": cluster.zookeeper_address or "", "dir": cluster.dir}
    words = list(arguments)
    for name, value in facts.items():
        words = [word.replace("{" + name + "}", value) for word in words]
    return _java(cluster.java, cluster.version, Path(cluster.jars), cluster.folder, tool) + words


def release_tool_command(version: str, tool: str, *arguments: str) -> list[str]:
    """The command for a release's tool without a cluster of that release: to aim it at some other broker."""
    home = cache_root() / "tools"
    (home / "conf").mkdir(parents=True, exist_ok=True)
    write_logging(home)
    return [*_java(java_command(), version, resolve(version), home, tool), *arguments]


def _java(java: str, version: str, jars: Path, folder: Path, tool: str) -> list[str]:
    main = tool_class(str(jars), tool) if tool in TOOL_CLASSES else find_class(str(jars), tool)
    if not main and version in TOOLS_OF:
        jars = resolve(TOOLS_OF[version])
        main = tool_class(str(jars), tool) if tool in TOOL_CLASSES else find_class(str(jars), tool)
    if not main and tool in TOOL_CLASSES and tool != "zookeeper-shell":  # its class is in ZooKeeper's own jar
        raise ClusterError(f"Kafka {version} has no {tool}")
    more = os.environ.get("KAFKA_TOOL_JVM", "").split()
    flags = [*JVM_FLAGS, *quick_flags(), *jvm_flags(version_tuple(version)), *more, *logging_flags(folder, "tool-")]
    flags += [*archive_flags(jars), "-cp", f"{jars}/*"]
    return [java, *flags, main or TOOL_CLASSES.get(tool, (tool,))[0]]
