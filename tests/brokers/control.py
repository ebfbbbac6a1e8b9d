"""What may be done to a running cluster: ending it, and acting on one of its processes."""

from __future__ import annotations

import contextlib
import signal
import time
from pathlib import Path
from typing import Any

from tests.brokers import containers, processes, readiness
from tests.brokers.model import Cluster, ClusterError, Process, load, locked
from tests.brokers.processes import end_all, is_alive, is_paused, launch, rss_mib, send_signal, wait_gone
from tests.brokers.start import clean_folder

PAUSE_S = 30
"""Within which a signal is obeyed; at once, but on a busy machine."""


def take_down(folder: Path, *, at_once: bool = False, remove: bool = False, timeout: float = 20) -> None:
    """End every recorded process: brokers first, then what they depend on. `remove` takes the files away too."""
    folder = folder.resolve()
    if not folder.is_dir():
        raise ClusterError(f"no cluster was started in {folder}")
    with locked(folder):
        known = load(folder).processes()
        behind = [known.pop(name) for name in ("controller", "zookeeper", "network") if name in known]
        end_all(known.values(), at_once=at_once, timeout=timeout)
        end_all(behind, at_once=at_once, timeout=timeout)
        if remove:
            containers.remove([*known.values(), *behind])
            clean_folder(folder)
    if remove:
        (folder / ".lock").unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # somebody else's files are in there: theirs to remove
            folder.rmdir()


def end_process(cluster: Cluster, name: str, number: int, timeout: float) -> None:
    """Signal one process to its end and return when it is gone."""
    process = cluster.process(name)
    send_signal(process, number)
    send_signal(process, signal.SIGCONT)
    if not wait_gone([process], timeout):
        raise ClusterError(f"{name} (pid {process.pid}) did not end in {timeout:.0f} s")


def set_paused(cluster: Cluster, name: str, paused: bool) -> None:
    """SIGSTOP or SIGCONT, and wait until it shows."""
    process = cluster.process(name)
    send_signal(process, signal.SIGSTOP if paused else signal.SIGCONT)
    end = time.monotonic() + PAUSE_S
    while is_paused(process) != paused:
        if time.monotonic() > end:
            raise ClusterError(f"{name} (pid {process.pid}) did not {'pause' if paused else 'go on'}")
        time.sleep(0.01)


def start_process(folder: Path, name: str, timeout: float, *, wait: bool = True) -> Process:
    """Start a stopped process again; unless told otherwise return when it answers."""
    cluster = load(folder)
    if cluster.mode == "zookeeper" and cluster.process(name) is not cluster.zookeeper:
        readiness.wait_unregistered(cluster, cluster.process(name))
    with locked(folder):
        cluster = load(folder)
        process = cluster.process(name)
        if is_alive(process):
            raise ClusterError(f"{name} is running already (pid {process.pid})")
        launch(process, folder)
        cluster.save()
    if wait and process is cluster.zookeeper:
        readiness.wait_zookeeper(cluster, process, timeout)
    elif wait and process is cluster.controller:
        readiness.wait_controller(cluster, process, timeout)
    elif wait:
        readiness.wait_brokers(cluster, [process.id], timeout)
    return process


def status(cluster: Cluster) -> list[dict[str, Any]]:
    """A row for each process."""
    rows = []
    for name, process in cluster.processes().items():
        state = "stopped"
        if is_alive(process):
            state = "paused" if is_paused(process) else "running"
        row = {"id": name, "state": state, "pid": process.pid, "port": process.port, "rss_mib": rss_mib(process)}
        rows.append(row | ({"container": process.container} if process.container else {}))
    return rows


def log(cluster: Cluster, name: str) -> str:
    """All that a process has logged."""
    return processes.log(cluster.process(name))
