"""The broker of `--brokers=HOST:PORT`: for tests which want one broker of its release, whatever its configuration.

Its release is found out by the client itself. It is not ours: tests that kill, stop or look into their broker, or want
another release or another cluster, are skipped, all with one line.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import anyio
import pytest

from pykafka08.cluster.client import Client
from pykafka08.config import ClientConfig, parse_bootstrap_servers
from pykafka08.errors import UnsupportedVersionError
from pykafka08.group.old_releases import UNCERTAIN, versions_of_0_8
from tests.brokers import probe
from tests.brokers.jars import resolve
from tests.brokers.model import Cluster, ClusterError, Topic
from tests.brokers.releases import Version, version_tuple
from tests.brokers.tools import release_tool_command
from tests.brokers.topics import tool_words
from tests.integration.clusters import RELEASES, Clusters, RealCluster

ANSWER_S = 20
TOOL_S = 60


async def release_told(address: str) -> str:
    """The release of the broker as its answers tell it, without the last number: 0.8.2, 2.8, 4.3."""
    config = ClientConfig(bootstrap_servers=parse_bootstrap_servers(address), default_api_timeout_ms=ANSWER_S * 1000)
    async with Client(config) as client:
        if not client.metadata.brokers:  # 0.8 names none before there is a topic
            await client.wait_for_topics(["pykafka08-tests"])
        brokers = client.metadata.brokers
        node = next((one.node_id for one in brokers.values() if f"{one.host}:{one.port}" == address), min(brokers))
        versions = await client.versions(node)
        if versions.release_guess != UNCERTAIN:
            return versions.release_guess
        try:
            told = await versions_of_0_8(client, node, "pykafka08-tests", anyio.current_time() + ANSWER_S)
        except UnsupportedVersionError:
            return "0.8.0"
        return told.release_guess


def stands_for(told: str) -> str:
    """The newest of our releases that is not newer: its tools and tests serve the broker."""
    return [release for release in RELEASES if version_tuple(release)[: told.count(".") + 1] <= version_tuple(told)][-1]


class AddressedCluster(RealCluster):
    """One broker that was there before and stays; with the address of its ZooKeeper, if it was given."""

    def __init__(self, folder: Path, address: str, zookeeper: str | None) -> None:
        super().__init__(folder)
        self._address = address
        self._zookeeper = zookeeper
        self._version = stands_for(anyio.run(release_told, address))  # now: later there may be a loop running

    @property
    def version(self) -> str:
        return self._version

    @property
    def release(self) -> Version:
        return version_tuple(self.version)

    @property
    def bootstrap(self) -> str:
        return self._address

    @property
    def zookeeper(self) -> str | None:
        return self._zookeeper

    def new_topic(self, prefix: str, partitions: int = 1, replicas: int = 1, **configs: str) -> str:
        """As for a cluster of ours, with the release's own tool; the name is new in every session."""
        name = f"{prefix}-{self.folder.name}-{next(self._names)}"
        if self.release >= (2, 2):
            where = ["--bootstrap-server", self._address]
        elif self._zookeeper is not None:
            where = ["--zookeeper", self._zookeeper]
        else:
            self.is_not_ours("topics of this release are made through its ZooKeeper, see --zookeeper")
        words = tool_words(str(resolve(self.version)), where, Topic(name, partitions, replicas, configs))
        command = release_tool_command(self.version, "topics", *words)
        run = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_S, check=False)
        if run.returncode or "Error" in run.stdout:
            raise ClusterError(f"topic {name} could not be made ({run.returncode}):\n{run.stdout}{run.stderr}")
        self._wait_for(name, partitions)
        return name

    def _wait_for(self, topic: str, partitions: int) -> None:
        """Until the broker knows a leader for each partition, and serves them if it is alone."""
        host, _, port = self._address.rpartition(":")
        at, end = (host, int(port)), time.monotonic() + ANSWER_S
        while True:
            view = probe.metadata(at, self.release, [topic])
            led = [one.partition for one in view.topics.get(topic, []) if one.leader >= 0]
            if len(led) == partitions and (
                len(view.brokers) > 1 or all(probe.serves(at, self.release, topic, one) for one in led)
            ):
                return
            if time.monotonic() > end:
                raise ClusterError(f"topic {topic}: {len(led)} of {partitions} partitions are led after {ANSWER_S} s")
            time.sleep(0.1)

    def recorded(self) -> Cluster:
        """What only a cluster that was started here can be asked."""
        self.is_not_ours("the test acts on its cluster, or wants one with other settings or of another release")

    def is_not_ours(self, why: str) -> NoReturn:
        pytest.skip(f"{self._address} is a Kafka {self.version} that is not ours: {why}")


class AddressedClusters(Clusters):
    """Gives that one broker to who asks for no more than one of its release."""

    def __init__(self, folder: Path, address: str, zookeeper: str | None) -> None:
        super().__init__(folder)
        self._given = AddressedCluster(folder, address, zookeeper)

    def running(
        self, version: str, brokers: int = 1, props: Sequence[str] = (), options: Sequence[str] = ()
    ) -> RealCluster:
        if version != self._given.version or brokers > 1 or props or options:
            self._given.recorded()
        return self._given
