"""The fixtures themselves: what they start they end, by pid or container, whatever ended the session."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.brokers.model import load
from tests.brokers.processes import is_alive
from tests.brokers.properties import common_properties
from tests.brokers.releases import version_tuple
from tests.integration.clusters import RELEASES, Clusters, end_leftovers, session_folder

STARTED_AND_ABANDONED = """
import os, sys
from pathlib import Path
from tests.integration.clusters import Clusters, session_folder

folder = session_folder(os.getpid(), Path(sys.argv[1]))
folder.mkdir(parents=True)
print(Clusters(folder, sys.argv[2:]).running("0.8.2.2").folder, flush=True)
os.kill(os.getpid(), 9)
"""


pytestmark = pytest.mark.cluster(release="0.8.2.2")


def test_a_killed_session_s_brokers_are_ended_by_the_next_one(clusters: Clusters, tmp_path: Path) -> None:
    clusters.take_down()
    command = [sys.executable, "-c", STARTED_AND_ABANDONED, str(tmp_path), *clusters.options]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    assert run.returncode == -signal.SIGKILL
    folder = Path(run.stdout.strip())
    processes = load(folder).processes()
    assert {"1", "zookeeper"} <= set(processes)
    assert all(is_alive(process) for process in processes.values())
    own = session_folder(os.getpid(), tmp_path) / "0"
    own.mkdir(parents=True)

    assert end_leftovers(tmp_path) == [folder]

    assert not any(is_alive(process) for process in processes.values())
    assert not folder.exists()
    assert own.exists(), "a living session's folder was touched"


def test_one_cluster_at_a_time_and_the_same_one_while_it_is_whole(clusters: Clusters) -> None:
    first = clusters.running("0.8.2.2")
    processes = load(first.folder).processes()
    assert clusters.running("0.8.2.2") is first
    first.kill(1)
    second = clusters.running("0.8.2.2")
    assert second is not first
    assert not any(is_alive(process) for process in processes.values())
    assert second.is_whole()


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_java_tools_pass_records_and_the_log_is_readable(clusters: Clusters, codec: str) -> None:
    kafka = clusters.running("0.8.2.2")
    topic = kafka.new_topic("java")
    lines = [f"{codec} {number}" for number in range(100)]
    kafka.java_produce(topic, lines, codec)
    assert kafka.java_consume(topic, len(lines)) == lines
    assert kafka.leader(topic, 0, asked=1) == 1
    assert kafka.in_sync(topic) == [1]
    assert f"[{topic},0]" in kafka.log(1)


@pytest.mark.parametrize("release", RELEASES)
def test_records_dated_long_ago_are_kept(release: str) -> None:
    """By default a broker deletes them half a minute after its start: tests on a slow machine would find nothing."""
    kept_ms = int(common_properties(version_tuple(release), 1)["log.retention.hours"]) * 3_600_000
    assert kept_ms > time.time() * 1000, "as long as there has been Unix time"
