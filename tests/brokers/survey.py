"""The command check-versions: starts releases one after the other, passes messages through each with its own Java
tools, and prints a row of README's table for each."""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from pathlib import Path

from tests.brokers import control
from tests.brokers.cli import command
from tests.brokers.console import Console, ConsoleError
from tests.brokers.jars import resolve
from tests.brokers.model import Cluster, ClusterError, Topic
from tests.brokers.releases import version_tuple
from tests.brokers.start import Plan, start

RELEASES = (
    *("0.8.0", "0.8.1.1", "0.8.2.2", "0.9.0.1", "0.10.0.1", "0.10.2.2", "0.11.0.3", "1.1.1", "2.8.2"),
    *("3.9.2", "3.9.2+kraft", "4.3.1", "4.4.0"),
)
HEAD = (
    "| version | ready after | down after | RSS (broker + ZooKeeper) | Java console producer, and |\n"
    "|---|---|---|---|---|"
)


@command
def check_versions() -> int:
    """usage: check-versions [VERSION[+kraft] ...]"""
    print(HEAD, flush=True)
    bad = 0
    for wanted in sys.argv[1:] or RELEASES:
        with tempfile.TemporaryDirectory() as folder:
            row, is_good = _row(wanted, Path(folder) / "cluster")
        print(row, flush=True)
        bad += not is_good
    return 1 if bad else 0


def _row(wanted: str, folder: Path) -> tuple[str, bool]:
    version, _, kraft = wanted.partition("+")
    resolve(version)  # so that the time to fetch the jars is in no figure
    begun = time.monotonic()
    try:
        cluster = start(Plan(version, folder, topics=[Topic("t", partitions=2)], kraft=bool(kraft)))
    except ClusterError as error:
        return f"| {wanted} | does not start: {str(error).splitlines()[-1]} |", False
    ready = time.monotonic() - begun
    with contextlib.ExitStack() as at_end:
        at_end.callback(control.take_down, folder, at_once=True)
        results = _pass_messages(cluster)
        memory = " + ".join(str(row["rss_mib"]) for row in control.status(cluster))
        begun = time.monotonic()
        control.take_down(folder)
        down = time.monotonic() - begun
    row = f"| {wanted} | {ready:.1f} s | {down:.1f} s | {memory} MiB | {', '.join(results)} |"
    return row, all(result.endswith("ok") for result in results)


def _pass_messages(cluster: Cluster) -> list[str]:
    console = Console(cluster.version, str(cluster.bootstrap()), cluster.zookeeper_address)
    lines = [f"line {number}" for number in range(100)]
    try:
        console.produce("t", lines)
    except ConsoleError as error:
        return [f"producer FAILED {error}"]
    release = version_tuple(cluster.version)
    kinds = [("zookeeper", True)] * (release < (2,)) + [("kafka", False)] * (release >= (0, 9))
    results = []
    for name, through_zookeeper in kinds:
        try:
            got = console.consume("t", len(lines), through_zookeeper=through_zookeeper)
        except ConsoleError as error:
            results.append(f"{name} consumer FAILED {error}")
        else:
            results.append(f"{name} consumer {'ok' if sorted(got) == sorted(lines) else 'FAILED: other lines'}")
    return results
