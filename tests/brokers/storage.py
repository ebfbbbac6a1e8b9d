"""Storage folders of KRaft nodes: Kafka's tool formats one folder, and the folders of all nodes are copies of it.

The copies differ only in `meta.properties`: the ids of the cluster, the node and the folder. Each release and set of
users has one formatted folder, because a JVM for each node takes more processor time than many tests.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import os
import shutil
from pathlib import Path

from tests.brokers.jars import cache_root, tool_class
from tests.brokers.model import Cluster, ClusterError
from tests.brokers.processes import run_quietly
from tests.brokers.tools import tool_command

META = "meta.properties"


def new_id() -> str:
    """A random id as Kafka writes it: 16 bytes in base64 without padding; the first character is never a hyphen."""
    return "k" + base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")[1:]


def format_storage(cluster: Cluster, nodes: list[int], words: list[str]) -> None:
    """Prepare every node's storage folder for the cluster; `words` are more arguments of Kafka's tool.

    ClusterError if the release has no such tool, or the tool fails.
    """
    if not tool_class(cluster.jars, "storage"):
        raise ClusterError(f"Kafka {cluster.version} has no StorageTool: it can't run without ZooKeeper")
    formatted = _formatted(cluster, nodes[-1], words)
    for node in nodes:
        home = _folder(cluster, node)
        shutil.copytree(formatted, home, dirs_exist_ok=True)
        ids = {"cluster.id": str(cluster.cluster_id), "node.id": str(node), "directory.id": new_id()}
        _set_ids(home / META, ids)


def _folder(cluster: Cluster, node: int) -> Path:
    return cluster.folder / "data" / str(node)


def _formatted(cluster: Cluster, node: int, words: list[str]) -> Path:
    """A formatted folder in the cache; the first call formats the node's own and keeps a copy."""
    digest = hashlib.sha256("\n".join([cluster.jars, *words]).encode()).hexdigest()[:16]
    kept = cache_root() / "storage" / f"{cluster.version}-{digest}"
    kept.parent.mkdir(parents=True, exist_ok=True)
    with kept.with_name(f"{kept.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            config = f"{cluster.dir}/conf/{node}.properties"
            command = ["format", "-t", str(cluster.cluster_id), "-c", config, *words]
            run_quietly(tool_command(cluster, "storage", *command), f"formatting the storage of node {node}")
            draft = kept.with_name(f"{kept.name}.part")
            shutil.rmtree(draft, ignore_errors=True)
            shutil.copytree(_folder(cluster, node), draft)
            draft.rename(kept)
    return kept


def _set_ids(path: Path, ids: dict[str, str]) -> None:
    """Replace the ids that the file has; releases before 3.7 have none for the folder."""
    lines = []
    for line in path.read_text().splitlines():
        key, separator, value = line.partition("=")
        lines.append(f"{key}{separator}{ids.get(key, value)}\n")
    path.write_text("".join(lines))
