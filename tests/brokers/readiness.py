"""Waiting, each time with a bound, for ports, ZooKeeper, controllers, brokers and topics."""

from __future__ import annotations

import fcntl
import random
import re
import socket
import struct
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import IO

from tests.brokers import probe
from tests.brokers.jars import cache_root
from tests.brokers.model import HOST, PORTS_PER_CLUSTER, Cluster, ClusterError, Process, Topic
from tests.brokers.processes import is_alive, tail

FIRST_PORT, PORT_END = 10_000, 32_000  # below the range that Linux gives to outgoing connections


def port_free(port: int) -> bool:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError:
            return False
        return True


def free_base_port() -> tuple[int, IO[str]]:
    """A block of free ports, with the open file that keeps others off it until this cluster's processes listen."""
    locks = cache_root() / "ports"
    locks.mkdir(parents=True, exist_ok=True)
    for _ in range(200):
        base = random.randrange(FIRST_PORT, PORT_END, PORTS_PER_CLUSTER)
        lock = (locks / str(base)).open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            continue
        if all(port_free(base + offset) for offset in range(PORTS_PER_CLUSTER)):
            return base, lock
        lock.close()
    raise ClusterError(f"found no free block of ports below {PORT_END}")


def failure(cluster: Cluster, process: Process, why: str) -> ClusterError:
    return ClusterError(
        f"{process.name} of Kafka {cluster.version} {why}; the end of {process.log or 'its log'}:\n{tail(process)}"
    )


def wait_until(
    is_ready: Callable[[], str | None], cluster: Cluster, process: Process, timeout: float, pause: float = 0.05
) -> None:
    """Until `is_ready` returns None; else it says what is missing. Ends early when the process is gone."""
    end = time.monotonic() + timeout
    while True:
        if not is_alive(process):
            raise failure(cluster, process, "exited")
        missing = is_ready()
        if missing is None:
            return
        if time.monotonic() > end:
            raise failure(cluster, process, f"was not ready in {timeout:.0f} s ({missing})")
        time.sleep(pause)


def zookeeper_says(cluster: Cluster, word: str) -> str:
    """ZooKeeper's answer to one of its four-letter words."""
    with socket.create_connection((HOST, cluster.base_port), timeout=2) as connection:
        connection.sendall(word.encode())
        answer = b""
        while chunk := connection.recv(4096):
            answer += chunk
    return answer.decode(errors="replace")


def registered(cluster: Cluster) -> set[int]:
    """Ids of the brokers that ZooKeeper holds a (perhaps expiring) registration of."""
    path = re.escape(cluster.chroot) + r"/brokers/ids/(\d+)\s"
    dump = zookeeper_says(cluster, "dump") + "\n"
    return {int(ident) for ident in re.findall(r"(?m)^\s*" + path, dump)}


def wait_unregistered(cluster: Cluster, process: Process, timeout: float = 30) -> None:
    """Until ZooKeeper has forgotten a killed broker: 0.9 and later refuse to start before."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        try:
            if process.id not in registered(cluster):
                return
        except TimeoutError:
            pass  # it is slow
        except OSError:
            return  # no ZooKeeper, no registration to wait for
        time.sleep(0.1)


def wait_zookeeper(cluster: Cluster, process: Process, timeout: float) -> None:
    def missing() -> str | None:
        try:
            return None if "Mode:" in zookeeper_says(cluster, "srvr") else "it serves no clients yet"
        except OSError as error:
            return repr(error)

    wait_until(missing, cluster, process, timeout)


def wait_controller(cluster: Cluster, process: Process, timeout: float) -> None:
    wait_until(lambda: "it does not listen" if port_free(cluster.base_port) else None, cluster, process, timeout)


def wait_brokers(cluster: Cluster, idents: Iterable[int], timeout: float) -> None:
    """Until each of these brokers answers Metadata and knows them all."""
    wanted = set(idents)

    def missing(process: Process) -> str | None:
        for other in cluster.processes().values():
            if (other is cluster.controller or other.id in wanted) and not is_alive(other):
                raise failure(cluster, other, "exited")
        try:
            view = probe.metadata(cluster.port(process.id), cluster.release)
            # before 0.9 a broker names no broker until there is a topic
            known = registered(cluster) if cluster.release < (0, 9) else view.brokers
        except (OSError, struct.error, KeyError) as error:
            return repr(error)
        if wanted <= known and (view.controller is None or view.controller >= 0):
            return None
        return f"it names brokers {sorted(known)}, controller {view.controller}"

    end = time.monotonic() + timeout
    for ident in sorted(wanted):
        process = cluster.brokers[str(ident)]
        wait_until(partial(missing, process), cluster, process, max(1.0, end - time.monotonic()), 0.15)


def wait_topics(cluster: Cluster, topics: list[Topic], timeout: float = 60) -> None:
    """Until every broker sees every partition led and in sync, and every leader answers for it."""
    end = time.monotonic() + timeout
    while True:
        try:
            pending = _topics_missing(cluster, topics)
        except (OSError, struct.error) as error:
            pending = repr(error)
        if pending is None:
            return
        if time.monotonic() > end:
            raise ClusterError(f"topics not ready after {timeout:.0f} s: {pending}")
        time.sleep(0.1)


def _topics_missing(cluster: Cluster, topics: list[Topic]) -> str | None:
    names = [topic.name for topic in topics]
    leaders: set[tuple[str, int, int]] = set()
    for broker in cluster.brokers:
        view = probe.metadata(cluster.port(int(broker)), cluster.release, names)
        for topic in topics:
            partitions = view.topics.get(topic.name, [])
            good = [one for one in partitions if one.leader >= 0 and len(one.isr) == topic.replicas]
            if len(good) < topic.partitions:
                return f"{topic.name}: {len(good)} of {topic.partitions} partitions led and in sync"
            leaders.update((topic.name, one.partition, one.leader) for one in good)
    for name, partition, leader in sorted(leaders):
        if not probe.serves(cluster.port(leader), cluster.release, name, partition):
            return f"{name}: broker {leader} does not lead partition {partition} yet"
    return None
