"""What is recorded about a cluster: in memory two dataclasses, on disk `cluster.json` in the cluster's folder.

Not here: starting anything (start), or looking whether a process lives (processes).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.brokers.releases import Version, version_tuple

HOST = "127.0.0.1"
STATE = "cluster.json"
CONTROLLER_ID = 1000
PORTS_PER_CLUSTER = 50
MUTUAL_SSL = "MUTUAL_SSL"
"""The listener with TLS that demands a client certificate."""
LISTENER_OFFSET = {"PLAINTEXT": 0, "SASL_PLAINTEXT": 10, "SSL": 20, "SASL_SSL": 30, MUTUAL_SSL: 40}
USERS = {"admin": "admin-secret", "alice": "alice-secret", "bob": "bob-secret"}


class ClusterError(Exception):
    """Says in one message what went wrong; the commands print it and exit with status 1."""


@dataclass
class Process:
    """One JVM: how it is started, where it logs, and the pid (with its start time) of the one that runs or last ran.

    With `container`, Docker's id of one, that is what there is instead of a command, a log file and a pid.
    """

    id: int
    name: str
    log: str = ""
    command: list[str] = field(default_factory=list)
    port: int | None = None
    pid: int | None = None
    started: str | None = None
    container: str | None = None


@dataclass
class Topic:
    """A topic to create."""

    name: str
    partitions: int = 1
    replicas: int = 1
    configs: dict[str, str] = field(default_factory=dict)


@dataclass
class Property:
    """A broker property somebody asked for; `broker` None means every broker's."""

    broker: int | None
    key: str
    value: str


@dataclass
class Cluster:
    """A cluster as it was started; `mode` is zookeeper or kraft. `network` is there when all are containers (pod)."""

    version: str
    mode: str
    dir: str
    jars: str
    java: str
    base_port: int
    count: int
    listeners: list[str]
    sasl: list[str] = field(default_factory=list)
    kerberos: str | None = None
    """The folder with the KDC's krb5.conf and keytabs."""
    props: list[Property] = field(default_factory=list)
    chroot: str = ""
    jvm: list[str] = field(default_factory=list)
    heap: str = "384m"
    peak: bool = False
    cluster_id: str | None = None
    brokers: dict[str, Process] = field(default_factory=dict)
    zookeeper: Process | None = None
    controller: Process | None = None
    network: Process | None = None
    seconds: float | None = None

    @property
    def release(self) -> Version:
        return version_tuple(self.version)

    @property
    def folder(self) -> Path:
        return Path(self.dir)

    @property
    def zookeeper_address(self) -> str | None:
        return f"{HOST}:{self.base_port}{self.chroot}" if self.mode == "zookeeper" else None

    def processes(self) -> dict[str, Process]:
        """Everything recorded, by name; what the brokers depend on comes last."""
        behind = [process for process in (self.controller, self.zookeeper, self.network) if process]
        return self.brokers | {process.name: process for process in behind}

    def process(self, name: str) -> Process:
        known = self.processes()
        found = known.get({"zk": "zookeeper"}.get(name, name))
        if found is None:
            raise ClusterError(f"no {name!r} in this cluster; it has {', '.join(known)}")
        return found

    def port(self, broker: int, listener: str = "PLAINTEXT") -> int:
        return self.base_port + LISTENER_OFFSET[listener] + broker

    def bootstrap(self, listener: str = "PLAINTEXT") -> str | None:
        if listener not in self.listeners:
            return None
        return ",".join(f"{HOST}:{self.port(int(broker), listener)}" for broker in self.brokers)

    def summary(self) -> dict[str, Any]:
        """What `kafka-up` prints."""
        out: dict[str, Any] = {
            "version": self.version,
            "mode": self.mode,
            "dir": self.dir,
            "bootstrap": self.bootstrap(),
            "bootstrap_sasl": self.bootstrap("SASL_PLAINTEXT"),
            "bootstrap_ssl": self.bootstrap("SSL"),
            "bootstrap_sasl_ssl": self.bootstrap("SASL_SSL"),
            "zookeeper": self.zookeeper_address,
            "brokers": {broker: f"{HOST}:{process.port}" for broker, process in self.brokers.items()},
            "pids": {name: process.pid for name, process in self.processes().items()},
            "log_dir": f"{self.dir}/logs",
            "data_dir": f"{self.dir}/data",
            "sasl_mechanisms": self.sasl,
        }
        if self.sasl:
            out["users"] = USERS
        if "SSL" in self.listeners:
            files = {"ca": "ca.pem", "client_cert": "client.pem", "client_key": "client.key"}
            out["ssl"] = {name: f"{self.dir}/ssl/{file}" for name, file in files.items()}
        out["seconds"] = self.seconds
        return out

    def save(self) -> None:
        path = self.folder / STATE
        draft = path.with_suffix(".tmp")
        draft.write_text(json.dumps(asdict(self), indent=1))
        draft.replace(path)


def load(folder: str | Path) -> Cluster:
    """The cluster that was started in a folder."""
    path = Path(folder).resolve() / STATE
    if not path.exists():
        raise ClusterError(f"no cluster was started in {folder} (no {STATE} there)")
    known = json.loads(path.read_text())
    known["props"] = [Property(**one) for one in known["props"]]
    known["brokers"] = {name: Process(**one) for name, one in known["brokers"].items()}
    for name in ("zookeeper", "controller", "network"):
        known[name] = Process(**known[name]) if known[name] else None
    return Cluster(**known)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One command at a time changes what is recorded of a cluster."""
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
